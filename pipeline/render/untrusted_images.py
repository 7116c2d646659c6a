"""A portrait or a photo that somebody gave us: bytes from anywhere, judged before they are decoded."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from pipeline.plugins import Refused

FORMATS: Final = ("JPEG", "PNG", "WEBP")
MOST_BYTES: Final = 20 * 1024 * 1024
MOST_PIXELS: Final = 40_000_000
LEAST_SIDE: Final = 16
_EYE_LEVEL: Final = 0.35
"""Where the middle of the crop lies in a picture that is taller than wide: faces are in its upper part."""

_WHOLE: Final = threading.Semaphore(1)
"""One at a time in a process: what isn't a JPEG is decoded at its full size, 160 MB of it with transparency."""

# Pillow warns from here on and refuses above twice as many; what it warns of is refused below.
Image.MAX_IMAGE_PIXELS = MOST_PIXELS


class UnusablePicture(Refused):
    """The bytes aren't a picture that may be drawn; the message says why, `field` which picture it was."""

    def __init__(self, message: str, *, field: str = "brand.portrait") -> None:
        super().__init__(message, code="unusable_picture", field=field)


def open_square(data: bytes, size: int, *, behind: str) -> Image.Image:
    """The middle of a portrait as an RGB square of `size` pixels, upright, without any of its metadata.

    What is transparent shows the colour `behind`. Of moving pictures the first frame is taken. Raises
    `UnusablePicture`.
    """
    return _opened(data, (size, size), behind, finer=2, what="portrait", field="brand.portrait")


def open_cover(data: bytes, size: tuple[int, int], *, behind: str) -> Image.Image:
    """As `open_square`, a photo that covers so many pixels; a tall one keeps its upper part."""
    return _opened(data, size, behind, finer=1, what="photo", field="media")


def _opened(
    data: bytes, size: tuple[int, int], behind: str, *, finer: int, what: str, field: str
) -> Image.Image:
    def unusable(why: str) -> UnusablePicture:
        return UnusablePicture(f"The {what} {why}", field=field)

    if len(data) > MOST_BYTES:
        msg = f"has {len(data) / 2**20:.0f} MiB; {MOST_BYTES // 2**20} are the most."
        raise unusable(msg)
    try:
        return _fitted(data, size, behind, finer)
    except _TooSmall as small:
        why = f"is {small.width} × {small.height} pixels; {LEAST_SIDE} × {LEAST_SIDE} are the least."
        raise unusable(why) from None
    except UnidentifiedImageError:
        raise unusable("is not a JPEG, PNG or WebP picture.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        msg = f"has more than {MOST_PIXELS // 1_000_000} million pixels."
        raise unusable(msg) from None
    # What Pillow raises for damaged data, by its decoders' sources: all mean that nothing can be shown.
    except (
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
        raise unusable("is damaged: it can't be read to its end.") from None


def square_png(data: bytes, size: int, *, behind: str) -> bytes:
    """As `open_square`, as a PNG."""
    out = BytesIO()
    open_square(data, size, behind=behind).save(out, "PNG")
    return out.getvalue()


class _TooSmall(Exception):
    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.width, self.height = width, height


def _fitted(data: bytes, size: tuple[int, int], behind: str, finer: int) -> Image.Image:
    with Image.open(BytesIO(data), formats=FORMATS) as first:
        width, height = first.size
        if width * height > MOST_PIXELS:
            raise Image.DecompressionBombError
        if min(width, height) < LEAST_SIDE:
            raise _TooSmall(width, height)
        # It looks at the checksums without decoding, and leaves the file unusable after that.
        first.verify()
    is_whole = first.format != "JPEG"
    with (
        _WHOLE if is_whole else nullcontext(),
        Image.open(BytesIO(data), formats=FORMATS) as opened,
    ):
        # JPEG is decoded at a half, a quarter or an eighth where that is still large enough; a photo may lie on its
        # side, so both of its sides have to be.
        least = finer * max(size)
        opened.draft("RGB", (least, least))
        opened.load()
        # A copy of one that stands upright would take as much again.
        ImageOps.exif_transpose(opened, in_place=True)
        box = _crop(*opened.size, size[0] / size[1])
        # Under its veil a photo looks the same with the cheaper one.
        kernel = Image.Resampling.LANCZOS if finer > 1 else Image.Resampling.BILINEAR
        small = _in_colour(opened).resize(size, kernel, box=box, reducing_gap=3.0)
    if small.mode == "RGBA":
        ground = Image.new("RGBA", small.size, behind)
        small = Image.alpha_composite(ground, small).convert("RGB")
    clean = Image.new("RGB", small.size)
    clean.paste(small)
    return clean


def _in_colour(image: Image.Image) -> Image.Image:
    is_transparent = "A" in image.getbands() or "transparency" in image.info
    if image.mode in {"I;16", "I;16B", "I", "F"}:
        # 16 bits per channel: the upper eight are what is seen.
        image = image.convert("I").point(lambda level: level / 256).convert("L")
    wanted = "RGBA" if is_transparent else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _crop(width: int, height: int, ratio: float) -> tuple[float, float, float, float]:
    """The largest part of that ratio of width to height."""
    across, down = min(float(width), height * ratio), min(float(height), width / ratio)
    left = (width - across) / 2
    top = min(max(height * _EYE_LEVEL - down / 2, 0), height - down) if height > down else 0.0
    return left, top, left + across, top + down
