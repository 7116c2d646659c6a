"""Stores the entries of a poll: each entry once, in one transaction with its row in the log.

`compare` and `confirm` are pure functions. A list shows only its newest entries, so an entry that is missing at
its end has only been crowded out. An entry was removed if it stood above another that is still listed and isn't
newer by its date.
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
"""The number of entries stored together, for fewer statements, and short holds of SQLite's only write lock."""


def take_in(
    source: Source, workspace: Workspace, fetch: Fetch, now: datetime
) -> tuple[bool, Mapping[str, Any] | None, tuple[Note, ...]]:
    """Store a fetch.

    Return whether it brought anything new or changed, the window to compare the next list with (or `None`), and
    notes. Entries are stored oldest first, so that the newest is the newest in every list. A poll that is killed
    finds at its second try the entries that it stored at the first.
    """
    if fetch.not_modified:
        return False, _confirm_missing(source, now), ()
    classified = classify_entries(source, fetch.entries, now=now)
    keys = {entry.key for entry in classified} | {entry.other_key for entry in classified if entry.other_key}
    logged = entry_log.read(source, keys)
    to_log = [entry for entry in reversed(classified) if entry_log.is_news(entry, logged)]
    new_entries = [
        entry for entry in reversed(classified) if entry.content is not None and entry.there is None
    ]
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace) if new_entries else None
    for portion in _in_portions(new_entries):
        _store_portion(source, workspace, portion, defaults, now)
    for entry in reversed(classified):
        if entry.there is not None and not entry.is_repeated:
            _update_known(source, workspace, entry, now)
    unstored = [(entry, entry.there.id if entry.there else None) for entry in to_log if entry.content is None]
    unstored += [
        (replace(entry, key=entry.other_key, decision="unchanged"), entry.there.id)
        for entry in classified
        if entry.there and entry.other_key and entry.other_key not in logged
    ]
    entry_log.write(source, unstored, now=now)
    window = _withdraw_removed(source, classified, now) if fetch.is_window and classified else None
    is_new = any(entry.decision in {"new", "revised", "over_burst"} for entry in classified)
    return is_new, window, notes_on(classified)


def _in_portions(classified: Sequence[ClassifiedEntry]) -> Iterator[Sequence[ClassifiedEntry]]:
    """Yield the entries in slices of `PORTION`."""
    for start in range(0, len(classified), PORTION):
        yield classified[start : start + PORTION]


def _store_portion(
    source: Source,
    workspace: Workspace,
    portion: Sequence[ClassifiedEntry],
    defaults: WorkspaceDefaults | None,
    now: datetime,
) -> None:
    """Store new entries together, or each on its own if that fails; `defaults` is `None` if there are none."""
    if defaults is None:
        return
    contents = [
        raw_content.ContentToStore(entry.content, entry.skip)
        for entry in portion
        if entry.content is not None
    ]
    prepared = store_raw_item.prepare(workspace, source, contents, defaults=defaults, now=now)
    try:
        with transaction.atomic():
            store_raw_item.push_portion(
                workspace,
                source,
                prepared,
                defaults=defaults,
                on_stored=lambda ids: entry_log.write(source, zip(portion, ids, strict=True), now=now),
                now=now,
            )
            crash_point("collect.stored")
    except (IntegrityError, credit_account.QuotaExceeded):
        # Another source stored one of them first, or the credits suffice for some only: store each on its own.
        for entry in portion:
            _store_alone(source, workspace, entry, defaults, now)
    crash_point("collect.committed")


def _store_alone(
    source: Source,
    workspace: Workspace,
    classified: ClassifiedEntry,
    defaults: WorkspaceDefaults,
    now: datetime,
) -> None:
    """Store one new entry. It waits for credits, and is logged as met if another source stored it meanwhile."""
    if classified.content is None:
        return

    def log_entry(raw_item_id: UUID, outcome: raw_content.Outcome) -> None:
        # If another source was faster, the next poll classifies the entry again.
        result = classified if outcome == "new" else _as_met_meanwhile(classified)
        entry_log.write(source, [(result, raw_item_id)], now=now)

    store_raw_item.push(
        workspace,
        source,
        classified.content,
        defaults=defaults,
        when_short="wait",
        skip=classified.skip,
        on_stored=log_entry,
        now=now,
    )


def _as_met_meanwhile(classified: ClassifiedEntry) -> ClassifiedEntry:
    """Return the decision on an entry that came in from elsewhere at the same moment."""
    message = _("It is there already: it came in from elsewhere at the same moment.")
    return replace(classified, decision="unchanged", code="met", message=message)


def _update_known(source: Source, workspace: Workspace, entry: ClassifiedEntry, now: datetime) -> None:
    """Store a known entry's new version, withdrawal or return, unless its item was erased or is another source's."""
    item = entry.there
    if item is None or item.source_id != source.pk or item.is_deleted:
        return
    if entry.decision == "withdrawn":
        if not item.is_withdrawn:
            source_changes.withdraw(item.id, now)
        return
    if item.is_withdrawn and entry.decision in {"unchanged", "revised"}:
        source_changes.restore(item.id, now)
    if entry.decision == "revised" and entry.content is not None:
        defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)

        def log_entry(raw_item_id: UUID, outcome: raw_content.Outcome) -> None:
            # Nothing is logged if it was erased, or came in with the same words, a moment ago.
            if outcome == "revised":
                entry_log.write(source, [(entry, raw_item_id)], now=now)

        store_raw_item.push(
            workspace,
            source,
            entry.content,
            defaults=defaults,
            when_short="wait",
            on_stored=log_entry,
            now=now,
        )
        crash_point("collect.committed")


def _withdraw_removed(source: Source, classified: Sequence[ClassifiedEntry], now: datetime) -> dict[str, Any]:
    """Withdraw the entries that were removed from the list, and return the window for the next list."""
    # Entries that the document marks as deleted aren't in its list, and would stand below all the others.
    listed = [
        (entry.key, entry.entry.published_at)
        for entry in classified
        if not entry.is_repeated and not entry.entry.withdrawn
    ]
    result = compare(source.window, listed)
    _withdraw_entries(source, result.gone, now)
    return result.state


def _confirm_missing(source: Source, now: datetime) -> Mapping[str, Any] | None:
    """Withdraw entries that were missing before, as the document came again. Return the next window."""
    result = confirm(source.window)
    if result is None:
        return source.window
    _withdraw_entries(source, result.gone, now)
    return result.state


def _withdraw_entries(source: Source, removed_names: frozenset[str], now: datetime) -> None:
    """Log these entries (by `name_of`) as withdrawn, and withdraw their raw items unless another source has them.

    They are looked for among the newest 2,000 entries with a raw item.
    """
    if not removed_names:
        return
    rows = SourceEntry.everywhere.filter(source=source, raw_item__isnull=False).exclude(
        decision=SourceEntryDecision.WITHDRAWN
    )
    entries = [
        entry
        for entry in rows.only("id", "key", "raw_item_id").order_by("-id")[:2000]
        if name_of(entry.key) in removed_names
    ]
    owned = set(
        rows.filter(pk__in=[entry.pk for entry in entries], raw_item__source=source).values_list(
            "pk", flat=True
        )
    )
    for entry in entries:
        if entry.pk in owned:
            _withdraw_item(entry.raw_item_id, now)
    message = _("The source doesn't list it any more, though it lists older ones.")
    entry_log.note_withdrawn(entries, message, now=now)


def _withdraw_item(raw_item_id: UUID | None, now: datetime) -> None:
    if raw_item_id is not None:
        source_changes.withdraw(raw_item_id, now)


@dataclass(frozen=True)
class PollResult:
    """The result of comparing two lists: the `state` to store, and the names (of `name_of`) that are `gone`."""

    state: dict[str, Any]
    gone: frozenset[str] = frozenset()


def name_of(key: str) -> str:
    """Return a hash of a key as its name in the stored state, short because there are hundreds of them."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]


def compare(previous: Mapping[str, Any] | None, listed: Sequence[tuple[str, datetime | None]]) -> PollResult:
    """Return the entries that were removed since the previous list, and the state for the next comparison.

    An entry counts as removed if two lists in a row miss it. `previous` is the state that an earlier call returned,
    `None` at the first; `listed` holds each entry's key and date, in the order of the document, newest first.
    """
    current: list[list[Any]] = [[name_of(key), int(at.timestamp()) if at else None] for key, at in listed]
    if previous is None:
        return PollResult({"listed": current, "missing": []})
    earlier: list[list[Any]] = previous["listed"]
    was_missing = set(previous["missing"])
    current_names = {name for name, _ in current}
    dates: dict[str, int | None] = {str(name): at for name, at in current}
    entries, missing, gone = [*current], [], set()
    for position, (name, at) in enumerate(earlier):
        if name in current_names:
            continue
        witness = _find_older_still_listed(earlier[position + 1 :], dates, at)
        if witness is None:
            continue
        if name in was_missing:
            gone.add(name)
        else:
            missing.append(name)
            # It keeps its position, so that the next poll can compare it again.
            index = next(number for number, (listed_name, _) in enumerate(entries) if listed_name == witness)
            entries.insert(index, [name, at])
    return PollResult({"listed": entries, "missing": missing}, frozenset(gone))


def confirm(previous: Mapping[str, Any] | None) -> PollResult | None:
    """Return the result for a document that came again unchanged, or `None` if nothing was missing."""
    if not previous or not previous["missing"]:
        return None
    gone = frozenset(previous["missing"])
    listed = [entry for entry in previous["listed"] if entry[0] not in gone]
    return PollResult({"listed": listed, "missing": []}, gone)


def _find_older_still_listed(
    after: Sequence[Sequence[Any]], dates: Mapping[str, int | None], at: int | None
) -> str | None:
    """Return the name of the next entry that is still listed and isn't newer by date, or `None`."""
    for name, _date in after:
        if name not in dates:
            continue
        date = dates[name]
        if at is None or date is None or date <= at:
            return str(name)
    return None
