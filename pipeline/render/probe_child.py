"""The process that opens a file nobody has looked at: what it holds, or why it can't be used.

It is run by its path, isolated from the environment. The file is its input, so that it knows no name and opens none;
its arguments are the folders of the project and of the
libraries, the demuxer and the limits as JSON. The answer is one
line of JSON: what was found, or `{"refused": code, "told": {…}}`.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_VIDEO: Final = frozenset({"h264", "hevc", "vp8", "vp9", "av1", "mpeg4"})
_AUDIO: Final = frozenset(
    {
        "aac", "alac", "flac", "mp3", "mp3float", "opus", "vorbis",
        "pcm_u8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_f32le",
    }
)  # fmt: skip
_PICTURES: Final = {"JPEG": "jpeg", "PNG": "png", "WEBP": "webp", "GIF": "gif"}
_BUFFER: Final = 1024 * 1024
_NAMES: Final = {
    "mp3float": "mp3",
    "libdav1d": "av1",
    "libvpx": "vp8",
    "libvpx-vp9": "vp9",
    "libopus": "opus",
}
_CUT_OFF: Final = (1.0, 0.05)
"""Seconds, and a share of the whole, that may be missing at the end: tables round, and streams end apart."""


class _No(Exception):
    def __init__(self, code: str, **told: Any) -> None:
        super().__init__(code)
        self.code = code
        self.told = told


class OpenInput(io.RawIOBase):
    """The open file at the input, read without moving the place at which our parent has it open too."""

    def __init__(self) -> None:
        super().__init__()
        self._place = 0
        self._size = os.fstat(0).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        count = os.preadv(0, [target], self._place)
        self._place += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        if begin + offset < 0:
            message = "before the beginning"
            raise OSError(message)
        self._place = begin + offset
        return self._place

    def tell(self) -> int:
        return self._place


def refuse_to_open(url: str, flags: int, options: Any) -> NoReturn:
    """A file that names another one gets nothing."""
    del url, flags, options
    raise _No("names_others")


def picture(file: Any, limits: dict[str, Any]) -> dict[str, Any]:
    from PIL import Image, ImageFile  # noqa: PLC0415  only where it is one

    # We look at the size ourselves, before anything is unpacked.
    Image.MAX_IMAGE_PIXELS = None
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    with Image.open(file, formats=tuple(_PICTURES)) as opened:
        width, height = opened.size
        if width * height > limits["picture_pixels"]:
            raise _No("too_many_pixels", width=width, height=height)
        # To the end: half a picture is found by nothing less.
        opened.load()
        turned = opened.getexif().get(0x0112, 1) >= 5
        return {
            "kind": "image",
            "container": _PICTURES[str(opened.format)],
            "width": height if turned else width,
            "height": width if turned else height,
        }


def media(file: Any, demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    import av  # noqa: PLC0415  only where it is none

    av.logging.set_level(None)
    options = {
        # Nested files are refused three times: by their protocol, by their format, by the hand that would open them.
        "protocol_whitelist": "none",
        "format_whitelist": demuxer,
        # One more than may be, so that it is counted and not left out.
        "max_streams": str(limits["streams"] + 1),
    }
    try:
        with av.open(
            file,
            "r",
            format=demuxer,
            options=options,
            buffer_size=_BUFFER,
            io_open=refuse_to_open,
            metadata_errors="replace",
        ) as opened:
            return _described(opened, demuxer, limits)
    except av.FFmpegError as error:
        raise _No("too_complex" if isinstance(error, MemoryError) else "damaged") from None


def _described(opened: Any, demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    if len(opened.streams) > limits["streams"]:
        raise _No("too_many_streams", streams=len(opened.streams))
    video = next((one for one in opened.streams.video if not _is_cover(one)), None)
    audio = next(iter(opened.streams.audio), None)
    if video is None and audio is None:
        raise _No("nothing_in_it")
    if video is not None:
        _judge_codec(video, _VIDEO, "video")
        _judge_pixels(video.width, video.height, limits)
    if audio is not None:
        _judge_codec(audio, _AUDIO, "sound")
        if not 8_000 <= audio.rate <= 192_000 or not 1 <= audio.channels <= 8:
            raise _No("odd_sound", rate=audio.rate, channels=audio.channels)
    declared = opened.duration / 1_000_000 if opened.duration else 0.0
    _judge_seconds(declared, limits)
    walk = _Walk([one for one in (video, audio) if one is not None], limits)
    walk.go(opened)
    seconds = walk.seconds
    if not walk.is_decoded or seconds <= 0:
        raise _No("damaged")
    # A raw MP3 has no table; its length is a guess from its first frames.
    if demuxer != "mp3" and declared - seconds > max(_CUT_OFF[0], _CUT_OFF[1] * declared):
        raise _No("cut_off", seconds=seconds, declared=declared)
    told: dict[str, Any] = {"kind": "audio", "container": demuxer, "seconds": seconds}
    if video is not None:
        told |= {"kind": "video", "video": _of_video(video, walk, limits)}
    if audio is not None:
        told["audio"] = {"codec": _name(audio), "rate": audio.rate, "channels": audio.channels}
    return told


def _is_cover(stream: Any) -> bool:
    """A picture that goes with a song."""
    import av  # noqa: PLC0415  it is there by now

    return bool(stream.disposition & av.stream.Disposition.attached_pic)


def _judge_codec(stream: Any, known: frozenset[str], what: str) -> None:
    context = stream.codec_context
    if context is None or (context.name not in known and _name(stream) not in known):
        raise _No("unknown_codec", what=what, codec=context.name if context is not None else "")


def _name(stream: Any) -> str:
    name = str(stream.codec_context.name)
    return _NAMES.get(name, name)


def _judge_pixels(width: int, height: int, limits: dict[str, Any]) -> None:
    if width <= 0 or height <= 0:
        raise _No("damaged")
    if width * height > limits["pixels"] or max(width, height) > limits["side"]:
        raise _No("too_many_pixels", width=width, height=height)


def _judge_seconds(seconds: float, limits: dict[str, Any]) -> None:
    if seconds > limits["seconds"]:
        raise _No("too_long", seconds=seconds)


class _Walk:
    """All packets of the chosen streams: from when to when they really go, and the first frame of each decoded."""

    def __init__(self, streams: list[Any], limits: dict[str, Any]) -> None:
        self._streams = {stream.index: stream for stream in streams}
        self._limits = limits
        self._tries = 0
        self.frames: dict[int, Any] = {}
        self.spans: dict[int, tuple[float, float]] = {}
        self.packets = dict.fromkeys(self._streams, 0)
        for stream in streams:
            # What the file was opened with is for its demuxer and never reaches the decoders.
            stream.codec_context.thread_count = 1
            stream.codec_context.options = {"max_pixels": str(limits["pixels"])}

    @property
    def seconds(self) -> float:
        return max((end - start for start, end in self.spans.values()), default=0.0)

    @property
    def is_decoded(self) -> bool:
        return set(self.frames) == set(self._streams)

    def go(self, opened: Any) -> None:
        there = 0
        for packet in opened.demux(*self._streams.values()):
            if packet.size == 0:
                continue
            there += 1
            if there > self._limits["packets"]:
                raise _No("too_many_packets")
            self._note(packet)
            if packet.stream.index not in self.frames and self._tries < self._limits["tries"]:
                self._tries += 1
                self._keep(packet.stream, packet.decode)
        for stream in self._streams.values():
            if stream.index not in self.frames:
                # What the decoder of a very short stream still holds.
                self._keep(stream, stream.codec_context.decode)

    def _note(self, packet: Any) -> None:
        stream = packet.stream
        self.packets[stream.index] += 1
        moment = packet.pts if packet.pts is not None else packet.dts
        if moment is None:
            return
        start = float(moment * stream.time_base)
        end = start + float((packet.duration or 0) * stream.time_base)
        first, last = self.spans.get(stream.index, (start, end))
        self.spans[stream.index] = first, last = min(first, start), max(last, end)
        _judge_seconds(last - first, self._limits)

    def _keep(self, stream: Any, decode: Callable[[], list[Any]]) -> None:
        import av  # noqa: PLC0415  it is there by now

        try:
            made = decode()
        # The next packet may be a whole one.
        except (av.InvalidDataError, av.EOFError):
            return
        if made:
            if stream.type == "video":
                _judge_pixels(made[0].width, made[0].height, self._limits)
            self.frames[stream.index] = made[0]


def _of_video(stream: Any, walk: _Walk, limits: dict[str, Any]) -> dict[str, Any]:
    frame = walk.frames[stream.index]
    start, end = walk.spans.get(stream.index, (0.0, 0.0))
    count = walk.packets[stream.index]
    rate = count / (end - start) if end > start else 0.0
    # A handful of frames says nothing of a rate.
    if count > 2 * limits["fps"] and rate > limits["fps"] * 1.01:
        raise _No("too_many_frames", fps=rate)
    turned = frame.rotation % 180 != 0
    return {
        "codec": _name(stream),
        "width": frame.height if turned else frame.width,
        "height": frame.width if turned else frame.height,
        "fps": rate,
        "frames": count,
        "rotation": frame.rotation % 360,
        "pixel_format": frame.format.name,
    }


def main(demuxer: str, limits: dict[str, Any]) -> dict[str, Any]:
    from pipeline.render.rlimits import confine  # noqa: PLC0415  it stands on a path of the arguments

    confine(memory=limits["memory"], seconds=limits["clock"])
    file = io.BufferedReader(OpenInput(), _BUFFER)
    try:
        return picture(file, limits) if demuxer == "picture" else media(file, demuxer, limits)
    except _No as no:
        return {"refused": no.code, "told": no.told}
    # A library that finds no room can't even be loaded.
    except (MemoryError, ImportError):
        return {"refused": "too_complex", "told": {}}
    except Exception:  # noqa: BLE001  decoders fail in many ways, and each means the same to the parent
        return {"refused": "damaged", "told": {}}


if __name__ == "__main__":
    *places, chosen, given = sys.argv[1:]
    sys.path += places
    answer = main(chosen, json.loads(given))
    sys.stdout.write(json.dumps(answer) + "\n")
