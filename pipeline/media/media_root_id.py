"""Compares the media folder with this database by an id in both, before anything removes files.

Without the id a wrong DATABASE_URL or MEDIA_ROOT makes every file one that no row names. The database has the id in
the row of `MediaFolder`, the folder in a file. The id is written by the first check of a new service, which finds
neither files nor rows that name any; once in a service from before there were ids, whose rows and files match; by a
restore; and by the operator (`manage.py media --adopt`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from pipeline.media import files
from pipeline.models import Asset, MediaFolder, Upload

if TYPE_CHECKING:
    from collections.abc import Iterator

ID_FILE: Final = ".instance"
ADVICE: Final = (
    "Correct DATABASE_URL or MEDIA_ROOT. If they do belong together, run manage.py media --adopt: files "
    "that no row names are then swept."
)
FOLDERS_PER_BATCH: Final = 200
MIN_KNOWN_PERCENT: Final = 90
"""The least per cent of files that rows name, and of the rows' files that exist, in a folder of this database."""
RECHECK_SECONDS: Final = 600.0
"""The time for which the refusal of a folder without an id is cached."""
_unclear_cache: Final[dict[Path, tuple[float, FolderComparison]]] = {}


@dataclass(frozen=True)
class FolderComparison:
    """The result of a comparison.

    Folders that are `new` or `known` have no id yet, and get one; those that are `other` or `unclear` are refused,
    with the fault in `message`.
    """

    verdict: Literal["ours", "new", "known", "other", "unclear"]
    message: str = ""

    @property
    def refusal(self) -> str:
        """The fault and its remedy, or an empty string if the folder is this database's."""
        return f"{self.message} {ADVICE}" if self.message else ""


class ForeignMediaFolder(Exception):
    """Raised if the folder belongs to another database; the message holds the fault and its remedy."""


def compare_folder() -> FolderComparison:
    """Compare the folder and the database. Writes nothing."""
    root = Path(settings.MEDIA_ROOT)
    try:
        folder_ids = read_ids()
        if not folder_ids:
            return _compare_by_content(root)
    except OSError as error:
        return FolderComparison("other", f"{root} can't be read: {error.strerror}.")
    database_id = own_id()
    if database_id in folder_ids:
        return FolderComparison("ours")
    return FolderComparison(
        "other",
        f"{root} belongs to another database: its {ID_FILE} says {folder_ids[0]}, this database {database_id or 'has no id yet'}.",
    )


def refuse_foreign_folder() -> None:
    """Raise `ForeignMediaFolder` if the folder isn't this database's.

    It writes nothing, because it is called in transactions, whose rollback would undo the row and not the file.
    """
    refusal = compare_folder().refusal
    if refusal:
        raise ForeignMediaFolder(refusal)


def claim_folder() -> str:
    """Give folder and database the id if they have none and belong together. Runs outside a transaction.

    The file is also written again if it names several databases, one of them this. Return the refusal, or an empty
    string if there is none.
    """
    comparison = compare_folder()
    if comparison.verdict in {"new", "known"} or (comparison.verdict == "ours" and len(read_ids()) > 1):
        try:
            adopt_folder()
        except OSError:
            # The folder can't be written to, so nothing can be removed from it either.
            return comparison.refusal
    return comparison.refusal


def adopt_folder() -> UUID:
    """Write the database's id into the folder, in place of any other id there, and return it."""
    # The row is committed before the file exists: the other way round a folder could have an id of no database.
    with transaction.atomic(durable=True):
        row, _ = MediaFolder.everywhere.get_or_create()
    write_ids(row.instance)
    return row.instance


def write_ids(*instances: UUID) -> None:
    """Write the ids of the databases whose folder it may be, or remove the file if there are none.

    There is one id but during a restore, when each of several may be right after a kill.
    """
    root = Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    if not instances:
        (root / ID_FILE).unlink(missing_ok=True)
        return
    text = "".join(f"{instance}\n" for instance in dict.fromkeys(instances))
    files.write(ID_FILE, [text.encode()])


def read_ids() -> list[UUID]:
    """Return the ids in the folder's file, or an empty list without one. Raises `OSError` if it can't be read."""
    try:
        lines = (Path(settings.MEDIA_ROOT) / ID_FILE).read_text(encoding="utf-8", errors="replace").split()
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [instance for line in lines if (instance := _parse_uuid(line)) is not None]


def own_id() -> UUID | None:
    """Return the database's id, or `None` if it has none yet or no tables."""
    if MediaFolder._meta.db_table not in connection.introspection.table_names():
        return None
    instance: UUID | None = MediaFolder.everywhere.values_list("instance", flat=True).first()
    return instance


def holds_files() -> bool:
    """Return whether the folder or its trash holds any file, apart from hidden ones such as the id's file."""
    entries = (
        entry
        for entry in _entries(Path(settings.MEDIA_ROOT))
        if entry.name == files.TRASH or not entry.name.startswith(".")
    )
    return any(not path.is_dir() for entry in entries for path in (entry, *entry.rglob("*")))


def item_folders() -> Iterator[Path]:
    """Yield the folders of items and uploads; the service leaves anything else in the media folder alone."""
    yield from (
        path for path in _entries(Path(settings.MEDIA_ROOT)) if _parse_uuid(path.name) and path.is_dir()
    )


def _compare_by_content(root: Path) -> FolderComparison:
    """Compare a folder by its files, all of which are listed; an unclear result is cached for `RECHECK_SECONDS`."""
    checked_at, cached = _unclear_cache.get(root, (0.0, None))
    if cached is not None and time.monotonic() - checked_at < RECHECK_SECONDS:
        return cached
    file_count = known_count = served_count = 0
    folders = item_folders()
    while batch := list(islice(folders, FOLDERS_PER_BATCH)):
        paths = {
            str(path.relative_to(root))
            for folder in batch
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != files.PARTIAL_SUFFIX
        }
        keys = [UUID(folder.name) for folder in batch]
        assets = list(Asset.everywhere.filter(item_id__in=keys).values_list("path", "revoked_at"))
        served = {path for path, revoked_at in assets if revoked_at is None}
        served |= set(Upload.everywhere.filter(pk__in=keys).values_list("path", flat=True))
        file_count += len(paths)
        known_count += len(paths & (served | {path for path, _ in assets}))
        served_count += len(paths & served)
    named_count = Asset.everywhere.filter(revoked_at=None).count() + Upload.everywhere.count()
    if not file_count and not named_count:
        return FolderComparison("new")
    # One is added, so that a service with a handful of files isn't judged by the file that is being written.
    if known_count and all(
        100 * (part + 1) >= MIN_KNOWN_PERCENT * total
        for part, total in ((known_count, file_count), (served_count, named_count))
    ):
        return FolderComparison("known")
    message = (
        f"{root} has no {ID_FILE}, and it is not clear that it is this database's: of its {file_count} files rows name {known_count}, "
        f"and of the {named_count} files that rows name {served_count} are there."
    )
    unclear = FolderComparison("unclear", message)
    _unclear_cache[root] = (time.monotonic(), unclear)
    return unclear


def _entries(root: Path) -> list[Path]:
    return list(root.iterdir()) if root.is_dir() else []


def _parse_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
