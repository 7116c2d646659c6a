"""One row of the list as a person reads it: what it is, why it is here, and what clears it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from config.core.ids import encode
from pipeline import labels, publish
from pipeline.generate import raw_item_outcomes, retry_rules
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

EXPLAINED: Final = 15
"""Late publications whose causes are worked out; each costs a few statements. The others lead to their item."""


@dataclass(frozen=True)
class FailureRow:
    """`token` names it with its version for an act, empty where no act of this page helps. `acts` are those that do."""

    title: str
    at: datetime | None
    tone: str
    label: str
    why: str
    link: str = ""
    about: str = ""
    advice: str = ""
    whose: labels.Badge = labels.NO_BADGE
    """Whose a failure is."""
    until: datetime | None = None
    token: str = ""
    acts: frozenset[str] = frozenset()
    move: str = ""
    """The page that gives it another time."""
    action: NextAction | None = None
    """Where to go to take away what it waits for."""
    cancel_said: str = ""
    """What cancelling it is called: what has failed already isn't scheduled any more."""

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
    def retry_said(self) -> str:
        return _("Check status") if self.label == str(labels.PUBLICATIONS["unknown"].label) else _("Retry")


_TIMED: Final = frozenset({recovery.NEXT, recovery.AT, recovery.CANCEL})
_AGAIN: Final = frozenset({recovery.RETRY})


def _token(prefix: str, key: UUID, version: int) -> str:
    return f"{encode(prefix, key)}:{version}"


def _said(error: Mapping[str, Any] | None, otherwise: str = "") -> str:
    return display.without_ids(str((error or {}).get("message", ""))) or otherwise


def _what_helps(error: Mapping[str, Any] | None) -> str:
    """What helps where trying again can't; empty where it can."""
    return str((error or {}).get("action", "")) if retry_rules.is_final(error) else ""


def _title(row: Any) -> str:
    return row.title or row.excerpt or _("Untitled")


# --- Publications ----------------------------------------------------------------------------------------------------


def late(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    """With the first thing that is in the way of each, as `explain` has it."""
    keys = [row.pk for row in rows]
    there = Publication.objects.of(place.workspace).select_related(
        "item__raw_item", "outlet", "workspace", "queue"
    )
    whole = {row.pk: row for row in there.filter(pk__in=keys)} if keys else {}
    return [
        _late(place, whole[key], now, is_explained=number < EXPLAINED)
        for number, key in enumerate(keys)
        if key in whole
    ]


def _late(place: Place, row: Publication, now: datetime, *, is_explained: bool) -> FailureRow:
    blocker = next(explanation.blockers_of(row, now), None) if is_explained else None
    is_by_hand = publish.is_handed_over(row)
    is_scheduled = row.status == PublicationStatus.SCHEDULED
    label = _("Post manually") if is_by_hand else _("Late") if is_scheduled else _("Publishing")
    return FailureRow(
        title=_title(row.item),
        at=row.due_at,
        tone="info" if row.status == PublicationStatus.PUBLISHING and not is_by_hand else "warn",
        label=label,
        why=_why_late(row, blocker, is_by_hand=is_by_hand, is_explained=is_explained),
        link=place.address("item_page", gen=row.item_id),
        about=row.outlet.name,
        until=blocker.until if blocker is not None else None,
        token=_token("pub", row.pk, row.version) if is_scheduled else "",
        acts=_TIMED if is_scheduled else frozenset(),
        cancel_said=_("Unschedule"),
        move=place.address("calendar_move", pub=row.pk) if is_scheduled else "",
        action=_action_when_late(place, row, blocker, is_by_hand=is_by_hand),
    )


def _why_late(row: Publication, blocker: Blocker | None, *, is_by_hand: bool, is_explained: bool) -> str:
    if is_by_hand:
        return _("Post it manually, then mark it posted.")
    if blocker is not None:
        return blocker.message
    if is_explained:
        return _("Publishing shortly")
    return _said(row.waits_for or row.error, _("Open it to see what blocks it."))


def _action_when_late(
    place: Place, row: Publication, blocker: Blocker | None, *, is_by_hand: bool
) -> NextAction | None:
    if is_by_hand:
        address = place.address("package", pub=row.pk)
        return NextAction(_("Post manually"), address, is_post=False) if place.may_edit else None
    if blocker is None:
        return None
    if blocker.code in {"needs_reconnect", "outlet_disabled"}:
        return NextAction(_("View outlet"), place.address("outlet_page", out=row.outlet_id), is_post=False)
    found = next_actions.next_action_for(place, row.item, blocker)
    if found is None or found.address == place.address("item_publish", gen=row.item_id):
        # Another time is given here.
        return None
    return (
        NextAction(found.label, place.address("item_page", gen=row.item_id), is_post=False)
        if found.is_post
        else found
    )


def failed(place: Place, rows: Sequence[Publication], now: datetime) -> list[FailureRow]:
    del now
    return [_failed(place, row) for row in rows]


def _failed(place: Place, row: Publication) -> FailureRow:
    tone, _icon, label = labels.PUBLICATIONS[row.status]
    error: Mapping[str, Any] = row.error or {}
    is_unknown = row.status == PublicationStatus.UNKNOWN
    whose = str(error.get("class", ""))
    return FailureRow(
        title=_title(row.item),
        at=row.updated_at,
        tone=tone,
        label=str(label),
        why=_said(error, _("No reason recorded.")),
        link=place.address("item_page", gen=row.item_id),
        about=row.outlet.name,
        advice=str(error.get("action") or ""),
        whose=labels.NO_BADGE
        if is_unknown or whose == "retry"
        else labels.FAILURE_CLASSES.get(whose, labels.NO_BADGE),
        until=row.next_attempt_at if is_unknown else None,
        token=_token("pub", row.pk, row.version),
        acts=_AGAIN if is_unknown else _AGAIN | _TIMED,
        cancel_said=_("Dismiss"),
        action=_action_when_failed(place, row, whose),
    )


def _action_when_failed(place: Place, row: Publication, whose: str) -> NextAction | None:
    """To what has to change before another try can end otherwise."""
    if whose == "account":
        return NextAction(_("View outlet"), place.address("outlet_page", out=row.outlet_id), is_post=False)
    if whose == "content" and place.may_edit and row.item.status in EDITABLE_ITEMS:
        return NextAction(_("Edit"), place.address("item_edit", gen=row.item_id), is_post=False)
    return None


# --- What was to be made ---------------------------------------------------------------------------------------------


def not_made(place: Place, rows: Sequence[Any], now: datetime) -> list[FailureRow]:
    del now
    errors = retry_rules.current_errors(place.workspace, {row.pk: row.error for row in rows})
    return [_not_made(place, row, errors[row.pk]) for row in rows]


def _not_made(place: Place, row: Any, error: Mapping[str, Any] | None) -> FailureRow:
    tone, _icon, label = labels.GENERATED_ITEMS["failed"]
    is_final = retry_rules.is_final(error)
    return FailureRow(
        title=display.title_of(row),
        at=row.updated_at,
        tone=tone,
        label=str(label),
        why=_said(error, _("No reason recorded.")),
        link=place.address("item_page", gen=row.pk),
        about=row.engine_output,
        advice=_what_helps(error),
        token="" if is_final else _token("gen", row.pk, row.version),
        acts=frozenset() if is_final else _AGAIN,
        action=NextAction(_("Create variant"), place.address("item_regenerate", gen=row.pk), is_post=False)
        if retry_rules.can_variant_differ(error)
        else None,
    )


def long_made(place: Place, rows: Sequence[Any], now: datetime) -> list[FailureRow]:
    """Its run says what it waits for, such as a cap or an answer."""
    del now
    return [
        FailureRow(
            title=display.title_of(row),
            at=row.created_at,
            tone="warn",
            label=str(labels.GENERATED_ITEMS[row.status].label),
            why=_said(row.generation.error, _("Queued")),
            link=place.address("item_page", gen=row.pk),
            about=row.engine_output,
            until=row.generation.wake_at,
        )
        for row in rows
    ]


def raw(place: Place, rows: Sequence[RawItem], now: datetime) -> list[FailureRow]:
    del now
    reasons = raw_item_outcomes.current_reasons(place.workspace, rows)
    return [_raw(place, row, reasons[row.pk]) for row in rows]


def _raw(place: Place, row: RawItem, reason: Mapping[str, Any] | None) -> FailureRow:
    is_final = retry_rules.is_final(reason)
    return FailureRow(
        title=row.title or row.url or _("Untitled"),
        at=row.updated_at,
        tone="bad" if row.status == RawItemStatus.FAILED else "warn",
        label=_("Failed") if row.status == RawItemStatus.FAILED else _("Waiting for credits"),
        why=_said(reason, _("No reason recorded.")),
        link=place.address("made", raw=row.pk),
        about=labels.origin_of(row.source.name, row.external_id, is_push=row.source.is_push),
        advice=_what_helps(reason),
        until=row.wake_at if row.status == RawItemStatus.WAITING_QUOTA else None,
        token="" if is_final else _token("raw", row.pk, row.version),
        acts=frozenset() if is_final else _AGAIN,
        action=NextAction(_("View credits"), place.address("usage"), is_post=False)
        if row.status == RawItemStatus.WAITING_QUOTA
        else None,
    )


def drafts(place: Place, rows: Sequence[PersonaDraft], now: datetime) -> list[FailureRow]:
    del now
    return [
        FailureRow(
            title=row.url or _("Draft from posts"),
            at=row.created_at,
            tone="bad",
            label=_("Failed"),
            why=_said(row.error, _("No reason recorded.")),
            link=place.address("persona_draft", pdr=row.pk) if place.may_edit else "",
            token=_token("pdr", row.pk, 0),
            acts=_AGAIN,
        )
        for row in rows
    ]


# --- Where it comes from and goes ------------------------------------------------------------------------------------


def sources(place: Place, rows: Sequence[Source], now: datetime) -> list[FailureRow]:
    del now
    return [
        FailureRow(
            title=row.name,
            at=row.failing_since,
            tone="bad" if row.status == SourceStatus.GONE else "warn",
            label=_("Gone") if row.status == SourceStatus.GONE else _("Failing"),
            why=_said(row.last_error, _("No reason recorded.")),
            link=place.address("source_page", src=row.pk),
            until=row.wake_at,
            token=_token("src", row.pk, row.version),
            acts=_AGAIN,
        )
        for row in rows
    ]


def outlets(place: Place, rows: Sequence[Outlet], now: datetime) -> list[FailureRow]:
    del now
    found = []
    for row in rows:
        platform = platform_if_known(row.platform)
        found.append(
            FailureRow(
                title=row.name,
                at=row.updated_at,
                tone="bad",
                label=_("Reconnect needed"),
                why=_said(row.last_error, _("Log-in expired.")),
                link=place.address("outlet_page", out=row.pk),
                about=str(platform.label) if platform is not None else row.platform,
                action=NextAction(
                    _("Reconnect"), place.address("outlet_reconnect", out=row.pk), is_post=False
                )
                if place.may_manage
                else None,
            )
        )
    return found


def mailings(place: Place, rows: Sequence[Mailing], now: datetime) -> list[FailureRow]:
    """Let go on beside the numbers of who has got it."""
    del now
    return [
        FailureRow(
            title=row.subject or _("Untitled"),
            at=row.updated_at,
            tone="warn",
            label=_("Stopped"),
            why=_said(row.error, _("No reason recorded.")),
            about=row.outlet.name,
            action=NextAction(
                _("View progress"), place.address("subscribers", out=row.outlet_id), is_post=False
            )
            if place.may_edit
            else None,
        )
        for row in rows
    ]


def deliveries(place: Place, rows: Sequence[InboundDelivery], now: datetime) -> list[FailureRow]:
    """Replayed where it is shown, after its source was set right."""
    del now
    return [
        FailureRow(
            title=_("Delivery to %(source)s") % {"source": row.source.name},
            at=row.created_at,
            tone="bad",
            label=_("No content"),
            why=_said(row.reason, _("No reason recorded.")),
            link=place.address("source_delivery", src=row.source_id, ind=row.pk),
        )
        for row in rows
    ]
