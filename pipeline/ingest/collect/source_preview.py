"""Previews a source: fetches and classifies as a poll does, and stores nothing."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

from django.utils.translation import gettext as _

from config.core.datetimes import format_utc
from config.core.errors import Detail, Invalid
from config.core.http_client import Client, TimedOut, shared
from config.core.ids import uuid7
from pipeline import personas
from pipeline.ingest import own_feeds, plan_and_estimate
from pipeline.ingest.collect.ask_source import fetch
from pipeline.ingest.collect.classify import classify_entries, notes_on
from pipeline.ingest.collect.crud import validate_source
from pipeline.ingest.collect.source_validation import kind_of
from pipeline.limits import PREVIEW_SECONDS
from pipeline.models import Source, WorkspaceDefaults
from pipeline.personas.lane_slots import forecast_slots
from pipeline.plugins import PluginError, Refused, TryLater
from pipeline.sources.base import Note

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import Workspace
    from config.core.http_client import Options, Response
    from pipeline.ingest.collect.crud import SourceSettings
    from pipeline.sources.base import Entry, Fetch


@dataclass(frozen=True)
class PreviewedEntry:
    """An entry of a preview, with the key and decision that the source's log would have."""

    entry: Entry
    key: str
    decision: str
    decided_by: str
    code: str
    message: str


@dataclass(frozen=True)
class SourcePreview:
    """The result of a first poll: `entries` newest first, `price_in_credits` of the items made at once."""

    title: str
    entries: tuple[PreviewedEntry, ...]
    notes: tuple[Note, ...] = ()
    moved_to: str = ""
    price_in_credits: int = 0


def preview(workspace: Workspace, settings: SourceSettings, *, test: bool, now: datetime) -> SourcePreview:
    """Return what the first poll of such a source would do, in `PREVIEW_SECONDS`. Creates and spends nothing.

    A kind that isn't fetched has no entries; a note says how its items come about. Raises the errors of
    `validate_source`, and `Invalid` at the setting concerned if the source can't be read.
    """
    kind = kind_of(settings.type)
    source = validate_source(workspace, settings, test=test, now=now)
    source.pk = uuid7()
    if not kind.fetches:
        return _preview_unfetched(source, now)
    fetched = _without_own_posts(workspace, _fetch_before_deadline(source, now))
    classified = classify_entries(source, fetched.entries, now=now)
    previewed = tuple(
        PreviewedEntry(entry.entry, entry.key, entry.decision, entry.decided_by, entry.code, entry.message)
        for entry in classified
    )
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    price = sum(
        plan_and_estimate.estimate(workspace, source, entry.content, defaults=defaults, now=now).price
        for entry in classified
        if entry.decision == "new" and entry.content is not None
    )
    notes = (*fetched.notes, *notes_on(classified))
    if fetched.malformed:
        message = _("%(count)s of its entries could not be read.") % {"count": fetched.malformed}
        notes = (*notes, Note("malformed_entries", message))
    return SourcePreview(fetched.title, previewed, notes, fetched.moved_to, price)


def _preview_unfetched(source: Source, now: datetime) -> SourcePreview:
    """Return the preview of a source that isn't fetched, with a note that says how its items come about."""
    if source.type != personas.KIND:
        message = _(
            "Nothing is fetched: what is sent to the source's own address, or pushed to it, is taken in."
        )
        return SourcePreview(source.name, (), (Note("not_fetched", message),))
    outlook = forecast_slots(source, now=now)
    message = _(
        "Nothing is fetched: the lane makes %(engines)s of one of its topics, next at %(moment)s."
    ) % {
        "engines": ", ".join(outlook.engines),
        "moment": format_utc(outlook.next_at[0]),
    }
    return SourcePreview(source.name, (), (Note("not_fetched", message),), price_in_credits=outlook.price)


class _DeadlineClient(Client):
    """The guarded client with one deadline for all requests together."""

    def __init__(self, client: Client, seconds: float) -> None:
        super().__init__(client.policy)
        self._deadline = monotonic() + seconds

    def request(self, method: str, url: str, **options: Unpack[Options]) -> Response:
        left = self._deadline - monotonic()
        if left <= 0:
            message = f"The source took more than {PREVIEW_SECONDS} seconds in all."
            raise TimedOut(message)
        options["timeout"] = min(options.get("timeout", left), left)
        return super().request(method, url, **options)


@dataclass
class _FetchResult:
    """The result of the fetching thread: a fetch or an error, once `is_done` is set."""

    fetched: Fetch | None = None
    error: BaseException | None = None
    is_done: threading.Event = field(default_factory=threading.Event)


def _fetch_before_deadline(source: Source, now: datetime) -> Fetch:
    """Fetch the source. Raises `Invalid` if it is gone or can't be read within `PREVIEW_SECONDS`."""
    result = _FetchResult()

    def ask() -> None:
        try:
            result.fetched = fetch(
                source, {}, http=_DeadlineClient(shared.client(), PREVIEW_SECONDS), now=now
            )
        # Any error is raised again in the thread that waits for the answer.
        except BaseException as error:  # noqa: BLE001
            result.error = error
        result.is_done.set()

    # A kind that starts other programs keeps to limits of its own, which may be longer than a person waits.
    threading.Thread(target=ask, name="preview", daemon=True).start()
    if not result.is_done.wait(PREVIEW_SECONDS):
        message = _("The source did not answer in full within %(seconds)s seconds.")
        raise _as_invalid(TryLater(message % {"seconds": PREVIEW_SECONDS}, code="too_slow"))
    if isinstance(result.error, PluginError):
        raise _as_invalid(result.error) from result.error
    if result.error is not None:
        raise result.error
    if result.fetched is None or result.fetched.gone:
        message = _("The source says that it is permanently gone (410). Give another address.")
        raise _as_invalid(Refused(message, code="gone"))
    return result.fetched


def _without_own_posts(workspace: Workspace, fetched: Fetch) -> Fetch:
    """Return the fetch with the workspace's own posts left out, as a poll does.

    This queries the database, so it runs in the request's thread, not in the fetching one. Raises `Invalid` if
    there are no other entries.
    """
    try:
        return own_feeds.leave_out_own(workspace.pk, fetched)
    except PluginError as error:
        raise _as_invalid(error) from error


def _as_invalid(error: PluginError) -> Invalid:
    """Return the plug-in's error as `Invalid` at the setting concerned."""
    field_name: Any = getattr(error, "field", None)
    return Invalid(Detail(field_name or "config", error.code, error.message))
