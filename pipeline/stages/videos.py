"""The films of items: laid out by their engine, made in a process of their own, kept as files.

As with pictures a file is written before its row, so a killed hand leaves nothing to see but a working folder, which
is swept.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings

from config.ground import limits
from pipeline.engines.base import Check
from pipeline.plugins import Refused
from pipeline.render.captions import to_srt, to_vtt
from pipeline.render.plan import Media
from pipeline.render.video import job as jobs
from pipeline.render.video import reading
from pipeline.stages import files, pictures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.models import GeneratedItem
    from pipeline.render.video.job import Made
    from pipeline.render.video.storyboard import Storyboard

log = structlog.get_logger(__name__)

SHRINK: Final = 1
"""Films are as large as their storyboard; tests make smaller ones."""
PRESET: Final = "veryfast"
SIDE_ROLES: Final = frozenset({"captions", "frame", "storyboard"})
"""Roles of files that stand beside a film and are handed to no platform."""
_PIECE: Final = 1024 * 1024
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_NO_PORTRAIT: Final = "unusable_picture"


def film(
    item: GeneratedItem,
    engine: Engine,
    draft: Draft,
    persona: PersonaCard,
    *,
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """Make the film and keep its files; runs outside any transaction.

    The caller holds a slot. Returns `{"files", "checks", "error"}` as `pictures.draw` does. Raises `Busy` and `NoRoom`,
    which pass, and `RenderFailed`: with `render_stopped` where `on_progress` answers False.
    """
    reason = jobs.why_not()
    if reason is not None:
        return failed("no_video", reason)
    portrait, checks = pictures.portrait_of(item.workspace_id, persona)
    try:
        with jobs.telling_of_no_room():
            try:
                return _filmed(item, engine, (draft, persona), (portrait, checks), on_progress)
            except Refused as refused:
                if refused.code != _NO_PORTRAIT or portrait is None:
                    raise
                instead = (None, [pictures.warning(refused.message)])
                return _filmed(item, engine, (draft, persona), instead, on_progress)
    except jobs.RenderFailed as broken:
        if broken.code != "render_stopped":
            log.warning("render_failed", item=item.pk.hex, code=broken.code, log=broken.log)
        raise
    except Refused as refused:
        return failed(refused.code, refused.message)


def root() -> Path:
    """Where films are made: beside the database, not in the folder that is served."""
    return Path(settings.DATA_DIR) / "renders"


def sweep(now: datetime) -> int:
    """Remove the working folders of killed processes; returns how many."""
    return jobs.sweep(root(), older=limits.RENDER_FOLDERS_KEPT, now=now.timestamp())


def failed(code: str, message: str) -> dict[str, Any]:
    return {"files": [], "checks": [], "error": {"code": code, "message": message, "stage": "render"}}


def _filmed(
    item: GeneratedItem,
    engine: Engine,
    said: tuple[Draft, PersonaCard],
    face_of: tuple[bytes | None, list[Check]],
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """`said` is what is filmed and who says it, `face_of` the portrait and what was found wrong with it."""
    portrait, checks = face_of
    board = engine.film(*said, Media(has_portrait=portrait is not None, size=engine.sizes[0]))
    if board is None:
        return {"files": [], "checks": [asdict(check) for check in checks], "error": None}
    media = Path(settings.MEDIA_ROOT)
    media.mkdir(parents=True, exist_ok=True)
    # The files are copied to there, and it may be another disk.
    jobs.refuse_without_room(board, media, shrink=SHRINK)
    with jobs.working_folder(root()) as folder:
        face = None
        if portrait is not None and board.needs_portrait:
            face = folder / "portrait"
            face.write_bytes(portrait)
        begun = time.monotonic()
        made = jobs.render(
            jobs.Job(board, portrait=face, shrink=SHRINK, preset=PRESET), folder, on_progress=on_progress
        )
        log.info("filmed", item=item.pk.hex, seconds=round(time.monotonic() - begun, 1), length=made.duration)
        kept = list(_kept(item, engine, board, made))
    told = Check(
        "film",
        "passed",
        f"The file was looked at: {board.frames} frames, {board.fps} a second, its colours tagged, its sound as long as "
        "its picture.",
    )
    return {"files": kept, "checks": [asdict(check) for check in (*checks, told)], "error": None}


def _kept(item: GeneratedItem, engine: Engine, board: Storyboard, made: Made) -> Iterator[dict[str, Any]]:
    """Copy every file to where files are served from; the film is the first."""
    stem = engine.kind.replace("_", "-")
    for name, one in made.files.items():
        is_film = name == "film.mp4"
        is_frame = name.startswith("frame-")
        suffix = Path(name).suffix
        yield {
            **_keep(item, one.path, suffix),
            "role": "video" if is_film else "frame" if is_frame else "thumbnail",
            "name": f"{stem}-{name}" if is_frame else f"{stem}-{one.width}x{one.height}{suffix}",
            "mime_type": "video/mp4" if is_film else "image/jpeg",
            "width": one.width,
            "height": one.height,
            "duration": made.duration if is_film else None,
            "alt_text": "" if is_frame else board.meta.alt_text,
        }
    for name, role, mime_type, words in _texts(board):
        data = words.encode()
        sha256 = hashlib.sha256(data).hexdigest()
        path = f"{item.pk.hex}/{sha256}{Path(name).suffix}"
        files.write(path, [data])
        yield {
            "path": path,
            "sha256": sha256,
            "bytes": len(data),
            "role": role,
            "name": name,
            "mime_type": mime_type,
            "width": None,
            "height": None,
            "duration": None,
            "alt_text": "",
        }


def _texts(board: Storyboard) -> Iterator[tuple[str, str, str, str]]:
    """Name, role, kind and words of what stands beside a film."""
    language = board.meta.language
    said = board.captions or board.told
    if said:
        stem = f"captions.{language}" if _LANGUAGE.fullmatch(language) else "captions"
        yield f"{stem}.srt", "captions", "application/x-subrip", to_srt(said, language=language)
        yield f"{stem}.vtt", "captions", "text/vtt", to_vtt(said, language=language)
    storyboard = json.dumps(reading.as_json(board), ensure_ascii=False)
    yield "storyboard.json", "storyboard", "application/json", storyboard


def _keep(item: GeneratedItem, made: Path, suffix: str) -> dict[str, Any]:
    with made.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    path = f"{item.pk.hex}/{sha256}{suffix}"
    files.write(path, _pieces(made))
    return {"path": path, "sha256": sha256, "bytes": made.stat().st_size}


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
