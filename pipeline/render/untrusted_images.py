"""Opens portraits and photos of unknown origin, whose bytes are checked before they are decoded."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from pipeline.plugins import Refused

FORMATS: Final = ("JPEG", "PNG", "WEBP")
MAX_BYTES: Final = 20 * 1024 * 1024
MAX_PIXELS: Final = 40_000_000
MIN_SIDE_PIXELS: Final = 16
_EYE_LEVEL: Final = 0.35
"""The middle of the crop as a share of a tall picture's height, because faces are in the upper part."""

_FULL_SIZE_DECODING: Final = threading.Semaphore(1)
"""Lets a process decode one picture at full size at a time: all formats but JPEG are, in up to 160 MB each."""

# Pillow warns above this and refuses above twice as much; what it warns of is refused below.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS


class UnusablePicture(Refused):
    """The bytes aren't a picture that may be drawn; the message has the reason, and `field` names the picture."""

    def __init__(self, message: str, *, field: str = "brand.portrait") -> None:
        super().__init__(message, code="unusable_picture", field=field)


def open_square(data: bytes, size: int, *, background: str) -> Image.Image:
    """Return a portrait as an RGB square of `size` pixels, upright and without metadata.

    It is the middle of a wide portrait and the upper part of a tall one. Transparent parts show the colour
    `background`, and an animation its first frame. Raises `UnusablePicture` if the bytes aren't a whole JPEG, PNG or
    WebP picture, or if there are too many bytes, or too many or too few pixels.
    """
    return _open(data, (size, size), background, oversampling=2, label="portrait", field="brand.portrait")


def open_cover(data: bytes, size: tuple[int, int], *, background: str) -> Image.Image:
    """Return a photo as `open_square` does, cropped to the proportions of `size` and scaled to it, in pixels."""
    return _open(data, size, background, oversampling=1, label="photo", field="media")


def _open(
    data: bytes, size: tuple[int, int], background: str, *, oversampling: int, label: str, field: str
) -> Image.Image:
    """Decode and fit the picture, with every error as an `UnusablePicture`; `label` names the picture to people."""

    def unusable(why: str) -> UnusablePicture:
        return UnusablePicture(f"The {label} {why}", field=field)

    if len(data) > MAX_BYTES:
        msg = f"has {len(data) / 2**20:.0f} MiB; the maximum is {MAX_BYTES // 2**20}."
        raise unusable(msg)
    try:
        return _decode_and_fit(data, size, background, oversampling)
    except _TooSmall as small:
        msg = (
            f"is {small.width} × {small.height} pixels; {MIN_SIDE_PIXELS} × {MIN_SIDE_PIXELS} are the least."
        )
        raise unusable(msg) from None
    except UnidentifiedImageError:
        raise unusable("is not a JPEG, PNG or WebP picture.") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        msg = f"has more than {MAX_PIXELS // 1_000_000} million pixels."
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


def square_png(data: bytes, size: int, *, background: str) -> bytes:
    """Return the square of `open_square` as a PNG."""
    buffer = BytesIO()
    open_square(data, size, background=background).save(buffer, "PNG")
    return buffer.getvalue()


class _TooSmall(Exception):
    """A side of the picture is shorter than `MIN_SIDE_PIXELS`."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.width, self.height = width, height


def _decode_and_fit(data: bytes, size: tuple[int, int], background: str, oversampling: int) -> Image.Image:
    """Return the picture upright, cropped and scaled to `size`, without transparency and metadata.

    A JPEG is decoded at about `oversampling` times the size; more looks better and takes longer.
    """
    with Image.open(BytesIO(data), formats=FORMATS) as unverified:
        width, height = unverified.size
        if width * height > MAX_PIXELS:
            raise Image.DecompressionBombError
        if min(width, height) < MIN_SIDE_PIXELS:
            raise _TooSmall(width, height)
        # `verify` reads the checksums without decoding, and leaves the file unusable after that.
        unverified.verify()
    is_full_size = unverified.format != "JPEG"
    with (
        _FULL_SIZE_DECODING if is_full_size else nullcontext(),
        Image.open(BytesIO(data), formats=FORMATS) as opened,
    ):
        # JPEG is decoded at a half, a quarter or an eighth if that is still large enough; a photo may lie on its
        # side, so the longer side of `size` counts for both.
        min_side = oversampling * max(size)
        opened.draft("RGB", (min_side, min_side))
        opened.load()
        # In place: a rotated copy would take as much memory again.
        ImageOps.exif_transpose(opened, in_place=True)
        box = _crop(*opened.size, size[0] / size[1])
        # A photo, which isn't oversampled, lies under a veil, where the cheaper kernel looks the same.
        kernel = Image.Resampling.LANCZOS if oversampling > 1 else Image.Resampling.BILINEAR
        small = _to_rgb(opened).resize(size, kernel, box=box, reducing_gap=3.0)
    if small.mode == "RGBA":
        backdrop = Image.new("RGBA", small.size, background)
        small = Image.alpha_composite(backdrop, small).convert("RGB")
    clean = Image.new("RGB", small.size)
    clean.paste(small)
    return clean


def _to_rgb(image: Image.Image) -> Image.Image:
    """Return the picture as RGB, or as RGBA if it may be transparent."""
    is_transparent = "A" in image.getbands() or "transparency" in image.info
    if image.mode in {"I;16", "I;16B", "I", "F"}:
        # 16 bits per channel: only the upper eight are visible.
        image = image.convert("I").point(lambda level: level / 256).convert("L")
    mode = "RGBA" if is_transparent else "RGB"
    return image if image.mode == mode else image.convert(mode)


def _crop(width: int, height: int, ratio: float) -> tuple[float, float, float, float]:
    """Return the box of the largest part with that ratio of width to height: left, top, right, bottom."""
    crop_width, crop_height = min(float(width), height * ratio), min(float(height), width / ratio)
    left = (width - crop_width) / 2
    top = 0.0
    if height > crop_height:
        top = min(max(height * _EYE_LEVEL - crop_height / 2, 0), height - crop_height)
    return left, top, left + crop_width, top + crop_height
