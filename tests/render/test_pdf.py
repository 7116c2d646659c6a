"""The PDF of several pictures: read back by its own cross-reference table, byte for byte."""

from __future__ import annotations

import re
from io import BytesIO
from typing import NamedTuple

from PIL import Image

from pipeline.render.draw_layout import render_layout
from pipeline.render.pdf import bind_pdf
from pipeline.render.picture_types import Layout, PicturePlan, Wash
from pipeline.render.rendered_asset import RenderedAsset, make_asset


class Read(NamedTuple):
    objects: dict[int, bytes]
    trailer: bytes


def jpeg(colour: str, size: tuple[int, int] = (60, 80)) -> bytes:
    out = BytesIO()
    Image.new("RGB", size, colour).save(out, "JPEG")
    return out.getvalue()


def pictures() -> list[RenderedAsset]:
    return [
        make_asset(
            jpeg(colour), name=f"{alt}.jpg", mime_type="image/jpeg", size=(60, 80), alt_text=alt, role="image"
        )
        for colour, alt in (("#aa0000", "1/2: (Rot) \\ é"), ("#00aa00", "2/2: ליל 🔥"))
    ]


def read(data: bytes) -> Read:
    """The objects by the places that the table names."""
    (start,) = re.findall(rb"startxref\n(\d+)\n%%EOF\n$", data)
    table = data[int(start) :]
    count = int(table.split(b"\n")[1].split()[1])
    entries = re.findall(rb"(\d{10}) (\d{5}) ([nf]) \n", table)
    assert len(entries) == count
    objects = {}
    for number, (place, _, kind) in enumerate(entries):
        if kind == b"n":
            head = f"{number} 0 obj\n".encode()
            assert data[int(place) :].startswith(head)
            objects[number] = data[int(place) + len(head) : data.index(b"\nendobj\n", int(place))]
    return Read(objects, table[table.index(b"trailer") :])


def text(words: str) -> bytes:
    return ("\ufeff" + words).encode("utf-16-be").hex().encode()


def bound() -> RenderedAsset:
    return bind_pdf(pictures(), name="slides.pdf", title="Tram – 🔥", language="de")


def test_every_page_is_its_picture_as_it_is() -> None:
    found = read(bound().bytes).objects
    pages = [one for one in found.values() if b"/Type /Page " in one]
    images = [one for one in found.values() if b"/Subtype /Image" in one]

    assert [re.search(rb"/MediaBox \[([^\]]*)\]", page)[1] for page in pages] == [b"0 0 30 40"] * 2  # type: ignore[index]
    assert [one.partition(b"stream\n")[2].removesuffix(b"\nendstream") for one in images] == [
        picture.bytes for picture in pictures()
    ]


def test_reference_leads_to_an_object() -> None:
    objects, trailer = read(bound().bytes)
    named = {
        int(number)
        for one in objects.values()
        for number in re.findall(rb"(\d+) 0 R", one.partition(b"stream")[0])
    }

    assert named - set(objects) == set()
    assert b"/Root 1 0 R" in trailer
    assert re.search(rb"/Size (\d+)", trailer)[1] == str(len(objects) + 1).encode()  # type: ignore[index]


def test_alt_texts_title_and_language_are_in_it() -> None:
    data = bound().bytes

    assert [data.count(b"/Alt <" + text(picture.alt_text)) for picture in pictures()] == [1, 1]
    assert data.count(b"/Title <" + text("Tram – 🔥")) == 1
    assert data.count(b"/Lang <" + text("de")) == 1
    assert data.count(b"/Marked true") == 1


def test_file_is_described() -> None:
    asset = bound()

    assert (asset.name, asset.mime_type, asset.role) == ("slides.pdf", "application/pdf", "document")
    assert (asset.width, asset.height) == (60, 80)
    assert asset.alt_text == "1/2: (Rot) \\ é\n2/2: ליל 🔥"
    assert asset.bytes.startswith(b"%PDF-1.7\n")


def test_same_pictures_make_the_same_bytes() -> None:
    assert bound() == bound()


def test_layout_with_a_document_is_bound_and_kept() -> None:
    one = PicturePlan("1.jpg", "image", 40, 50, "#ffffff", (Wash("#ffffff", "#aa0000"),), "One")
    layout = Layout((one,), document="slides.pdf", title="T", language="en")
    picture, document = render_layout(layout)

    assert (document.role, picture.bytes in document.bytes) == ("document", True)
