"""A source whose answers the test writes: what `fetch` gives, without a server, through the kind `rss`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.utils import timezone

from pipeline.ingest import collect
from pipeline.models import HostSlot, RawItem, Source, SourceEntry
from pipeline.sources.base import Entry, Fetch, Note
from tests.pipeline import steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from accounts.models import Workspace

MINUTE = timedelta(minutes=1)


def entry(number: int, **changes: Any) -> Entry:
    given = {
        "external_id": f"g{number}",
        "url": f"https://news.example/{number}",
        "title": f"Entry {number}",
        "body": f"Report {number} of the day. {steps.TEXT}",
        "published_at": steps.NOON - number * MINUTE,
        **changes,
    }
    return Entry(**given)


@dataclass
class Told:
    """What the source says at the next poll, by the address of its config; `calls` lists who asked."""

    entries: dict[str, list[Entry]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    error: Exception | None = None
    calls: list[str] = field(default_factory=list)

    def fetch(self, config: Mapping[str, Any], state: Mapping[str, Any], **_: Any) -> Fetch:
        self.calls.append(config["url"])
        if self.error is not None:
            raise self.error
        entries = tuple(self.entries.get(config["url"], ()))
        return Fetch(entries=entries, state=dict(state), **self.more)


def tell(monkeypatch: pytest.MonkeyPatch) -> Told:
    told = Told()
    monkeypatch.setattr(
        type(collect.kind_of("rss")), "fetch", lambda _, *given, **more: told.fetch(*given, **more)
    )
    return told


def register(workspace: Workspace, url: str = "https://news.example/feed", **given: Any) -> Source:
    values = {"type": "rss", "config": {"url": url}, "first_poll": "all", **given}
    return collect.register(workspace, collect.SourceSettings(**values), now=timezone.now())


def poll(source: Source) -> Source:
    # The clock of most tests stands still, and with it the rest between two fetches from one host.
    HostSlot.everywhere.all().delete()
    collect.poll(steps.claimed(source))
    return steps.reread(source)


def log_of(source: Source) -> dict[str, tuple[str, str, str]]:
    """By the end of the key: decision, by what, code."""
    rows = SourceEntry.everywhere.filter(source=source)
    return {row.key.rpartition(":")[2]: (row.decision, row.decided_by, row.code) for row in rows}


def raw(external_id: str) -> RawItem:
    found: RawItem = RawItem.everywhere.get(external_id=external_id)
    return found


def note(code: str) -> Note:
    return Note(code, f"It says {code}.")
