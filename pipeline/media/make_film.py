"""Makes the films of items: laid out by their engine, rendered in a separate process, stored as files.

As with pictures, a file is written before its row, so a killed task leaves only a working folder, which is removed
later.
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
from pipeline.media import draw_pictures, files, source_media, text_to_speech
from pipeline.plugins import Refused
from pipeline.render.captions import to_srt, to_text, to_vtt
from pipeline.render.picture_types import AvailableMedia, Portrait
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
"""The divisor of the storyboard's width and height; tests make smaller films."""
PRESET: Final = "veryfast"
"""The preset of the video encoder, which decides how much time it takes to make the file small."""
SIDE_ROLES: Final = frozenset({"captions", "frame", "storyboard", "transcript", text_to_speech.VOICE_ROLE})
"""The roles of files that are served next to a film and sent to no platform."""
_CHUNK_BYTES: Final = 1024 * 1024
_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
UNUSABLE_PORTRAIT: Final = "unusable_picture"


@dataclass(frozen=True)
class _FilmRequest:
    """A film to be made; a `storyboard` is filmed unchanged, and `find_shots` finds the shots of a span."""

    draft: Draft
    persona: PersonaCard
    voiced: VoicedScript
    storyboard: Storyboard | None
    find_shots: Callable[[Path, VideoSpan], tuple[Shot, ...]]


def make_film(
    item: GeneratedItem,
    engine: Engine,
    draft: Draft,
    persona: PersonaCard,
    *,
    voiced: VoicedScript = text_to_speech.NO_VOICE,
    storyboard: Storyboard | None = None,
    find_shots: Callable[[Path, VideoSpan], tuple[Shot, ...]] = shot_process.detect_shots,
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """Make the film and store its files. Runs outside any transaction.

    `voiced` is the script that was spoken for it. A `storyboard` is filmed unchanged; without one the engine lays the
    film out, or decides that there is none. `find_shots` finds the shots of a span of a video, which may take
    minutes.

    Return `{"files": [columns of an Asset], "checks": [fields of a Check], "error": None}`. For a film that can't be
    made, `error` is `{"code", "message", "stage"}`, and the lists are empty. Raises `RenderBusy` or `NoRoom` if the
    same call may succeed later, and `RenderFailed` if rendering fails, with the code `render_stopped` if
    `on_progress` returned `False`.
    """
    reason = film_process.unavailable_reason()
    if reason is not None:
        return failure_result("no_video", reason)
    portrait, checks = draw_pictures.portrait_of(item.workspace_id, persona)
    request = _FilmRequest(draft, persona, voiced, storyboard, find_shots)
    try:
        with film_process.disk_full_as_no_room():
            try:
                return _make_from_request(
                    item, engine, request, portrait, checks=checks, on_progress=on_progress
                )
            except Refused as refused:
                if refused.code != UNUSABLE_PORTRAIT or portrait is None:
                    raise
                warnings = [draw_pictures.portrait_warning(refused.message)]
                return _make_from_request(
                    item, engine, request, None, checks=warnings, on_progress=on_progress
                )
    except film_process.RenderFailed as failure:
        if failure.code != "render_stopped":
            log.warning("render_failed", item=item.pk.hex, code=failure.code, log=failure.log)
        raise
    except Refused as refused:
        return failure_result(refused.code, refused.message)


def films_folder() -> Path:
    """Return the folder in which films are made, in `DATA_DIR` because the media folder is served."""
    return Path(settings.DATA_DIR) / "renders"


def remove_abandoned_folders(now: datetime) -> int:
    """Remove the old working folders that killed processes left, and return the number of removed ones."""
    return film_process.remove_abandoned(
        films_folder(), older=limits.RENDER_FOLDERS_KEPT, now=now.timestamp()
    )


def failure_result(code: str, message: str) -> dict[str, Any]:
    """Return the result of `make_film` for a film that can't be made."""
    return {"files": [], "checks": [], "error": {"code": code, "message": message, "stage": "render"}}


def _make_from_request(
    item: GeneratedItem,
    engine: Engine,
    request: _FilmRequest,
    portrait: bytes | None,
    *,
    checks: list[Check],
    on_progress: Callable[[float], bool],
) -> dict[str, Any]:
    """Make the film of a request, and return the result of `make_film`; `checks` are those of the portrait.

    There are no files if the engine makes no film of the draft.
    """
    voiced, storyboard = request.voiced, request.storyboard
    if storyboard is None:
        available = AvailableMedia(
            has_portrait=portrait is not None,
            size=engine.sizes[0],
            narration=voiced.narration,
            material=_material_with_shots(item, engine, request),
        )
        storyboard = engine.film(request.draft, request.persona, available)
    elif portrait is None:
        storyboard = without_portrait(storyboard)
    if storyboard is None:
        return {"files": [], "checks": [asdict(check) for check in checks], "error": None}
    media_root = Path(settings.MEDIA_ROOT)
    media_root.mkdir(parents=True, exist_ok=True)
    # The finished files are copied into the media folder, which may be another disk.
    film_process.refuse_without_room(storyboard, media_root, shrink=SHRINK)
    with film_process.working_folder(films_folder()) as folder:
        portrait_path = write_portrait(folder, storyboard, portrait)
        started = time.monotonic()
        made = film_process.render(
            film_process.Job(
                storyboard,
                input_paths(item, storyboard, voiced),
                portrait=portrait_path,
                shrink=SHRINK,
                preset=PRESET,
            ),
            folder,
            on_progress=on_progress,
        )
        log.info(
            "filmed", item=item.pk.hex, seconds=round(time.monotonic() - started, 1), length=made.duration
        )
        file_rows = list(_store_files(item, engine, storyboard, made))
    # The voice is served next to the film, and needed to film it again.
    file_rows += [dict(voiced.file)] if voiced.file is not None and storyboard.audio.voice else []
    film_check = Check(
        "film",
        "passed",
        f"The file was checked: {storyboard.frames} frames, {storyboard.fps} a second, its colours tagged, its sound "
        "as long as its picture.",
    )
    checks = [*checks, *voiced.checks, *_sound_checks(made), film_check]
    return {"files": file_rows, "checks": [asdict(check) for check in checks], "error": None}


def input_paths(item: GeneratedItem, storyboard: Storyboard, voiced: VoicedScript) -> dict[str, Path]:
    """Return the paths of the files that a storyboard names: uploads of the raw item, and the voice."""
    paths = source_media.paths_of(item.workspace_id, storyboard.assets)
    if voiced.file is None or not storyboard.audio.voice:
        return paths
    return {**paths, storyboard.audio.voice: files.path_of(voiced.file["path"])}


def write_portrait(folder: Path, storyboard: Storyboard, portrait: bytes | None) -> Path | None:
    """Write the portrait into the working folder and return its path, or `None` if the film needs none."""
    if portrait is None or not storyboard.needs_portrait:
        return None
    path = folder / "portrait"
    path.write_bytes(portrait)
    return path


def _sound_checks(made: Made) -> list[Check]:
    """Return a check with the film's loudness, as measured in the file, or nothing for a silent film."""
    if made.loudness is None:
        return []
    integrated, peak = made.loudness
    measured = f"The sound was measured in the file: {integrated:.1f} LUFS, its highest peak {peak:.1f} dBTP."
    return [Check("sound", "warning" if made.note else "passed", f"{measured} {made.note}".strip())]


def without_portrait(storyboard: Storyboard) -> Storyboard:
    """Return the storyboard without portraits, whose space stays empty; the text next to them stays."""
    overlays = []
    for overlay in storyboard.overlays:
        items = tuple(item for item in overlay.items if not isinstance(item, Portrait))
        if items:
            overlays.append(replace(overlay, items=items))
    return replace(storyboard, overlays=tuple(overlays))


def _material_with_shots(item: GeneratedItem, engine: Engine, request: _FilmRequest) -> FilmMaterial | None:
    """Return the media with shots, or `None` for an engine without video. Raises `Refused` for a deleted raw item."""
    if "video" not in engine.made_from:
        return None
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None:
        raise Refused("The raw item with its video was deleted.", code="source_deleted")
    material = source_media.material_of(raw)
    return source_media.detect_shown_shots(
        item.workspace_id, material, engine, request.draft, find_shots=request.find_shots
    )


def _store_files(
    item: GeneratedItem, engine: Engine, storyboard: Storyboard, made: Made
) -> Iterator[dict[str, Any]]:
    """Copy every file into the media folder, and yield the columns of its row; side files come last."""
    stem = engine.kind.replace("_", "-")
    for name, film_file in made.files.items():
        role = _role_of(name)
        is_film, is_frame = role == "video", role == "frame"
        suffix = Path(name).suffix
        yield {
            **_store_file(item, film_file.path, suffix),
            "role": role,
            "name": f"{stem}-{name}" if is_frame else f"{stem}-{film_file.width}x{film_file.height}{suffix}",
            "mime_type": "video/mp4" if is_film else "image/jpeg",
            "width": film_file.width,
            "height": film_file.height,
            "duration": made.duration if is_film else None,
            "alt_text": "" if is_frame else storyboard.meta.alt_text,
        }
    for name, role, mime_type, text in _side_files(storyboard):
        data = text.encode()
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


def _role_of(name: str) -> str:
    """Return the role of a file that the film process made, by its name."""
    if name == "film.mp4":
        return "video"
    return "frame" if name.startswith("frame-") else "thumbnail"


def _side_files(storyboard: Storyboard) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, role, type and text of each file that is served next to a film."""
    language = storyboard.meta.language
    cards = storyboard.captions or storyboard.told
    if cards:
        stem = f"captions.{language}" if _LANGUAGE.fullmatch(language) else "captions"
        yield f"{stem}.srt", "captions", "application/x-subrip", to_srt(cards, language=language)
        yield f"{stem}.vtt", "captions", "text/vtt", to_vtt(cards, language=language)
    if storyboard.audio.voice and cards:
        yield "transcript.txt", "transcript", "text/plain", to_text(cards, title=storyboard.meta.title)
    storyboard_text = json.dumps(storyboard_json.as_json(storyboard), ensure_ascii=False)
    yield "storyboard.json", "storyboard", "application/json", storyboard_text


def _store_file(item: GeneratedItem, source: Path, suffix: str) -> dict[str, Any]:
    """Copy a file into the media folder, and return the columns that follow from its bytes."""
    with source.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    path = f"{item.pk.hex}/{sha256}{suffix}"
    files.write(path, _read_chunks(source))
    return {"path": path, "sha256": sha256, "bytes": source.stat().st_size}


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
