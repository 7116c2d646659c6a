"""A backup in the place of this instance's data: all of it checked first, and no state in between that could work."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from accounts import audit
from accounts.models import User, Workspace
from config.core import jobs, work_queue
from config.core.crash_points import crash_point
from config.operations import backup_archive, db_dump, doctor, migration_errors, unfinished_restore
from pipeline import mailing, publish
from pipeline.media import media_root_id
from pipeline.models import MediaFolder, Source, Upload
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

ACTOR: Final = "manage.py restore"
STAGE: Final = ".restoring"
"""Inside the media folder, which may be a volume of its own: what is unpacked there is moved, never copied."""
STOPPED: Final = (
    "Restored from a backup of {made_at}. What came after it may be published already, "
    "and sources that publish by themselves would do it again."
)


@dataclass(frozen=True)
class RestoreResult:
    made_at: str
    voided: int
    """Rows that were in hand and are looked at again."""
    doubted: int
    """Publications that are looked up before they may be sent."""
    stopped: tuple[str, ...]
    """Workspaces whose publishing waits for the operator."""
    warning: str
    """What the keys of the settings can't open; empty where they open everything."""


def restore(path: Path, *, wipe: bool) -> RestoreResult:
    """Replace database and media. Refuses an instance that holds anything, unless `wipe`; a media folder that belongs to
    neither the database nor the backup; and while others use it.

    Nothing is changed before the whole backup was read and its checksums agreed. From the moment that the database is
    replaced until the last step the instance is marked: killed in between, nothing of it starts, and the same restore
    run again ends it.
    """
    half = unfinished_restore.is_half_restored()
    if not wipe and not half and _holds_something():
        message = "This instance holds data already. Stop it and add --wipe to replace everything."
        raise backup_archive.UnusableBackup(message)
    about, unpacked = backup_archive.verify(path)
    _refuse_unless_ours(about)
    _refuse_other_folder(about, wipe=wipe, half=half)
    db_dump.refuse_unless_alone()
    stage = settings.MEDIA_ROOT / STAGE
    _clean(stage)
    former, own, new = media_root_id.read_ids(), media_root_id.own_id(), uuid4()
    try:
        _refuse_unless_it_fits(stage, unpacked)
        backup_archive.unpack(
            path, database=stage / backup_archive.DATABASE, media=stage / backup_archive.MEDIA
        )
        prepared = db_dump.prepare_load(stage / backup_archive.DATABASE)
        crash_point("restore.unpacked")
        # Whichever database a kill leaves, the folder is its own.
        media_root_id.write_ids(*former, *([own] if own else ()), *_ids_of(about), new)
        crash_point("restore.named")
        db_dump.load_database(prepared)
    except BaseException:
        # The former data is whole and stays.
        shutil.rmtree(stage, ignore_errors=True)
        if media_root_id.read_ids() != former:
            media_root_id.write_ids(*former)
        raise
    crash_point("restore.loaded")
    _move_media(stage)
    # A backup of an older version comes up to this one's tables.
    call_command("migrate", interactive=False, verbosity=0)
    crash_point("restore.migrated")
    done = _end(about, new)
    crash_point("restore.ended")
    media_root_id.write_ids(new)
    return done


def _end(about: backup_archive.BackupDescription, new: UUID) -> RestoreResult:
    with transaction.atomic():
        now = work_queue.database_now()
        voided = _void_leases(now)
        doubted = publish.look_up_promised(now=now)
        mailing.doubt_restored(now=now)
        stopped = _stop_autopilots(about)
        # An id of its own: the instance that was backed up may go on elsewhere, with its files.
        MediaFolder.everywhere.all().delete()
        MediaFolder.everywhere.create(instance=new)
        details = {"made_at": about.made_at, "publications_looked_up": doubted}
        audit.note("instance.restored", workspace=None, actor=ACTOR, subject="instance", details=details)
        unfinished_restore.clear_mark()
    keys = doctor.keys()
    warning = "" if keys.verdict == "ok" else f"{keys.said} {keys.advice}"
    return RestoreResult(about.made_at, voided, doubted, stopped, warning)


def _void_leases(now: datetime) -> int:
    """Every row in hand is looked at again at once, and whoever held it can write nothing.

    A publication that was `publishing` becomes `unknown` on that look and is asked for, never sent again blindly.
    """
    voided = 0
    models = {job.model for job in jobs.jobs().values() if not isinstance(job, jobs.BatchJob)}
    for model in models:
        in_hand = model.everywhere.filter(attempts__gt=0, wake_at__isnull=False)
        voided += in_hand.update(wake_at=now, **work_queue.overtake())
    return voided


def _stop_autopilots(about: backup_archive.BackupDescription) -> tuple[str, ...]:
    """What such a source published after the backup would be made and published anew, under another key: no platform
    could be asked for it. A person has to compare first.
    """
    with_autopilot = Source.everywhere.filter(autopilot=True, deleted_at=None).values("workspace")
    found = Workspace.everywhere.filter(deleted_at=None, pk__in=with_autopilot).order_by("created_at", "id")
    reason = STOPPED.format(made_at=about.made_at)
    for workspace in found:
        kill_switch.stop("publishing", workspace=workspace, reason=reason, actor=ACTOR)
    return tuple(workspace.name for workspace in found)


def _refuse_unless_ours(about: backup_archive.BackupDescription) -> None:
    if about.vendor != connection.vendor:
        message = f"The backup is of {about.vendor}; this instance runs on {connection.vendor}. Nothing was changed."
        raise backup_archive.UnusableBackup(message)
    had = [(app, name) for app, _, name in (one.partition(".") for one in about.migrations)]
    known = set(MigrationLoader(None).disk_migrations).union(*migration_errors.replaced_migrations().values())
    newer = [f"{app}.{name}" for app, name in had if (app, name) not in known]
    if newer:
        message = (
            f"The backup is of a newer version: this one doesn't know {', '.join(newer[:3])}. "
            "Install that version first. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)
    reason = migration_errors.why_not(had)
    if reason:
        message = f"The backup can't be used. {reason}"
        raise backup_archive.UnusableBackup(message)


def _refuse_other_folder(about: backup_archive.BackupDescription, *, wipe: bool, half: bool) -> None:
    """The media are replaced too: they must be those of the database that is replaced, or of the one in the backup."""
    if not media_root_id.holds_files():
        return
    own, named = media_root_id.own_id(), media_root_id.read_ids()
    # Killed before its tables came up to this version, the restored database has no id yet.
    is_known = (half and own is None) or bool({own, *_ids_of(about)} & set(named))
    if not named:
        is_known = half or (_has_tables() and not media_root_id.compare_folder().refusal)
    if not is_known:
        message = (
            f"The files in {settings.MEDIA_ROOT} belong to neither this database nor the backup. Mend DATABASE_URL or "
            "MEDIA_ROOT; or move those files away, or set MEDIA_ROOT to an empty folder. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)
    if not wipe and not half:
        message = (
            f"{settings.MEDIA_ROOT} holds files already. Add --wipe to replace them. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)


def _ids_of(about: backup_archive.BackupDescription) -> tuple[UUID, ...]:
    try:
        return (UUID(about.instance),)
    except ValueError:
        return ()


def _refuse_unless_it_fits(stage: Path, needed: int) -> None:
    stage.mkdir(parents=True)
    free = shutil.disk_usage(stage).free
    if free < needed:
        message = (
            f"{stage.parent} has {free // 2**20} MiB free; the backup unpacks to {needed // 2**20} MiB "
            "beside what is there. Free some space. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)


def _move_media(stage: Path) -> None:
    """In the place of what is there; killed in the middle, the next run unpacks everything again."""
    for one in settings.MEDIA_ROOT.iterdir():
        if one != stage and one.name != media_root_id.ID_FILE:
            _clean(one)
    crash_point("restore.cleared")
    unpacked = stage / backup_archive.MEDIA
    for one in sorted(unpacked.iterdir()) if unpacked.is_dir() else ():
        one.rename(settings.MEDIA_ROOT / one.name)
    _clean(stage)


def _clean(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _has_tables() -> bool:
    return Upload._meta.db_table in connection.introspection.table_names()


def _holds_something() -> bool:
    if not MigrationRecorder(connection).has_table():
        return False
    tables = set(connection.introspection.table_names())
    return (Workspace._meta.db_table in tables and Workspace.everywhere.exists()) or (
        User._meta.db_table in tables and User.objects.exists()
    )
