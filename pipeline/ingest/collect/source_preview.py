"""What a source would bring: fetched and judged as a poll does it, and nothing of it stored."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

from django.utils.translation import gettext as _

from config.core.datetimes import as_z
from config.core.errors import Detail, Invalid
from config.core.http_client import Client, TimedOut, shared
from config.core.ids import uuid7
from pipeline import personas
from pipeline.ingest import generation_plan, own_feeds
from pipeline.ingest.collect.ask_source import fetch
from pipeline.ingest.collect.classify import classify_entries, notes_on
from pipeline.ingest.collect.crud import checked
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
class Previewed:
    """`key`, `decision` and `decided_by` as the log of the source will have them."""

    entry: Entry
    key: str
    decision: str
    decided_by: str
    code: str
    message: str


@dataclass(frozen=True)
class SourcePreview:
    """`entries` newest first. `price_in_credits` is that of what the first poll would have made at once."""

    title: str
    entries: tuple[Previewed, ...]
    notes: tuple[Note, ...] = ()
    moved_to: str = ""
    price_in_credits: int = 0


def preview(workspace: Workspace, given: SourceSettings, *, test: bool, now: datetime) -> SourcePreview:
    """What the first poll of such a source would do, in at most 20 s. Creates nothing, spends nothing.

    A kind that isn't fetched has no entries; a note says what comes of it. Raises what `register` raises, and `Invalid`
    where the source can't be read: with its reason in plain words at the setting concerned.
    """
    kind = kind_of(given.type)
    source = checked(workspace, given, test=test, now=now)
    source.pk = uuid7()
    if not kind.fetches:
        return _unfetched(source, now)
    fetched = _without_own(workspace, _fetch_in_time(source, now))
    judged = classify_entries(source, fetched.entries, now=now)
    shown = tuple(
        Previewed(one.entry, one.key, one.decision, one.decided_by, one.code, one.message) for one in judged
    )
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    price = sum(
        generation_plan.estimate(workspace, source, one.content, defaults=defaults, now=now).price
        for one in judged
        if one.decision == "new" and one.content is not None
    )
    notes = (*fetched.notes, *notes_on(judged))
    if fetched.malformed:
        message = _("%(count)s of its entries could not be read.") % {"count": fetched.malformed}
        notes = (*notes, Note("malformed_entries", message))
    return SourcePreview(fetched.title, shown, notes, fetched.moved_to, price)


def _unfetched(source: Source, now: datetime) -> SourcePreview:
    """Of a source that nobody asks: how its items come about instead."""
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
        "moment": as_z(outlook.next_at[0]),
    }
    return SourcePreview(source.name, (), (Note("not_fetched", message),), price_in_credits=outlook.price)


class _HurriedClient(Client):
    """The guarded client, with one deadline for all requests together."""

    def __init__(self, client: Client, seconds: float) -> None:
        super().__init__(client.policy)
        self._until = monotonic() + seconds

    def request(self, method: str, url: str, **options: Unpack[Options]) -> Response:
        left = self._until - monotonic()
        if left <= 0:
            message = f"The source took more than {PREVIEW_SECONDS} seconds in all."
            raise TimedOut(message)
        options["timeout"] = min(options.get("timeout", left), left)
        return super().request(method, url, **options)


@dataclass
class _Answer:
    """What a thread leaves: what was fetched, or what went wrong."""

    fetched: Fetch | None = None
    error: BaseException | None = None
    is_there: threading.Event = field(default_factory=threading.Event)


def _fetch_in_time(source: Source, now: datetime) -> Fetch:
    """Raises `Invalid` where it can't be read within `PREVIEW_SECONDS`."""
    answer = _Answer()

    def ask() -> None:
        try:
            answer.fetched = fetch(source, {}, http=_HurriedClient(shared.client(), PREVIEW_SECONDS), now=now)
        # Whatever it is, it is raised again in the thread that waits for the answer.
        except BaseException as error:  # noqa: BLE001
            answer.error = error
        answer.is_there.set()

    # A kind that starts other programs keeps to limits of its own, which may be longer than a person waits.
    threading.Thread(target=ask, name="preview", daemon=True).start()
    if not answer.is_there.wait(PREVIEW_SECONDS):
        message = _("The source did not answer in full within %(seconds)s seconds.")
        raise _unread(TryLater(message % {"seconds": PREVIEW_SECONDS}, code="too_slow"))
    if isinstance(answer.error, PluginError):
        raise _unread(answer.error) from answer.error
    if answer.error is not None:
        raise answer.error
    if answer.fetched is None or answer.fetched.gone:
        message = _("The source says that it is gone for good (410). Give another address.")
        raise _unread(Refused(message, code="gone"))
    return answer.fetched


def _without_own(workspace: Workspace, fetched: Fetch) -> Fetch:
    """As a poll leaves out the workspace's own posts; asks the database, so in this thread."""
    try:
        return own_feeds.leave_out_own(workspace.pk, fetched)
    except PluginError as error:
        raise _unread(error) from error


def _unread(error: PluginError) -> Invalid:
    """Why a source can't be read, at the setting concerned."""
    named: Any = getattr(error, "field", None)
    return Invalid(Detail(named or "config", error.code, error.message))
