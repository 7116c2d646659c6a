"""Stores uploaded files, checked by their bytes, for some days, and for as long as a raw item or persona uses them.

A file is written before its row, under the row's id. So a killed task leaves a file that isn't served, which the
sweep of the media folder removes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from django.db import transaction
from django.db.models import Sum

from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict, Invalid
from config.core.ids import decode, encode, uuid7
from pipeline import limits
from pipeline.media import files, media_root_id
from pipeline.media.uploads import file_types
from pipeline.models import Upload, UploadUse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Persona, RawItem

_CHUNK_BYTES: Final = 256 * 1024
_MAX_DELETED_AT_ONCE: Final = 50
_KINDS_READ_WHOLE: Final = frozenset({"image", "text"})
"""The kinds that are small enough to be read into memory."""


@dataclass(frozen=True)
class ReceivedFile:
    """A file as it arrived: the open file, its size in bytes, and the sender's name for it."""

    file: BinaryIO
    size: int
    name: str = ""

    def digest(self) -> str:
        """Return the SHA-256 of the bytes, as hexadecimal digits."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes from the beginning, in chunks."""
        self.file.seek(0)
        while chunk := self.file.read(_CHUNK_BYTES):
            yield chunk


def inspect_file(received: ReceivedFile) -> file_types.SniffedFile:
    """Return the kind and type of the file, by its bytes.

    A child process examines sound and video, so no transaction should be open. Raises `UnsupportedFileType` for a
    type that isn't accepted, `PayloadTooLarge` for too many bytes, `Invalid` for a damaged file or one beyond another
    limit, and `UploadBusy` if the machine is too busy to examine it.
    """
    sniffed = _sniff(received)
    if sniffed.kind not in file_types.PROBED_KINDS:
        return sniffed
    return file_types.probe_content(received.file, sniffed)


def store_upload(
    workspace: Workspace,
    received: ReceivedFile,
    *,
    test: bool,
    actor: str,
    now: datetime | None = None,
    inspected: file_types.SniffedFile | None = None,
) -> Upload:
    """Check the file by its bytes and store it.

    `inspected` is the result of `inspect_file` if it was called before. Raises the errors of `inspect_file`
    otherwise, and `Conflict` if the workspace has too many unused bytes already.
    """
    now = now or utc_now()
    sniffed = inspected or inspect_file(received)
    _refuse_too_many_unused(workspace, received.size)
    row = Upload(
        id=uuid7(),
        workspace=workspace,
        test=test,
        kind=sniffed.kind,
        mime_type=sniffed.mime_type,
        name=_clean_name(received.name),
        bytes=received.size,
        sha256=received.digest(),
        width=sniffed.width,
        height=sniffed.height,
        seconds=sniffed.seconds,
        created_by=actor[:200],
        expires_at=now + limits.UPLOADS_KEPT,
        created_at=now,
    )
    row.path = f"{row.pk.hex}/{row.sha256}{sniffed.suffix}"
    files.write(row.path, received.chunks())
    crash_point("uploads.written")
    row.save(force_insert=True)
    return row


def sniff_kind(received: ReceivedFile) -> str:
    """Return `image`, `audio`, `video` or `text`, by the first bytes of sound and video, else by all.

    Raises `UnsupportedFileType` for a type that isn't accepted, `PayloadTooLarge` for too many bytes, and `Invalid`
    for a damaged picture or one beyond a limit.
    """
    return _sniff(received).kind


def read_text_file(received: ReceivedFile) -> str | None:
    """Return the text of a file, which is not stored, or `None` if it is a picture, sound or video.

    Raises `UnsupportedFileType` for a type that isn't accepted, `PayloadTooLarge` for too many bytes, and `Invalid`
    for an empty file.
    """
    received.file.seek(0)
    if file_types.sniff_head(received.file.read(file_types.HEAD_BYTES)) is not None:
        return None
    file_types.refuse_too_large("text", received.size)
    received.file.seek(0)
    return file_types.read_any_encoding(received.file.read())


def _sniff(received: ReceivedFile) -> file_types.SniffedFile:
    """Return the type by the first bytes, and for a picture or text by all. Raises the errors of `sniff_kind`."""
    received.file.seek(0)
    mime_type = file_types.sniff_head(received.file.read(file_types.HEAD_BYTES))
    kind = mime_type.partition("/")[0] if mime_type else "text"
    file_types.refuse_too_large(kind, received.size)
    received.file.seek(0)
    if mime_type is not None and kind not in _KINDS_READ_WHOLE:
        return file_types.SniffedFile(kind, mime_type)
    data = received.file.read()
    return file_types.sniff_text(data) if mime_type is None else file_types.sniff_picture(data, mime_type)


def _refuse_too_many_unused(workspace: Workspace, size: int) -> None:
    """Raise `Conflict` if the workspace's unused uploads and this one are too many bytes."""
    unused = Upload.objects.of(workspace).filter(expires_at__isnull=False)
    unused_bytes = unused.aggregate(sum=Sum("bytes"))["sum"] or 0
    if unused_bytes + size > limits.UPLOADS_UNUSED_BYTES:
        message = (
            f"Files of {limits.UPLOADS_UNUSED_BYTES // 2**20} MiB wait to be used already; use some in a raw item, "
            f"or wait until the oldest are forgotten after {limits.UPLOADS_KEPT.days} days."
        )
        raise Conflict.because(code="too_many_unused", message=message, field="file")


def _clean_name(name: str) -> str:
    """Return the end of the name, which holds the suffix, without folders, control and direction characters."""
    last = re.split(r"[/\\]", name)[-1]
    visible = "".join(character for character in last if unicodedata.category(character)[0] != "C").strip()
    return visible[-120:]


# --- Using -----------------------------------------------------------------------------------------------------------


def upload_ids_in(media: Iterable[Mapping[str, str]]) -> list[UUID]:
    """Return the ids of the uploads that a raw item's media names, each once."""
    keys = (decode("upl", medium["upload"]) for medium in media if medium.get("upload"))
    return list(dict.fromkeys(key for key in keys if key is not None))


def add_mime_types(
    workspace: Workspace, media: Sequence[Mapping[str, str]], *, test: bool
) -> list[dict[str, str]]:
    """Return a push's media with MIME types. Raises `Invalid` for an upload that the workspace doesn't have."""
    keys = upload_ids_in(media)
    if not keys:
        return [dict(medium) for medium in media]
    rows = Upload.objects.of(workspace).filter(pk__in=keys, test=test)
    types = {encode("upl", key): mime_type for key, mime_type in rows.values_list("pk", "mime_type")}
    for index, medium in enumerate(media):
        if medium.get("upload") and medium["upload"] not in types:
            field = f"media[{index}].upload"
            raise _unknown_upload(field)
    return [
        {**medium, "type": types[medium["upload"]]} if medium.get("upload") else dict(medium)
        for medium in media
    ]


def mark_used(
    workspace_id: UUID,
    keys: Sequence[UUID],
    *,
    raw_item: RawItem | None = None,
    persona: Persona | None = None,
    now: datetime,
) -> None:
    """Keep the uploads for as long as the item or persona uses them, in the caller's transaction.

    Raises `Invalid` for an upload that the workspace doesn't have.
    """
    if not keys:
        return
    # The rows are locked, so that no upload is deleted at this moment.
    rows = Upload.everywhere.select_for_update().filter(workspace_id=workspace_id, pk__in=keys)
    uploads = list(rows.order_by("id"))
    if len(uploads) < len(set(keys)):
        raise _unknown_upload("media")
    for row in uploads:
        UploadUse.everywhere.create(
            workspace_id=workspace_id, upload=row, raw_item=raw_item, persona=persona, created_at=now
        )
    Upload.everywhere.filter(pk__in=[row.pk for row in uploads]).update(expires_at=None)


def release(*, now: datetime, **owner: RawItem | Persona) -> None:
    """Let uploads of only this `raw_item` or `persona` expire now, in the caller's transaction."""
    uses = UploadUse.everywhere.filter(**owner)
    keys = list(uses.values_list("upload_id", flat=True))
    if keys:
        uses.delete()
        # Locked first: the update below then sees what a `mark_used` that held the lock has written.
        list(Upload.everywhere.select_for_update().filter(pk__in=keys).order_by("id").values_list("pk"))
        Upload.everywhere.filter(pk__in=keys, uses=None).update(expires_at=now)


def read_stored_text(upload: Upload) -> str:
    """Return a stored text. Raises `OSError` if the file is gone, `UnsupportedFileType` if it isn't UTF-8."""
    return file_types.read_utf8(files.path_of(upload.path).read_bytes())


def _unknown_upload(field: str) -> Invalid:
    message = "There is no such upload, or it was forgotten; send the file to POST /v1/uploads again."
    return Invalid.one(field, "unknown_upload", message)


# --- Deleting --------------------------------------------------------------------------------------------------------


def delete_expired(now: datetime) -> int:
    """Delete some of the expired uploads, and return the number of deleted ones.

    It is 0 if none has expired, the media folder isn't this database's, or all of them are locked or used.
    """
    expired = Upload.everywhere.filter(expires_at__lte=now).order_by("expires_at")
    keys = list(expired.values_list("pk", flat=True)[:_MAX_DELETED_AT_ONCE])
    # Another database's folder doesn't have the files, and without their rows they would never be found again.
    if not keys or media_root_id.compare_folder().refusal:
        return 0
    with transaction.atomic():
        # The rows are locked and checked again, because one may be used at this moment.
        free = expired.select_for_update(skip_locked=True).filter(pk__in=keys)
        locked = Upload.everywhere.filter(pk__in=list(free.values_list("pk", flat=True)))
        rows = list(locked.filter(uses=None).values_list("pk", "path"))
        locked.exclude(uses=None).update(expires_at=None)
        Upload.everywhere.filter(pk__in=[key for key, _ in rows]).delete()
    # The files are removed after their rows: a kill in between leaves files that no row names, which the sweep removes.
    remove_files(path for _, path in rows)
    return len(rows)


def remove_files(paths: Iterable[str]) -> None:
    for path in paths:
        files.erase(path)
