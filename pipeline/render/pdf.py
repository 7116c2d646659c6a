"""Binds JPEG pictures into a tagged PDF, one on each page; without a date, so the same pictures make the same bytes.

The file follows ISO 32000-1 (PDF 1.7): one image object for each page, and a structure tree with one figure for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.render.rendered_asset import RenderedAsset, make_asset

if TYPE_CHECKING:
    from collections.abc import Sequence

_POINTS_PER_PIXEL: Final = 0.5
"""PDF points for each pixel: at 144 pixels an inch a page of 1080 by 1350 pixels is 7.5 by 9.4 inches."""
_HEADER: Final = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
# Numbers of the document's objects, in the order in which they are written.
_CATALOG, _PAGES, _INFO, _STRUCTURE_TREE, _PARENT_TREE, _DOCUMENT, _FIRST_PAGE = 1, 2, 3, 4, 5, 6, 7
_OBJECTS_PER_PAGE: Final = 4
"""Objects of each page, from `_FIRST_PAGE` on: page, content, image, figure."""


def bind_pdf(pictures: Sequence[RenderedAsset], *, name: str, title: str, language: str) -> RenderedAsset:
    """Return a PDF of the JPEGs, in the size of the first; its alternative text has a line for each picture."""
    objects: list[bytes] = [*_pdf_head(len(pictures), title, language)]
    for index, picture in enumerate(pictures):
        objects += _pdf_page(index, picture)
    first = pictures[0]
    return make_asset(
        _pdf_file(objects),
        name=name,
        mime_type="application/pdf",
        size=(first.width, first.height),
        alt_text="\n".join(picture.alt_text for picture in pictures),
        role="document",
    )


def _pdf_head(count: int, title: str, language: str) -> list[bytes]:
    """Return the objects before the pages': catalogue, pages, title, structure tree, parent tree, document."""
    pages = [_FIRST_PAGE + _OBJECTS_PER_PAGE * index for index in range(count)]
    numbers = " ".join(f"{index} [{page + 3} 0 R]" for index, page in enumerate(pages))
    language_entry = f" /Lang {_pdf_text(language)}" if language else ""
    return [
        (
            f"<< /Type /Catalog /Pages {_PAGES} 0 R /MarkInfo << /Marked true >> /StructTreeRoot {_STRUCTURE_TREE} 0 R"
            f" /ViewerPreferences << /DisplayDocTitle true >>{language_entry} >>"
        ).encode(),
        f"<< /Type /Pages /Count {count} /Kids [{_pdf_references(pages)}] >>".encode(),
        f"<< /Title {_pdf_text(title)} >>".encode(),
        (
            f"<< /Type /StructTreeRoot /K {_DOCUMENT} 0 R /ParentTree {_PARENT_TREE} 0 R"
            f" /ParentTreeNextKey {count} >>"
        ).encode(),
        f"<< /Nums [{numbers}] >>".encode(),
        (
            f"<< /Type /StructElem /S /Document /P {_STRUCTURE_TREE} 0 R"
            f" /K [{_pdf_references([page + 3 for page in pages])}] >>"
        ).encode(),
    ]


def _pdf_page(index: int, picture: RenderedAsset) -> list[bytes]:
    """Return the four objects of one page."""
    page = _FIRST_PAGE + _OBJECTS_PER_PAGE * index
    width, height = picture.width * _POINTS_PER_PIXEL, picture.height * _POINTS_PER_PIXEL
    content = f"/Figure << /MCID 0 >> BDC q {width:g} 0 0 {height:g} 0 0 cm /Im0 Do Q EMC".encode()
    return [
        (
            f"<< /Type /Page /Parent {_PAGES} 0 R /MediaBox [0 0 {width:g} {height:g}] /StructParents {index}"
            f" /Resources << /XObject << /Im0 {page + 2} 0 R >> >> /Contents {page + 1} 0 R >>"
        ).encode(),
        _pdf_stream("", content),
        _pdf_stream(
            f"/Type /XObject /Subtype /Image /Width {picture.width} /Height {picture.height}"
            " /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /DCTDecode ",
            picture.bytes,
        ),
        (
            f"<< /Type /StructElem /S /Figure /P {_DOCUMENT} 0 R /Pg {page} 0 R /K 0"
            f" /Alt {_pdf_text(picture.alt_text)} >>"
        ).encode(),
    ]


def _pdf_references(numbers: Sequence[int]) -> str:
    return " ".join(f"{number} 0 R" for number in numbers)


def _pdf_text(text: str) -> str:
    """Return the text as a PDF string in UTF-16, which holds any script."""
    return f"<{(chr(0xFEFF) + text).encode('utf-16-be', 'replace').hex()}>"


def _pdf_stream(entries: str, data: bytes) -> bytes:
    head = f"<< {entries}/Length {len(data)} >>\nstream\n".encode()
    return head + data + b"\nendstream"


def _pdf_file(objects: Sequence[bytes]) -> bytes:
    """Return the objects as a file, with the table of their offsets."""
    output = bytearray(_HEADER)
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(output))
        output += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    table_offset = len(output)
    output += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    output += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
    output += (
        f"trailer\n<< /Size {len(objects) + 1} /Root {_CATALOG} 0 R /Info {_INFO} 0 R >>\n"
        f"startxref\n{table_offset}\n%%EOF\n"
    ).encode()
    return bytes(output)
