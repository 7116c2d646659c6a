"""Take in what a poll brought: every entry once, and each with its line in the log, in one transaction with it.

`compare` and `confirm` are pure functions. A list says no more than its newest entries, so one that is missing at its
end has only been crowded out. One that stood above an entry that is still there, and isn't newer than it by chance of
the order, was removed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.ledger import credits as credit_account
from config.core.crash_points import crash_point
from pipeline.holds import source_changes
from pipeline.ingest import raw_content, store_raw_item
from pipeline.ingest.collect import entry_log
from pipeline.ingest.collect.classify import classify_entries, notes_on
from pipeline.models import SourceEntry, SourceEntryDecision, WorkspaceDefaults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.ingest.collect.classify import ClassifiedEntry
    from pipeline.models import Source
    from pipeline.sources.base import Fetch, Note

PORTION: Final = 25
"""Entries that are stored together: fewer statements each, and on SQLite no long hold of the only write lock."""


def take_in(
    source: Source, workspace: Workspace, fetch: Fetch, now: datetime
) -> tuple[bool, Mapping[str, Any] | None, tuple[Note, ...]]:
    """Whether anything was new or had changed, what the list is compared with next time, and what is to be known of it.

    Oldest first, so that the newest is the newest in every list. A poll that is killed meets on its second way what
    it took in on the first.
    """
    if fetch.not_modified:
        return False, _confirm_missing(source, now), ()
    judged = classify_entries(source, fetch.entries, now=now)
    keys = {one.key for one in judged} | {one.other_key for one in judged if one.other_key}
    logged = entry_log.read(source, keys)
    news = [one for one in reversed(judged) if entry_log.is_news(one, logged)]
    fresh = [one for one in reversed(judged) if one.content is not None and one.there is None]
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace) if fresh else None
    for portion in _portions(fresh):
        _store(source, workspace, portion, defaults, now)
    for one in reversed(judged):
        if one.there is not None and not one.is_repeated:
            _follow_up(source, workspace, one, now)
    rest = [(one, one.there.id if one.there else None) for one in news if one.content is None]
    rest += [
        (replace(one, key=one.other_key, decision="unchanged"), one.there.id)
        for one in judged
        if one.there and one.other_key and one.other_key not in logged
    ]
    entry_log.write(source, rest, now=now)
    kept = _compare(source, judged, now) if fetch.is_window and judged else None
    is_new = any(one.decision in {"new", "revised", "over_burst"} for one in judged)
    return is_new, kept, notes_on(judged)


def _portions(judged: Sequence[ClassifiedEntry]) -> Iterator[Sequence[ClassifiedEntry]]:
    for start in range(0, len(judged), PORTION):
        yield judged[start : start + PORTION]


def _store(
    source: Source,
    workspace: Workspace,
    portion: Sequence[ClassifiedEntry],
    defaults: WorkspaceDefaults | None,
    now: datetime,
) -> None:
    """New entries together, or each by itself where that doesn't go; `defaults` is None where there are none."""
    if defaults is None:
        return
    wanted = [raw_content.Wanted(one.content, one.skip) for one in portion if one.content is not None]
    prepared = store_raw_item.prepare(workspace, source, wanted, defaults=defaults, now=now)
    try:
        with transaction.atomic():
            store_raw_item.push_portion(
                workspace,
                source,
                prepared,
                defaults=defaults,
                beside=lambda ids: entry_log.write(source, zip(portion, ids, strict=True), now=now),
                now=now,
            )
            crash_point("collect.stored")
    except (IntegrityError, credit_account.QuotaExceeded):
        # Another source had one of them first, or the credits do for some only: each stands for itself.
        for one in portion:
            _store_alone(source, workspace, one, defaults, now)
    crash_point("collect.committed")


def _store_alone(
    source: Source, workspace: Workspace, judged: ClassifiedEntry, defaults: WorkspaceDefaults, now: datetime
) -> None:
    """A new entry; too few credits let it wait, and what somebody else brought meanwhile is met."""
    if judged.content is None:
        return

    def note(raw_item_id: UUID, outcome: raw_content.Outcome) -> None:
        # Where somebody was faster by a moment, the next poll judges it anew.
        decided = judged if outcome == "new" else _met_meanwhile(judged)
        entry_log.write(source, [(decided, raw_item_id)], now=now)

    store_raw_item.push(
        workspace,
        source,
        judged.content,
        defaults=defaults,
        when_short="wait",
        skip=judged.skip,
        beside=note,
        now=now,
    )


def _met_meanwhile(judged: ClassifiedEntry) -> ClassifiedEntry:
    message = _("It is there already: it came in from elsewhere at the same moment.")
    return replace(judged, decision="unchanged", code="met", message=message)


def _follow_up(source: Source, workspace: Workspace, one: ClassifiedEntry, now: datetime) -> None:
    """What an entry that is there already changes: a new version, taken back, or there again."""
    there = one.there
    if there is None or there.source_id != source.pk or there.is_deleted:
        return
    if one.decision == "withdrawn":
        if not there.is_withdrawn:
            source_changes.withdraw(there.id, now)
        return
    if there.is_withdrawn and one.decision in {"unchanged", "revised"}:
        source_changes.restore(there.id, now)
    if one.decision == "revised" and one.content is not None:
        defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)

        def note(raw_item_id: UUID, outcome: raw_content.Outcome) -> None:
            # Nothing where it was erased, or came in with the same words, a moment ago.
            if outcome == "revised":
                entry_log.write(source, [(one, raw_item_id)], now=now)

        store_raw_item.push(
            workspace, source, one.content, defaults=defaults, when_short="wait", beside=note, now=now
        )
        crash_point("collect.committed")


def _compare(source: Source, judged: Sequence[ClassifiedEntry], now: datetime) -> dict[str, Any]:
    """Take back what was removed from the list; what the next list is compared with."""
    # What a document says was deleted isn't in its list, and would stand below everything that still is.
    listed = [
        (one.key, one.entry.published_at) for one in judged if not one.is_repeated and not one.entry.withdrawn
    ]
    seen = compare(source.window, listed)
    _take_back(source, seen.gone, now)
    return seen.state


def _confirm_missing(source: Source, now: datetime) -> Mapping[str, Any] | None:
    """The same document again: what was missing from it was missing at two polls in a row."""
    seen = confirm(source.window)
    if seen is None:
        return source.window
    _take_back(source, seen.gone, now)
    return seen.state


def _take_back(source: Source, gone: frozenset[str], now: datetime) -> None:
    """Note that the source took these back, by the names of `name_of`; raw items of another source stay."""
    if not gone:
        return
    rows = SourceEntry.everywhere.filter(source=source, raw_item__isnull=False).exclude(
        decision=SourceEntryDecision.WITHDRAWN
    )
    entries = [
        one
        for one in rows.only("id", "key", "raw_item_id").order_by("-id")[:2000]
        if name_of(one.key) in gone
    ]
    owned = set(
        rows.filter(pk__in=[one.pk for one in entries], raw_item__source=source).values_list("pk", flat=True)
    )
    for one in entries:
        if one.pk in owned:
            _withdraw(one.raw_item_id, now)
    message = _("The source doesn't list it any more, though it lists older ones.")
    entry_log.note_withdrawn(entries, message, now=now)


def _withdraw(raw_item_id: UUID | None, now: datetime) -> None:
    if raw_item_id is not None:
        source_changes.withdraw(raw_item_id, now)


@dataclass(frozen=True)
class PollResult:
    """What a poll listed: `state` is kept with the source, `gone` are the names of what was taken back."""

    state: dict[str, Any]
    gone: frozenset[str] = frozenset()


def name_of(key: str) -> str:
    """A key as it is kept in the state: short, for there are hundreds."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]


def compare(previous: Mapping[str, Any] | None, listed: Sequence[tuple[str, datetime | None]]) -> PollResult:
    """What was taken back since the list before, and what to compare the next one with.

    `previous` is the state that an earlier call left, None at the first; `listed` holds each entry's key and date, in the
    order of the document, newest first.
    """
    now: list[list[Any]] = [[name_of(key), int(at.timestamp()) if at else None] for key, at in listed]
    if previous is None:
        return PollResult({"listed": now, "missing": []})
    before: list[list[Any]] = previous["listed"]
    was_missing = set(previous["missing"])
    here = {name for name, _ in now}
    dates: dict[str, int | None] = {str(name): at for name, at in now}
    order, missing, gone = [*now], [], set()
    for place, (name, at) in enumerate(before):
        if name in here:
            continue
        witness = _witness(before[place + 1 :], dates, at)
        if witness is None:
            continue
        if name in was_missing:
            gone.add(name)
        else:
            missing.append(name)
            # It keeps its place, so that the next poll can tell.
            spot = next(number for number, (other, _) in enumerate(order) if other == witness)
            order.insert(spot, [name, at])
    return PollResult({"listed": order, "missing": missing}, frozenset(gone))


def confirm(previous: Mapping[str, Any] | None) -> PollResult | None:
    """After a poll that found the same document again; None where nothing was missing."""
    if not previous or not previous["missing"]:
        return None
    gone = frozenset(previous["missing"])
    listed = [one for one in previous["listed"] if one[0] not in gone]
    return PollResult({"listed": listed, "missing": []}, gone)


def _witness(after: Sequence[Sequence[Any]], dates: Mapping[str, int | None], at: int | None) -> str | None:
    """One that stood further down, is still there, and isn't newer by its date."""
    for name, _date in after:
        if name not in dates:
            continue
        date = dates[name]
        if at is None or date is None or date <= at:
            return str(name)
    return None
