"""Describes a file of unknown origin, in a child process under hard limits, or refuses it in one sentence.

Nothing is rendered, fetched or believed: the type comes from the first bytes and not from a name, the length from the
packets and not from a table. The file's metadata (titles, places, cameras) is ignored.
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
"""The first bytes of a file, by which its type is found."""
_MAX_PACKETS: Final = 2_000_000
"""More than a long video has: two hours at 60 frames a second are 432,000 packets, with sound 770,000."""
_MAX_DECODE_TRIES: Final = 64
"""The packets of a file that are decoded to get the first frame of each stream."""
_PROGRAM: Final = Path(__file__).with_name("probe_child.py")
_ANSWER_BYTES: Final = 16 * 1024
_COPY_CHUNK_BYTES: Final = 1024 * 1024

_STILL_IMAGE_BRANDS: Final = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"}
)
_DEMUXER_BY_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "picture"),
    (b"\x89PNG\r\n\x1a\n", "picture"),
    (b"GIF87a", "picture"),
    (b"GIF89a", "picture"),
    (b"\x1a\x45\xdf\xa3", "matroska"),
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"ID3", "mp3"),
)
# Formats that refer to other files: HLS, PLS, FFmpeg's concat, ASX, QuickTime's links, SMIL, DASH, Smooth Streaming, XSPF, SDP.
_PLAYLIST_STARTS: Final = (
    b"#extm3u", b"[playlist]", b"ffconcat", b"<asx", b"rtsptext", b"<smil", b"<mpd", b"<smoothstreaming", b"<playlist",
    b"v=0", b"[reference]", b"file '", b'file "',
)  # fmt: skip


@dataclass(frozen=True)
class VideoStream:
    """A video stream. `width` and `height` are in pixels as it is displayed; `fps` is the average over `frames`."""

    codec: str
    width: int
    height: int
    fps: float
    frames: int
    rotation: int
    pixel_format: str


@dataclass(frozen=True)
class AudioStream:
    """A sound stream; `rate` is in hertz."""

    codec: str
    rate: int
    channels: int


@dataclass(frozen=True)
class Probed:
    """The content of a usable file. `width` and `height` are those of the picture or of the video, in pixels."""

    kind: Literal["image", "audio", "video"]
    container: str
    bytes: int
    seconds: float = 0.0
    width: int | None = None
    height: int | None = None
    video: VideoStream | None = None
    audio: AudioStream | None = None


def probe(file: BinaryIO | Path) -> Probed:
    """Return the description of the file, which is decoded in the child process alone.

    An open file is read from its beginning, and its position is restored. Raises `Refused` if the file is unusable,
    and `TryLater` if no child process can be started.
    """
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return probe(opened)
    position = file.tell()
    if not _has_descriptor(file):
        # A temporary file has no name, and is gone when the last process that has it open ends.
        with tempfile.TemporaryFile() as copy:
            file.seek(0)
            while chunk := file.read(_COPY_CHUNK_BYTES):
                copy.write(chunk)
            file.seek(position)
            copy.flush()
            return probe(copy)
    # Seeking also flushes the file: bytes that are still in its buffer would be missing for the child.
    file.seek(position)
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        raise _refusal("empty", {})
    demuxer = demuxer_of(os.pread(file.fileno(), HEAD_BYTES, 0))
    max_bytes = limits.UPLOAD_IMAGE_BYTES if demuxer == "picture" else limits.MEDIA_VIDEO_BYTES
    if size > max_bytes:
        raise _refusal("too_large", {"most": max_bytes, "size": size})
    answer = _run_child(file, demuxer)
    if "refused" in answer:
        raise _refusal(answer["refused"], answer["told"])
    return _to_probed(answer, size)


def demuxer_of(head: bytes) -> str:
    """Return the demuxer for a file that begins with `head`, or `picture`. Raises `Refused` for any other type."""
    for magic, name in _DEMUXER_BY_MAGIC:
        if head.startswith(magic):
            return name
    if head[:4] == b"RIFF" and head[8:12] in {b"WEBP", b"WAVE"}:
        return "picture" if head[8:12] == b"WEBP" else "wav"
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILL_IMAGE_BRANDS:
            raise _refusal("still", {})
        return "mp4"
    # An MP3 without tags begins with a frame: eleven bits of synchronisation, layer III, a valid bit rate.
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE6 == 0xE2 and head[2] >> 4 not in {0, 15}:
        return "mp3"
    text_start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text_start.startswith(_PLAYLIST_STARTS) or any(
        tag in text_start for tag in (b"<mpd", b"<asx", b"<smil", b"<playlist")
    ):
        raise _refusal("playlist", {})
    if b"<svg" in text_start or b"<!doctype svg" in text_start:
        raise _refusal("vector_graphics", {})
    raise _refusal("not_media", {})


def _has_descriptor(file: BinaryIO) -> bool:
    try:
        return file.fileno() >= 0
    # Files in memory have no descriptor, and raise one of two errors.
    except (OSError, AttributeError):
        return False


def _run_child(file: BinaryIO, demuxer: str) -> Any:
    """Return the child's answer. Raises `TryLater` if it can't be started, `Refused` if it ends without an answer."""
    child_limits = {
        "memory": limits.MEDIA_PROBE_MEMORY,
        "clock": limits.MEDIA_PROBE_SECONDS,
        "seconds": limits.MEDIA_SECONDS,
        "pixels": limits.MEDIA_FRAME_PIXELS,
        "side": limits.MEDIA_FRAME_SIDE,
        "fps": limits.MEDIA_FRAMES_PER_SECOND,
        "streams": limits.MEDIA_STREAMS,
        "picture_pixels": limits.UPLOAD_PIXELS,
        "packets": _MAX_PACKETS,
        "tries": _MAX_DECODE_TRIES,
    }
    try:
        output = child_program.run(
            [*child_program.python_command(_PROGRAM, "av", "PIL"), demuxer, json.dumps(child_limits)],
            file=file,
            caps=child_program.Caps(seconds=limits.MEDIA_PROBE_SECONDS, answer=_ANSWER_BYTES),
            environment=child_program.FEW_ARENAS,
        )
        return json.loads(output)
    except child_program.ChildEnded as ended:
        if ended.how == "missing":
            raise TryLater("No process could be started to look at the file.", code="machine_busy") from None
        raise _refusal("too_complex", {}) from None


def _to_probed(answer: Mapping[str, Any], size: int) -> Probed:
    video = VideoStream(**answer["video"]) if "video" in answer else None
    audio = AudioStream(**answer["audio"]) if "audio" in answer else None
    return Probed(
        kind=answer["kind"],
        container=answer["container"],
        bytes=size,
        seconds=answer.get("seconds", 0.0),
        width=video.width if video else answer.get("width"),
        height=video.height if video else answer.get("height"),
        video=video,
        audio=audio,
    )


def _refusal(code: str, values: Mapping[str, Any]) -> Refused:
    return Refused(_MESSAGES[code].format_map(_MessageValues(values)), code=code, field="file")


class _MessageValues(dict[str, Any]):
    """The values of a message's placeholders, formatted for people, with those of the limits; `?` for any other."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        limit_values = {
            "hours": limits.MEDIA_SECONDS // 3600,
            "fps_most": limits.MEDIA_FRAMES_PER_SECOND,
            "streams_most": limits.MEDIA_STREAMS,
            "picture_most": limits.UPLOAD_PIXELS // 1_000_000,
        }
        super().__init__(
            {**limit_values, **{name: _format_value(name, value) for name, value in values.items()}}
        )

    def __missing__(self, key: str) -> str:
        return "?"


def _format_value(name: str, value: Any) -> str:
    if name in {"most", "size"}:
        return f"{value / 2**20:,.0f} MiB"
    if name in {"seconds", "declared", "fps"}:
        return f"{value:,.1f}"
    return str(value)


_MESSAGES: Final = {
    "empty": "The file is empty; choose one that holds something.",
    "too_large": "The file has {size}; the maximum is {most}.",
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
    "too_long": "It lasts {seconds} seconds; the maximum is {hours} hours.",
    "too_many_frames": "It has {fps} frames a second; the maximum is {fps_most}.",
    "too_many_streams": "There are {streams} streams in the file; the maximum is {streams_most}.",
    "too_many_packets": "The file is cut into more pieces than a video of {hours} hours has.",
    "too_complex": "Looking at the file took too long or too much memory; save it again in a usual format.",
}
