"""Whether the media folder belongs to this database: an id in both, asked before anything takes files away.

Without it a wrong DATABASE_URL or MEDIA_ROOT makes every file one that no row names. The database has the id in the
row of `MediaFolder`, the folder in a file. Who writes it: the first look of a new service, which finds neither files
nor rows that name any; once, a service from before there were ids, whose rows and files know each other; a restore;
and the operator (`manage.py media --adopt`).
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

MARK: Final = ".instance"
ADVICE: Final = (
    "Mend DATABASE_URL or MEDIA_ROOT. If they do belong together, run manage.py media --adopt: "
    "files that no row names are then swept."
)
FOLDERS_AT_ONCE: Final = 200
KNOWN_PERCENT: Final = 90
"""Of the files that rows name, and of the rows' files that are there: less is another database, or another folder."""
WALKED_AGAIN_SECONDS: Final = 600.0
_walked: Final[dict[Path, tuple[float, FolderComparison]]] = {}


@dataclass(frozen=True)
class FolderComparison:
    """`new` and `known` have no id yet, and get one; `other` and `unclear` are refused."""

    verdict: Literal["ours", "new", "known", "other", "unclear"]
    said: str = ""

    @property
    def refusal(self) -> str:
        """What is wrong and what to do; empty where the folder is this database's."""
        return f"{self.said} {ADVICE}" if self.said else ""


class NotOurs(Exception):
    """The folder belongs to another database; says what to do."""


def compare_folder() -> FolderComparison:
    """How the folder and the database stand to each other; writes nothing."""
    root = Path(settings.MEDIA_ROOT)
    try:
        named = read_ids()
        if not named:
            return _by_content(root)
    except OSError as error:
        return FolderComparison("other", f"{root} can't be read: {error.strerror}.")
    own = own_id()
    if own in named:
        return FolderComparison("ours")
    return FolderComparison(
        "other",
        f"{root} belongs to another database: its {MARK} says {named[0]}, this database {own or 'has no id yet'}.",
    )


def refuse_unless_ours() -> None:
    """Raises `NotOurs`. For those who are in a transaction: writes nothing, as a rollback would keep only half of it."""
    refusal = compare_folder().refusal
    if refusal:
        raise NotOurs(refusal)


def claim() -> str:
    """Give both the id where they have none and belong together; returns why not, or nothing. Outside a transaction."""
    found = compare_folder()
    if found.verdict in {"new", "known"} or (found.verdict == "ours" and len(read_ids()) > 1):
        try:
            adopt()
        except OSError:
            # A folder that can't be written to; nothing can be taken away from there either.
            return found.refusal
    return found.refusal


def adopt() -> UUID:
    """Write the database's id into the folder, whatever it said before."""
    # Committed before the file is there: the other way round a folder could be of nobody.
    with transaction.atomic(durable=True):
        row, _ = MediaFolder.everywhere.get_or_create()
    write_ids(row.instance)
    return row.instance


def write_ids(*instances: UUID) -> None:
    """Name those whose folder it is: one; while a restore is under way, each that may be right after a kill."""
    root = Path(settings.MEDIA_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    if not instances:
        (root / MARK).unlink(missing_ok=True)
        return
    text = "".join(f"{one}\n" for one in dict.fromkeys(instances))
    files.write(MARK, [text.encode()])


def read_ids() -> list[UUID]:
    """What the folder says; nothing where it has no mark, or one that nobody can read."""
    try:
        lines = (Path(settings.MEDIA_ROOT) / MARK).read_text(encoding="utf-8", errors="replace").split()
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [one for line in lines if (one := _uuid(line)) is not None]


def own_id() -> UUID | None:
    """The database's; None in one that has none yet, or no tables."""
    if MediaFolder._meta.db_table not in connection.introspection.table_names():
        return None
    found: UUID | None = MediaFolder.everywhere.values_list("instance", flat=True).first()
    return found


def holds_files() -> bool:
    """Whether anything lies there, or in its trash, but the service's own marks."""
    own = (
        one
        for one in _entries(Path(settings.MEDIA_ROOT))
        if one.name == files.TRASH or not one.name.startswith(".")
    )
    return any(not path.is_dir() for one in own for path in (one, *one.rglob("*")))


def item_folders() -> Iterator[Path]:
    """The folders of items and uploads; what else lies there is nobody's to judge."""
    yield from (one for one in _entries(Path(settings.MEDIA_ROOT)) if _uuid(one.name) and one.is_dir())


def _by_content(root: Path) -> FolderComparison:
    """For a folder without an id. Walks all of it, so what it found wrong holds for some minutes."""
    at, kept = _walked.get(root, (0.0, None))
    if kept is not None and time.monotonic() - at < WALKED_AGAIN_SECONDS:
        return kept
    there = known = present = 0
    folders = item_folders()
    while some := list(islice(folders, FOLDERS_AT_ONCE)):
        found = {
            str(path.relative_to(root))
            for folder in some
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != files.PART
        }
        keys = [UUID(folder.name) for folder in some]
        assets = list(Asset.everywhere.filter(item_id__in=keys).values_list("path", "revoked_at"))
        served = {path for path, revoked_at in assets if revoked_at is None}
        served |= set(Upload.everywhere.filter(pk__in=keys).values_list("path", flat=True))
        there += len(found)
        known += len(found & (served | {path for path, _ in assets}))
        present += len(found & served)
    named = Asset.everywhere.filter(revoked_at=None).count() + Upload.everywhere.count()
    if not there and not named:
        return FolderComparison("new")
    # One more, so that a service with a handful of files isn't judged by the one that is being made.
    if known and all(
        100 * (part + 1) >= KNOWN_PERCENT * whole for part, whole in ((known, there), (present, named))
    ):
        return FolderComparison("known")
    said = (
        f"{root} has no {MARK}, and it is not clear that it is this database's: of its {there} files rows name {known}, "
        f"and of the {named} files that rows name {present} are there."
    )
    unclear = FolderComparison("unclear", said)
    _walked[root] = (time.monotonic(), unclear)
    return unclear


def _entries(root: Path) -> list[Path]:
    return list(root.iterdir()) if root.is_dir() else []


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
