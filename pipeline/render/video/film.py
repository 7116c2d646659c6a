"""Inside the child: from a job's JSON to the film, its thumbnails, and what was found when they were looked at."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import av
import numpy as np
from PIL import Image

from pipeline.plugins import Refused
from pipeline.render.audio import audio_io, loudness, mix
from pipeline.render.video import storyboard_json, verify
from pipeline.render.video.encode import AUDIO_BITS, SAMPLE_RATE, Quality, encode
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import blank, to_rgb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pipeline.render.video.storyboard import Storyboard
    from pipeline.render.video.ycbcr import Plane

FILM: Final = "film.mp4"
UPRIGHT: Final = "thumb.jpg"
WIDE: Final = "thumb-wide.jpg"
WIDE_SIZE: Final = (1280, 720)
STRIP_WIDTH: Final = 270
"""Of the small frames by which people see a film at a glance."""
THUMB_BYTES: Final = 2_000_000
_QUALITIES: Final = (92, 85, 75, 60, 45)


class BadFilm(Refused):
    """What was written isn't what was asked for."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(f"The film was made wrongly: {'; '.join(found)}.", code="bad_film")


def make(job: dict[str, Any], folder: Path, on_frame: Callable[[int], None]) -> dict[str, Any]:
    """Write the files of a job and return what is known of each. Raises `Refused` with a sentence."""
    board = storyboard_json.from_json(job["storyboard"])
    files = {name: Path(path) for name, path in job["files"].items()}

    def watch(name: str) -> BinaryIO:
        try:
            return files[name].open("rb")
        except (KeyError, OSError):
            raise UnusableAsset(name, "it isn't there.") from None

    def read(name: str) -> bytes:
        with watch(name) as file:
            return file.read()

    portrait = Path(job["portrait"]).read_bytes() if job["portrait"] else None
    composer = Composer(board, read, shrink=job["shrink"], portrait=portrait, watch=watch)
    quality = Quality(**job["quality"])
    sound = sound_of(Path(job["sound"])) if job["sound"] else heard(board, files)
    if sound is None:
        sound = mix.sound_of(board, watch)
    partial = folder / f"{FILM}.part"
    encode(
        partial,
        composer.draw,
        frames=board.frames,
        size=composer.size,
        fps=board.fps,
        quality=quality,
        sound=sound,
        on_frame=on_frame,
    )
    _refuse_unless_good(partial, board, composer.size, is_final=job["shrink"] == 1)
    told = loudness.measure_file(partial) if sound is not None else None
    partial.replace(folder / FILM)
    made = [{"name": FILM, "width": composer.size[0], "height": composer.size[1]}]
    if job["thumbnails"]:
        made += _thumbnails(board, composer, folder) + _strip(board, composer, folder)
    composer.close()
    is_loud = told is not None and told.integrated is not None
    return {
        "files": made,
        "duration": board.duration,
        "frames": board.frames,
        "loudness": [told.integrated, told.peak] if told is not None and is_loud else None,
        "note": " ".join(loudness.sound_faults(told)) if told is not None else "",
    }


def heard(board: Storyboard, files: Mapping[str, Path]) -> NDArray[np.float32] | None:
    """Voice and music of the storyboard, mixed to its length and mastered; None where it names neither.

    Raises `UnusableAsset`.
    """
    audio = board.audio
    if not (audio.voice or audio.music):
        return None
    voice, music = (_opened(name, files) for name in (audio.voice, audio.music))
    made = mix.mix(voice=voice, music=music, seconds=board.duration, audio=audio)
    return loudness.master(made, bits=AUDIO_BITS).sound


def _opened(name: str, files: Mapping[str, Path]) -> NDArray[np.float32] | None:
    if not name:
        return None
    if name not in files:
        raise UnusableAsset(name, "it isn't there.")
    try:
        return audio_io.decode(files[name])
    except (OSError, ValueError, Refused) as error:
        raise UnusableAsset(name, "it holds no sound.") from error


def _refuse_unless_good(path: Path, board: Storyboard, size: tuple[int, int], *, is_final: bool) -> None:
    facts = verify.probe_film(path)
    found = verify.film_faults(facts, frames=board.frames, fps=board.fps, size=size, is_final=is_final)
    if found:
        raise BadFilm(found)


def _thumbnails(board: Storyboard, composer: Composer, folder: Path) -> list[dict[str, Any]]:
    """The frame that the storyboard names, upright and wide."""
    target = blank(*composer.size)
    composer.draw(target, min(board.frame_at(board.meta.thumbnail_at), board.frames - 1))
    picture = Image.fromarray(to_rgb(target))
    made = []
    for name, one in ((UPRIGHT, picture), (WIDE, wide(picture))):
        _write(folder / name, as_jpeg(one))
        made.append({"name": name, "width": one.width, "height": one.height})
    return made


def _strip(board: Storyboard, composer: Composer, folder: Path) -> list[dict[str, Any]]:
    """A small frame of each scene, from where everything in it has come and nothing has left."""
    made = []
    for place, scene in enumerate(board.scenes):
        target = blank(*composer.size)
        composer.draw(target, max(board.frame_at(scene.start), board.frame_at(scene.end) - board.fps // 2))
        whole = Image.fromarray(to_rgb(target))
        small = whole.resize(
            (STRIP_WIDTH, round(STRIP_WIDTH * whole.height / whole.width)), Image.Resampling.LANCZOS
        )
        name = f"frame-{place + 1:02}.jpg"
        _write(folder / name, as_jpeg(small))
        made.append({"name": name, "width": small.width, "height": small.height})
    return made


def wide(picture: Image.Image) -> Image.Image:
    """The band of an upright picture in which its title stands, as wide as it is."""
    height = picture.width * WIDE_SIZE[1] / WIDE_SIZE[0]
    # The title's band and what stands under it: from above 260 of 1920 on.
    top = picture.height * 0.117
    box = (0.0, top, float(picture.width), top + height)
    return picture.resize(WIDE_SIZE, Image.Resampling.LANCZOS, box=box)


def as_jpeg(picture: Image.Image, most: int = THUMB_BYTES) -> bytes:
    """At the best quality at which it isn't larger than that."""
    data = b""
    for quality in _QUALITIES:
        out = BytesIO()
        picture.save(out, "JPEG", quality=quality, subsampling=0, optimize=True)
        data = out.getvalue()
        if len(data) <= most:
            break
    return data


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f"{path.name}.part")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def sound_of(path: Path) -> NDArray[np.float32]:
    """The samples of a file of ours, at 48 kHz and in stereo. Raises `UnusableAsset`."""
    try:
        with av.open(str(path)) as container:
            resampler = av.AudioResampler(format="fltp", layout="stereo", rate=SAMPLE_RATE)
            parts: list[Plane | Any] = [
                piece.to_ndarray()
                for frame in (*container.decode(audio=0), None)
                for piece in resampler.resample(frame)
            ]
    except (OSError, ValueError, IndexError) as error:
        raise UnusableAsset(path.name, "it holds no sound.") from error
    if not parts:
        raise UnusableAsset(path.name, "it holds no sound.")
    return np.ascontiguousarray(np.concatenate(parts, axis=1).T, dtype=np.float32)
