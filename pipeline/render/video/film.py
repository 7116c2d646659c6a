"""Makes a film and its thumbnails from a job's JSON, inside of the child process, and checks the film."""

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
from pipeline.render.video.encode import AUDIO_BITS_PER_SECOND, SAMPLE_RATE, Quality, encode
from pipeline.render.video.frame_composer import Composer
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import new_planes, to_rgb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pipeline.render.video.storyboard import Storyboard
    from pipeline.render.video.ycbcr import Plane

FILM: Final = "film.mp4"
UPRIGHT_THUMBNAIL: Final = "thumb.jpg"
WIDE_THUMBNAIL: Final = "thumb-wide.jpg"
WIDE_THUMBNAIL_SIZE: Final = (1280, 720)
STRIP_FRAME_WIDTH: Final = 270
"""The width in pixels of the small frames that show a film at a glance."""
MAX_THUMBNAIL_BYTES: Final = 2_000_000
_JPEG_QUALITIES: Final = (92, 85, 75, 60, 45)


class BadFilm(Refused):
    """The written film differs from its storyboard."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__(f"The film was made wrongly: {'; '.join(faults)}.", code="bad_film")


def make_film(job: dict[str, Any], folder: Path, on_frame: Callable[[int], None]) -> dict[str, Any]:
    """Write the files of a job, and return them with the film's length, loudness and a note.

    Raises `Refused` if the storyboard is wrong or something can't be drawn, and `BadFilm` if the film is wrong.
    """
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
    sound = read_sound(Path(job["sound"])) if job["sound"] else mixed_sound(board, files)
    if sound is None:
        sound = mix.film_sound(board, watch)
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
    _check_film(partial, board, composer.size, is_final=job["shrink"] == 1)
    measured = loudness.measure_file(partial) if sound is not None else None
    partial.replace(folder / FILM)
    files_made = [{"name": FILM, "width": composer.size[0], "height": composer.size[1]}]
    if job["thumbnails"]:
        files_made += _write_thumbnails(board, composer, folder) + _write_strip(board, composer, folder)
    composer.close()
    has_loudness = measured is not None and measured.integrated is not None
    return {
        "files": files_made,
        "duration": board.duration,
        "frames": board.frames,
        "loudness": [measured.integrated, measured.peak] if measured is not None and has_loudness else None,
        "note": " ".join(loudness.sound_faults(measured)) if measured is not None else "",
    }


def mixed_sound(board: Storyboard, files: Mapping[str, Path]) -> NDArray[np.float32] | None:
    """Return the storyboard's voice and music, mixed to its length and mastered, or `None` if it names neither.

    Raises `UnusableAsset` if a file is missing or holds no sound.
    """
    audio = board.audio
    if not (audio.voice or audio.music):
        return None
    voice, music = (_decode_asset(name, files) for name in (audio.voice, audio.music))
    mixed = mix.mix(voice=voice, music=music, seconds=board.duration, audio=audio)
    return loudness.master(mixed, bits_per_second=AUDIO_BITS_PER_SECOND).sound


def _decode_asset(name: str, files: Mapping[str, Path]) -> NDArray[np.float32] | None:
    """Return the sound of an asset, or `None` for an empty name. Raises as `mixed_sound` does."""
    if not name:
        return None
    if name not in files:
        raise UnusableAsset(name, "it isn't there.")
    try:
        return audio_io.decode(files[name])
    except (OSError, ValueError, Refused) as error:
        raise UnusableAsset(name, "it holds no sound.") from error


def _check_film(path: Path, board: Storyboard, size: tuple[int, int], *, is_final: bool) -> None:
    """Raise `BadFilm` if the written film differs from the storyboard."""
    facts = verify.probe_film(path)
    faults = verify.film_faults(facts, frames=board.frames, fps=board.fps, size=size, is_final=is_final)
    if faults:
        raise BadFilm(faults)


def _write_thumbnails(board: Storyboard, composer: Composer, folder: Path) -> list[dict[str, Any]]:
    """Write the frame that the storyboard names as thumbnail, upright and wide, and return both files' sizes."""
    target = new_planes(*composer.size)
    composer.draw(target, min(board.frame_at(board.meta.thumbnail_at), board.frames - 1))
    picture = Image.fromarray(to_rgb(target))
    files = []
    for name, thumbnail in ((UPRIGHT_THUMBNAIL, picture), (WIDE_THUMBNAIL, crop_wide(picture))):
        _write_atomically(folder / name, to_jpeg(thumbnail))
        files.append({"name": name, "width": thumbnail.width, "height": thumbnail.height})
    return files


def _write_strip(board: Storyboard, composer: Composer, folder: Path) -> list[dict[str, Any]]:
    """Write a small frame of each scene, half a second before its end, when everything has come and nothing left."""
    files = []
    for index, scene in enumerate(board.scenes):
        target = new_planes(*composer.size)
        composer.draw(target, max(board.frame_at(scene.start), board.frame_at(scene.end) - board.fps // 2))
        frame = Image.fromarray(to_rgb(target))
        small = frame.resize(
            (STRIP_FRAME_WIDTH, round(STRIP_FRAME_WIDTH * frame.height / frame.width)),
            Image.Resampling.LANCZOS,
        )
        name = f"frame-{index + 1:02}.jpg"
        _write_atomically(folder / name, to_jpeg(small))
        files.append({"name": name, "width": small.width, "height": small.height})
    return files


def crop_wide(picture: Image.Image) -> Image.Image:
    """Return the band of an upright picture that holds its title, at its full width, in the wide thumbnail's size."""
    height = picture.width * WIDE_THUMBNAIL_SIZE[1] / WIDE_THUMBNAIL_SIZE[0]
    # The band has the title and what is under it: it begins a little above pixel 260 of 1920.
    top = picture.height * 0.117
    box = (0.0, top, float(picture.width), top + height)
    return picture.resize(WIDE_THUMBNAIL_SIZE, Image.Resampling.LANCZOS, box=box)


def to_jpeg(picture: Image.Image, max_bytes: int = MAX_THUMBNAIL_BYTES) -> bytes:
    """Return the picture as JPEG, at the best quality that takes at most `max_bytes`, else at the lowest."""
    data = b""
    for quality in _JPEG_QUALITIES:
        buffer = BytesIO()
        picture.save(buffer, "JPEG", quality=quality, subsampling=0, optimize=True)
        data = buffer.getvalue()
        if len(data) <= max_bytes:
            break
    return data


def _write_atomically(path: Path, data: bytes) -> None:
    """Write the file under another name and rename it, so that it is never read half-written."""
    partial = path.with_name(f"{path.name}.part")
    with partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_sound(path: Path) -> NDArray[np.float32]:
    """Return the samples of one of our own files, at 48 kHz in stereo. Raises `UnusableAsset` if it has no sound."""
    try:
        with av.open(str(path)) as container:
            resampler = av.AudioResampler(format="fltp", layout="stereo", rate=SAMPLE_RATE)
            parts: list[Plane | Any] = [
                resampled.to_ndarray()
                for frame in (*container.decode(audio=0), None)
                for resampled in resampler.resample(frame)
            ]
    except (OSError, ValueError, IndexError) as error:
        raise UnusableAsset(path.name, "it holds no sound.") from error
    if not parts:
        raise UnusableAsset(path.name, "it holds no sound.")
    return np.ascontiguousarray(np.concatenate(parts, axis=1).T, dtype=np.float32)
