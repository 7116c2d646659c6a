"""Which tests run on the second database: as few as make the service ask it every statement that it asked the first one.

The first pass of `tools/suite.py` records the statements of each test, without their values, in a file; the second
pass reads it and leaves out every test whose statements others ask already. What only a test asks, to see what became
of its rows, doesn't count. Tests that start services, use threads, or are marked for that database always run
(tests/conftest.py).
"""

from __future__ import annotations

import heapq
import json
import re
import sys
import time
from collections import Counter
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from django.db.backends.utils import CursorWrapper

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from types import FrameType

TESTS = Path(__file__).parent
PROJECT = TESTS.parent
# Between whoever asks and the database.
PASSED_THROUGH = (Path(__file__), PROJECT / "accounts/tenancy.py")
START_SECONDS = 0.03
"""What a test costs besides its own time."""
_RULES = (
    (re.compile(r'SAVEPOINT "?\S+'), "SAVEPOINT"),
    (re.compile(r"'[^']*'"), "'…'"),
    (re.compile(r"\b0x\w+|\b[0-9a-f]{32}\b|\b\d+\b"), "0"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\((?:%s|0)(?:, ?(?:%s|0))*\)"), "(…)"),
    (re.compile(r"(?:\(…\)(?:, )?)+"), "(…)"),
    (re.compile(r"\b([UTVW])0\b"), r"\1"),
)


@lru_cache(maxsize=20_000)
def form_of(sql: str) -> str:
    """A statement without its values, so that the same question has the same form each time."""
    for pattern, plain in _RULES:
        sql = pattern.sub(plain, sql)
    return sql


def is_asked_by_a_test(frame: FrameType | None) -> bool:
    """Whether the first of the project's own lines, from this one up, is a test's."""
    while frame is not None:
        whose = _whose(frame.f_code.co_filename)
        if whose is not None:
            return whose is TESTS
        frame = frame.f_back
    return False


@lru_cache(maxsize=10_000)
def _whose(filename: str) -> Path | None:
    """TESTS, PROJECT, or None for what others wrote."""
    path = Path(filename)
    if path in PASSED_THROUGH or ".venv" in path.parts or not path.is_relative_to(PROJECT):
        return None
    return TESTS if path.is_relative_to(TESTS) else PROJECT


class Recorder:
    """The forms of the statements of each test in this process."""

    def __init__(self) -> None:
        self._forms: dict[str, int] = {}
        self.tests: dict[str, tuple[float, set[int]]] = {}
        self._asked: set[int] = set()
        self._skipped: set[str] = set()

    def start(self) -> None:
        for name in ("execute", "executemany"):
            setattr(CursorWrapper, name, self._listening(getattr(CursorWrapper, name)))

    def note(self, sql: str) -> None:
        self._asked.add(self._forms.setdefault(form_of(sql), len(self._forms)))

    def _listening(self, ask):
        def execute(wrapper, sql, *arguments, **options):
            if not is_asked_by_a_test(sys._getframe(1)):
                self.note(str(sql))
            return ask(wrapper, sql, *arguments, **options)

        return execute

    @contextmanager
    def test(self, name: str) -> Iterator[None]:
        self._asked = asked = set()
        began = time.monotonic()
        try:
            yield
        finally:
            if name not in self._skipped:
                self.tests[name] = (time.monotonic() - began, asked)

    def leave_out(self, name: str) -> None:
        self._skipped.add(name)

    def write(self, path: Path) -> None:
        forms = [form for form, _ in sorted(self._forms.items(), key=lambda one: one[1])]
        tests = {name: [seconds, sorted(asked)] for name, (seconds, asked) in self.tests.items()}
        path.write_text(json.dumps({"forms": forms, "tests": tests}))


def read(folder: Path) -> dict[str, tuple[float, frozenset[str]]]:
    """Of each test that was recorded: its seconds and the statements that it asked."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        kept = json.loads(path.read_text())
        forms = kept["forms"]
        for name, (seconds, asked) in kept["tests"].items():
            found[name] = (seconds, frozenset(forms[number] for number in asked))
    return found


def choose(recorded: Mapping[str, tuple[float, Collection[str]]]) -> set[str]:
    """The names of tests that together ask every statement, cheap ones first."""
    covered: set[str] = set()
    chosen: set[str] = set()
    waiting = [
        (-len(asked) / (seconds + START_SECONDS), name)
        for name, (seconds, asked) in recorded.items()
        if asked
    ]
    heapq.heapify(waiting)
    while waiting:
        _, name = heapq.heappop(waiting)
        seconds, asked = recorded[name]
        new = len(set(asked) - covered)
        if not new:
            continue
        worth = -new / (seconds + START_SECONDS)
        if waiting and worth > waiting[0][0]:
            # Others took some of its statements since it was put in line.
            heapq.heappush(waiting, (worth, name))
            continue
        covered.update(asked)
        chosen.add(name)
    # Those that were taken later may have made a dear one needless.
    asked_by = Counter(form for name in chosen for form in recorded[name][1])
    for name in sorted(chosen, key=lambda name: -recorded[name][0]):
        if all(asked_by[form] > 1 for form in recorded[name][1]):
            chosen.remove(name)
            asked_by.subtract(recorded[name][1])
    return chosen
