"""Draws the pictures of a layout as JPEG in sRGB: the same input makes the same bytes."""

from __future__ import annotations

from functools import cache, lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Final

from PIL import Image, ImageCms, ImageDraw, ImageFilter

from pipeline.render.colour import BLACK, WHITE, mix, rgb
from pipeline.render.pdf import bind_pdf
from pipeline.render.picture_types import Disc, Panel, Photo, Portrait, Wash
from pipeline.render.rendered_asset import RenderedAsset, make_asset
from pipeline.render.typography.text_layout import draw_block
from pipeline.render.untrusted_images import open_cover, open_square

if TYPE_CHECKING:
    from pipeline.render.picture_types import DrawnText, Layout, PicturePlan

JPEG_QUALITY: Final = 92
_NO_SUBSAMPLING: Final = 0
"""Pillow's number for 4:4:4, which keeps colour at every pixel."""
_OVERSAMPLING: Final = 8
"""A disc is drawn this many times as wide and high, then made smaller, for a smooth edge."""
_LARGE_DISC_PIXELS: Final = 400
"""The diameter beyond which a disc is drawn with less oversampling."""
_SHADOW_BLUR: Final = 24
"""The radius of the blur in pixels."""
_SHADOW_SPREAD: Final = 64
"""How far the shadow reaches beyond its panel, in pixels: further out it is fainter than one level."""
_SHADOW_OFFSET: Final = 16
"""How far the shadow lies below its panel, in pixels."""
_SHADOW_STRENGTH: Final = 0.24
"""The share of the shadow's colour under the middle of the panel."""
_SHADOW_BLACK: Final = 0.75
"""The share of black in the shadow's colour; the rest is the background's."""
_PROFILE_DATE_BYTES: Final = slice(24, 36)
"""The bytes of an ICC profile's header that hold its date."""
_ShadowPart = tuple[int, int, tuple[int, int, int, int], tuple[int, int] | None]
"""Left and top in the picture; left, top, right and bottom in the mask; the size to which an edge is stretched."""


def render_layout(
    plan: Layout, *, portrait: bytes | None = None, photo: bytes | None = None
) -> tuple[RenderedAsset, ...]:
    """Render every picture of the layout in order, and last the document that binds them, if there is one.

    `portrait` and `photo` are the original bytes, which the layout needs if it shows them. Raises `UnusablePicture` if
    they can't be shown, and `ValueError` if they are needed and missing.
    """
    pictures = tuple(
        _encode(picture, draw_picture(picture, portrait=portrait, photo=photo)) for picture in plan.pictures
    )
    if not plan.document:
        return pictures
    return (*pictures, bind_pdf(pictures, name=plan.document, title=plan.title, language=plan.language))


def _encode(picture: PicturePlan, image: Image.Image) -> RenderedAsset:
    buffer = BytesIO()
    image.save(buffer, "JPEG", quality=JPEG_QUALITY, subsampling=_NO_SUBSAMPLING, icc_profile=_srgb_profile())
    return make_asset(
        buffer.getvalue(),
        name=picture.name,
        mime_type="image/jpeg",
        size=(picture.width, picture.height),
        alt_text=picture.alt_text,
        role=picture.role,
    )


@cache
def _srgb_profile() -> bytes:
    """Return the colour profile that each file holds, without its date."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    # The profile holds the time of its making, and the same picture has to be the same bytes tomorrow.
    profile[_PROFILE_DATE_BYTES] = bytes(12)
    return bytes(profile)


def draw_picture(
    picture: PicturePlan, *, portrait: bytes | None = None, photo: bytes | None = None
) -> Image.Image:
    """Draw one picture as an RGB image; arguments and errors are those of `render_layout`."""
    image = Image.new("RGB", (picture.width, picture.height), picture.background)
    for item in picture.items:
        if isinstance(item, Photo):
            _draw_photo(image, item, photo)
        else:
            _draw_item(image, item, picture.background, portrait)
    return image


def _draw_photo(image: Image.Image, item: Photo, photo: bytes | None) -> None:
    if photo is None:
        message = "The layout shows a photo, and none was given."
        raise ValueError(message)
    veil = Image.new("RGB", image.size, item.veil)
    image.paste(Image.blend(open_cover(photo, image.size, background=WHITE), veil, item.strength))


def _draw_item(
    image: Image.Image,
    item: Wash | Panel | Disc | Portrait | DrawnText,
    background: str,
    portrait: bytes | None,
) -> None:
    """Draw one item on the image. Raises as `render_layout` does for a portrait."""
    if isinstance(item, Wash):
        image.paste(_wash_column(item, image.height).resize(image.size, Image.Resampling.NEAREST))
    elif isinstance(item, Panel):
        _draw_panel(image, item, background)
    elif isinstance(item, Disc):
        image.paste(item.colour, (item.x, item.y), _disc_mask(item.size))
    elif isinstance(item, Portrait):
        if portrait is None:
            message = "The layout shows a portrait, and none was given."
            raise ValueError(message)
        image.paste(
            open_square(portrait, item.size, background=WHITE), (item.x, item.y), _disc_mask(item.size)
        )
    else:
        draw_block(image, item.block, (item.x, item.y), colour=item.colour, accent=item.accent)


def _wash_column(item: Wash, height: int) -> Image.Image:
    """Return one column of a wash, from its top colour to its bottom colour; it is stretched to the picture."""
    top, bottom = rgb(item.top), rgb(item.bottom)
    column = Image.new("RGB", (1, height))
    last = max(height - 1, 1)
    column.putdata(
        [
            tuple(round(start + (end - start) * row / last) for start, end in zip(top, bottom, strict=True))
            for row in range(height)
        ]
    )
    return column


@lru_cache(maxsize=32)
def _disc_mask(size: int) -> Image.Image:
    """Return a mask of a disc of `size` pixels."""
    # A large disc's edge is as smooth with fewer steps, and would take hundreds of megabytes with all of them.
    steps = _OVERSAMPLING if size <= _LARGE_DISC_PIXELS else _OVERSAMPLING // 4
    large = Image.new("L", (size * steps, size * steps))
    ImageDraw.Draw(large).ellipse((0, 0, large.width - 1, large.height - 1), fill=255)
    return large.reduce(steps)


def _draw_panel(image: Image.Image, panel: Panel, background: str) -> None:
    """Draw a panel as two crossing rectangles with a quarter of a disc in each corner, on its shadow, if any."""
    if panel.has_shadow:
        _draw_shadow(image, panel, background)
    pen = ImageDraw.Draw(image)
    x, y, radius = panel.x, panel.y, panel.radius
    right, bottom = x + panel.width, y + panel.height
    for box in ((x + radius, y, right - radius, bottom), (x, y + radius, right, bottom - radius)):
        # If the corners meet, nothing is left of the rectangle between them.
        if box[0] < box[2] and box[1] < box[3]:
            pen.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=panel.colour)
    if not radius:
        return
    # Pillow's own rounded corners are jagged.
    disc = _disc_mask(2 * radius)
    for left, start_x in ((0, x), (radius, right - radius)):
        for top, start_y in ((0, y), (radius, bottom - radius)):
            corner = disc.crop((left, top, left + radius, top + radius))
            image.paste(panel.colour, (start_x, start_y), corner)


def _draw_shadow(image: Image.Image, panel: Panel, background: str) -> None:
    """Draw the shadow from the corners and edges of one mask; its middle lies under the panel and isn't drawn."""
    colour = mix(background, BLACK, _SHADOW_BLACK)
    mask = _shadow_mask(panel.radius)
    for x, y, box, size in _shadow_parts(panel, mask.width):
        part = mask.crop(box)
        if size is not None:
            if not all(size):
                continue
            part = part.resize(size, Image.Resampling.NEAREST)
        image.paste(colour, (x, y), part)


def _shadow_parts(panel: Panel, side: int) -> tuple[_ShadowPart, ...]:
    """Return the four corners and four edges around a panel; `side` is the width of the mask, which is square."""
    inside = min(_SHADOW_SPREAD + panel.radius, panel.width // 2, panel.height // 2)
    corner = _SHADOW_SPREAD + inside
    left, top = panel.x - _SHADOW_SPREAD, panel.y - _SHADOW_SPREAD + _SHADOW_OFFSET
    right, bottom = panel.x + panel.width - inside, panel.y + panel.height - inside + _SHADOW_OFFSET
    across, down = max(right - left - corner, 0), max(bottom - top - corner, 0)
    far_side = side - corner
    return (
        (left, top, (0, 0, corner, corner), None),
        (right, top, (far_side, 0, side, corner), None),
        (left, bottom, (0, far_side, corner, side), None),
        (right, bottom, (far_side, far_side, side, side), None),
        (left + corner, top, (corner, 0, corner + 1, corner), (across, corner)),
        (left + corner, bottom, (corner, far_side, corner + 1, side), (across, corner)),
        (left, top + corner, (0, corner, corner, corner + 1), (corner, down)),
        (right, top + corner, (far_side, corner, side, corner + 1), (corner, down)),
    )


@lru_cache(maxsize=8)
def _shadow_mask(radius: int) -> Image.Image:
    """Return the smallest mask of a shadow that has whole corners and a pixel of each edge."""
    whole_corner = 2 * _SHADOW_SPREAD + radius
    mask = Image.new("L", (2 * whole_corner + 1, 2 * whole_corner + 1))
    box = (_SHADOW_SPREAD, _SHADOW_SPREAD, mask.width - _SHADOW_SPREAD - 1, mask.height - _SHADOW_SPREAD - 1)
    ImageDraw.Draw(mask).rounded_rectangle(box, radius, fill=round(255 * _SHADOW_STRENGTH))
    return mask.filter(ImageFilter.GaussianBlur(_SHADOW_BLUR))
