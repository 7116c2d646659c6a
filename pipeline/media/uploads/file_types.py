"""Detects the type of a file by its bytes, and checks that its sound or video can be read.

The name and the type that its sender gave are not trusted.
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
SIZE_LIMITS: Final[Mapping[str, tuple[str, int]]] = {
    "image": ("A picture", limits.UPLOAD_IMAGE_BYTES),
    "audio": ("A sound file", limits.UPLOAD_AUDIO_BYTES),
    "video": ("A video", limits.UPLOAD_VIDEO_BYTES),
    "text": ("A text file", limits.UPLOAD_TEXT_BYTES),
}
"""Each kind's name at the beginning of a sentence, and the most bytes that it may have."""
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
"""The suffix of each accepted type."""
_PICTURE_TYPES: Final = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
_TYPE_BY_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
)
_TYPE_BY_RIFF_FORM: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_REFUSED_BY_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", "a PDF; open it, copy its text and send that"),
    (b"PK\x03\x04", "an archive or an office document; save it as text"),
    (b"\xd0\xcf\x11\xe0", "an office document; save it as text"),
    (b"\x1f\x8b", "a packed file; unpack it first"),
    (b"\x7fELF", "a program"),
    (b"MZ", "a program"),
)
# The brands of an MP4's first box (ISO/IEC 14496-12) that mean Apple's audio, QuickTime or pictures. All others are
# video.
_TYPE_BY_MP4_BRAND: Final = {b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"qt  ": "video/quicktime"}
_STILL_BRANDS: Final = frozenset({b"heic", b"heix", b"mif1", b"msf1", b"avif", b"avis"})
# Comments match possessively: a pattern that could give some back would try every way to split them.
_HTML_START: Final = re.compile(
    r"\s*+(?:<!--(?>.*?-->)\s*+)*+<(?:!doctype\s+html|html|head|body|article|section|div|main|h[1-6]|p|ul|ol|table)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML_START: Final = re.compile(r"\s*<(?:\?xml|svg|!doctype\s+(?!html)\w)", re.IGNORECASE)
_MARKDOWN_SIGNS: Final = re.compile(
    r"^(?:#{1,6} \S|[-*+] \S|\d{1,3}\. \S|> \S|```)|\]\((?:https?:|/|#)|\*\*\S", re.MULTILINE
)
_CSV_LINES: Final = 20
PROBED_KINDS: Final = frozenset({"audio", "video"})
_TYPE_BY_CONTENT: Final[Mapping[tuple[str, str], str]] = {
    ("video/mp4", "audio"): "audio/mp4",
    ("video/quicktime", "audio"): "audio/mp4",
    ("audio/mp4", "video"): "video/mp4",
}
"""The type by its first bytes and the kind of its content; a container's first bytes don't tell sound from video."""


@dataclass(frozen=True)
class SniffedFile:
    """The type of a file, with its size in pixels (picture, video) and its length (sound, video)."""

    kind: str
    mime_type: str
    width: int | None = None
    height: int | None = None
    seconds: float | None = None

    @property
    def suffix(self) -> str:
        return SUFFIXES[self.mime_type]


class UnsupportedFileType(AppError):
    """Raised if the bytes are of a type that isn't accepted."""

    code = "unsupported_media_type"

    def __init__(self, description: str) -> None:
        message = f"The file is {description}. Pictures (JPEG, PNG, WebP, GIF), sound, video and text files are taken."
        super().__init__(Detail("file", "unsupported_file", message))


def sniff_head(head: bytes) -> str | None:
    """Return the type by the first `HEAD_BYTES`, or `None` for a possible text, which needs the whole file.

    Raises `UnsupportedFileType` for a type that isn't accepted, and `Invalid` for an empty file.
    """
    if not head:
        raise Invalid.one("file", "empty_file", "The file is empty; choose one that holds something.")
    mime_type = _by_magic(head)
    if mime_type is not None:
        return mime_type
    for magic, description in _REFUSED_BY_MAGIC:
        if head.startswith(magic):
            raise UnsupportedFileType(description)
    if b"\x00" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnsupportedFileType("of an unknown kind")
    return None


def refuse_too_large(kind: str, size: int) -> None:
    """Raise `PayloadTooLarge` for more bytes than a kind may have."""
    name, max_bytes = SIZE_LIMITS[kind]
    if size > max_bytes:
        mib = f"{size / 2**20:.1f}".rstrip("0").rstrip(".")
        message = f"{name} may have {max_bytes // 2**20} MiB at most; this one has {mib}."
        raise PayloadTooLarge(Detail("file", "file_too_large", message))


def sniff_picture(data: bytes, mime_type: str) -> SniffedFile:
    """Return the picture's type and size, not decoded. Raises `Invalid` if it is damaged or has too many pixels."""
    try:
        with Image.open(BytesIO(data), formats=tuple(_PICTURE_TYPES)) as opened:
            width, height = opened.size
            if width * height > limits.UPLOAD_PIXELS:
                raise Image.DecompressionBombError
            # `verify` reads the checksums without decoding anything.
            opened.verify()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        megapixels = limits.UPLOAD_PIXELS // 1_000_000
        message = f"The picture has more than {megapixels} million pixels; make it smaller."
        raise Invalid.one("file", "too_many_pixels", message) from None
    # Pillow raises these errors for damaged data, by its decoders' sources.
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
    return SniffedFile("image", mime_type, width, height)


def sniff_text(data: bytes) -> SniffedFile:
    """Return the type of a text. Raises `UnsupportedFileType` for XML, and for anything but UTF-8."""
    return sniff_decoded(read_utf8(data))


def sniff_decoded(text: str) -> SniffedFile:
    """Return the type of a decoded text: HTML, CSV, Markdown or plain text. Raises `UnsupportedFileType` for XML."""
    if _XML_START.match(text):
        raise UnsupportedFileType("XML or SVG")
    if _HTML_START.match(text):
        return SniffedFile("text", "text/html")
    if _is_table(text):
        return SniffedFile("text", "text/csv")
    return SniffedFile("text", "text/markdown" if _MARKDOWN_SIGNS.search(text) else "text/plain")


def read_any_encoding(data: bytes) -> str:
    """Return the text of a file that a person chose, in any encoding that `text_encodings` knows.

    Raises `UnsupportedFileType` for XML, and for a file in no such encoding or with NULs.
    """
    text = text_encodings.decode(data)
    if text is None:
        raise UnsupportedFileType("no text, or in an encoding that isn't known; save it as UTF-8")
    if "\x00" in text:
        raise UnsupportedFileType("of an unknown kind")
    sniff_decoded(text)
    return text


def read_utf8(data: bytes) -> str:
    """Return the text of a file. Raises `UnsupportedFileType` if it isn't UTF-8 or holds NULs."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnsupportedFileType("no text in UTF-8; save it with that encoding") from None
    if "\x00" in text:
        raise UnsupportedFileType("of an unknown kind")
    return text


def _by_magic(head: bytes) -> str | None:
    """Return the type by the first bytes, or `None`. Raises `UnsupportedFileType` for HEIC and AVIF."""
    for magic, mime_type in _TYPE_BY_MAGIC:
        if head.startswith(magic):
            return mime_type
    if head[:4] == b"RIFF":
        return _TYPE_BY_RIFF_FORM.get(head[8:12])
    if head[4:8] == b"ftyp":
        if head[8:12] in _STILL_BRANDS:
            raise UnsupportedFileType("a picture in HEIC or AVIF; save it as JPEG")
        return _TYPE_BY_MP4_BRAND.get(head[8:12], "video/mp4")
    if head.startswith(b"\x1a\x45\xdf\xa3") and b"webm" in head[:64]:
        return "video/webm"
    return "audio/mpeg" if _is_mpeg_frame(head) else None


def _is_mpeg_frame(head: bytes) -> bool:
    """Return whether an MPEG audio frame of layer III begins here, with a bit rate and a sample rate that exist."""
    # A frame begins with 11 set bits; then come version, layer (binary 01 is III), bit rate (4 bits) and sample rate
    # (2 bits).
    return (
        len(head) > 3
        and head[0] == 0xFF
        and head[1] & 0xE6 == 0xE2
        and head[2] >> 4 not in {0, 15}
        and head[2] >> 2 & 3 != 3
    )


def _is_table(text: str) -> bool:
    """Return whether the first lines all have the same number of cells: more than one, or two for two lines."""
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
    """Raised if the machine is too busy to examine the file now."""

    code = "unavailable"

    def __init__(self, message: str) -> None:
        super().__init__(Detail("file", "busy", message))


def probe_content(file: BinaryIO, sniffed: SniffedFile) -> SniffedFile:
    """Return the file's type with its real kind, length and size of the picture, by a child process.

    Raises `Invalid` for a file that can't be read or is beyond a limit, and `UploadBusy` if the machine is too busy.
    """
    try:
        # It doesn't wait, because the request that sends the file holds one of the few threads that all requests need.
        with film_process.claim_slot(Path(settings.DATA_DIR) / "probes", limits.MEDIA_PROBES_AT_ONCE):
            probed = probe(file)
    except film_process.RenderBusy as busy:
        message = "Other files are being checked. Send it again in a few seconds."
        raise UploadBusy(message) from busy
    except Refused as refused:
        raise Invalid.one("file", refused.code, refused.message) from refused
    except TryLater as later:
        raise UploadBusy(later.message) from later
    return replace(
        sniffed,
        **_type_by_content(sniffed, probed),
        width=probed.width,
        height=probed.height,
        seconds=round(probed.seconds, 3),
    )


def _type_by_content(sniffed: SniffedFile, probed: Probed) -> dict[str, str]:
    """Return the kind and type by the content, or an empty mapping if the first bytes were right.

    Raises `Invalid` if the content belongs to no accepted type.
    """
    if probed.kind == sniffed.kind:
        return {}
    mime_type = _TYPE_BY_CONTENT.get((sniffed.mime_type, probed.kind), "")
    if mime_type not in SUFFIXES:
        message = (
            f"The file is called {sniffed.kind} by its first bytes and holds {probed.kind}; save it again."
        )
        raise Invalid.one("file", "other_kind", message)
    return {"kind": probed.kind, "mime_type": mime_type}
