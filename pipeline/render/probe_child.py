"""Opens a file of unknown origin in a process of its own, and prints what it holds or why it can't be used.

The program is run by its path, isolated from the environment. The file is its standard input, so that it knows no name
and opens no file. Its arguments are the folders of the project and of the libraries, the demuxer, and the limits as
JSON. The answer is one line of JSON: the description, or `{"refused": code, "told": {…}}`.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_VIDEO_CODECS: Final = frozenset({"h264", "hevc", "vp8", "vp9", "av1", "mpeg4"})
_AUDIO_CODECS: Final = frozenset(
    {
        "aac", "alac", "flac", "mp3", "mp3float", "opus", "vorbis",
        "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_f32le",
    }
)  # fmt: skip
_PICTURE_FORMATS: Final = {"JPEG": "jpeg", "PNG": "png", "WEBP": "webp", "GIF": "gif"}
_BUFFER_BYTES: Final = 1024 * 1024
_CODEC_BY_DECODER: Final = {
    "mp3float": "mp3",
    "libdav1d": "av1",
    "libvpx": "vp8",
    "libvpx-vp9": "vp9",
    "libopus": "opus",
}
_CUT_OFF_TOLERANCE: Final = (1.0, 0.05)
"""The seconds, or the share of the whole, that may be missing at the end: tables round, and streams end apart."""


class _ProbeRefused(Exception):
    """The file can't be used: `code` is the reason, and `values` fill the placeholders of its message."""

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(code)
        self.code = code
        self.values = values


class OpenInput(io.RawIOBase):
    """The open file at standard input, read without moving its position, which the parent shares."""

    def __init__(self) -> None:
        super().__init__()
        self._position = 0
        self._size = os.fstat(0).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        count = os.preadv(0, [target], self._position)
        self._position += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if begin + offset < 0:
            message = "before the beginning"
            raise OSError(message)
        self._position = begin + offset
        return self._position

    def tell(self) -> int:
        return self._position


def refuse_to_open(url: str, flags: int, options: Any) -> NoReturn:
    """Raise `_ProbeRefused`; FFmpeg calls this to open another file to which the file refers."""
    del url, flags, options
    raise _ProbeRefused("names_others")


def describe_picture(file: Any, limits: dict[str, Any]) -> dict[str, Any]:
    """Return a picture's description.

    Raises `_ProbeRefused` for too many pixels, and any error of Pillow's for a damaged picture.
    """
    from PIL import Image, ImageFile  # noqa: PLC0415  only a picture needs it

    # The size is checked below, before anything is decoded.
    Image.MAX_IMAGE_PIXELS = None
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    with Image.open(file, formats=tuple(_PICTURE_FORMATS)) as opened:
        width, height = opened.size
        if width * height > limits["picture_pixels"]:
            raise _ProbeRefused("too_many_pixels", width=width, height=height)
        # Decode it to the end: nothing less shows that half of it is missing.
        opened.load()
        # The orientations from 5 on of Exif's tag 0x0112 are rotated by 90 degrees.
        is_sideways = opened.getexif().get(0x0112, 1) >= 5
        return {
            "kind": "image",
            "container": _PICTURE_FORMATS[str(opened.format)],
            "width": height if is_sideways else width,
            "height": width if is_sideways else height,
        }


def describe_media(file: Any, demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a sound or video. Raises `_ProbeRefused` if it is unusable or beyond the limits."""
    import av  # noqa: PLC0415  a picture doesn't need it

    av.logging.set_level(None)
    options = {
        # Nested files are refused three times: by their protocol, by their format, and by `refuse_to_open`.
        "protocol_whitelist": "none",
        "format_whitelist": demuxer,
        # One more than allowed, so that too many are counted and not silently left out.
        "max_streams": str(limits["streams"] + 1),
    }
    try:
        with av.open(
            file,
            "r",
            format=demuxer,
            options=options,
            buffer_size=_BUFFER_BYTES,
            io_open=refuse_to_open,
            metadata_errors="replace",
        ) as opened:
            return _describe(opened, demuxer, limits)
    except av.FFmpegError as error:
        raise _ProbeRefused("too_complex" if isinstance(error, MemoryError) else "damaged") from None


def _describe(opened: Any, demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Check the first video and the first sound, read all their packets, and return the description."""
    if len(opened.streams) > limits["streams"]:
        raise _ProbeRefused("too_many_streams", streams=len(opened.streams))
    video = next((stream for stream in opened.streams.video if not _is_cover(stream)), None)
    audio = next(iter(opened.streams.audio), None)
    if video is None and audio is None:
        raise _ProbeRefused("nothing_in_it")
    if video is not None:
        _check_codec(video, _VIDEO_CODECS, "video")
        _check_pixels(video.width, video.height, limits)
    if audio is not None:
        _check_codec(audio, _AUDIO_CODECS, "sound")
        if not 8_000 <= audio.rate <= 192_000 or not 1 <= audio.channels <= 8:
            raise _ProbeRefused("odd_sound", rate=audio.rate, channels=audio.channels)
    declared = opened.duration / 1_000_000 if opened.duration else 0.0
    _check_seconds(declared, limits)
    walk = _PacketWalk([stream for stream in (video, audio) if stream is not None], limits)
    walk.run(opened)
    seconds = walk.seconds
    if not walk.is_decoded or seconds <= 0:
        raise _ProbeRefused("damaged")
    # A raw MP3 has no table; its declared length is a guess from its first frames.
    if demuxer != "mp3" and declared - seconds > max(_CUT_OFF_TOLERANCE[0], _CUT_OFF_TOLERANCE[1] * declared):
        raise _ProbeRefused("cut_off", seconds=seconds, declared=declared)
    answer: dict[str, Any] = {"kind": "audio", "container": demuxer, "seconds": seconds}
    if video is not None:
        answer |= {"kind": "video", "video": _describe_video(video, walk, limits)}
    if audio is not None:
        answer["audio"] = {"codec": _codec_name(audio), "rate": audio.rate, "channels": audio.channels}
    return answer


def _is_cover(stream: Any) -> bool:
    """Return whether the stream is a picture that belongs to a song."""
    import av  # noqa: PLC0415  `describe_media` has imported it

    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _check_codec(stream: Any, known: frozenset[str], label: str) -> None:
    context = stream.codec_context
    if context is None or (context.name not in known and _codec_name(stream) not in known):
        raise _ProbeRefused("unknown_codec", what=label, codec=context.name if context is not None else "")


def _codec_name(stream: Any) -> str:
    name = str(stream.codec_context.name)
    return _CODEC_BY_DECODER.get(name, name)


def _check_pixels(width: int, height: int, limits: dict[str, Any]) -> None:
    if width <= 0 or height <= 0:
        raise _ProbeRefused("damaged")
    if width * height > limits["pixels"] or max(width, height) > limits["side"]:
        raise _ProbeRefused("too_many_pixels", width=width, height=height)


def _check_seconds(seconds: float, limits: dict[str, Any]) -> None:
    if seconds > limits["seconds"]:
        raise _ProbeRefused("too_long", seconds=seconds)


class _PacketWalk:
    """Reads all packets of the chosen streams: notes their start and end, and decodes the first frame of each."""

    def __init__(self, streams: list[Any], limits: dict[str, Any]) -> None:
        self._streams = {stream.index: stream for stream in streams}
        self._limits = limits
        self._decode_tries = 0
        self.frames: dict[int, Any] = {}
        self.spans: dict[int, tuple[float, float]] = {}
        self.packets = dict.fromkeys(self._streams, 0)
        for stream in streams:
            # Options that the file was opened with are the demuxer's and never reach the decoders.
            stream.codec_context.thread_count = 1
            stream.codec_context.options = {"max_pixels": str(limits["pixels"])}

    @property
    def seconds(self) -> float:
        return max((end - start for start, end in self.spans.values()), default=0.0)

    @property
    def is_decoded(self) -> bool:
        return set(self.frames) == set(self._streams)

    def run(self, opened: Any) -> None:
        """Read the packets. Raises `_ProbeRefused` for too many packets, or too many seconds or pixels."""
        packet_count = 0
        for packet in opened.demux(*self._streams.values()):
            if packet.size == 0:
                continue
            packet_count += 1
            if packet_count > self._limits["packets"]:
                raise _ProbeRefused("too_many_packets")
            self._record_times(packet)
            if packet.stream.index not in self.frames and self._decode_tries < self._limits["tries"]:
                self._decode_tries += 1
                self._decode_first_frame(packet.stream, packet.decode)
        for stream in self._streams.values():
            if stream.index not in self.frames:
                # A very short stream's frame may still be inside of the decoder.
                self._decode_first_frame(stream, stream.codec_context.decode)

    def _record_times(self, packet: Any) -> None:
        stream = packet.stream
        self.packets[stream.index] += 1
        timestamp = packet.pts if packet.pts is not None else packet.dts
        if timestamp is None:
            return
        start = float(timestamp * stream.time_base)
        end = start + float((packet.duration or 0) * stream.time_base)
        first, last = self.spans.get(stream.index, (start, end))
        self.spans[stream.index] = first, last = min(first, start), max(last, end)
        _check_seconds(last - first, self._limits)

    def _decode_first_frame(self, stream: Any, decode: Callable[[], list[Any]]) -> None:
        import av  # noqa: PLC0415  `describe_media` has imported it

        try:
            frames = decode()
        # A broken packet may come first; the next one may be whole.
        except (av.InvalidDataError, av.EOFError):
            return
        if frames:
            if stream.type == "video":
                _check_pixels(frames[0].width, frames[0].height, self._limits)
            self.frames[stream.index] = frames[0]


def _describe_video(stream: Any, walk: _PacketWalk, limits: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `probe.VideoStream`. Raises `_ProbeRefused` for too many frames a second."""
    frame = walk.frames[stream.index]
    start, end = walk.spans.get(stream.index, (0.0, 0.0))
    count = walk.packets[stream.index]
    rate = count / (end - start) if end > start else 0.0
    # A handful of frames says nothing about a rate.
    if count > 2 * limits["fps"] and rate > limits["fps"] * 1.01:
        raise _ProbeRefused("too_many_frames", fps=rate)
    is_sideways = frame.rotation % 180 != 0
    return {
        "codec": _codec_name(stream),
        "width": frame.height if is_sideways else frame.width,
        "height": frame.width if is_sideways else frame.height,
        "fps": rate,
        "frames": count,
        "rotation": frame.rotation % 360,
        "pixel_format": frame.format.name,
    }


def main(demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Limit this process, and return the description of standard input, or its refusal."""
    from pipeline.render.rlimits import confine  # noqa: PLC0415  importable once the arguments are on the path

    confine(memory=limits["memory"], seconds=limits["clock"])
    file = io.BufferedReader(OpenInput(), _BUFFER_BYTES)
    try:
        return (
            describe_picture(file, limits) if demuxer == "picture" else describe_media(file, demuxer, limits)
        )
    except _ProbeRefused as refusal:
        return {"refused": refusal.code, "told": refusal.values}
    # Under the limits a library may not even load.
    except (MemoryError, ImportError):
        return {"refused": "too_complex", "told": {}}
    except Exception:  # noqa: BLE001  decoders fail in many ways, and each means the same to the parent
        return {"refused": "damaged", "told": {}}


if __name__ == "__main__":
    *folders, demuxer, limits_json = sys.argv[1:]
    sys.path += folders
    answer = main(demuxer, json.loads(limits_json))
    sys.stdout.write(json.dumps(answer) + "\n")
