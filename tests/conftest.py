"""What every test stands on."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from config.ground import hands
from pipeline.render import fonts
from pipeline.stages import hits
from tests import migrated

# A machine that is busy for a moment has found no fault: nothing here is judged by the clock.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def pytest_configure():
    """Tests that run side by side have Redis databases of their own: to clear a cache is to empty its database."""
    # What this machine has installed decides in no test but those that ask for it (tests/render/test_cjk.py).
    fonts.SYSTEM = Path(os.devnull)
    # A password is made slow to guess; each test that logs in would pay for that, and each client for a list of all files.
    PBKDF2PasswordHasher.iterations = 1
    settings.WHITENOISE_AUTOREFRESH = True
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if not settings.REDIS_URL or worker == "0":
        return
    address = urlsplit(settings.REDIS_URL)
    # The services that a test starts have the two below the suite's own: tests/faults/instance.py.
    number = (int(address.path.strip("/") or 0) - 3 * int(worker)) % 16
    own = address._replace(path=f"/{number}").geturl()
    os.environ["REDIS_URL"] = settings.REDIS_URL = own
    for cache in settings.CACHES.values():
        if "LOCATION" in cache:
            cache["LOCATION"] = own


# What these hold asks no database, not even what it starts beside itself: on PostgreSQL it would say the same again.
WITHOUT_A_DATABASE = (
    "engines",
    "grounding",
    "platforms",
    "real",
    "render",
    "sources",
    "states",
    "voices",
    "writers",
)
# A browser shows the same pages on every database; tests/pages asks for each of them on both.
SEEN_ONCE = ("browser",)
# Minutes of kills and of invented requests, whose findings were the code's on every database so far. Where the ring on
# PostgreSQL follows (tools/suite.py), SQLite leaves them to it; faults/test_crash_points.py and test_kills.py kill on both.
LEFT_TO_POSTGRES = (
    "contracts/test_rate_headers.py",
    "faults/test_erasing.py",
    "faults/test_mailing_kills.py",
    "faults/test_model_kills.py",
    "fuzzing/test_api.py",
    "stages/test_never_twice.py",
)
# Files of the slow ring that one worker is busy with for minutes: begun last, they would keep it alone at the end.
LONGEST = (
    "fuzzing/test_api.py",
    "operators/test_backup.py",
    "faults/test_mailing_kills.py",
    "faults/test_crash_points.py",
    "operators/test_image.py",
    "faults/test_kills.py",
    "stages/test_never_twice.py",
    "faults/test_model_kills.py",
    "browser/test_every_page.py",
    "browser/test_review.py",
    "faults/test_webhook_kills.py",
    "sources/test_rss_mutated.py",
    "browser/test_admin_walk.py",
)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(config, items):
    # A stable order: the files of others, and the tests of a file, stay as they were.
    items.sort(key=_longest_first)
    says_the_same = _said_on_sqlite if settings.IS_POSTGRES else _to_be_said_on_postgres
    left = [one for one in items if says_the_same(one)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if not says_the_same(one)]


def _name_of_file(item):
    return item.path.relative_to(HERE).as_posix()


def _longest_first(item):
    name = _name_of_file(item)
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def _said_on_sqlite(item):
    folder = item.path.relative_to(HERE).parts[0]
    is_pure = folder in WITHOUT_A_DATABASE and "db" not in item.fixturenames
    return is_pure or folder in SEEN_ONCE or item.get_closest_marker("sqlite") is not None


def _to_be_said_on_postgres(item):
    return (
        "POSTGRES_FOLLOWS" in os.environ
        and _name_of_file(item) in LEFT_TO_POSTGRES
        and item.get_closest_marker("slow") is not None
        and item.get_closest_marker("sqlite") is None
    )


def pytest_terminal_summary(terminalreporter):
    """What a test had to tell besides passing: `record_property("told", …)`."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, text in report.user_properties:
            if name == "told":
                terminalreporter.write_line(f"{report.nodeid}: {text}")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings):
    migrated.begin_with_it()


@pytest.fixture(autouse=True)
def no_looks_leave_the_test(monkeypatch):
    """Work is done where a test says so; a nudge to a broker would reach another test's worker."""
    monkeypatch.setitem(hands._sender, "look", lambda name: None)


@pytest.fixture(autouse=True)
def hits_wait_for_the_test(monkeypatch):
    """What is counted in this process is written where a test says so; a timer would meet another test's tables."""
    monkeypatch.setattr(hits, "_start_timer", lambda: None)
    yield
    hits._gathered.clear()
