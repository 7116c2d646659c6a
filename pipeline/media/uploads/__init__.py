"""Files that are handed over: judged by their bytes, kept for some days, and for as long as something uses them.

A file is written before its row, under the row's own id: a killed hand leaves one that nobody is shown, and the sweep
of the media folder takes it away.
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

_CHUNK: Final = 256 * 1024
_FORGOTTEN_AT_ONCE: Final = 50
_WHOLE: Final = frozenset({"image", "text"})
"""Kinds that are small enough to be read as one."""


@dataclass(frozen=True)
class ReceivedFile:
    """A file as it came: where it can be read from, how long it is, what its sender called it."""

    file: BinaryIO
    size: int
    name: str = ""

    def digest(self) -> str:
        """SHA-256 of the bytes, as hexadecimal digits."""
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        self.file.seek(0)
        while chunk := self.file.read(_CHUNK):
            yield chunk


def inspect_file(given: ReceivedFile) -> file_types.Sniffed:
    """What the file is; sound and video are looked into by a child process, so no transaction should be open.

    Raises `UnsupportedFileType` (415), `PayloadTooLarge` (413), `Invalid` (400) for what is damaged or too much of
    something, and `UploadBusy` (503).
    """
    found = _sniff(given)
    return file_types.inspect(given.file, found) if found.kind in file_types.LOOKED_INTO else found


def store_upload(
    workspace: Workspace,
    given: ReceivedFile,
    *,
    test: bool,
    actor: str,
    now: datetime | None = None,
    judged: file_types.Sniffed | None = None,
) -> Upload:
    """Judge the file by its bytes and keep it; `judged` is what `inspect_file` said, where it was asked before.

    Raises what `inspect_file` raises, and `Conflict` where too much lies there unused already.
    """
    now = now or utc_now()
    found = judged or inspect_file(given)
    _refuse_hoard(workspace, given.size)
    row = Upload(
        id=uuid7(),
        workspace=workspace,
        test=test,
        kind=found.kind,
        mime_type=found.mime_type,
        name=_clean_name(given.name),
        bytes=given.size,
        sha256=given.digest(),
        width=found.width,
        height=found.height,
        seconds=found.seconds,
        created_by=actor[:200],
        expires_at=now + limits.UPLOADS_KEPT,
        created_at=now,
    )
    row.path = f"{row.pk.hex}/{row.sha256}{found.suffix}"
    files.write(row.path, given.chunks())
    crash_point("uploads.written")
    row.save(force_insert=True)
    return row


def kind_of(given: ReceivedFile) -> str:
    """`image`, `audio`, `video` or `text`. Raises as `store_upload`."""
    return _sniff(given).kind


def words_in(given: ReceivedFile) -> str | None:
    """The words of a text file, which is not kept; None for every other kind. Raises as `store_upload`."""
    given.file.seek(0)
    if file_types.sniff_head(given.file.read(file_types.HEAD_BYTES)) is not None:
        return None
    file_types.refuse_too_large("text", given.size)
    given.file.seek(0)
    return file_types.read_words(given.file.read())


def _sniff(given: ReceivedFile) -> file_types.Sniffed:
    given.file.seek(0)
    mime_type = file_types.sniff_head(given.file.read(file_types.HEAD_BYTES))
    kind = mime_type.partition("/")[0] if mime_type else "text"
    file_types.refuse_too_large(kind, given.size)
    if kind not in _WHOLE or mime_type is None:
        given.file.seek(0)
        return file_types.Sniffed(kind, mime_type) if mime_type else file_types.sniff_text(given.file.read())
    given.file.seek(0)
    return file_types.sniff_picture(given.file.read(), mime_type)


def _refuse_hoard(workspace: Workspace, size: int) -> None:
    unused = Upload.objects.of(workspace).filter(expires_at__isnull=False)
    there = unused.aggregate(sum=Sum("bytes"))["sum"] or 0
    if there + size > limits.UPLOADS_UNUSED_BYTES:
        message = (
            f"Files of {limits.UPLOADS_UNUSED_BYTES // 2**20} MiB wait to be used already; use some in a raw item, "
            f"or wait until the oldest are forgotten after {limits.UPLOADS_KEPT.days} days."
        )
        raise Conflict.because(code="too_many_unused", message=message, field="file")


def _clean_name(name: str) -> str:
    """Without folders, control characters and what turns the direction of text; the end is kept, as it says the kind."""
    last = re.split(r"[/\\]", name)[-1]
    shown = "".join(one for one in last if unicodedata.category(one)[0] != "C").strip()
    return shown[-120:]


# --- Using -----------------------------------------------------------------------------------------------------------


def ids_in(media: Iterable[Mapping[str, str]]) -> list[UUID]:
    """The uploads that a raw item's media names, each once."""
    keys = (decode("upl", one["upload"]) for one in media if one.get("upload"))
    return list(dict.fromkeys(key for key in keys if key is not None))


def with_types(
    workspace: Workspace, media: Sequence[Mapping[str, str]], *, test: bool
) -> list[dict[str, str]]:
    """The media of a push, each upload with its type. Raises `Invalid` for one that isn't there."""
    wanted = ids_in(media)
    if not wanted:
        return [dict(one) for one in media]
    rows = Upload.objects.of(workspace).filter(pk__in=wanted, test=test)
    types = {encode("upl", key): mime_type for key, mime_type in rows.values_list("pk", "mime_type")}
    for index, one in enumerate(media):
        if one.get("upload") and one["upload"] not in types:
            field = f"media[{index}].upload"
            raise _unknown(field)
    return [{**one, "type": types[one["upload"]]} if one.get("upload") else dict(one) for one in media]


def use(
    workspace_id: UUID,
    keys: Sequence[UUID],
    *,
    raw_item: RawItem | None = None,
    persona: Persona | None = None,
    now: datetime,
) -> None:
    """Keep the uploads for as long as this needs them; inside the caller's transaction. Raises `Invalid`."""
    if not keys:
        return
    # Locked, so that none is forgotten at this moment.
    rows = Upload.everywhere.select_for_update().filter(workspace_id=workspace_id, pk__in=keys)
    there = list(rows.order_by("id"))
    if len(there) < len(set(keys)):
        raise _unknown("media")
    for row in there:
        UploadUse.everywhere.create(
            workspace_id=workspace_id, upload=row, raw_item=raw_item, persona=persona, created_at=now
        )
    Upload.everywhere.filter(pk__in=[row.pk for row in there]).update(expires_at=None)


def let_go(*, now: datetime, **user: RawItem | Persona) -> None:
    """What used them needs them no longer: those that nothing else uses are forgotten. In the caller's transaction."""
    uses = UploadUse.everywhere.filter(**user)
    keys = list(uses.values_list("upload_id", flat=True))
    if keys:
        uses.delete()
        # Locked first: the change below then sees what a `use` that held the lock has written.
        list(Upload.everywhere.select_for_update().filter(pk__in=keys).order_by("id").values_list("pk"))
        Upload.everywhere.filter(pk__in=keys, uses=None).update(expires_at=now)


def text_of(upload: Upload) -> str:
    """The words of a text file that was kept. Raises `OSError` where the file is no longer there."""
    return file_types.read_text(files.path_of(upload.path).read_bytes())


def _unknown(field: str) -> Invalid:
    message = "There is no such upload, or it was forgotten; send the file to POST /v1/uploads again."
    return Invalid.one(field, "unknown_upload", message)


# --- Forgetting ------------------------------------------------------------------------------------------------------


def forget(now: datetime) -> int:
    """Some of the files that nothing used in time; 0 when none are left."""
    past = Upload.everywhere.filter(expires_at__lte=now).order_by("expires_at")
    keys = list(past.values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    # Another database's folder doesn't have the files: without their rows nobody would find them again.
    if not keys or media_root_id.compare_folder().refusal:
        return 0
    with transaction.atomic():
        # Locked and asked again: somebody may use one at this moment.
        free = past.select_for_update(skip_locked=True).filter(pk__in=keys)
        locked = Upload.everywhere.filter(pk__in=list(free.values_list("pk", flat=True)))
        rows = list(locked.filter(uses=None).values_list("pk", "path"))
        locked.exclude(uses=None).update(expires_at=None)
        Upload.everywhere.filter(pk__in=[key for key, _ in rows]).delete()
    # After their rows: a kill in between leaves files that no row names, which the sweep takes away.
    remove_files(path for _, path in rows)
    return len(rows)


def remove_files(paths: Iterable[str]) -> None:
    for kept in paths:
        files.erase(kept)
