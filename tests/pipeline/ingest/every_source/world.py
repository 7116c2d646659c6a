"""What the cells stand on: a workspace, a server on loopback, a clock, and what a user sees of a source."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils import timezone
from werkzeug import Response

from accounts.models import Notice
from config.core.errors import Invalid
from pipeline import resources
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.models import Event, GeneratedItem, InboundDelivery, RawItem, Source, SourceEntry
from tests.pipeline import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest
    import time_machine
    from pytest_httpserver import HTTPServer

    from accounts.models import Workspace

CASES: Final = (
    "new",
    "unchanged",
    "edited",
    "withdrawn",
    "malformed",
    "huge",
    "slow",
    "redirected",
    "blocked",
    "gone",
)
_SENTENCE: Final = re.compile(
    r"^(?:[A-Z0-9]|robots\.txt |[a-z_]+ is |https?://\S+: [A-Z]).*[\w)`][.!?]$", re.DOTALL
)
"""A file, a field and an address keep their small letters."""


@dataclass
class World:
    workspace: Workspace
    clock: time_machine.Traveller
    server: HTTPServer
    settings: Any
    monkeypatch: pytest.MonkeyPatch
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the test ends: what drips until then lets its server go."""

    # --- What a user does ---

    def add(
        self, kind: str, *, first_poll: Any = "all", max_burst: int | None = None, **config: Any
    ) -> Source:
        given = collect.SourceSettings(type=kind, config=config, first_poll=first_poll, max_burst=max_burst)
        return secrets.register(self.workspace, given, now=timezone.now()).source

    def preview(self, source: Source) -> tuple[list[tuple[str, str, str, str]], list[str]] | str:
        """What is told before such a source is saved: decisions and notes, or the code of why it can't be read."""
        given = collect.SourceSettings(
            type=source.type,
            config=source.config,
            first_poll=source.first_poll,
            max_burst=source.max_burst,
        )
        try:
            found = collect.preview(self.workspace, given, test=False, now=timezone.now())
        except Invalid as error:
            said = error.detail[0]
            return said.code if is_sentence(said.message) else f"no sentence: {said.message}"
        entries = [(one.entry.title, one.decision, one.decided_by, one.code) for one in found.entries]
        return sorted(entries), [note.code for note in found.notes]

    def start(self, kind: str, **given: Any) -> Source:
        """Preview it, save it, and have it polled: the first poll does what the preview said, and nothing was stored."""
        source = self.add(kind, **given)
        before = self.facts(source)
        previewed = self.preview(source)
        assert self.facts(source) == before
        source = self.poll(source, after=timedelta(minutes=1))
        rows = SourceEntry.everywhere.filter(source=source)
        entries = sorted((row.title, row.decision, row.decided_by, row.code) for row in rows)
        status, error, notes = self.health(source)
        assert previewed == ((entries, notes) if error is None else error)
        assert status == "active"
        return source

    def make(self, source: Source) -> None:
        """Have the items of all its raw items made."""
        for raw in RawItem.everywhere.filter(source=source):
            steps.run_generations(raw)

    def poll(self, source: Source, *, after: timedelta = timedelta(hours=1)) -> Source:
        """The next poll, an hour later, as a hand makes it."""
        self.clock.shift(after)
        collect.poll(steps.claimed(source))
        return steps.reread(source)

    def change(self, source: Source, **config: Any) -> None:
        """Other settings of the source's kind."""
        row = steps.reread(source)
        secrets.change(row, {"config": config}, workspace=self.workspace, now=timezone.now())

    def drip(self, _request: Any = None) -> Response:
        """Never ends by itself, and is never silent for long."""

        def pieces() -> Iterator[bytes]:
            while not self.over.wait(0.1):
                yield b" "

        return Response(pieces(), content_type="text/html")

    # --- What a user sees ---

    def raws(self, source: Source) -> dict[str, tuple[int, bool]]:
        """By title, oldest first: the version of its content, and whether it was taken back."""
        rows = RawItem.everywhere.filter(source=source).order_by("id")
        return {row.title: (row.content_version, row.withdrawn_at is not None) for row in rows}

    def log(self, source: Source) -> dict[str, str]:
        """Of each entry, by the end of its id or address: what was decided of it, with its code where that says more."""
        rows = SourceEntry.everywhere.filter(source=source).order_by("id")
        return {
            re.split(r"[:/]", (row.external_id or row.url).rstrip("/"))[-1]: (
                row.decision if row.code in {"", row.decision} else f"{row.decision} {row.code}"
            )
            for row in rows
        }

    def held(self, source: Source) -> set[tuple[str, str]]:
        """Of the items that were made: the title of the raw item, and what holds it."""
        rows = GeneratedItem.everywhere.filter(raw_item__source=source).exclude(held="")
        return set(rows.values_list("raw_item__title", "held"))

    def shown(self, source: Source) -> dict[str, Any]:
        return resources.Source.serialize(steps.reread(source))

    def health(self, source: Source) -> tuple[str, str | None, list[str]]:
        """Its status, the code of its last error, the codes of its notes."""
        shown = self.shown(source)
        error = shown["last_error"]
        return shown["status"], error and error["code"], [note["code"] for note in shown["health"]["notes"]]

    def wait(self, source: Source) -> timedelta:
        """How long until the next poll."""
        wake_at = steps.reread(source).wake_at
        return timedelta(0) if wake_at is None else wake_at - timezone.now()

    def ingested(self) -> int:
        return Event.everywhere.filter(workspace=self.workspace, type="raw.ingested").count()

    def facts(self, source: Source) -> Any:
        """All that a poll of something known may not change."""
        raws = RawItem.everywhere.filter(source=source).order_by("id")
        entries = SourceEntry.everywhere.filter(source=source).order_by("id")
        return (
            list(raws.values_list("id", "content_version", "withdrawn_at", "status")),
            list(entries.values_list("key", "decision", "code", "decided_at")),
            self.ingested(),
        )

    # --- What holds in every cell ---

    def fails(self, source: Source, code: str) -> Source:
        """Three polls that fail alike: the source says so, people and programs are told once, and it goes on."""
        told = self._told(source)
        for _ in range(3):
            source = self.poll(source)
        assert self.health(source)[:2] == ("failing", code)
        assert self.shown(source)["health"]["consecutive_failures"] >= 3
        assert self.shown(source)["health"]["next_poll_at"] is not None
        assert self._told(source) == (told[0] + 1, told[1] + 1)
        assert self.preview(source) == code
        return source

    def is_gone(self, source: Source) -> Source:
        """The next poll finds it gone for good: it is not polled again, and people and programs are told once."""
        told = self._told(source)
        source = self.poll(source)
        assert self.health(source)[:2] == ("gone", "gone")
        assert (source.wake_at, self.shown(source)["health"]["next_poll_at"]) == (None, None)
        assert self._told(source) == (told[0] + 1, told[1] + 1)
        assert self.preview(source) == "gone"
        return source

    def switch_on(self, source: Source) -> None:
        """As a person does it with a source that was paused or is gone."""
        row = steps.reread(source)
        collect.change(row, {"status": "active"}, workspace=self.workspace, now=timezone.now())

    def _told(self, source: Source) -> tuple[int, int]:
        """How many events and notices there are of the source's failing."""
        events = Event.everywhere.filter(source_id=source.pk, type="source.failing")
        return events.count(), Notice.everywhere.filter(kind="source_failing").count()

    def takes_nothing_twice(self, source: Source, *, after: timedelta = timedelta(hours=1)) -> None:
        before = self.facts(source)
        self.poll(source, after=after)
        assert self.facts(source) == before

    def check(self) -> None:
        """After a cell: every raw item that is worked on was told of once, and what is said to people is a sentence."""
        worked_on = RawItem.everywhere.filter(workspace=self.workspace).exclude(status="skipped")
        assert self.ingested() == worked_on.count()
        for source in Source.everywhere.filter(workspace=self.workspace, is_push=False):
            shown = self.shown(source)
            said = [*shown["health"]["notes"], *([shown["last_error"]] if shown["last_error"] else [])]
            rows = SourceEntry.everywhere.filter(source=source).exclude(message="")
            said += [{"code": row.code, "message": row.message} for row in rows]
            sent = InboundDelivery.everywhere.filter(source=source)
            said += [note for row in sent for note in (row.reason, *row.notes) if note]
            assert [one for one in said if not is_sentence(one["message"])] == []
            assert [one for one in said if not re.fullmatch("[a-z][a-z_]+", one["code"])] == []


def is_sentence(words: str) -> bool:
    return len(words.split()) >= 3 and _SENTENCE.match(words) is not None


@dataclass
class Kind:
    """The cells of one kind, and why it has no others."""

    name: str
    cells: dict[str, Callable[[World], None]] = field(default_factory=dict)
    not_applicable: dict[str, str] = field(default_factory=dict)

    def cell(self, made: Callable[[World], None]) -> Callable[[World], None]:
        """Registers a function under its own name, which is the case's."""
        self.cells[made.__name__] = made
        return made
