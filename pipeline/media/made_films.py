"""The films of items: laid out by their engine, made in a process of their own, kept as files.

As with pictures a file is written before its row, so a killed hand leaves nothing to see but a working folder, which
is swept.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings

from pipeline import limits
from pipeline.engines.base import Check
from pipeline.media import drawn_pictures, files, source_media, text_to_speech
from pipeline.plugins import Refused
from pipeline.render.captions import to_srt, to_text, to_vtt
from pipeline.render.picture_plan import AvailableMedia, Portrait
from pipeline.render.video import film_process, shot_process, storyboard_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.media.text_to_speech import VoicedScript
    from pipeline.models import GeneratedItem
    from pipeline.render.video.film_process import Made
    from pipeline.render.video.material import FilmMaterial, Shot, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

log = structlog.get_logger(__name__)

SHRINK: Final = 1
"""Films are as large as their storyboard; tests make smaller ones."""
PRESET: Final = "veryfast"
SIDE_ROLES: Final = frozenset({"captions", "frame", "storyboard", "transcript", text_to_speech.ROLE})
"""Roles of files that stand beside a film and are handed to no platform."""
_PIECE: Final = 1024 * 1024
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
UNUSABLE_PORTRAIT: Final = "unusable_picture"


@dataclass(frozen=True)
class _Order:
    """What is filmed, who says it and how; `board` is a storyboard that is filmed as it is.

    `look` finds the shots of a span of a video.
    """

    draft: Draft
    persona: PersonaCard
    voiced: VoicedScript
    board: Storyboard | None
    look: Callable[[Path, VideoSpan], tuple[Shot, ...]]


def make_film(
    item: GeneratedItem,
    engine: Engine,
    draft: Draft,
    persona: PersonaCard,
    *,
    voiced: VoicedScript = text_to_speech.UNVOICED,
    board: Storyboard | None = None,
    look: Callable[[Path, VideoSpan], tuple[Shot, ...]] = shot_process.detect_shots,
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """Make the film and keep its files; runs outside any transaction.

    `voiced` is what was spoken for it. A `board` is filmed as it is; else the engine's. `look` finds the shots of what
    is shown of a video; it may take minutes.

    Returns `{"files", "checks", "error"}` as `pictures.draw` does. Raises `RenderBusy` and `NoRoom`,
    which pass, and `RenderFailed`: with `render_stopped` where `on_progress` answers False.
    """
    reason = film_process.unavailable_reason()
    if reason is not None:
        return failed_film("no_video", reason)
    portrait, checks = drawn_pictures.portrait_of(item.workspace_id, persona)
    order = _Order(draft, persona, voiced, board, look)
    try:
        with film_process.disk_full_as_no_room():
            try:
                return _filmed(item, engine, order, portrait, checks=checks, on_progress=on_progress)
            except Refused as refused:
                if refused.code != UNUSABLE_PORTRAIT or portrait is None:
                    raise
                instead = [drawn_pictures.portrait_warning(refused.message)]
                return _filmed(item, engine, order, None, checks=instead, on_progress=on_progress)
    except film_process.RenderFailed as broken:
        if broken.code != "render_stopped":
            log.warning("render_failed", item=item.pk.hex, code=broken.code, log=broken.log)
        raise
    except Refused as refused:
        return failed_film(refused.code, refused.message)


def films_folder() -> Path:
    """Where films are made: beside the database, not in the folder that is served."""
    return Path(settings.DATA_DIR) / "renders"


def sweep(now: datetime) -> int:
    """Remove the working folders of killed processes; returns how many."""
    return film_process.remove_abandoned(
        films_folder(), older=limits.RENDER_FOLDERS_KEPT, now=now.timestamp()
    )


def failed_film(code: str, message: str) -> dict[str, Any]:
    return {"files": [], "checks": [], "error": {"code": code, "message": message, "stage": "render"}}


def _filmed(
    item: GeneratedItem,
    engine: Engine,
    order: _Order,
    portrait: bytes | None,
    *,
    checks: list[Check],
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """`checks` say what was found wrong with the portrait."""
    voiced, board = order.voiced, order.board
    if board is None:
        media_of = AvailableMedia(
            has_portrait=portrait is not None,
            size=engine.sizes[0],
            narration=voiced.narration,
            material=_material(item, engine, order),
        )
        board = engine.film(order.draft, order.persona, media_of)
    elif portrait is None:
        board = without_portrait(board)
    if board is None:
        return {"files": [], "checks": [asdict(check) for check in checks], "error": None}
    media = Path(settings.MEDIA_ROOT)
    media.mkdir(parents=True, exist_ok=True)
    # The files are copied to there, and it may be another disk.
    film_process.refuse_without_room(board, media, shrink=SHRINK)
    with film_process.working_folder(films_folder()) as folder:
        face = portrait_in(folder, board, portrait)
        begun = time.monotonic()
        made = film_process.render(
            film_process.Job(
                board, storyboard_files(item, board, voiced), portrait=face, shrink=SHRINK, preset=PRESET
            ),
            folder,
            on_progress=on_progress,
        )
        log.info("filmed", item=item.pk.hex, seconds=round(time.monotonic() - begun, 1), length=made.duration)
        kept = list(_kept(item, engine, board, made))
    # It is served beside the film, and films it again.
    kept += [dict(voiced.file)] if voiced.file is not None and board.audio.voice else []
    told = Check(
        "film",
        "passed",
        f"The file was looked at: {board.frames} frames, {board.fps} a second, its colours tagged, its sound as long as "
        "its picture.",
    )
    checks = [*checks, *voiced.checks, *_of_sound(made), told]
    return {"files": kept, "checks": [asdict(check) for check in checks], "error": None}


def storyboard_files(item: GeneratedItem, board: Storyboard, voiced: VoicedScript) -> dict[str, Path]:
    """The files that a storyboard names: uploads of the raw item, and the voice."""
    there = source_media.paths_of(item.workspace_id, board.assets)
    if voiced.file is None or not board.audio.voice:
        return there
    return {**there, board.audio.voice: files.path_of(voiced.file["path"])}


def portrait_in(folder: Path, board: Storyboard, portrait: bytes | None) -> Path | None:
    """The portrait as a file of the working folder; None where there is none, or the film shows none."""
    if portrait is None or not board.needs_portrait:
        return None
    path = folder / "portrait"
    path.write_bytes(portrait)
    return path


def _of_sound(made: Made) -> list[Check]:
    """How loud the film is, as it was measured in the file; nothing for a silent one."""
    if made.loudness is None:
        return []
    found, peak = made.loudness
    said = f"The sound was measured in the file: {found:.1f} LUFS, its highest peak {peak:.1f} dBTP."
    return [Check("sound", "warning" if made.note else "passed", f"{said} {made.note}".strip())]


def without_portrait(board: Storyboard) -> Storyboard:
    """What a portrait stood in is left empty; the words beside it stay."""
    overlays = []
    for overlay in board.overlays:
        items = tuple(one for one in overlay.items if not isinstance(one, Portrait))
        if items:
            overlays.append(replace(overlay, items=items))
    return replace(board, overlays=tuple(overlays))


def _material(item: GeneratedItem, engine: Engine, order: _Order) -> FilmMaterial | None:
    """What came with the raw item, its videos looked at; None for an engine that shows nothing of it."""
    if "video" not in engine.made_from:
        return None
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None:
        raise Refused("The raw item with its video was deleted.", code="source_deleted")
    material = source_media.material_of(raw)
    return source_media.detect_shown_shots(item.workspace_id, material, engine, order.draft, look=order.look)


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
    if board.audio.voice and said:
        yield "transcript.txt", "transcript", "text/plain", to_text(said, title=board.meta.title)
    storyboard = json.dumps(storyboard_json.as_json(board), ensure_ascii=False)
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
