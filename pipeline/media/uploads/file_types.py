"""What a file is, by its bytes, and whether its sound or video can be read; the name and the type that its sender gave
are trusted for nothing.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from django.conf import settings
from PIL import Image, UnidentifiedImageError

from config.core.api.jsonio import PayloadTooLarge
from config.core.errors import AppError, Detail, Invalid
from pipeline import limits
from pipeline.media.uploads import text_encodings
from pipeline.plugins import Refused, TryLater
from pipeline.render.probe import probe
from pipeline.render.video import film_process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.render.probe import Probed

HEAD_BYTES: Final = 4096
KINDS: Final[Mapping[str, tuple[str, int]]] = {
    "image": ("A picture", limits.UPLOAD_IMAGE_BYTES),
    "audio": ("A sound file", limits.UPLOAD_AUDIO_BYTES),
    "video": ("A video", limits.UPLOAD_VIDEO_BYTES),
    "text": ("A text file", limits.UPLOAD_TEXT_BYTES),
}
"""How each kind is called in a sentence, and how many bytes it may have."""
SUFFIXES: Final[Mapping[str, str]] = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "audio/flac": ".flac",
    "audio/ogg": ".ogg",
    "audio/mp4": ".m4a",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/html": ".html",
    "text/csv": ".csv",
}
"""Every type that is taken."""
_PICTURES: Final = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_ELSE: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", "a PDF; open it, copy its text and send that"),
    (b"PK\x03\x04", "an archive or an office document; save it as text"),
    (b"\xd0\xcf\x11\xe0", "an office document; save it as text"),
    (b"\x1f\x8b", "a packed file; unpack it first"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
# The brand of an MP4's first box (ISO/IEC 14496-12): Apple's audio, QuickTime, pictures; everything else is video.
_BRANDS: Final = {b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"qt  ": "video/quicktime"}
_STILLS: Final = frozenset({b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis"})
# Comments are taken whole: a match that could give some of one back would try every way to cut them.
_HTML: Final = re.compile(
    r"\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|article|section|div|main|h[1-6]|p|ul|ol|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_MARKUP: Final = re.compile(r"\s*<(?:\?xml|svg|!doctype\s+(?!html)\w)", re.IGNORECASE)
_MARKDOWN: Final = re.compile(
    r"^(?:#{1,6} \S|[-*+] \S|\d{1,3}\. \S|> \S|```)|\]\((?:https?:|/|#)|\*\*\S", re.MULTILINE
)
_CSV_LINES: Final = 20
LOOKED_INTO: Final = frozenset({"audio", "video"})
# By the first bytes a container may hold either; what is in it decides.
_REALLY: Final[Mapping[tuple[str, str], str]] = {
    ("video/mp4", "audio"): "audio/mp4",
    ("video/quicktime", "audio"): "audio/mp4",
    ("audio/mp4", "video"): "video/mp4",
}


@dataclass(frozen=True)
class Sniffed:
    """Width and height, in pixels, are those of a picture or a video, `seconds` the length of a sound or video."""

    kind: str
    mime_type: str
    width: int | None = None
    height: int | None = None
    seconds: float | None = None

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.mime_type]


class UnsupportedFileType(AppError):
    """The bytes are of a kind that isn't taken."""

    code = "unsupported_media_type"

    def __init__(self, what: str) -> None:
        message = (
            f"The file is {what}. Pictures (JPEG, PNG, WebP, GIF), sound, video and text files are taken."
        )
        super().__init__(Detail("file", "unsupported_file", message))


def sniff_head(head: bytes) -> str | None:
    """The type by the first `HEAD_BYTES`; None where only all of it can tell: a text. Raises `UnsupportedFileType`."""
    if not head:
        raise Invalid.one("file", "empty_file", "The file is empty; choose one that holds something.")
    found = _by_magic(head)
    if found is not None:
        return found
    for magic, what in _ELSE:
        if head.startswith(magic):
            raise UnsupportedFileType(what)
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnsupportedFileType("of a kind that isn't known")
    return None


def refuse_too_large(kind: str, size: int) -> None:
    name, most = KINDS[kind]
    if size > most:
        mib = f"{size / 2**20:.1f}".rstrip("0").rstrip(".")
        message = f"{name} may have {most // 2**20} MiB at most; this one has {mib}."
        raise PayloadTooLarge(Detail("file", "file_too_large", message))


def sniff_picture(data: bytes, mime_type: str) -> Sniffed:
    """Its size, without decoding it: one that would unpack to too many pixels is refused. Raises `Invalid`."""
    try:
        with Image.open(BytesIO(data), formats=tuple(_PICTURES)) as opened:
            width, height = opened.size
            if width * height > limits.UPLOAD_PIXELS:
                raise Image.DecompressionBombError
            # Looks at the checksums; nothing is unpacked.
            opened.verify()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        most = limits.UPLOAD_PIXELS // 1_000_000
        message = f"The picture has more than {most} million pixels; make it smaller."
        raise Invalid.one("file", "too_many_pixels", message) from None
    # What Pillow raises for damaged data, by its decoders' sources.
    except (
        UnidentifiedImageError,
        OSError,
        SyntaxError,
        ValueError,
        EOFError,
        IndexError,
        KeyError,
        TypeError,
        OverflowError,
        MemoryError,
    ):
        message = "The picture is damaged: it can't be read to its end. Save it again and send that."
        raise Invalid.one("file", "damaged", message) from None
    return Sniffed("image", mime_type, width, height)


def sniff_text(data: bytes) -> Sniffed:
    """HTML, CSV, Markdown or plain text in UTF-8. Raises `UnsupportedFileType`."""
    return sniff_words(read_text(data))


def sniff_words(text: str) -> Sniffed:
    """As `sniff_text`, of what was decoded."""
    if _MARKUP.match(text):
        raise UnsupportedFileType("XML or SVG")
    if _HTML.match(text):
        return Sniffed("text", "text/html")
    if _is_table(text):
        return Sniffed("text", "text/csv")
    return Sniffed("text", "text/markdown" if _MARKDOWN.search(text) else "text/plain")


def read_words(data: bytes) -> str:
    """The words of a text file that a person chose, in any encoding that `text_encodings` knows. Raises as `read_text`."""
    text = text_encodings.decode(data)
    if text is None:
        raise UnsupportedFileType("no text, or in an encoding that isn't known; save it as UTF-8")
    if "\x00" in text:
        raise UnsupportedFileType("of a kind that isn't known")
    sniff_words(text)
    return text


def read_text(data: bytes) -> str:
    """The words of a text file. Raises `UnsupportedFileType` for what isn't UTF-8."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnsupportedFileType("no text in UTF-8; save it with that encoding") from None
    if "\x00" in text:
        raise UnsupportedFileType("of a kind that isn't known")
    return text


def _by_magic(head: bytes) -> str | None:
    for magic, mime_type in _MAGIC:
        if head.startswith(magic):
            return mime_type
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILLS:
            raise UnsupportedFileType("a picture in HEIC or AVIF; save it as JPEG")
        return _BRANDS.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head[:64]:
        return "video/webm"
    return "audio/mpeg" if _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """The sync word of an MPEG audio frame of layer III with a bitrate and a rate that exist."""
    return (
        len(head) > 3
        and head[0] == 0xFF
        and head[1] & 0xE6 == 0xE2
        and head[2] >> 4 not in {0, 15}
        and head[2] >> 2 & 3 != 3
    )


def _is_table(text: str) -> bool:
    """Several lines that all have the same number of cells, more than one."""
    lines = [line for line in text[: 64 * 1024].splitlines()[: _CSV_LINES + 1] if line.strip()][:_CSV_LINES]
    if len(lines) < 2:
        return False
    for delimiter in (",", ";", "\t"):
        try:
            widths = {len(row) for row in csv.reader(lines, delimiter=delimiter, strict=True)}
        except csv.Error:
            continue
        # Sentences have commas too, but not the same number in every line.
        if len(widths) == 1 and widths.pop() > (2 if len(lines) == 2 else 1):
            return True
    return False


class UploadBusy(AppError):
    """The machine has no room to look at the file now."""

    code = "unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(Detail("file", "busy", message))


def inspect(file: BinaryIO, found: Sniffed) -> Sniffed:
    """With what it really holds, its length, and a video's size. Raises `Invalid` with one sentence, and `UploadBusy`."""
    try:
        # Not waited for: whoever sends the file holds one of a few threads that everybody's requests need.
        with film_process.claim_slot(Path(settings.DATA_DIR) / "probes", limits.MEDIA_PROBES_AT_ONCE):
            probed = probe(file)
    except film_process.RenderBusy as busy:
        message = "Other files are being looked at; send it again in some seconds."
        raise UploadBusy(message) from busy
    except Refused as refused:
        raise Invalid.one("file", refused.code, refused.message) from refused
    except TryLater as later:
        raise UploadBusy(later.message) from later
    return replace(
        found,
        **_really(found, probed),
        width=probed.width,
        height=probed.height,
        seconds=round(probed.seconds, 3),
    )


def _really(found: Sniffed, probed: Probed) -> dict[str, str]:
    if probed.kind == found.kind:
        return {}
    mime_type = _REALLY.get((found.mime_type, probed.kind), "")
    if mime_type not in SUFFIXES:
        message = (
            f"The file is called {found.kind} by its first bytes and holds {probed.kind}; save it again."
        )
        raise Invalid.one("file", "other_kind", message)
    return {"kind": probed.kind, "mime_type": mime_type}
