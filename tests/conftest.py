"""What every test stands on."""

from __future__ import annotations

import gc
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import django
import hypothesis
import pytest
import time_machine
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.db import connection

# Neither `.env` nor the data of `make up`, in this process and in those that a test starts.
os.environ["ENV_FILE"] = "tests/settings.env"
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()

from accounts import workspaces
from accounts.models import Membership
from config.core import dispatcher
from config.core.http_client import shared
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import WorkspaceDefaults
from pipeline.outlets import hit_counts
from pipeline.render.typography import fonts
from pipeline.workspace import provision
from tests import migrated, statements
from tests.factories import MembershipFactory, UserFactory
from tests.sizes import IS_PROOF

if TYPE_CHECKING:
    from collections.abc import Callable

# A machine that is busy for a moment has found no fault: nothing here is judged by the clock. What is
# invented is the same in each run of the suite, so that a commit passes or doesn't; `make prove-properties`
# invents anew.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=not IS_PROOF,
    **({} if IS_PROOF else {"database": None}),
)
hypothesis.settings.load_profile("suite")


def pytest_configure():
    """Tests that run side by side have Redis databases of their own: to clear a cache is to empty its
    database."""
    # What this machine has installed decides in no test but those that ask for it (tests/render/test_cjk.py).
    fonts.SYSTEM_FOLDER = Path(os.devnull)
    # A password is made slow to guess; each test that logs in would pay for that, and each client for a list
    # of all files.
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


SLOW_TEST_SECONDS: Final = 900
"""After how long a slow test counts as hanging. It starts processes, and on a busy machine waits for them for minutes."""
RECORDED: Final = Path(os.environ["STATEMENTS"]) if "STATEMENTS" in os.environ else None
"""Where the pass on SQLite leaves the statements of its tests, and the pass on PostgreSQL finds them."""
_recorder: Final = statements.Recorder()


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays to the end: the garbage collector would look through all of it again and
    again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # What a test leaves behind is mostly freed at once; looking for the rest after each 700 objects costs
        # time.
        gc.set_threshold(10_000, 10, 10)


def pytest_itemcollected(item):
    """With `--dist loadgroup` the tests of a file share a worker; those of one with `parts` share as many."""
    parts = item.get_closest_marker("parts")
    part = zlib.crc32(item.name.encode()) % parts.args[0] if parts else 0
    item.add_marker(pytest.mark.xdist_group(f"{item.location[0]}-{part}"))


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("slow") or item.get_closest_marker("real"):
            marked = item.get_closest_marker("timeout")
            seconds = max(SLOW_TEST_SECONDS, marked.args[0] if marked else 0)
            item.add_marker(pytest.mark.timeout(seconds), append=False)
    # A stable order: the files of others, and the tests of a file, stay as they were.
    items.sort(key=_minutes, reverse=True)
    is_needed = _choose_for_postgres(items) if settings.IS_POSTGRES else _is_for_sqlite
    left = [one for one in items if not is_needed(one)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [one for one in items if is_needed(one)]
    if RECORDED and not settings.IS_POSTGRES:
        _recorder.start()


def _minutes(item) -> float:
    """For how long its file keeps one worker busy: such files begin first, or one would be alone at the
    end."""
    marker = item.get_closest_marker("minutes")
    return marker.args[0] if marker else 0


def _is_for_sqlite(item) -> bool:
    if item.get_closest_marker("postgres"):
        return False
    return "POSTGRES_FOLLOWS" not in os.environ or item.get_closest_marker("postgres_if_there") is None


def _choose_for_postgres(items) -> Callable[[pytest.Item], bool]:
    """What is marked for it, what uses threads, and as many others as ask every statement once:
    tests/statements.py."""
    recorded = statements.read(RECORDED) if RECORDED else {}
    here = {item.nodeid for item in items}
    chosen = statements.choose({name: one for name, one in recorded.items() if name in here})

    def is_needed(item) -> bool:
        if item.get_closest_marker("sqlite"):
            return False
        if any(item.get_closest_marker(name) for name in ("postgres", "postgres_if_there", "both_databases")):
            return True
        if "MARKED_ONLY" in os.environ:
            return False
        marker = item.get_closest_marker("django_db")
        uses_threads = "transactional_db" in item.fixturenames or (
            marker and marker.kwargs.get("transaction")
        )
        is_new = item.nodeid not in recorded and (marker is not None or "db" in item.fixturenames)
        return bool(uses_threads or is_new or item.nodeid in chosen)

    return is_needed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with _recorder.test(item.nodeid):
        return (yield)


def pytest_runtest_logreport(report):
    if report.skipped:
        # Skipped here, it may run there.
        _recorder.leave_out(report.nodeid)


def pytest_sessionfinish():
    if RECORDED and not settings.IS_POSTGRES and _recorder.tests:
        RECORDED.mkdir(parents=True, exist_ok=True)
        _recorder.write(RECORDED / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.json")


def pytest_terminal_summary(terminalreporter):
    """What a test had to tell besides passing: `record_property("told", …)`."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, text in report.user_properties:
            if name == "told":
                terminalreporter.write_line(f"{report.nodeid}: {text}")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings):
    migrated.begin_with_it()
    migrated.empty_by_deleting()


@pytest.fixture
def one_minute():
    """The clock stands: calls are counted by the minute, and the test must not cross one's end."""
    with time_machine.travel(datetime.now(UTC), tick=False):
        yield


@pytest.fixture(scope="session")
def anthropic_sdk():
    """Loaded before a test stops the clock or looks at it: that takes a second or two."""
    import anthropic  # noqa: F401


class Wakes(list):
    """A broker that notes each wake."""

    def wake(self):
        self.append("wake")


@pytest.fixture(autouse=True)
def woken():
    """Work is done where a test says so; a message would reach another test's worker. The wakes are
    listed."""
    wakes = Wakes()
    dispatcher.set_waker(wakes.wake)
    return wakes


@pytest.fixture
def own_media(settings, tmp_path):
    """An empty folder of files: those that other tests left would be another database's."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return settings.MEDIA_ROOT


@pytest.fixture
def loopback(settings):
    """Sites and platforms on this machine may be asked."""
    settings.OUTBOUND_ALLOW_LOOPBACK = True
    shared.client.cache_clear()
    yield
    shared.client.cache_clear()


@pytest.fixture
def quick_workspaces(monkeypatch):
    """A new workspace makes a picture and a post of each push: no test waits for a film that it doesn't look
    at."""
    names = [plugins.get("engines", kind, Engine).name for kind in ("persona_tweet", "short_post")]
    monkeypatch.setattr(provision, "starting_engines", names.copy)


@pytest.fixture(autouse=True)
def hits_wait_for_the_test(monkeypatch):
    """What is counted in this process is written where a test says so; a timer would meet another test's
    tables."""
    monkeypatch.setattr(hit_counts, "_start_timer", lambda: None)
    yield
    hit_counts._pending.clear()


# --- The cast --------------------------------------------------------------------------------------------------------


@pytest.fixture
def alice(db):
    return UserFactory(email="alice@example.test", name="Alice")


@pytest.fixture
def newsroom_plan():
    """The plan of `newsroom`: the default one, where a file names no other."""
    return


@pytest.fixture
def newsroom(alice, newsroom_plan):
    """Alice's workspace: provisioned and whitelisted, in Berlin's zone."""
    workspace = workspaces.create("Newsroom", owner=alice, timezone="Europe/Berlin", plan=newsroom_plan)
    workspaces.whitelist(workspace, "operator@example.test")
    return workspace


@pytest.fixture
def bob(newsroom):
    return MembershipFactory(
        workspace=newsroom, user__email="bob@example.test", role=Membership.Role.EDITOR
    ).user


@pytest.fixture
def vera(newsroom):
    return MembershipFactory(
        workspace=newsroom, user__email="vera@example.test", role=Membership.Role.VIEWER
    ).user


@pytest.fixture
def charlie(db):
    """Of another workspace."""
    user = UserFactory(email="charlie@example.test")
    workspaces.create("Elsewhere", owner=user)
    return user


@pytest.fixture
def posts(newsroom):
    """Of what comes into `newsroom` one short post is made."""
    WorkspaceDefaults.everywhere.filter(workspace=newsroom).update(engines=["Short Post"])


@pytest.fixture
def workspace(db):
    """A workspace without people: provisioned and whitelisted."""
    made = workspaces.create("Alice's newsroom")
    workspaces.whitelist(made, "operator@example.test")
    return made


@pytest.fixture
def operator(db):
    """An operator of the instance, who is nobody's member."""
    return UserFactory(
        email="operator@example.test",
        name="Operator",
        password="correct horse",
        is_staff=True,
        is_superuser=True,
    )


@pytest.fixture
def browser(client, operator):
    """The operator's browser."""
    client.force_login(operator)
    return client


@pytest.fixture
def in_threads():
    """Calls something many times at once, each on a connection of its thread's own; gives the results in order."""

    def run(times, call, *, threads=16):
        def one(number):
            try:
                return call(number)
            finally:
                connection.close()

        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(one, range(times)))

    return run
