"""The media folder and the database know each other: the wrong one of either takes no file away."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from accounts import workspace_deletion, workspaces
from accounts.models import Workspace
from config.core import limits
from config.operations import backup, backup_archive, doctor, media_sweep, metrics, needs_attention
from pipeline.media import files, media_root_id, uploads
from pipeline.models import Asset, MediaFolder, Upload
from pipeline.review import decisions
from tests.factories import UserFactory
from tests.operations import machine
from tests.pipeline.steps import make_items

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.REDIS_URL = ""
    monkeypatch.setattr(media_sweep, "_round", {})
    monkeypatch.setitem(media_sweep._refused_until, "at", 0.0)
    monkeypatch.setitem(workspace_deletion._blocked_until, "at", 0.0)


@pytest.fixture
def root(settings):
    return settings.MEDIA_ROOT


@pytest.fixture
def item(db):
    """With two pictures that rows name."""
    return make_items(workspaces.create("Alice's newsroom"))[0]


def sweep(now=NOW):
    """A whole round, as it is at that moment."""
    (media_root_id.files.trash_folder().parent / media_sweep.MARK).unlink(missing_ok=True)
    media_sweep._refused_until["at"] = 0.0
    while media_sweep.sweep_some(now):
        pass


def put(root, kept, *, at=NOW - 9 * DAY):
    path = root / kept
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return kept


def put_orphans(root, count):
    return [put(root, f"{uuid4().hex}/{number}.png") for number in range(count)]


def whole(root):
    """What lies in its place."""
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith(".")}


def resting(root):
    return whole(root / files.TRASH)


def media_finding():
    return next(one for one in doctor.examine() if one.name == "media")


def command(*options):
    out = io.StringIO()
    call_command("media", *options, stdout=out)
    return out.getvalue()


def use_other_database():
    """As this one looks when the folder's id was written by another."""
    MediaFolder.everywhere.update(instance=uuid4())


# --- Whose folder it is ----------------------------------------------------------------------------------------------


def test_a_new_service_writes_its_id_at_its_first_look(db, root):
    sweep()
    assert media_root_id.read_ids() == [media_root_id.own_id()]
    assert media_finding().verdict == "ok"
    assert command().startswith(f"{root} belongs to this database: {media_root_id.own_id()}.")


def test_a_service_from_before_adopts_its_files_once(item, root):
    sweep()
    assert media_root_id.read_ids() == [media_root_id.own_id()]
    use_other_database()
    before = media_root_id.read_ids()
    sweep()
    assert media_root_id.read_ids() == before != [media_root_id.own_id()]


def test_a_wrong_database_takes_no_file_of_a_service_from_before(db, root):
    kept = set(put_orphans(root, 11))
    sweep()
    assert (whole(root), resting(root), (root / ".instance").exists()) == (kept, set(), False)
    found = media_finding()
    assert (found.verdict, "of its 11 files rows name 0" in found.said) == ("FAIL", True)
    assert "manage.py media --adopt" in found.advice


def test_rows_of_another_folder_are_no_evidence(item, settings, tmp_path, root):
    """The database has files of its own, elsewhere."""
    settings.MEDIA_ROOT = tmp_path / "wrong"
    kept = set(put_orphans(settings.MEDIA_ROOT, 3))
    sweep()
    assert (whole(settings.MEDIA_ROOT), media_finding().verdict) == (kept, "FAIL")


def test_a_folder_that_is_not_mounted_is_nobodys(item, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "mount"
    settings.MEDIA_ROOT.mkdir()
    sweep()
    found = media_finding()
    assert (found.verdict, "of the 2 files that rows name 0 are there" in found.said) == ("FAIL", True)
    assert list(settings.MEDIA_ROOT.iterdir()) == []


def test_another_databases_folder_is_left_alone(item, root, tmp_path, client):
    sweep()
    use_other_database()
    kept = whole(root) | set(put_orphans(root, 3)) | {put(root, "a/b.part")}
    sweep()
    assert (whole(root), resting(root)) == (kept, set())
    with pytest.raises(backup_archive.UnusableBackup, match="belongs to another database"):
        backup.back_up(tmp_path / "kept.tar.gz")
    assert not (tmp_path / "kept.tar.gz").exists()
    assert media_finding().verdict == "FAIL"
    operator = UserFactory(is_staff=True, is_superuser=True)
    (need,) = needs_attention.visible_needs(operator)
    assert "belongs to another database" in need.text
    client.force_login(operator)
    assert client.get(need.page).status_code == 200
    with pytest.raises(CommandError, match="belongs to another database"):
        command()


def test_a_round_ends_where_the_folder_becomes_another_ones(item, root, monkeypatch):
    monkeypatch.setattr(media_sweep, "FOLDERS_PER_BATCH", 1)
    sweep()
    kept = whole(root) | set(put_orphans(root, 3))
    (root / media_sweep.MARK).unlink()
    assert media_sweep.sweep_some(NOW) == 1
    use_other_database()
    assert media_sweep.sweep_some(NOW) == 0
    assert (whole(root), resting(root)) == (kept, set())


def test_the_operator_may_adopt_it(db, root):
    (orphan,) = put_orphans(root, 1)
    command("--adopt")
    assert media_finding().verdict == "ok"
    sweep()
    assert resting(root) == {orphan}


def test_erasing_waits_for_the_right_folder(item, root, monkeypatch):
    sweep()
    workspace = Workspace.everywhere.get()
    Workspace.everywhere.filter(pk=workspace.pk).update(deletes_at=NOW)
    right = media_root_id.own_id()
    use_other_database()
    while workspace_deletion.erase_some(now=NOW):
        pass
    assert Workspace.everywhere.get().erased_at is None
    assert (Asset.everywhere.count(), len(whole(root))) == (2, 2)
    MediaFolder.everywhere.update(instance=right)
    monkeypatch.setitem(workspace_deletion._blocked_until, "at", 0.0)
    while workspace_deletion.erase_some(now=NOW):
        pass
    assert (Workspace.everywhere.get().erased_at, Asset.everywhere.count(), whole(root)) == (NOW, 0, set())


def test_uploads_are_forgotten_in_the_right_folder_only(item, root):
    sweep()
    given = uploads.ReceivedFile(io.BytesIO(b"A note."), 7)
    row = uploads.store_upload(Workspace.everywhere.get(), given, test=False, actor="test", now=NOW - 9 * DAY)
    right = media_root_id.own_id()
    use_other_database()
    assert (uploads.delete_expired(NOW), row.path in whole(root)) == (0, True)
    MediaFolder.everywhere.update(instance=right)
    assert (uploads.delete_expired(NOW), row.path in whole(root)) == (1, False)


# --- The trash -------------------------------------------------------------------------------------------------------


def test_what_is_swept_rests_for_a_week(item, root):
    sweep()
    (orphan,) = put_orphans(root, 1)
    sweep()
    assert (orphan in whole(root), resting(root)) == (False, {orphan})
    sweep(NOW + limits.MEDIA_TRASH_KEPT)
    assert resting(root) == {orphan}
    sweep(NOW + limits.MEDIA_TRASH_KEPT + timedelta(seconds=1))
    assert resting(root) == set()
    assert not any((root / files.TRASH).iterdir())
    assert len(whole(root)) == 2


@pytest.fixture
def thrown(item, root):
    """A picture in the trash that a row names."""
    media_root_id.adopt_folder()
    asset = Asset.everywhere.filter(item=item).first()
    files.move_to_trash(asset.path, now=NOW)
    assert resting(root) == {asset.path}
    return asset


def test_what_a_row_names_comes_back(thrown, root):
    sweep(NOW + 30 * DAY)
    assert (thrown.path in whole(root), resting(root)) == (True, set())


def test_what_a_row_names_comes_back_when_it_is_read(thrown, root, client):
    answer = client.get(f"/media/{thrown.secret}/{thrown.name}")
    assert (answer.status_code, int(answer.headers["Content-Length"])) == (200, thrown.bytes)
    assert (thrown.path in whole(root), resting(root)) == (True, set())


def test_what_rests_is_not_served(thrown, root, client):
    Asset.everywhere.filter(pk=thrown.pk).update(revoked_at=NOW)
    for address in (f"/media/{thrown.secret}/{thrown.name}", f"/media/.trash/{thrown.path}"):
        assert client.get(address).status_code == 404
    assert resting(root) == {thrown.path}
    assert not [one for one in backup._media_files() if files.TRASH in one.parts]


def test_what_is_erased_goes_out_of_the_trash_too(thrown, root):
    other = put(root, f"{thrown.item_id.hex}/replaced.png")
    files.move_to_trash(other, now=NOW)
    Workspace.everywhere.update(deletes_at=NOW)
    while workspace_deletion.erase_some(now=NOW):
        pass
    assert (whole(root), resting(root)) == (set(), set())


def test_what_a_raw_item_used_goes_at_once(item, root):
    sweep()
    given = uploads.ReceivedFile(io.BytesIO(b"A note."), 7)
    row = uploads.store_upload(Workspace.everywhere.get(), given, test=False, actor="test")
    files.move_to_trash(row.path, now=NOW)
    Upload.everywhere.filter(pk=row.pk).update(expires_at=NOW - DAY)
    uploads.delete_expired(NOW)
    assert (row.path in whole(root), resting(root)) == (False, set())


def test_the_files_of_an_item_that_is_deleted_go_at_once(thrown, root, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        decisions.erase(thrown.item, now=NOW)
    assert (whole(root), resting(root)) == (set(), set())


# --- Too many at once ------------------------------------------------------------------------------------------------

MOST = limits.MEDIA_SWEEP_FILES


def test_a_few_go_without_asking(item, root):
    sweep()
    put_orphans(root, MOST)
    sweep()
    assert (len(resting(root)), media_sweep.why_stopped()) == (MOST, "")


def test_more_are_asked_for_and_go_once_when_they_are_approved(item, root):
    sweep()
    put_orphans(root, MOST + 1)
    # Time is over for this one; a round that stops empties no trash either.
    put(root, f".trash/{uuid4().hex}/old.png", at=NOW - 30 * DAY)
    before = (whole(root), resting(root))
    sweep()
    assert (whole(root), resting(root)) == before
    told = f"found {MOST + 1} of {MOST + 3} files that no row names"
    assert (media_finding().verdict, told in media_finding().said) == ("warn", True)
    (need,) = needs_attention.visible_needs(UserFactory(is_staff=True, is_superuser=True))
    assert (told in need.text, "manage.py media --approve-sweep" in need.text) == (True, True)
    with pytest.raises(CommandError, match="--approve-sweep"):
        command()
    assert f"may take {MOST + 1} files" in command("--approve-sweep")
    sweep(NOW + DAY)
    assert (len(whole(root)), len(resting(root)), media_finding().verdict) == (2, MOST + 1, "ok")
    put_orphans(root, MOST + 1)
    sweep(NOW + 2 * DAY)
    assert (len(whole(root)), media_sweep.why_stopped() != "") == (MOST + 3, True)
    assert "pipeline_media_sweep_waits 1\n" in metrics._exposition()


def test_a_share_of_many_goes_without_asking(item, root):
    sweep()
    share = MOST + 10
    for number in range(9 * share - 2):
        put(root, f"{item.pk.hex}/young-{number}.png", at=NOW)
    put_orphans(root, share)
    sweep()
    assert (len(resting(root)), media_sweep.why_stopped()) == (share, "")
    put_orphans(root, share + 1)
    sweep()
    assert (len(resting(root)), media_sweep.why_stopped() != "") == (share, True)


def test_a_round_takes_no_more_than_it_was_let(item, root, monkeypatch):
    """What was looked at is judged anew when it is taken: rows may have gone meanwhile."""
    sweep()
    orphans = put_orphans(root, MOST)
    (root / media_sweep.MARK).unlink()
    monkeypatch.setattr(media_sweep, "_may_remove", decide_and_lose(orphans, media_sweep._may_remove, root))
    while media_sweep.sweep_some(NOW):
        pass
    assert (len(resting(root)) <= MOST, media_sweep.why_stopped() != "") == (True, True)


def decide_and_lose(orphans, decide, root):
    def decided(current, now):
        for kept in orphans:
            put(root, f"{kept.partition('/')[0]}/more.png")
        return decide(current, now)

    return decided


def test_there_is_nothing_to_approve_where_nothing_stopped(db):
    with pytest.raises(CommandError, match="nothing to approve"):
        command("--approve-sweep")


# --- In processes of their own ---------------------------------------------------------------------------------------

FILL = """
from accounts import workspaces
from pipeline.media import media_root_id
from tests.pipeline.steps import make_items
w = workspaces.create("Alice's newsroom"); workspaces.whitelist(w, "op")
make_items(w, engines=["Persona Tweet"])
"""
SWEEP = """
from datetime import timedelta
from django.conf import settings
from django.utils import timezone
from config.operations import media_sweep
(settings.MEDIA_ROOT / media_sweep.MARK).unlink(missing_ok=True)
while media_sweep.sweep_some(timezone.now() + timedelta(days={days})): pass
"""
UNNAME = "from pipeline.models import Asset; Asset.everywhere.update(revoked_at='2026-01-01T00:00:00Z')"
NAME = "from pipeline.models import Asset; Asset.everywhere.update(revoked_at=None)"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    made = machine.make(tmp_path_factory.mktemp("media") / "data")
    made.shell(FILL)
    yield made
    made.drop()


@pytest.fixture
def one(kept, tmp_path):
    made = kept.copy(tmp_path / "data")
    yield made
    made.drop()


def pictures(one):
    return {name: data for name, data in one.files().items() if name.endswith(".jpg")}


@pytest.mark.slow
@pytest.mark.postgres_if_there
@pytest.mark.parametrize("is_from_before", [True, False])
def test_a_wrong_database_costs_nothing(one, tmp_path, is_from_before):
    if not is_from_before:
        one.shell(SWEEP.format(days=0))
        # The other's would not wait for tomorrow.
        (one.media / media_sweep.MARK).unlink()
    before = one.files()
    assert (len(pictures(one)) > 0, ".instance" in before) == (True, not is_from_before)
    saved = tmp_path / "kept.tar.gz"
    others = machine.make(tmp_path / "other"), machine.make(tmp_path / "empty", is_empty=True)
    try:
        other, empty = others
        other.does("backup", str(saved))
        wrong = {"MEDIA_ROOT": str(one.media)}
        told = other.start("manage.py", "shell", "-v", "0", "-c", SWEEP.format(days=30), **wrong)
        assert (told.returncode, one.files()) == (0, before), told.stderr
        for done in (
            other.manage("backup", str(tmp_path / "wrong.tar.gz"), **wrong),
            other.manage("restore", str(saved), "--wipe", **wrong),
            empty.manage("restore", str(saved), **wrong),
            empty.manage("restore", str(saved), "--wipe", **wrong),
        ):
            assert (done.code, str(one.media) in done.err, one.files() == before) == (1, True, True), done.err
        assert "FAIL  media" in other.manage("doctor", **wrong).out
    finally:
        for other in others:
            other.drop()


@pytest.mark.slow
def test_a_restored_copy_is_an_instance_of_its_own(one, tmp_path):
    saved = tmp_path / "kept.tar.gz"
    one.does("backup", str(saved))
    before = one.files()
    copy = machine.make(tmp_path / "copy", is_empty=True)
    try:
        copy.does("restore", str(saved))
        assert pictures(copy) == pictures(one)
        # The same rows, by the files of the instance that was backed up.
        copy.does("shell", "-v", "0", "-c", UNNAME)
        copy.shell(SWEEP.format(days=30))
        assert pictures(copy) != pictures(one)
        copy.does("shell", "-v", "0", "-c", SWEEP.format(days=30), MEDIA_ROOT=str(one.media))
        assert one.files() == before
    finally:
        copy.drop()


@pytest.mark.slow
def test_a_lost_database_is_restored_beside_its_files(one, tmp_path):
    saved = tmp_path / "kept.tar.gz"
    one.does("backup", str(saved))
    before = pictures(one)
    lost = machine.make(tmp_path / "lost", is_empty=True)
    lost.media.parent.mkdir(parents=True, exist_ok=True)
    one.media.rename(lost.media)
    try:
        done = lost.manage("restore", str(saved))
        assert (done.code, "holds files already. Add --wipe" in done.err) == (1, True), done.err
        lost.does("restore", str(saved), "--wipe")
        assert pictures(lost) == before
        assert "ok    media" in lost.manage("doctor").out
    finally:
        lost.drop()


@pytest.mark.slow
@pytest.mark.parametrize("at", ["retention.trashing", "retention.trashed", "retention.returning"])
def test_killed_on_the_way_to_the_trash_or_back_nothing_is_lost(one, at):
    one.shell(SWEEP.format(days=0))
    before = pictures(one)
    sweep_later = ("shell", "-v", "0", "-c", SWEEP.format(days=9))

    def bytes_of(found):
        return sorted(found.values())

    one.does("shell", "-v", "0", "-c", UNNAME)
    if at == "retention.returning":
        one.shell(SWEEP.format(days=9))
        assert all(name.startswith(".trash/") for name in pictures(one))
        one.does("shell", "-v", "0", "-c", NAME)
        one.manage("shell", "-v", "0", "-c", SWEEP.format(days=30), crash_at=at)
    else:
        one.manage(*sweep_later, crash_at=at)
    assert bytes_of(pictures(one)) == bytes_of(before)
    # As often as it is begun again.
    one.does("shell", "-v", "0", "-c", NAME)
    one.shell(SWEEP.format(days=30))
    assert pictures(one) == before


@pytest.mark.slow
@pytest.mark.parametrize("at", ["restore.unpacked", "restore.named", "restore.ended"])
def test_killed_in_a_restore_the_folder_stays_its_databases(one, tmp_path, at):
    saved = tmp_path / "kept.tar.gz"
    one.does("backup", str(saved))
    before = pictures(one)
    one.manage("restore", str(saved), "--wipe", crash_at=at)
    assert "ok    media" in one.manage("doctor").out
    one.shell(SWEEP.format(days=0))
    assert {name: data for name, data in pictures(one).items() if not name.startswith(".")} == before
    assert len(one.files()[".instance"].split()) == 1
    one.does("restore", str(saved), "--wipe")
    assert (pictures(one), "ok    media" in one.manage("doctor").out) == (before, True)
