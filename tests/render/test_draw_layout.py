"""Pictures: the file's properties, what is drawn where, the layout as data."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from io import BytesIO
from itertools import pairwise

import pytest
from PIL import Image, ImageCms

from pipeline.render.draw_layout import draw_picture, render_layout
from pipeline.render.picture_types import Disc, DrawnText, Layout, Panel, Photo, PicturePlan, Portrait, Wash
from pipeline.render.rendered_asset import RenderedAsset
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from pipeline.render.untrusted_images import UnusablePicture


def words() -> DrawnText:
    block = layout("Hello 🔥 #tram", (200, 80), Style(), largest=24, smallest=12, accents=[(8, 13)])
    return DrawnText(20, 150, block, "#000000", "#aa0000")


def picture(*items: Panel | Disc | Portrait | DrawnText) -> PicturePlan:
    return PicturePlan("card.jpg", "image", 240, 300, "#204060", items, "Hello – Ann")


FLAT = Layout(
    (picture(Panel(10, 100, 220, 150, 20, "#ffffff", has_shadow=True), Disc(20, 20, 64, "#dd2222"), words()),)
)
WITH_PORTRAIT = Layout((picture(Portrait(20, 20, 64)),))


def portrait(form: str = "JPEG") -> bytes:
    out = BytesIO()
    Image.new("RGB", (300, 300), "#00aa00").save(out, form)
    return out.getvalue()


def opened(asset: RenderedAsset) -> Image.Image:
    return Image.open(BytesIO(asset.bytes))


def near(pixel: object, colour: tuple[int, int, int]) -> bool:
    assert isinstance(pixel, tuple)
    return all(abs(part - wanted) < 16 for part, wanted in zip(pixel, colour, strict=True))


def test_file_is_jpeg_in_full_colour_and_srgb() -> None:
    (asset,) = render_layout(FLAT)
    image = opened(asset)
    profile = ImageCms.ImageCmsProfile(BytesIO(image.info["icc_profile"]))

    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (240, 300))
    assert [layer[1:3] for layer in image.layer] == [(1, 1), (1, 1), (1, 1)]
    assert "sRGB" in ImageCms.getProfileDescription(profile)
    assert image.info["icc_profile"][24:36] == bytes(12)
    assert dict(image.getexif()) == {}
    assert "comment" not in image.info


def test_file_is_described() -> None:
    (asset,) = render_layout(FLAT)

    assert replace(asset, bytes=b"", sha256="") == RenderedAsset(
        name="card.jpg",
        mime_type="image/jpeg",
        width=240,
        height=300,
        bytes=b"",
        sha256="",
        alt_text="Hello – Ann",
        role="image",
    )
    assert asset.sha256 == hashlib.sha256(asset.bytes).hexdigest()


def test_same_layout_makes_the_same_bytes() -> None:
    assert render_layout(FLAT) == render_layout(FLAT)


def test_layout_knows_whether_it_needs_a_portrait() -> None:
    assert FLAT.needs_portrait is False
    assert WITH_PORTRAIT.needs_portrait is True


def test_portrait_fills_its_circle() -> None:
    image = draw_picture(WITH_PORTRAIT.pictures[0], portrait=portrait())

    assert near(image.getpixel((52, 52)), (0, 170, 0))
    assert near(image.getpixel((21, 21)), (32, 64, 96))


def test_portrait_that_is_missing_is_our_own_fault() -> None:
    with pytest.raises(ValueError, match="none was given"):
        render_layout(WITH_PORTRAIT)


def test_portrait_that_is_none_is_refused() -> None:
    with pytest.raises(UnusablePicture):
        render_layout(WITH_PORTRAIT, portrait=portrait("BMP"))


def test_panel_has_round_corners_and_a_shadow() -> None:
    image = draw_picture(FLAT.pictures[0])

    assert image.getpixel((120, 120)) == (255, 255, 255)
    assert image.getpixel((10, 100)) != (255, 255, 255)
    below, far = image.getpixel((120, 254)), image.getpixel((235, 2))
    assert isinstance(below, tuple)
    assert below < (32, 64, 96)
    assert far == (32, 64, 96)


def test_shadow_has_no_seams() -> None:
    """The pieces that it is put together from meet with the same shade."""
    image = draw_picture(picture(Panel(40, 60, 160, 160, 20, "#ffffff", has_shadow=True)))
    row = [image.getpixel((x, 240)) for x in range(240)]
    steps = [abs(one[2] - other[2]) for one, other in pairwise(row)]

    assert max(steps) <= 4


def test_accents_take_the_second_colour() -> None:
    image = draw_picture(picture(Panel(0, 0, 240, 300, 20, "#ffffff"), words()))
    colours = {colour for _, colour in image.getcolors(100_000) or []}

    assert (0, 0, 0) in colours
    assert (170, 0, 0) in colours


def test_no_pictures_make_no_files() -> None:
    assert render_layout(Layout(())) == ()


def test_wash_runs_from_one_colour_to_the_other() -> None:
    image = draw_picture(PicturePlan("w.jpg", "image", 40, 101, "#000000", (Wash("#000000", "#c86432"),), ""))

    assert [image.getpixel((20, y)) for y in (0, 50, 100)] == [(0, 0, 0), (100, 50, 25), (200, 100, 50)]
    assert image.getpixel((0, 30)) == image.getpixel((39, 30))


def test_panel_may_be_all_corners_or_have_none() -> None:
    items = (Panel(0, 10, 60, 6, 3, "#ffffff"), Panel(0, 30, 60, 6, 0, "#ffffff"))
    image = draw_picture(PicturePlan("p.jpg", "image", 60, 40, "#000000", items, ""))

    assert [image.getpixel((30, y)) for y in (9, 10, 15, 16)] == [
        (0, 0, 0),
        (255,) * 3,
        (255,) * 3,
        (0, 0, 0),
    ]
    assert image.getpixel((0, 10)) != (255, 255, 255) == image.getpixel((0, 30))


def test_large_disc_may_leave_the_picture() -> None:
    image = draw_picture(
        PicturePlan("d.jpg", "image", 60, 60, "#000000", (Disc(-500, -500, 1000, "#ffffff"),), "")
    )

    assert image.getpixel((0, 0)) == (255, 255, 255)
    far = Disc(-1000, -1000, 1000, "#ffffff")
    bare = draw_picture(PicturePlan("d.jpg", "image", 60, 60, "#000000", (far,), ""))
    assert bare.getcolors() == [(3600, (0, 0, 0))]


def test_photo_lies_under_its_veil() -> None:
    layout = Layout((PicturePlan("q.jpg", "image", 40, 50, "#000000", (Photo("#000000", 0.6),), ""),))
    image = draw_picture(layout.pictures[0], photo=portrait())

    assert near(image.getpixel((20, 25)), (0, 68, 0))
    with pytest.raises(ValueError, match="shows a photo, and none was given"):
        render_layout(layout)
