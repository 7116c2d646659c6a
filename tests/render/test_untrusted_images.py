"""Portraits from anywhere: which are taken, which are refused, and in which words."""

from __future__ import annotations

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from time import sleep
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipeline.render import untrusted_images
from pipeline.render.untrusted_images import MAX_BYTES, UnusablePicture, open_cover, open_square

SIZE = 64


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def halves(size: tuple[int, int] = (200, 200)) -> Image.Image:
    """Red above, blue below."""
    image = Image.new("RGB", size, "#ff0000")
    image.paste("#0000ff", (0, size[1] // 2, size[0], size[1]))
    return image


def near(pixel: Any, colour: tuple[int, int, int]) -> bool:
    return all(abs(part - wanted) < 24 for part, wanted in zip(pixel, colour, strict=True))


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_usual_formats_are_taken(form: str) -> None:
    square = open_square(encoded(halves(), form), SIZE, background="#ffffff")

    assert (square.mode, square.size) == ("RGB", (SIZE, SIZE))
    assert near(square.getpixel((32, 5)), (255, 0, 0))
    assert near(square.getpixel((32, 60)), (0, 0, 255))


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF", "ICO", "PPM", "PCX", "TGA"])
def test_other_formats_are_refused(form: str) -> None:
    with pytest.raises(UnusablePicture) as refusal:
        open_square(encoded(halves(), form), SIZE, background="#ffffff")

    assert refusal.value.message == "The portrait is not a JPEG, PNG or WebP picture."
    assert refusal.value.code == "unusable_picture"
    assert refusal.value.field == "brand.portrait"


@pytest.mark.parametrize(
    "data",
    [b"", b"GIF89a", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7", b"%!PS", b"\x00" * 500],
    ids=["nothing", "gif", "svg", "pdf", "postscript", "zeros"],
)
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(UnusablePicture, match=r"^The portrait is not a JPEG, PNG or WebP picture\.$"):
        open_square(data, SIZE, background="#ffffff")


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_torn_pictures_are_refused(form: str, share: float) -> None:
    noise = Image.effect_noise((300, 300), 60).convert("RGB")
    data = encoded(noise, form)

    with pytest.raises(UnusablePicture, match=r"^The portrait is (damaged|not).*\.$"):
        open_square(data[: int(len(data) * share)], SIZE, background="#ffffff")


def test_damaged_checksum_is_refused() -> None:
    data = bytearray(encoded(halves()))
    data[len(data) // 2] ^= 0xFF

    with pytest.raises(UnusablePicture, match="damaged"):
        open_square(bytes(data), SIZE, background="#ffffff")


def header_of(width: int, height: int) -> bytes:
    """A PNG that says how large it is and holds next to nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">L", len(body)) + kind + body + struct.pack(">L", zlib.crc32(kind + body))

    head = struct.pack(">LLBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize("side", [6_400, 8_000, 30_000])
def test_bombs_are_refused_before_they_are_decoded(side: int) -> None:
    with pytest.raises(UnusablePicture, match=r"^The portrait has more than 40 million pixels\.$"):
        open_square(header_of(side, side), SIZE, background="#ffffff")


def test_heavy_files_are_refused() -> None:
    with pytest.raises(UnusablePicture, match=r"^The portrait has 20 MiB; the maximum is 20\.$"):
        open_square(b"\xff\xd8\xff" + b"\0" * MAX_BYTES, SIZE, background="#ffffff")


def test_specks_are_refused() -> None:
    with pytest.raises(UnusablePicture, match=r"^The portrait is 8 × 200 pixels; 16 × 16 are the least\.$"):
        open_square(encoded(halves((8, 200))), SIZE, background="#ffffff")


def test_orientation_is_applied() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    square = open_square(encoded(halves(), "JPEG", exif=exif), SIZE, background="#ffffff")

    assert near(square.getpixel((32, 5)), (0, 0, 255))


def test_metadata_is_left_behind() -> None:
    exif = Image.Exif()
    exif[0x010E] = "where she lives"
    square = open_square(encoded(halves(), "JPEG", exif=exif, comment=b"secret"), SIZE, background="#ffffff")

    assert square.info == {}
    assert dict(square.getexif()) == {}


def test_transparency_shows_what_is_behind() -> None:
    square = open_square(encoded(Image.new("RGBA", (50, 50), (0, 0, 0, 0))), SIZE, background="#00ff00")

    assert near(square.getpixel((10, 10)), (0, 255, 0))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "I;16"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    image = Image.new(mode, (40, 40)) if mode == "I;16" else halves((40, 40)).convert(mode)

    assert open_square(encoded(image), SIZE, background="#ffffff").mode == "RGB"


def test_print_colours_become_rgb() -> None:
    data = encoded(halves().convert("CMYK"), "JPEG")

    assert near(open_square(data, SIZE, background="#ffffff").getpixel((32, 5)), (254, 0, 0))


def test_tall_pictures_keep_their_upper_part() -> None:
    tall = Image.new("RGB", (100, 300), "#0000ff")
    tall.paste("#ff0000", (0, 60, 100, 150))
    square = open_square(encoded(tall), SIZE, background="#ffffff")

    assert near(square.getpixel((32, 32)), (255, 0, 0))


def test_first_frame_of_a_moving_picture_is_taken() -> None:
    frames = [Image.new("RGB", (40, 40), colour) for colour in ("#ff0000", "#0000ff")]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)

    assert near(open_square(data, SIZE, background="#ffffff").getpixel((9, 9)), (255, 0, 0))


SEEDS = [encoded(halves((40, 40)), form) for form in ("JPEG", "PNG", "WEBP")]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8),
    st.integers(0, 2000),
)
def test_no_bytes_do_worse_than_a_refusal(seed: bytes, changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(seed)
    for place, value in changes:
        data[place % len(data)] = value
    try:
        size = open_square(bytes(data[: length or None]), SIZE, background="#ffffff").size
    except UnusablePicture:
        return
    assert size == (SIZE, SIZE)


@pytest.mark.parametrize("size", [(200, 200), (400, 100), (100, 400)])
def test_photo_covers_what_it_has_to(size: tuple[int, int]) -> None:
    cover = open_cover(encoded(halves(size), "JPEG"), (108, 135), background="#ffffff")

    assert (cover.mode, cover.size) == ("RGB", (108, 135))
    assert near(cover.getpixel((54, 4)), (255, 0, 0))


def test_photo_is_not_stretched() -> None:
    image = Image.new("RGB", (1000, 500), "#0000ff")
    image.paste("#ff0000", (450, 200, 550, 300))
    cover = open_cover(encoded(image), (100, 100), background="#ffffff")
    reds = [(x, y) for x in range(100) for y in range(100) if near(cover.getpixel((x, y)), (255, 0, 0))]

    assert (min(x for x, _ in reds), max(x for x, _ in reds)) == pytest.approx((40, 59), abs=1)
    assert (min(y for _, y in reds), max(y for _, y in reds)) == pytest.approx((40, 59), abs=1)


def test_photo_that_lies_on_its_side_is_sharp() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    stripes = Image.new("RGB", (2000, 1600), "#000000")
    for x in range(0, 2000, 8):
        stripes.paste("#ffffff", (x, 0, x + 4, 1600))
    cover = open_cover(encoded(stripes, "JPEG", exif=exif), (1080, 1350), background="#ffffff")
    column = [cover.getpixel((500, y)) for y in range(60)]

    assert max(pixel[0] for pixel in column) - min(pixel[0] for pixel in column) > 150  # type: ignore[index]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GIF89a", "The photo is not a JPEG, PNG or WebP picture."),
        (header_of(8_000, 8_000), "The photo has more than 40 million pixels."),
        (b"\xff\xd8\xff" + b"\0" * MAX_BYTES, "The photo has 20 MiB; the maximum is 20."),
        (encoded(halves((8, 200))), "The photo is 8 × 200 pixels; 16 × 16 are the least."),
        (encoded(halves(), "JPEG")[:400], "The photo is damaged: it can't be read to its end."),
    ],
    ids=["other format", "bomb", "heavy", "speck", "torn"],
)
def test_photo_that_is_none_is_refused_as_media(data: bytes, message: str) -> None:
    with pytest.raises(UnusablePicture) as refusal:
        open_cover(data, (108, 135), background="#ffffff")

    assert (refusal.value.message, refusal.value.field) == (message, "media")


def test_what_is_decoded_whole_is_decoded_one_at_a_time():
    """A JPEG is decoded small, so it waits for nobody."""
    held = {form: BytesIO() for form in ("PNG", "WEBP", "JPEG")}
    for form, out in held.items():
        Image.new("RGB", (64, 48), "#1e4fa3").save(out, form)
    with ThreadPoolExecutor(3) as threads:
        with untrusted_images._FULL_SIZE_DECODING:
            asked = {
                form: threads.submit(untrusted_images.open_square, out.getvalue(), 32, background="#ffffff")
                for form, out in held.items()
            }
            assert asked["JPEG"].result(10).size == (32, 32)
            sleep(0.2)
            assert [asked[form].done() for form in ("PNG", "WEBP")] == [False, False]
        assert {one.result(10).size for one in asked.values()} == {(32, 32)}
