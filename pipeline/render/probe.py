"""What a file of unknown origin is: told by a child process under hard limits, or refused in one sentence.

Nothing is rendered, fetched or believed: the type comes from the first bytes and not from a name, the length from the
packets and not from a table. What the file says of itself (titles, places, cameras) is left behind.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from pipeline import limits
from pipeline.plugins import Refused, TryLater
from pipeline.render import child_program

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD_BYTES: Final = 512
_PACKETS: Final = 2_000_000
"""Two hours at 60 frames a second are 432,000, with sound 770,000."""
_TRIES: Final = 64
"""Packets that a stream may need until its first frame is out."""
_PROGRAM: Final = Path(__file__).with_name("probe_child.py")
_ANSWER_BYTES: Final = 16 * 1024
_COPIED: Final = 1024 * 1024

_STILLS: Final = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"})
_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "picture"),
    (b"\x89PNG\r\n\x1a\n", "picture"),
    (b"GIF87a", "picture"),
    (b"GIF89a", "picture"),
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"ID3", "mp3"),
)
# What refers to other files: HLS, PLS, FFmpeg's concat, ASX, QuickTime's links, SMIL, DASH, Smooth Streaming, XSPF, SDP.
_PLAYLISTS: Final = (
    b"#extm3u", b"[playlist]", b"ffconcat", b"<asx", b"rtsptext", b"<smil", b"<mpd", b"<smoothstreaming", b"<playlist",
    b"v=0", b"[reference]", b"file '", b'file "',
)  # fmt: skip


@dataclass(frozen=True)
class VideoStream:
    """`width` and `height` as it is shown, in pixels; `fps` on the average over `frames`."""

    codec: str
    width: int
    height: int
    fps: float
    frames: int
    rotation: int
    pixel_format: str


@dataclass(frozen=True)
class AudioStream:
    codec: str
    rate: int
    channels: int


@dataclass(frozen=True)
class Probed:
    """What was found in a file that may be used. `width` and `height` are those of a picture or of the video."""

    kind: Literal["image", "audio", "video"]
    container: str
    bytes: int
    seconds: float = 0.0
    width: int | None = None
    height: int | None = None
    video: VideoStream | None = None
    audio: AudioStream | None = None


def probe(file: BinaryIO | Path) -> Probed:
    """Look at a whole file, which is opened nowhere but in the child. Raises `Refused`, or `TryLater` for a busy machine.

    An open file is read from its beginning, and stands afterwards where it stood.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return probe(opened)
    place = file.tell()
    if not _has_descriptor(file):
        # No name of ours is near it, and it is gone with the last who has it open.
        with tempfile.TemporaryFile() as copy:
            file.seek(0)
            while piece := file.read(_COPIED):
                copy.write(piece)
            file.seek(place)
            copy.flush()
            return probe(copy)
    # To where it stands: what was written and not flushed would be missing.
    file.seek(place)
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        raise _no("empty", {})
    demuxer = demuxer_of(os.pread(file.fileno(), HEAD_BYTES, 0))
    most = limits.UPLOAD_IMAGE_BYTES if demuxer == "picture" else limits.MEDIA_VIDEO_BYTES
    if size > most:
        raise _no("too_large", {"most": most, "size": size})
    told = _ask(file, demuxer)
    if "refused" in told:
        raise _no(told["refused"], told["told"])
    return _probed(told, size)


def demuxer_of(head: bytes) -> str:
    """Which demuxer may open what begins so; `picture` for pictures. Raises `Refused`."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[:4] == b"RIFF" and head[8:12] in {b"WEBP", b"WAVE"}:
        return "picture" if head[8:12] == b"WEBP" else "wav"
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILLS:
            raise _no("still", {})
        return "mp4"
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2 and head[2] >> 4 not in {0, 15}:
        return "mp3"
    begins = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if begins.startswith(_PLAYLISTS) or any(
        mark in begins for mark in (b"<mpd", b"<asx", b"<smil", b"<playlist")
    ):
        raise _no("playlist", {})
    if b"<svg" in begins or b"<!doctype svg" in begins:
        raise _no("vector_graphics", {})
    raise _no("not_media", {})


def _has_descriptor(file: BinaryIO) -> bool:
    try:
        return file.fileno() >= 0
    # Files in memory have none, and say so in two ways.
    except (OSError, AttributeError):
        return False


def _ask(file: BinaryIO, demuxer: str) -> Any:
    bounds = {
        "memory": limits.MEDIA_PROBE_MEMORY,
        "clock": limits.MEDIA_PROBE_SECONDS,
        "seconds": limits.MEDIA_SECONDS,
        "pixels": limits.MEDIA_FRAME_PIXELS,
        "side": limits.MEDIA_FRAME_SIDE,
        "fps": limits.MEDIA_FRAMES_PER_SECOND,
        "streams": limits.MEDIA_STREAMS,
        "picture_pixels": limits.UPLOAD_PIXELS,
        "packets": _PACKETS,
        "tries": _TRIES,
    }
    try:
        answer = child_program.run(
            [*child_program.ours(_PROGRAM, "av", "PIL"), demuxer, json.dumps(bounds)],
            file=file,
            caps=child_program.Caps(seconds=limits.MEDIA_PROBE_SECONDS, answer=_ANSWER_BYTES),
            environment=child_program.FEW_ARENAS,
        )
        return json.loads(answer)
    except child_program.ChildEnded as ended:
        if ended.how == "missing":
            raise TryLater("No process could be started to look at the file.", code="machine_busy") from None
        raise _no("too_complex", {}) from None


def _probed(told: Mapping[str, Any], size: int) -> Probed:
    video = VideoStream(**told["video"]) if "video" in told else None
    audio = AudioStream(**told["audio"]) if "audio" in told else None
    return Probed(
        kind=told["kind"],
        container=told["container"],
        bytes=size,
        seconds=told.get("seconds", 0.0),
        width=video.width if video else told.get("width"),
        height=video.height if video else told.get("height"),
        video=video,
        audio=audio,
    )


def _no(code: str, told: Mapping[str, Any]) -> Refused:
    return Refused(_SENTENCES[code].format_map(_Readable(told)), code=code, field="file")


class _Readable(dict[str, Any]):
    """Numbers as people read them; what only the limits know is filled in."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        shown = {
            "hours": limits.MEDIA_SECONDS // 3600,
            "fps_most": limits.MEDIA_FRAMES_PER_SECOND,
            "streams_most": limits.MEDIA_STREAMS,
            "picture_most": limits.UPLOAD_PIXELS // 1_000_000,
        }
        super().__init__({**shown, **{name: _shown(name, value) for name, value in told.items()}})

    def __missing__(self, key: str) -> str:
        return "?"


def _shown(name: str, value: Any) -> str:
    if name in {"most", "size"}:
        return f"{value / 2**20:,.0f} MiB"
    if name in {"seconds", "declared", "fps"}:
        return f"{value:,.1f}"
    return str(value)


_SENTENCES: Final = {
    "empty": "The file is empty; choose one that holds something.",
    "too_large": "The file has {size}; {most} are the most.",
    "still": "The file is a picture in HEIC or AVIF; save it as JPEG.",
    "playlist": "The file is a playlist or a manifest: it only names other files, and they aren't fetched. Send the video itself.",
    "vector_graphics": "The file is an SVG, which can run programs and fetch files; save it as PNG and send that.",
    "not_media": "The file is no picture, sound or video of a kind that is taken: JPEG, PNG, WebP, GIF, MP4, MOV, WebM, Matroska, MP3, WAV, FLAC, Ogg.",
    "names_others": "The file refers to other files, and they aren't fetched. Save it with everything in it.",
    "damaged": "The file is damaged: it can't be read. Save it again and send that.",
    "cut_off": "The file is cut off: {seconds} of its {declared} seconds are there. Send it again.",
    "nothing_in_it": "There is neither picture nor sound in the file.",
    "unknown_codec": "Its {what} is in a format that isn't taken ({codec}); save it as H.264 and AAC.",
    "odd_sound": "Its sound has {channels} channels at {rate} Hz; up to 8 channels at 8,000 to 192,000 Hz are taken.",
    "too_many_pixels": "It is {width} × {height} pixels large. Videos may have 3840 × 2160, pictures {picture_most} million.",
    "too_long": "It lasts {seconds} seconds; {hours} hours are the most.",
    "too_many_frames": "It has {fps} frames a second; {fps_most} are the most.",
    "too_many_streams": "There are {streams} streams in the file; {streams_most} are the most.",
    "too_many_packets": "The file is cut into more pieces than a video of {hours} hours has.",
    "too_complex": "Looking at the file took too long or too much memory; save it again in a usual format.",
}
