"""A portrait that somebody gave us: bytes from anywhere, judged before they are decoded."""

from __future__ import annotations

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

# Pillow warns from here on and refuses above twice as many; what it warns of is refused below.
Image.MAX_IMAGE_PIXELS = MOST_PIXELS


class UnusablePicture(Refused):
    """The bytes aren't a picture that may be drawn; the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="unusable_picture", field="brand.portrait")


def open_square(data: bytes, size: int, *, behind: str) -> Image.Image:
    """The middle of the picture as an RGB square of `size` pixels, upright, without any of its metadata.

    What is transparent shows the colour `behind`. Of moving pictures the first frame is taken. Raises
    `UnusablePicture`.
    """
    if len(data) > MOST_BYTES:
        message = f"The portrait has {len(data) / 2**20:.0f} MiB; {MOST_BYTES // 2**20} are the most."
        raise UnusablePicture(message)
    try:
        return _square(data, size, behind)
    except UnidentifiedImageError:
        message = "The portrait is not a JPEG, PNG or WebP picture."
        raise UnusablePicture(message) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        message = f"The portrait has more than {MOST_PIXELS // 1_000_000} million pixels."
        raise UnusablePicture(message) from None
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
        message = "The portrait is damaged: it can't be read to its end."
        raise UnusablePicture(message) from None


def square_png(data: bytes, size: int, *, behind: str) -> bytes:
    """As `open_square`, as a PNG."""
    out = BytesIO()
    open_square(data, size, behind=behind).save(out, "PNG")
    return out.getvalue()


def _square(data: bytes, size: int, behind: str) -> Image.Image:
    with Image.open(BytesIO(data), formats=FORMATS) as first:
        width, height = first.size
        if width * height > MOST_PIXELS:
            raise Image.DecompressionBombError
        if min(width, height) < LEAST_SIDE:
            message = f"The portrait is {width} × {height} pixels; {LEAST_SIDE} × {LEAST_SIDE} are the least."
            raise UnusablePicture(message)
        # It looks at the checksums without decoding, and leaves the file unusable after that.
        first.verify()
    with Image.open(BytesIO(data), formats=FORMATS) as opened:
        # JPEG is decoded at a half, a quarter or an eighth where that is still large enough.
        opened.draft("RGB", (2 * size, 2 * size))
        opened.load()
        upright = ImageOps.exif_transpose(opened)
        box = _crop(*upright.size)
        small = _in_colour(upright).resize((size, size), Image.Resampling.LANCZOS, box=box, reducing_gap=3.0)
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


def _crop(width: int, height: int) -> tuple[float, float, float, float]:
    side = min(width, height)
    left = (width - side) / 2
    top = min(max(height * _EYE_LEVEL - side / 2, 0), height - side) if height > width else 0.0
    return left, top, left + side, top + side
