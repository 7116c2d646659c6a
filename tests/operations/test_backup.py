"""Backup, wipe, restore, each in a process of its own as an operator runs them: nothing doubled, nothing lost."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from config.operations import backup_archive, unfinished_restore
from tests.operations import machine
from tests.sizes import IS_PROOF

pytestmark = [pytest.mark.both_databases, pytest.mark.minutes(4)]
# What is about the archive, its files and its versions is the same on both databases: `make prove-kills` has it on both.
ONCE = pytest.mark.both_databases if IS_PROOF else pytest.mark.sqlite

FILL = """
from datetime import timedelta
from django.utils import timezone
from accounts import workspaces
from pipeline.models import *
from tests.pipeline.steps import *
w = workspaces.create("Alice's newsroom"); workspaces.whitelist(w, "op")
item = make_items(w, engines=["Short Post"])[0]
due = timezone.now() + timedelta(days=1)
sent, later, called = (make_stage(w, name=name) for name in ("sent", "later", "called"))
Outlet.everywhere.filter(pk=sent.pk).update(credentials={"secret": "x"})
own = Outlet.everywhere.get(workspace=w, platform="feed")
promise(item, sent, later, own, publish_at=due)
# As if its hand were in the middle of the call.
row = promise(item, called)
claimed(row)
Publication.everywhere.filter(pk=row.pk).update(status="publishing")
"""
# A person publishes it earlier than it was promised, and the platform takes it.
SEND = """
from django.utils import timezone
from pipeline.models import *
from tests.pipeline.steps import *
row = Publication.everywhere.get(outlet__name="sent")
Publication.everywhere.filter(pk=row.pk).update(due_at=timezone.now(), wake_at=timezone.now())
assert send(row).status == "published"
"""
POSTS = """
import json
from pipeline.models import *
print(json.dumps(list(SimulatedPost.everywhere.values("id", "workspace_id", "outlet_id", "ref", "answer", "is_accepted")), default=str))
"""
PUT_POSTS = """
import json
from pipeline.models import *
assert SimulatedPost.everywhere.count() == 0
for one in json.loads({posts!r}): SimulatedPost.everywhere.create(**one)
"""
TELL = """
import json
from django.utils import timezone
from config.core import task_runner
from pipeline.models import *
from pipeline.models import SimulatedPost
def tell():
    rows = Publication.everywhere.select_related("outlet")
    return {row.outlet.name: [row.status, bool(row.error), row.due_at > timezone.now()] for row in rows}
before = tell()
task_runner.work_all_due("publish.send_publication")
after = tell()
# Every promise falls due, and every wait is over.
Publication.everywhere.filter(status="scheduled").update(due_at=timezone.now(), next_attempt_at=None, wake_at=timezone.now())
task_runner.work_all_due("publish.send_publication")
end = {name: one[0] for name, one in tell().items()}
names = {row.pk: row.outlet.name for row in Publication.everywhere.select_related("outlet")}
from config.core.ids import decode
posts = sorted(names[decode("pub", ref)] for ref in SimulatedPost.everywhere.values_list("ref", flat=True))
print(json.dumps([before, after, end, posts]))
"""
COUNT = """
from accounts.models import *
from pipeline.models import *
print(Workspace.everywhere.count(), Publication.everywhere.count(), Asset.everywhere.count())
"""
LATER = """
from accounts import workspaces
workspaces.create("Made after the backup")
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A machine with something of everything; the others are copies of it."""
    folder = tmp_path_factory.mktemp("kept")
    made = machine.make(folder / "data")
    made.shell(FILL)
    (made.media / "ab").mkdir(parents=True, exist_ok=True)
    (made.media / "ab/picture.png").write_bytes(b"picture")
    (made.media / "ab/picture.png.1a2b.part").write_bytes(b"pic")
    yield made
    made.drop()


@pytest.fixture
def one(kept, tmp_path):
    made = kept.copy(tmp_path / "data")
    yield made
    made.drop()


@pytest.fixture(scope="module")
def saved(kept, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "kept.tar.gz"
    kept.does("backup", str(path))
    return path


@pytest.mark.slow
def test_what_was_sent_after_the_backup_is_not_sent_again(one, saved):
    one.shell(SEND)
    posts = one.shell(POSTS)
    told = one.does("restore", str(saved), "--wipe")
    assert "1 row in progress is checked again." in told
    assert "2 unsent publications are looked up" in told
    # The platform is another machine: it still has what it took.
    one.shell(PUT_POSTS.format(posts=posts))
    before, after, end, posts = json.loads(one.shell(TELL))
    assert before == {
        "sent": ["unknown", True, True],
        "later": ["unknown", True, True],
        "called": ["publishing", False, False],
        "Workspace feed": ["scheduled", False, True],
    }
    assert after == {
        "sent": ["published", False, True],
        # As it was promised, and nobody was told of a failure.
        "later": ["scheduled", False, True],
        # Its call reached nobody: tried again by the schedule of retries.
        "called": ["scheduled", True, False],
        "Workspace feed": ["scheduled", False, True],
    }
    assert end == dict.fromkeys(before, "published")
    assert posts == ["called", "later", "sent"]


@pytest.mark.slow
def test_everything_comes_back_on_an_empty_machine(one, saved, tmp_path):
    assert saved.stat().st_mode & 0o077 == 0
    other = machine.make(tmp_path / "other", is_empty=True)
    done = other.manage("restore", str(saved))
    assert (done.code, done.err) == (0, "")
    assert other.shell(COUNT) == one.shell(COUNT)
    expected = {name: data for name, data in one.files().items() if not name.endswith(".part")}
    assert "ab/picture.png" in expected
    # Each with an id of its own.
    assert other.files().pop(".instance") != expected.pop(".instance")
    assert {name: data for name, data in other.files().items() if name != ".instance"} == expected
    # What was restored can be backed up and restored like any other.
    other.does("backup", str(tmp_path / "again.tar.gz"))
    other.does("restore", str(tmp_path / "again.tar.gz"), "--wipe")
    assert other.shell(COUNT) == one.shell(COUNT)
    other.drop()


LOGGED_IN = """
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from accounts.models import User
user = User.objects.create_user("alice@example.test", "x")
client = Client(); client.force_login(user)
SessionStore().create()
print(client.cookies["sessionid"].value)
"""
SESSIONS = """
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session
print(Session.objects.count(), UserSession.objects.count())
"""


@pytest.mark.slow
@ONCE
def test_a_backup_logs_nobody_in(one, tmp_path):
    """The key of a session is its cookie: whoever found the file would be everybody who was logged in."""
    key = one.shell(LOGGED_IN)
    path = tmp_path / "one.tar.gz"
    one.does("backup", str(path))
    with tarfile.open(path) as file:
        held = b"".join(file.extractfile(member).read() for member in file if member.isfile())
    assert len(key) == 32
    assert key.encode() not in held
    assert one.shell(SESSIONS) != "0 0"
    one.does("restore", str(path), "--wipe")
    assert one.shell(SESSIONS) == "0 0"


@pytest.mark.slow
@ONCE
def test_nothing_is_replaced_by_mistake(one, saved):
    done = one.manage("restore", str(saved))
    assert (done.code, done.err.strip()) == (
        1,
        "CommandError: This instance holds data already. Stop it and add --wipe to replace everything.",
    )


@pytest.mark.slow
@ONCE
def test_what_came_later_is_gone(one, saved):
    one.shell(LATER)
    (one.media / "ab/later.png").write_bytes(b"later")
    one.does("restore", str(saved), "--wipe")
    assert one.shell(COUNT).split()[0] == "1"
    assert sorted(path.name for path in (one.media / "ab").iterdir()) == ["picture.png"]


def cut_off(data):
    return data[: len(data) * 2 // 3]


def bit_turned(data):
    plain = bytearray(gzip.decompress(data))
    # Behind the member's header, which has 512 bytes.
    plain[plain.index(b"media/ab/picture.png") + 512] ^= 1
    return gzip.compress(bytes(plain))


def without_end(data):
    """Cut at the border of a member, so that neither tar nor gzip can tell."""
    plain = gzip.decompress(data)
    with tarfile.open(fileobj=io.BytesIO(plain)) as members:
        offset = members.getmember(backup_archive.MANIFEST).offset
    return gzip.compress(plain[:offset] + bytes(1024))


def of_other_form(data):
    return with_manifest(data, form=1)


def of_newer_version(data):
    return with_manifest(data, migrations=["pipeline.0001_initial", "pipeline.9999_tomorrow"])


def of_other_database(data):
    return with_manifest(data, vendor="oracle")


def with_manifest(data, **changes):
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=out, mode="w:gz") as new:
        for info in old:
            file = old.extractfile(info)
            if info.name == backup_archive.MANIFEST:
                said = json.dumps({**json.loads(file.read()), **changes}).encode()
                info.size = len(said)
                file = io.BytesIO(said)
            new.addfile(info, file)
    return out.getvalue()


def no_archive(data):
    return b"no archive"


SPOILT = (
    (no_archive, "is damaged or was cut off"),
    (cut_off, "is damaged or was cut off"),
    (without_end, "has no manifest at its end"),
    (bit_turned, "its content isn't what its manifest says"),
    (of_other_form, "has form 1; this version reads form 2"),
    (of_other_database, "The backup is of oracle"),
    (of_newer_version, "is of a newer version: this one doesn't know pipeline.9999_tomorrow"),
)


@pytest.mark.slow
@ONCE
def test_what_is_not_a_whole_backup_of_ours_costs_nothing(kept, saved, tmp_path):
    path = tmp_path / "spoilt.tar.gz"
    before = (kept.shell(COUNT), kept.files())
    for spoil, said in SPOILT:
        path.write_bytes(spoil(saved.read_bytes()))
        done = kept.manage("restore", str(path), "--wipe")
        assert (done.code, done.err.startswith("CommandError: "), said in done.err) == (1, True, True), (
            done.err
        )
    assert (kept.shell(COUNT), kept.files()) == before


UNSQUASHED = """
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from config.operations import unmigrated_database
recorder = MigrationRecorder(connection)
recorder.record_unapplied("pipeline", "0002_item_words")
# Django marks the former ones too where it applies the one that replaces them.
for former in unmigrated_database.replaced_migrations().values():
    for one in former:
        recorder.record_unapplied(*one)
    for one in sorted(former)[:{upto}]:
        recorder.record_applied(*one)
"""


@pytest.mark.slow
@ONCE
def test_a_backup_from_before_the_squash_comes_up_to_this_version(one, tmp_path):
    one.shell(UNSQUASHED.format(upto=""))
    one.does("backup", str(tmp_path / "old.tar.gz"))
    one.does("restore", str(tmp_path / "old.tar.gz"), "--wipe")
    assert "[ ]" not in one.does("showmigrations", "pipeline")


@pytest.mark.slow
@ONCE
def test_a_backup_of_half_the_former_migrations_is_refused(one, tmp_path):
    one.shell(UNSQUASHED.format(upto="5"))
    one.does("backup", str(tmp_path / "old.tar.gz"))
    done = one.manage("restore", str(tmp_path / "old.tar.gz"), "--wipe")
    assert (done.code, "Check out commit f15c1bd3" in done.err) == (1, True), done.err


@pytest.mark.slow
@ONCE
def test_keys_that_do_not_open_it_are_said(one, saved):
    done = one.manage("restore", str(saved), "--wipe", FIELD_KEYS=f"k9:{Fernet.generate_key().decode()}")
    assert done.code == 0
    assert done.err.startswith("Warning: A value of ")
    assert "Put the key that encrypted it back into FIELD_KEYS" in done.err


@pytest.mark.slow
@ONCE
def test_it_waits_for_nobody_who_still_works(one, saved):
    holding = one.environment | {"HOLD": "1"}
    code = (
        "import sys, django; django.setup()\n"
        "from django.db import connection; from accounts.models import Workspace\n"
        "print(Workspace.everywhere.count(), flush=True); sys.stdin.read()"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=machine.ROOT,
        env={**holding, "DJANGO_SETTINGS_MODULE": "config.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout.readline() == "1\n"
    done = one.manage("restore", str(saved), "--wipe")
    worker.communicate()
    assert (done.code, "Something else still uses the database." in done.err) == (1, True), done.err
    one.does("restore", str(saved), "--wipe")


@pytest.mark.slow
@ONCE
def test_sources_that_publish_by_themselves_wait_for_the_operator(one, tmp_path):
    one.shell("""
from accounts import workspaces
from pipeline.models import *
Source.everywhere.update(autopilot=True)
workspaces.create("Bob's")
""")
    one.does("backup", str(tmp_path / "kept.tar.gz"))
    told = one.does("restore", str(tmp_path / "kept.tar.gz"), "--wipe")
    assert "a source on autopilot: Alice's newsroom." in told
    switches = one.shell(
        "from pipeline.models import *; print([str(one) for one in Switch.everywhere.all()])"
    )
    assert switches == '["Publishing is paused: Alice\'s newsroom."]'


@pytest.mark.slow
@ONCE
def test_a_folder_keeps_the_newest(kept, tmp_path):
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in ("pipeline-20250101T000000Z.tar.gz", "pipeline-20250102T000000Z.tar.gz", "other.tar.gz"):
        (folder / name).write_bytes(b"x")
    left = folder / "pipeline-20250103T000000Z.tar.gz.part"
    left.write_bytes(b"x")
    os.utime(left, (0, 0))
    (folder / "pipeline-20250104T000000Z.tar.gz.part").write_bytes(b"being written")
    said = kept.does("backup", "--keep", "2", BACKUP_DIR=str(folder))
    assert said.endswith("1 older one was deleted; the newest 2 are kept.\n")
    there = sorted(path.name for path in folder.iterdir())
    new = [name for name in there if name.startswith("pipeline-2") and not name.startswith("pipeline-2025")]
    assert len(new) == 1
    assert set(there) - set(new) == {
        "other.tar.gz",
        "pipeline-20250102T000000Z.tar.gz",
        "pipeline-20250104T000000Z.tar.gz.part",
    }
    assert backup_archive.verify(folder / new[0])[1] > 0


def test_without_a_place_it_says_so(kept):
    done = kept.manage("backup")
    assert (done.code, done.err) == (1, "CommandError: Name a file or a folder, or set BACKUP_DIR.\n")


# --- Killed in the middle --------------------------------------------------------------------------------------------


@pytest.mark.slow
@ONCE
@pytest.mark.parametrize("at", ["backup.dumped", "backup.written"])
def test_a_killed_backup_leaves_nothing_under_the_final_name(one, tmp_path, at):
    path = tmp_path / "kept.tar.gz"
    one.manage("backup", str(path), crash_at=at)
    assert not path.exists()
    # The next one takes the place of what was left.
    one.does("backup", str(path))
    assert sorted(one.name for one in tmp_path.iterdir() if one.is_file()) == ["kept.tar.gz"]
    assert backup_archive.verify(path)[1] > 0


@pytest.mark.slow
@ONCE
def test_a_restore_that_is_killed_early_has_changed_nothing(one, saved):
    one.shell(LATER)
    before = one.shell(COUNT)
    one.manage("restore", str(saved), "--wipe", crash_at="restore.unpacked")
    assert one.shell(COUNT) == before
    assert "ab/picture.png" in one.files()
    assert one.start("-m", "gunicorn", "--check-config", "config.wsgi").returncode == 0
    one.does("restore", str(saved), "--wipe")
    assert one.shell(COUNT).split()[0] == "1"
    assert sorted(path.name for path in one.media.iterdir() if path.name.startswith(".")) == [".instance"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "at",
    [
        "restore.loaded",
        # The mark that lets nothing start is the same table on both.
        *(
            pytest.param(at, marks=[] if IS_PROOF else [pytest.mark.postgres_if_there])
            for at in ("restore.cleared", "restore.migrated")
        ),
    ],
)
def test_a_restore_that_is_killed_late_lets_nothing_start_until_it_is_run_again(one, saved, tmp_path, at):
    one.manage("restore", str(saved), "--wipe", crash_at=at)
    starts = {
        "serve": one.start("manage.py", "serve"),
        "web": one.start("-m", "gunicorn", "--check-config", "config.wsgi"),
        "worker": one.start("-m", "celery", "-A", "config", "worker", "-P", "threads"),
        "beat": one.start("-m", "celery", "-A", "config", "beat"),
    }
    for name, done in starts.items():
        assert (name, done.returncode, unfinished_restore.MESSAGE in done.stderr) == (name, 1, True), (
            done.stderr
        )
    told = json.loads(one.manage("doctor", "--json").out)
    verdicts = {check["name"]: check["verdict"] for check in told["checks"]}
    assert (told["ok"], verdicts["restore"]) == (False, "FAIL")
    # Half of something is not worth keeping.
    assert one.manage("backup", str(tmp_path / "half.tar.gz")).code == 1
    # The same again, and without --wipe: there is nothing left that it could destroy.
    one.does("restore", str(saved))
    assert one.start("-m", "gunicorn", "--check-config", "config.wsgi").returncode == 0
    assert "ab/picture.png" in one.files()
    assert one.shell(COUNT).split()[:2] == ["1", "4"]


@pytest.mark.slow
@ONCE
def test_large_files_pass_in_pieces(one, tmp_path):
    size = 400 * 2**20
    with (one.media / "ab/film.mp4").open("wb") as file:
        file.truncate(size)
    path = tmp_path / "kept.tar.gz"
    most = """
import resource
from django.core.management import call_command
call_command({given})
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    small = int(one.shell(most.format(given="'check'")))
    for given in (f"'backup', {str(path)!r}", f"'restore', {str(path)!r}, wipe=True"):
        assert int(one.shell(most.format(given=given))) - small < size // 2**10 // 4
    assert Path(one.media / "ab/film.mp4").stat().st_size == size
