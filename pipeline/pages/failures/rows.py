"""Builds the rows of the list of problems: what each is, why it is listed, and which acts help.

The rows of publications are built in `publication_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from config.core.ids import encode
from pipeline import labels
from pipeline.generate import raw_item_outcomes, recoverable_failures
from pipeline.models import RawItemStatus, SourceStatus
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.pages.items import display
from pipeline.pages.items.next_actions import NextAction
from pipeline.schedule import recovery

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.pages.page_access import Place
    from pipeline.models import InboundDelivery, Mailing, Outlet, PersonaDraft, RawItem, Source


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


RETRY_ACTS: Final = frozenset({recovery.RETRY})


def version_token(prefix: str, key: UUID, version: int) -> str:
    """Return the value that names a row and its version to an act."""
    return f"{encode(prefix, key)}:{version}"


def message_of(error: Mapping[str, Any] | None, default: str = "") -> str:
    """Return the message of a stored error without ids of items, or `default` if it has none."""
    return display.without_ids(str((error or {}).get("message", ""))) or default


def _advice_if_final(error: Mapping[str, Any] | None) -> str:
    """Return the stored advice if a retry can't help, else an empty text."""
    return str((error or {}).get("action", "")) if recoverable_failures.is_final(error) else ""


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
        why=message_of(error, _("No reason recorded.")),
        link=place.url_of("item_page", gen=row.pk),
        about=row.engine_output,
        advice=_advice_if_final(error),
        token="" if is_final else version_token("gen", row.pk, row.version),
        acts=frozenset() if is_final else RETRY_ACTS,
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
            why=message_of(row.generation.error, _("Queued")),
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
        why=message_of(reason, _("No reason recorded.")),
        link=place.url_of("made", raw=row.pk),
        about=labels.origin_of(row.source.name, row.external_id, is_push=row.source.is_push),
        advice=_advice_if_final(reason),
        until=row.wake_at if row.status == RawItemStatus.WAITING_QUOTA else None,
        token="" if is_final else version_token("raw", row.pk, row.version),
        acts=frozenset() if is_final else RETRY_ACTS,
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
            why=message_of(row.error, _("No reason recorded.")),
            link=place.url_of("persona_draft", pdr=row.pk) if place.may_edit else "",
            token=version_token("pdr", row.pk, 0),
            acts=RETRY_ACTS,
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
            why=message_of(row.last_error, _("No reason recorded.")),
            link=place.url_of("source_page", src=row.pk),
            until=row.wake_at,
            token=version_token("src", row.pk, row.version),
            acts=RETRY_ACTS,
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
                why=message_of(row.last_error, _("Log-in expired.")),
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
            why=message_of(row.error, _("No reason recorded.")),
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
            why=message_of(row.reason, _("No reason recorded.")),
            link=place.url_of("source_delivery", src=row.source_id, ind=row.pk),
        )
        for row in rows
    ]
