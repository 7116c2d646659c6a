"""Builds the rows of the list of problems: what each is, why it is listed, and which acts help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from config.core.ids import encode
from pipeline import labels
from pipeline.generate import raw_item_outcomes, recoverable_failures
from pipeline.models import Publication, PublicationStatus, RawItemStatus, SourceStatus
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.pages.items import display, next_actions
from pipeline.pages.items.next_actions import NextAction
from pipeline.review import explanation
from pipeline.schedule import recovery
from pipeline.states import EDITABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.pages.page_access import Place
    from pipeline.models import InboundDelivery, Mailing, Outlet, PersonaDraft, RawItem, Source
    from pipeline.publish.blockers import Blocker

MAX_EXPLAINED: Final = 15
"""The most late publications whose blockers are found, at a few SQL queries each; the others link to their item."""


@dataclass(frozen=True)
class FailureRow:
    """A row of the list of problems.

    `token` names the row and its version for an act; it is empty if no act of this page helps. `acts` are the
    acts that help, `at` is when the row failed, was due or began, and `link` is the address of its page.
    """

    title: str
    at: datetime | None
    tone: str
    label: str
    why: str
    link: str = ""
    about: str = ""
    """What the row belongs to: its outlet, platform, engine output or source."""
    advice: str = ""
    """What a person can do if a retry can't help."""
    whose: labels.Badge = labels.NO_BADGE
    """The badge that says whose task it is to solve the problem."""
    until: datetime | None = None
    """When the row is tried again or its blocker ends, if that is known."""
    token: str = ""
    acts: frozenset[str] = frozenset()
    move: str = ""
    """The address of the page that reschedules a publication."""
    action: NextAction | None = None
    """The link to the page that removes the blocker."""
    cancel_label: str = ""
    """The label of the cancel button: a failed publication is dismissed, because it isn't scheduled any more."""

    @property
    def can_retry(self) -> bool:
        return recovery.RETRY in self.acts

    @property
    def can_cancel(self) -> bool:
        return recovery.CANCEL in self.acts

    @property
    def can_time(self) -> bool:
        return recovery.AT in self.acts

    @property
    def retry_label(self) -> str:
        """The label of the retry button; an unknown outcome is looked up first."""
        return _("Check status") if self.label == str(labels.PUBLICATIONS["unknown"].label) else _("Retry")


_SCHEDULE_ACTS: Final = frozenset({recovery.NEXT, recovery.AT, recovery.CANCEL})
_RETRY_ACTS: Final = frozenset({recovery.RETRY})


def _version_token(prefix: str, key: UUID, version: int) -> str:
    return f"{encode(prefix, key)}:{version}"


def _message_of(error: Mapping[str, Any] | None, default: str = "") -> str:
    """Return the message of a stored error without ids of items, or `default` if it has none."""
    return display.without_ids(str((error or {}).get("message", ""))) or default


def _advice_if_final(error: Mapping[str, Any] | None) -> str:
    """Return the stored advice if a retry can't help, else an empty text."""
    return str((error or {}).get("action", "")) if recoverable_failures.is_final(error) else ""


def _title(row: Any) -> str:
    return row.title or row.excerpt or _("Untitled")


# --- Publications ----------------------------------------------------------------------------------------------------


def build_late_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of late publications, the first `MAX_EXPLAINED` with their first blocker.

    A publication that was deleted meanwhile is left out.
    """
    keys = [row.pk for row in rows]
    publications = Publication.objects.of(place.workspace).select_related(
        "item__raw_item", "outlet", "workspace", "queue"
    )
    publications_by_id = {row.pk: row for row in publications.filter(pk__in=keys)} if keys else {}
    return [
        _late_row(place, publications_by_id[key], now, is_explained=index < MAX_EXPLAINED)
        for index, key in enumerate(keys)
        if key in publications_by_id
    ]


def _late_row(place: Place, row: Publication, now: datetime, *, is_explained: bool) -> FailureRow:
    """Return the row of a late publication; with `is_explained`, its first blocker is found."""
    blocker = next(explanation.blockers_of(row, now), None) if is_explained else None
    is_by_hand = row.is_handed_over
    is_scheduled = row.status == PublicationStatus.SCHEDULED
    label = _("Post manually") if is_by_hand else _("Late") if is_scheduled else _("Publishing")
    return FailureRow(
        title=_title(row.item),
        at=row.due_at,
        tone="info" if row.status == PublicationStatus.PUBLISHING and not is_by_hand else "warn",
        label=label,
        why=_why_late(row, blocker, is_by_hand=is_by_hand, is_explained=is_explained),
        link=place.url_of("item_page", gen=row.item_id),
        about=row.outlet.name,
        until=blocker.until if blocker is not None else None,
        token=_version_token("pub", row.pk, row.version) if is_scheduled else "",
        acts=_SCHEDULE_ACTS if is_scheduled else frozenset(),
        cancel_label=_("Unschedule"),
        move=place.url_of("calendar_move", pub=row.pk) if is_scheduled else "",
        action=_action_when_late(place, row, blocker, is_by_hand=is_by_hand),
    )


def _why_late(row: Publication, blocker: Blocker | None, *, is_by_hand: bool, is_explained: bool) -> str:
    if is_by_hand:
        return _("Post it manually, then mark it posted.")
    if blocker is not None:
        return blocker.message
    if is_explained:
        return _("Publishing shortly")
    return _message_of(row.waits_for or row.error, _("Open it to see what blocks it."))


def _action_when_late(
    place: Place, row: Publication, blocker: Blocker | None, *, is_by_hand: bool
) -> NextAction | None:
    """Return the link to the page that removes the blocker, or `None` if there is none or this page removes it."""
    if is_by_hand:
        address = place.url_of("package", pub=row.pk)
        return NextAction(_("Post manually"), address, is_post=False) if place.may_edit else None
    if blocker is None:
        return None
    if blocker.code in {"needs_reconnect", "outlet_disabled"}:
        return NextAction(_("View outlet"), place.url_of("outlet_page", out=row.outlet_id), is_post=False)
    action = next_actions.next_action_for(place, row.item, blocker)
    if action is None or action.address == place.url_of("item_publish", gen=row.item_id):
        # This page has its own form to reschedule the publication.
        return None
    return (
        NextAction(action.label, place.url_of("item_page", gen=row.item_id), is_post=False)
        if action.is_post
        else action
    )


def build_failed_rows(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """Build the rows of publications that failed or whose outcome is unknown."""
    del now
    return [_failed_row(place, row) for row in rows]


def _failed_row(place: Place, row: Publication) -> FailureRow:
    """Return the row of a publication that failed or whose outcome is unknown."""
    tone, _icon, label = labels.PUBLICATIONS[row.status]
    error: Mapping[str, Any] = row.error or {}
    is_unknown = row.status == PublicationStatus.UNKNOWN
    error_class = str(error.get("class", ""))
    whose = labels.NO_BADGE
    if not is_unknown and error_class != "retry":
        whose = labels.FAILURE_CLASSES.get(error_class, labels.NO_BADGE)
    return FailureRow(
        title=_title(row.item),
        at=row.updated_at,
        tone=tone,
        label=str(label),
        why=_message_of(error, _("No reason recorded.")),
        link=place.url_of("item_page", gen=row.item_id),
        about=row.outlet.name,
        advice=str(error.get("action") or ""),
        whose=whose,
        until=row.next_attempt_at if is_unknown else None,
        token=_version_token("pub", row.pk, row.version),
        acts=_RETRY_ACTS if is_unknown else _RETRY_ACTS | _SCHEDULE_ACTS,
        cancel_label=_("Dismiss"),
        action=_action_when_failed(place, row, error_class),
    )


def _action_when_failed(place: Place, row: Publication, error_class: str) -> NextAction | None:
    """Return the link to what must change before a retry can succeed, or `None` if a retry alone may help."""
    if error_class == "account":
        return NextAction(_("View outlet"), place.url_of("outlet_page", out=row.outlet_id), is_post=False)
    if error_class == "content" and place.may_edit and row.item.status in EDITABLE_ITEMS:
        return NextAction(_("Edit"), place.url_of("item_edit", gen=row.item_id), is_post=False)
    return None


# --- Generation ------------------------------------------------------------------------------------------------------


def build_failed_item_rows(place: Place, rows: Sequence[Any], now: datetime) -> list[FailureRow]:
    """Build the rows of items whose generation failed."""
    del now
    errors = recoverable_failures.current_errors(place.workspace, {row.pk: row.error for row in rows})
    return [_failed_item_row(place, row, errors[row.pk]) for row in rows]


def _failed_item_row(place: Place, row: Any, error: Mapping[str, Any] | None) -> FailureRow:
    """Return the row of an item whose generation failed; it can be retried unless the error is final."""
    tone, _icon, label = labels.GENERATED_ITEMS["failed"]
    is_final = recoverable_failures.is_final(error)
    return FailureRow(
        title=display.title_of(row),
        at=row.updated_at,
        tone=tone,
        label=str(label),
        why=_message_of(error, _("No reason recorded.")),
        link=place.url_of("item_page", gen=row.pk),
        about=row.engine_output,
        advice=_advice_if_final(error),
        token="" if is_final else _version_token("gen", row.pk, row.version),
        acts=frozenset() if is_final else _RETRY_ACTS,
        action=NextAction(_("Create variant"), place.url_of("item_regenerate", gen=row.pk), is_post=False)
        if recoverable_failures.can_variant_differ(error)
        else None,
    )


def build_generating_rows(place: Place, rows: Sequence[Any], now: datetime) -> list[FailureRow]:
    """Build the rows of items that are still being generated, each with what its run waits for."""
    del now
    return [
        FailureRow(
            title=display.title_of(row),
            at=row.created_at,
            tone="warn",
            label=str(labels.GENERATED_ITEMS[row.status].label),
            why=_message_of(row.generation.error, _("Queued")),
            link=place.url_of("item_page", gen=row.pk),
            about=row.engine_output,
            until=row.generation.wake_at,
        )
        for row in rows
    ]


def build_raw_item_rows(place: Place, rows: Sequence[RawItem], now: datetime) -> list[FailureRow]:
    """Build the rows of raw items that failed or wait for credits."""
    del now
    reasons = raw_item_outcomes.current_reasons(place.workspace, rows)
    return [_raw_item_row(place, row, reasons[row.pk]) for row in rows]


def _raw_item_row(place: Place, row: RawItem, reason: Mapping[str, Any] | None) -> FailureRow:
    """Return the row of a raw item; it can be retried unless the reason is final."""
    is_final = recoverable_failures.is_final(reason)
    return FailureRow(
        title=row.title or row.url or _("Untitled"),
        at=row.updated_at,
        tone="bad" if row.status == RawItemStatus.FAILED else "warn",
        label=_("Failed") if row.status == RawItemStatus.FAILED else _("Waiting for credits"),
        why=_message_of(reason, _("No reason recorded.")),
        link=place.url_of("made", raw=row.pk),
        about=labels.origin_of(row.source.name, row.external_id, is_push=row.source.is_push),
        advice=_advice_if_final(reason),
        until=row.wake_at if row.status == RawItemStatus.WAITING_QUOTA else None,
        token="" if is_final else _version_token("raw", row.pk, row.version),
        acts=frozenset() if is_final else _RETRY_ACTS,
        action=NextAction(_("View credits"), place.url_of("usage"), is_post=False)
        if row.status == RawItemStatus.WAITING_QUOTA
        else None,
    )


def build_draft_rows(place: Place, rows: Sequence[PersonaDraft], now: datetime) -> list[FailureRow]:
    """Build the rows of persona drafts that failed."""
    del now
    return [
        FailureRow(
            title=row.url or _("Draft from posts"),
            at=row.created_at,
            tone="bad",
            label=_("Failed"),
            why=_message_of(row.error, _("No reason recorded.")),
            link=place.url_of("persona_draft", pdr=row.pk) if place.may_edit else "",
            token=_version_token("pdr", row.pk, 0),
            acts=_RETRY_ACTS,
        )
        for row in rows
    ]


# --- Sources, outlets, mailings and deliveries -----------------------------------------------------------------------


def build_source_rows(place: Place, rows: Sequence[Source], now: datetime) -> list[FailureRow]:
    """Build the rows of sources that fail or are gone."""
    del now
    return [
        FailureRow(
            title=row.name,
            at=row.failing_since,
            tone="bad" if row.status == SourceStatus.GONE else "warn",
            label=_("Gone") if row.status == SourceStatus.GONE else _("Failing"),
            why=_message_of(row.last_error, _("No reason recorded.")),
            link=place.url_of("source_page", src=row.pk),
            until=row.wake_at,
            token=_version_token("src", row.pk, row.version),
            acts=_RETRY_ACTS,
        )
        for row in rows
    ]


def build_outlet_rows(place: Place, rows: Sequence[Outlet], now: datetime) -> list[FailureRow]:
    """Build the rows of outlets that must be reconnected."""
    del now
    failure_rows = []
    for row in rows:
        platform = platform_if_known(row.platform)
        failure_rows.append(
            FailureRow(
                title=row.name,
                at=row.updated_at,
                tone="bad",
                label=_("Reconnect needed"),
                why=_message_of(row.last_error, _("Log-in expired.")),
                link=place.url_of("outlet_page", out=row.pk),
                about=str(platform.label) if platform is not None else row.platform,
                action=NextAction(_("Reconnect"), place.url_of("outlet_reconnect", out=row.pk), is_post=False)
                if place.may_manage
                else None,
            )
        )
    return failure_rows


def build_mailing_rows(place: Place, rows: Sequence[Mailing], now: datetime) -> list[FailureRow]:
    """Build the rows of stopped mailings; the page that each links to resumes it."""
    del now
    return [
        FailureRow(
            title=row.subject or _("Untitled"),
            at=row.updated_at,
            tone="warn",
            label=_("Stopped"),
            why=_message_of(row.error, _("No reason recorded.")),
            about=row.outlet.name,
            action=NextAction(
                _("View progress"), place.url_of("subscribers", out=row.outlet_id), is_post=False
            )
            if place.may_edit
            else None,
        )
        for row in rows
    ]


def build_delivery_rows(place: Place, rows: Sequence[InboundDelivery], now: datetime) -> list[FailureRow]:
    """Build the rows of failed deliveries; the page that each links to replays it."""
    del now
    return [
        FailureRow(
            title=_("Delivery to %(source)s") % {"source": row.source.name},
            at=row.created_at,
            tone="bad",
            label=_("No content"),
            why=_message_of(row.reason, _("No reason recorded.")),
            link=place.url_of("source_delivery", src=row.source_id, ind=row.pk),
        )
        for row in rows
    ]
