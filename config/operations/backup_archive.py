"""The form of a backup: a compressed tar whose last member is a manifest with the checksum of every other one.

Because the manifest comes last, a file that was cut off has none and is refused. Everything is read and written in
pieces; nothing is held in memory whole.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

FORM: Final = 2
MANIFEST: Final = "manifest.json"
DATABASE: Final = "database"
MEDIA: Final = "media/"
PIECE_BYTES: Final = 1024 * 1024
MANIFEST_BYTES_MOST: Final = 512 * 1024 * 1024
"""About three million files; more isn't a manifest of ours."""


class UnusableBackup(Exception):
    """Says what is missing or in the way, to a person at a terminal."""


class ReadableFile(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class BackupDescription:
    """What a backup says of itself. `migrations` are those that its database had, as `app.name`; `instance` is the id of
    its media folder, empty in backups from before there were ids.
    """

    vendor: str
    made_at: str
    migrations: tuple[str, ...]
    instance: str = ""


class HashingReader:
    """A file that is read through; knows the checksum of what was read."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece

    @property
    def hexdigest(self) -> str:
        return self._digest.hexdigest()


class ArchiveWriter:
    """Put the members in, then `finish`; without that the file is no backup."""

    def __init__(self, file: BinaryIO, about: BackupDescription) -> None:
        # Closed by `finish`; whoever doesn't come that far throws the file away.
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=file, mode="w:gz", compresslevel=6, dereference=True
        )
        self._about = about
        self._sums: dict[str, str] = {}

    def put(self, path: Path, name: str) -> None:
        with path.open("rb") as source:
            info = self._tar.gettarinfo(arcname=name, fileobj=source)
            hashing = HashingReader(source)
            self._tar.addfile(info, hashing)
        # It would keep every member for a listing that nobody asks for.
        self._tar.members.clear()  # type: ignore[attr-defined]
        self._sums[name] = hashing.hexdigest

    def finish(self) -> None:
        said = json.dumps({"form": FORM, **asdict(self._about), "sha256": self._sums}).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(said)
        self._tar.addfile(info, io.BytesIO(said))
        self._tar.close()


def verify(path: Path) -> tuple[BackupDescription, int]:
    """Read the whole backup and compare every checksum; returns what it says of itself and its unpacked bytes.

    Raises `UnusableBackup` for anything that isn't a whole backup of this form. Nothing is written.
    """
    found: dict[str, str] = {}
    manifest: Mapping[str, Any] | None = None
    unpacked = 0
    try:
        for info, file in _members(path):
            if manifest is not None:
                message = f"{path} has more behind its manifest; it is not a backup of this service."
                raise UnusableBackup(message)
            if info.name == MANIFEST:
                manifest = _read_manifest(info, file)
                continue
            hashing = HashingReader(file)
            while hashing.read(PIECE_BYTES):
                pass
            found[info.name] = hashing.hexdigest
            unpacked += info.size
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        message = f"{path} is damaged or was cut off ({error}); nothing was changed."
        raise UnusableBackup(message) from error
    if manifest is None:
        message = (
            f"{path} has no manifest at its end: it was cut off, or is not a backup. Nothing was changed."
        )
        raise UnusableBackup(message)
    if manifest.get("form") != FORM:
        message = (
            f"{path} has form {manifest.get('form')}; this version reads form {FORM}. Nothing was changed."
        )
        raise UnusableBackup(message)
    if DATABASE not in found or found != manifest.get("sha256"):
        message = f"{path} is damaged: its content isn't what its manifest says. Nothing was changed."
        raise UnusableBackup(message)
    return _about(manifest), unpacked


def _about(manifest: Mapping[str, Any]) -> BackupDescription:
    return BackupDescription(
        vendor=str(manifest["vendor"]),
        made_at=str(manifest["made_at"]),
        migrations=tuple(manifest["migrations"]),
        instance=str(manifest.get("instance", "")),
    )


def unpack(path: Path, *, database: Path, media: Path) -> None:
    """Write a verified backup's members out: the database's dump as `database`, the files below `media`."""
    for info, file in _members(path):
        if info.name == MANIFEST:
            continue
        to = database if info.name == DATABASE else _inside(media, info.name)
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("wb") as out:
            while piece := file.read(PIECE_BYTES):
                out.write(piece)


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, ReadableFile]]:
    with tarfile.open(path, "r|gz") as archive:
        for info in archive:
            file = archive.extractfile(info) if info.isreg() else None
            if file is None:
                message = (
                    f"{path} holds {info.name!r}, which is no plain file; it is not a backup of this service."
                )
                raise UnusableBackup(message)
            yield info, file
            archive.members.clear()  # type: ignore[attr-defined]


def _read_manifest(info: tarfile.TarInfo, file: ReadableFile) -> Mapping[str, Any]:
    if info.size > MANIFEST_BYTES_MOST:
        message = "The manifest is too large to be one of ours."
        raise UnusableBackup(message)
    manifest = json.loads(file.read(info.size))
    if not isinstance(manifest, dict):
        message = "The manifest can't be read."
        raise UnusableBackup(message)
    return manifest


def _inside(media: Path, name: str) -> Path:
    """Refuses a member that would land outside the folder."""
    to = (media / name.removeprefix(MEDIA)).resolve()
    if not name.startswith(MEDIA) or not to.is_relative_to(media.resolve()):
        message = f"The backup holds {name!r}, which lies outside its folders."
        raise UnusableBackup(message)
    return to
