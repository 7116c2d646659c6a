"""Pages in a real browser: Debian's Chromium, driven by Playwright, against a server in the test's own process.

The tables are emptied after each test. Where there is no browser the tests are skipped, with `REQUIRE_SERVICES=1` they
fail.
"""

from __future__ import annotations

import os
import time
import zlib
from typing import TYPE_CHECKING

import pytest

from accounts import workspaces
from accounts.access import recent_requests
from config.core import task_runner
from pipeline.models import PublishQueue
from pipeline.schedule import queues
from tests import caches
from tests import chromium as browsers
from tests.browser.people import person
from tests.pipeline.steps import make_stage
from tests.sizes import IS_PROOF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}


def pytest_collection_modifyitems(config, items):
    """Each test runs in one of its windows (wide or phone, with or without scripts); in all in `make prove-pages`."""
    if not IS_PROOF:
        left = _other_windows(items)
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.slow)
            # A browser shows the same pages on every database; tests/pages asks for each of them on both.
            item.add_marker(pytest.mark.sqlite)


def _other_windows(items):
    """The tests whose parameters are switches alone, but for one of each function."""
    windows = {}
    for item in items:
        switches = getattr(item, "callspec", None) and item.callspec.id.split("-")
        if "tests/browser/" in item.nodeid and switches and set(switches) <= {"True", "False"}:
            windows.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [
        item
        for name, variants in windows.items()
        for item in variants
        if item is not variants[zlib.crc32(name.encode()) % len(variants)]
    ]


@pytest.fixture(autouse=True)
def with_quick_workspaces(quick_workspaces):
    """What a new workspace makes is looked at in tests/browser/test_first_journey.py."""


@pytest.fixture
def alice(db):
    """She can log in: people.py has her password."""
    return person("alice@example.test", "Alice")


@pytest.fixture
def newsroom(newsroom, alice, own_media):
    """The root's, with its owner at hand: `newsroom.alice`."""
    newsroom.alice = alice
    return newsroom


@pytest.fixture
def stage(newsroom):
    return make_stage(newsroom, name="Harbour stage")


@pytest.fixture
def daily_slots(newsroom, posts):
    """Two slots on each day, and no limits of the plan."""
    workspaces.lift_limits(newsroom, "operator@example.test")
    every_day = [{"weekday": day, "time": at} for day in range(7) for at in ("09:00", "17:30")]
    queues.change(PublishQueue.everywhere.get(workspace=newsroom), {"slots": every_day}, by="alice")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = browsers.find()
    from playwright.sync_api import sync_playwright

    # Playwright's own event loop runs in this thread; Django would take every query for one from a coroutine.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=SWITCHES)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def site(live_server, settings, monkeypatch) -> str:
    """The address of the running service."""
    # A busy machine must not make a request go unrecorded, as a slow Redis does in service.
    monkeypatch.setattr(recent_requests, "REDIS_TIMEOUT_SECONDS", 10)
    monkeypatch.setitem(recent_requests._redis_skipped_until, "at", 0.0)
    recent_requests._client.cache_clear()
    # It counts guesses, and outlives a test.
    caches.clear()
    settings.PUBLIC_URL = live_server.url
    settings.CSRF_TRUSTED_ORIGINS = [live_server.url]
    return live_server.url


class Complaints:
    """What the browser said against a page: policy violations, errors of scripts, things that failed to load."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.expected: list[str] = []

    def listen_to(self, page: Page) -> None:
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(f"{page.url}: {error}"))

    def expect(self, part: str) -> None:
        """A complaint that holds this text is part of the test, such as the 404 of a page that must not be there."""
        self.expected.append(part)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.said.append(f"{message.location.get('url')}: {message.text}")

    def left(self) -> list[str]:
        return [line for line in self.said if not any(part in line for part in self.expected)]


@pytest.fixture
def complaints() -> Complaints:
    return Complaints()


@pytest.fixture
def open_window(chromium, site, complaints) -> Iterator[Callable[..., Page]]:
    """Opens a window of a fresh browser profile: one person. The test fails on any complaint of the browser."""
    contexts: list[BrowserContext] = []

    def open_it(*, phone: bool = False, dark: bool = False, scripts: bool = True) -> Page:
        context = chromium.new_context(
            base_url=site,
            viewport=PHONE if phone else DESKTOP,
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        context.set_default_timeout(60_000)
        contexts.append(context)
        page = context.new_page()
        complaints.listen_to(page)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert complaints.left() == []


@pytest.fixture
def page(open_window) -> Page:
    return open_window()


@pytest.fixture
def work_until() -> Callable[..., None]:
    """Do the work that waits, as the workers would, until the condition holds."""

    def work(condition: Callable[[], bool], seconds: float = 15) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "It did not come about."
            task_runner.work_all_due()
            time.sleep(0.05)

    return work
