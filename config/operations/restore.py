"""Replaces this instance's data by a backup, which is checked first; in between the instance is unusable."""

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
from config.operations import backup_archive, db_dump, doctor, unfinished_restore, unmigrated_database
from pipeline import mailing, publish
from pipeline.media import media_root_id
from pipeline.models import MediaFolder, Source, Upload
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

ACTOR: Final = "manage.py restore"
STAGING_FOLDER: Final = ".restoring"
"""A folder inside the media folder, which may be a separate volume, so that files are moved and not copied."""
STOP_REASON: Final = (
    "Restored from a backup of {made_at}. What came after it may be published already, and sources on "
    "autopilot would publish it again."
)


@dataclass(frozen=True)
class RestoreResult:
    """The outcome of a restore."""

    made_at: str
    voided: int
    """The number of rows that were in work when the backup was made, and are due again."""
    doubted: int
    """The number of publications that are looked up before they may be sent."""
    stopped: tuple[str, ...]
    """The names of the workspaces whose publishing waits for the operator."""
    warning: str
    """The doctor's message if the keys of the settings can't decrypt every secret, else an empty text."""


def restore(path: Path, *, wipe: bool) -> RestoreResult:
    """Replace database and media by the backup.

    Raises `UnusableBackup` for an instance that holds anything without `wipe`, or that is in use; for a media
    folder that belongs to neither the database nor the backup, or has too little space; and for a backup that is
    damaged or of another database or version. Nothing is changed before the whole backup was read and its
    checksums agreed. From the moment that the database is replaced until the last step the instance is marked: if
    the restore is killed in between, nothing of the service starts, and running the same restore again completes
    it.
    """
    is_half_restored = unfinished_restore.is_half_restored()
    if not wipe and not is_half_restored and _holds_something():
        message = "This instance holds data already. Stop it and add --wipe to replace everything."
        raise backup_archive.UnusableBackup(message)
    description, unpacked = backup_archive.verify(path)
    _refuse_unless_usable(description)
    _refuse_other_folder(description, wipe=wipe, is_half_restored=is_half_restored)
    db_dump.refuse_unless_alone()
    stage = settings.MEDIA_ROOT / STAGING_FOLDER
    _remove(stage)
    former_ids, own_id, new_id = media_root_id.read_ids(), media_root_id.own_id(), uuid4()
    try:
        _refuse_unless_space(stage, unpacked)
        backup_archive.unpack(
            path, database=stage / backup_archive.DATABASE, media=stage / backup_archive.MEDIA
        )
        prepared = db_dump.prepare_load(stage / backup_archive.DATABASE)
        crash_point("restore.unpacked")
        # Whether a kill leaves the old database or the new one, the folder belongs to it.
        media_root_id.write_ids(*former_ids, *([own_id] if own_id else ()), *_ids_of(description), new_id)
        crash_point("restore.named")
        db_dump.load_database(prepared)
    except BaseException:
        # The old data is complete and stays.
        shutil.rmtree(stage, ignore_errors=True)
        if media_root_id.read_ids() != former_ids:
            media_root_id.write_ids(*former_ids)
        raise
    crash_point("restore.loaded")
    _move_media(stage)
    # Migrate the tables of an older version's backup.
    call_command("migrate", interactive=False, verbosity=0)
    crash_point("restore.migrated")
    result = _finish(description, new_id)
    crash_point("restore.ended")
    media_root_id.write_ids(new_id)
    return result


def _finish(description: backup_archive.BackupDescription, new_id: UUID) -> RestoreResult:
    """Make the restored rows safe to work on, and remove the mark of the unfinished restore."""
    with transaction.atomic():
        now = work_queue.database_now()
        voided = _void_leases(now)
        looked_up = publish.mark_unsent_unknown(now=now)
        mailing.doubt_restored(now=now)
        stopped = _stop_autopilots(description)
        # The id is new, because the instance that was backed up may go on elsewhere, with its own files.
        MediaFolder.everywhere.all().delete()
        MediaFolder.everywhere.create(instance=new_id)
        details = {"made_at": description.made_at, "publications_looked_up": looked_up}
        audit.note("instance.restored", workspace=None, actor=ACTOR, subject="instance", details=details)
        unfinished_restore.clear_mark()
    keys = doctor.keys()
    warning = "" if keys.verdict == "ok" else f"{keys.said} {keys.advice}"
    return RestoreResult(description.made_at, voided, looked_up, stopped, warning)


def _void_leases(now: datetime) -> int:
    """Make every row that was in work due under a new lease, so that no former task can write; return how many.

    A task then makes a publication that was `publishing` `unknown` and looks it up; it is never sent again blindly.
    """
    voided = 0
    models = {job.model for job in jobs.jobs().values() if not isinstance(job, jobs.BatchJob)}
    for model in models:
        leased = model.everywhere.filter(attempts__gt=0, wake_at__isnull=False)
        voided += leased.update(wake_at=now, **work_queue.overtake())
    return voided


def _stop_autopilots(description: backup_archive.BackupDescription) -> tuple[str, ...]:
    """Pause publishing of workspaces with autopilot sources, and return their names.

    Items that such a source published after the backup would be made and published again, under other keys, by
    which no platform finds the first ones. A person has to compare first.
    """
    with_autopilot = Source.everywhere.filter(autopilot=True, deleted_at=None).values("workspace")
    workspaces = Workspace.everywhere.filter(deleted_at=None, pk__in=with_autopilot).order_by(
        "created_at", "id"
    )
    reason = STOP_REASON.format(made_at=description.made_at)
    for workspace in workspaces:
        kill_switch.stop("publishing", workspace=workspace, reason=reason, actor=ACTOR)
    return tuple(workspace.name for workspace in workspaces)


def _refuse_unless_usable(description: backup_archive.BackupDescription) -> None:
    """Raise `UnusableBackup` for a backup of another database or of a version that can't be migrated."""
    if description.vendor != connection.vendor:
        message = f"The backup is of {description.vendor}; this instance runs on {connection.vendor}. Nothing was changed."
        raise backup_archive.UnusableBackup(message)
    migrations = [
        (app, name) for app, _, name in (migration.partition(".") for migration in description.migrations)
    ]
    known = set(MigrationLoader(None).disk_migrations).union(
        *unmigrated_database.replaced_migrations().values()
    )
    newer = [f"{app}.{name}" for app, name in migrations if (app, name) not in known]
    if newer:
        message = (
            f"The backup is of a newer version: this one doesn't know {', '.join(newer[:3])}. "
            "Install that version first. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)
    reason = unmigrated_database.why_not(migrations)
    if reason:
        message = f"The backup can't be used. {reason}"
        raise backup_archive.UnusableBackup(message)


def _refuse_other_folder(
    description: backup_archive.BackupDescription, *, wipe: bool, is_half_restored: bool
) -> None:
    """Raise `UnusableBackup` if the media files belong to another instance, or are there without `wipe`."""
    if not media_root_id.holds_files():
        return
    own_id, folder_ids = media_root_id.own_id(), media_root_id.read_ids()
    # A restored database has no id yet if the restore was killed before the migration.
    is_known = (is_half_restored and own_id is None) or bool(
        {own_id, *_ids_of(description)} & set(folder_ids)
    )
    if not folder_ids:
        is_known = is_half_restored or (_has_tables() and not media_root_id.compare_folder().refusal)
    if not is_known:
        message = (
            f"The files in {settings.MEDIA_ROOT} belong to neither this database nor the backup. Correct "
            "DATABASE_URL or MEDIA_ROOT; or move those files away, or set MEDIA_ROOT to an empty folder. "
            "Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)
    if not wipe and not is_half_restored:
        message = (
            f"{settings.MEDIA_ROOT} holds files already. Add --wipe to replace them. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)


def _ids_of(description: backup_archive.BackupDescription) -> tuple[UUID, ...]:
    """Return the id of the backup's media folder, or nothing if an old backup has none."""
    try:
        return (UUID(description.instance),)
    except ValueError:
        return ()


def _refuse_unless_space(stage: Path, needed: int) -> None:
    """Create the folder. Raises `UnusableBackup` if its disk has fewer than `needed` bytes free."""
    stage.mkdir(parents=True)
    free = shutil.disk_usage(stage).free
    if free < needed:
        message = (
            f"{stage.parent} has {free // 2**20} MiB free; the backup unpacks to {needed // 2**20} MiB "
            "next to the existing files. Free some space. Nothing was changed."
        )
        raise backup_archive.UnusableBackup(message)


def _move_media(stage: Path) -> None:
    """Replace the media by the unpacked files; after a kill in between the next restore unpacks them again."""
    for path in settings.MEDIA_ROOT.iterdir():
        if path != stage and path.name != media_root_id.ID_FILE:
            _remove(path)
    crash_point("restore.cleared")
    unpacked = stage / backup_archive.MEDIA
    for path in sorted(unpacked.iterdir()) if unpacked.is_dir() else ():
        path.rename(settings.MEDIA_ROOT / path.name)
    _remove(stage)


def _remove(path: Path) -> None:
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
