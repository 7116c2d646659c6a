"""Reads and writes backups: a compressed tar, ending in a manifest with every member's checksum.

As the manifest comes last, a truncated file has none and is refused. Files are read and written in pieces, and
never held in memory as a whole.
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

FORMAT_VERSION: Final = 2
MANIFEST: Final = "manifest.json"
DATABASE: Final = "database"
MEDIA: Final = "media/"
CHUNK_BYTES: Final = 1024 * 1024
"""Bytes that are read or written at once."""
MAX_MANIFEST_BYTES: Final = 512 * 1024 * 1024
"""The largest manifest that is read, enough for about three million files."""


class UnusableBackup(Exception):
    """Raised with a message for the person at the terminal, if a backup can't be written, read or restored."""


class ReadableFile(Protocol):
    """A file that can be read in pieces."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class BackupDescription:
    """A backup's description of itself, which its manifest holds."""

    vendor: str
    made_at: str
    migrations: tuple[str, ...]
    """The applied migrations of its database, as `app.name`."""
    instance: str = ""
    """The id of its media folder, empty in backups from before there were ids."""


class HashingReader:
    """A file that computes the checksum of the bytes that are read from it."""

    def __init__(self, file: ReadableFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece

    @property
    def hexdigest(self) -> str:
        """The SHA-256 of the bytes that were read so far."""
        return self._digest.hexdigest()


class ArchiveWriter:
    """Writes a backup: `put` adds members, and `finish` completes it; without that the file is no backup."""

    def __init__(self, file: BinaryIO, description: BackupDescription) -> None:
        # Closed by `finish`; a caller that doesn't get there deletes the file.
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=file, mode="w:gz", compresslevel=6, dereference=True
        )
        self._description = description
        self._sums: dict[str, str] = {}

    def put(self, path: Path, name: str) -> None:
        """Add a file under this name."""
        with path.open("rb") as source:
            info = self._tar.gettarinfo(arcname=name, fileobj=source)
            hashing = HashingReader(source)
            self._tar.addfile(info, hashing)
        # tarfile would keep every member in memory, for a listing that isn't needed.
        self._tar.members.clear()  # type: ignore[attr-defined]
        self._sums[name] = hashing.hexdigest

    def finish(self) -> None:
        """Add the manifest and close the archive."""
        manifest = json.dumps(
            {"form": FORMAT_VERSION, **asdict(self._description), "sha256": self._sums}
        ).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size = len(manifest)
        self._tar.addfile(info, io.BytesIO(manifest))
        self._tar.close()


def verify(path: Path) -> tuple[BackupDescription, int]:
    """Read the whole backup and compare every checksum; return its description and how many bytes it unpacks to.

    Raises `UnusableBackup` for anything that isn't a complete backup of this format, and `OSError` for a file that
    isn't there, isn't readable or is a folder. Nothing is written.
    """
    checksums: dict[str, str] = {}
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
            while hashing.read(CHUNK_BYTES):
                pass
            checksums[info.name] = hashing.hexdigest
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
    if manifest.get("form") != FORMAT_VERSION:
        message = f"{path} has form {manifest.get('form')}; this version reads form {FORMAT_VERSION}. Nothing was changed."
        raise UnusableBackup(message)
    if DATABASE not in checksums or checksums != manifest.get("sha256"):
        message = f"{path} is damaged: its content isn't what its manifest says. Nothing was changed."
        raise UnusableBackup(message)
    return _description_from(manifest), unpacked


def _description_from(manifest: Mapping[str, Any]) -> BackupDescription:
    """Return the description in a manifest. Raises `KeyError` if it lacks a part."""
    return BackupDescription(
        vendor=str(manifest["vendor"]),
        made_at=str(manifest["made_at"]),
        migrations=tuple(manifest["migrations"]),
        instance=str(manifest.get("instance", "")),
    )


def unpack(path: Path, *, database: Path, media: Path) -> None:
    """Write out a verified backup's members: the database's dump as `database`, the files below `media`.

    Raises `UnusableBackup` for a member outside of the media folder.
    """
    for info, file in _members(path):
        if info.name == MANIFEST:
            continue
        target = database if info.name == DATABASE else _media_path(media, info.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as out:
            while piece := file.read(CHUNK_BYTES):
                out.write(piece)


def _members(path: Path) -> Iterator[tuple[tarfile.TarInfo, ReadableFile]]:
    """Yield each member and its content. Raises `UnusableBackup` for anything but a plain file."""
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
    """Return the manifest. Raises `UnusableBackup` if it is too large or no JSON object, `ValueError` if no JSON."""
    if info.size > MAX_MANIFEST_BYTES:
        message = "The manifest is too large to be one of ours."
        raise UnusableBackup(message)
    manifest = json.loads(file.read(info.size))
    if not isinstance(manifest, dict):
        message = "The manifest can't be read."
        raise UnusableBackup(message)
    return manifest


def _media_path(media: Path, name: str) -> Path:
    """Return the path that a media file is unpacked to. Raises `UnusableBackup` if it lies outside the folder."""
    target = (media / name.removeprefix(MEDIA)).resolve()
    if not name.startswith(MEDIA) or not target.is_relative_to(media.resolve()):
        message = f"The backup holds {name!r}, which lies outside its folders."
        raise UnusableBackup(message)
    return target
