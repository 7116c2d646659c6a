"""What stands on the pictures is read back by a program that has never seen our code: Debian's tesseract."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import unicodedata
from difflib import SequenceMatcher
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from pipeline.engines.base import Draft, PersonaCard
from pipeline.engines.carousel import Carousel
from pipeline.engines.persona_tweet import PersonaTweet
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_types import SQUARE, UPRIGHT, AvailableMedia, DrawnText
from pipeline.render.typography.punctuation import typeset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL import Image

    from pipeline.render.picture_types import PicturePlan

pytestmark = [pytest.mark.slow]

QUOTE = QuoteGraphic()
CAROUSEL = Carousel()
TWEET = PersonaTweet()
LEAST = 0.99
"""Of the characters of all pictures together."""
READ_FROM = 30
"""Smaller type, of a long name, is no text that anybody has to read."""

PERSONAS = (
    PersonaCard("Ann Whitfield", handle="annwhitfield", brand={"primary": "#1d3557", "accent": "#e63946"}),
    PersonaCard("Studio Okafor", handle="okafor", brand={"primary": "#f4f1de", "accent": "#e07a5f"}),
    PersonaCard("Bright Side Weekly", brand={"primary": "#ffd60a", "accent": "#003566"}),
    PersonaCard("DevNotes", handle="devnotes", brand={"primary": "#111111", "accent": "#ffd60a"}),
)
QUOTES = (
    "“We have waited long enough for this”\n– Mayor Ellen Okafor",
    "“Nobody has told us how customers are supposed to reach the door”\n– Paul Hirsch",
    (
        "“The forecasts were cautious, and every single one of them was beaten within a year: in Dijon the trams were "
        "full before the second line had even been drawn on paper, and nobody asks for the car park back”\n"
        "– Dr. Miriam Castle"
    ),
    "“The line will cost £214 million, of which the government pays £92 million, and opens in March 2029.”\n– Harrow Herald",
)  # fmt: skip
SLIDES = [
    {"kind": "hook", "title": "Harrow gets its tram. Mill Street pays first.", "text": ""},
    {"kind": "point", "title": "The vote: 14 to 9", "text": "After almost eleven years the council decided to build it."},
    {"kind": "point", "title": "", "text": "The operator expects 38,000 passengers a day, about half of whom now travel by car."},
    {"kind": "recap", "title": "In short", "text": "Approved 14 to 9\nOpen in March 2029\nMill Street closed for 18 months"},
    {"kind": "cta", "title": "Would you close your street for it?", "text": "Follow @annwhitfield"},
]  # fmt: skip


@pytest.fixture(scope="module")
def tesseract() -> str:
    program = shutil.which("tesseract")
    if program is None:
        message = "There is no tesseract: install Debian's package tesseract-ocr."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return program


def pictures() -> Iterator[PicturePlan]:
    for persona, quote, size in zip(PERSONAS, QUOTES, (UPRIGHT, SQUARE, UPRIGHT, SQUARE), strict=True):
        draft = Draft("", quote, "text", {"caption": quote, "slides": []}, (), "en")
        yield from QUOTE.plan(draft, persona, AvailableMedia(size=size)).pictures
        words = quote.partition("\n")[0].strip("“”")
        tweet = Draft("", words, "text", {"caption": words, "slides": []}, (), "en")
        yield from TWEET.plan(tweet, persona, AvailableMedia(size=size)).pictures
    for persona in PERSONAS[:2]:
        draft = Draft("Tram", "Tram", "text", {"caption": "Tram", "slides": SLIDES}, (), "en")
        yield from CAROUSEL.plan(draft, persona, AvailableMedia()).pictures


def blocks(picture: PicturePlan) -> list[tuple[DrawnText, str]]:
    """The texts with what they say; ornaments and initials aren't text."""
    found = []
    for item in picture.items:
        if isinstance(item, DrawnText) and item.block.size >= READ_FROM:
            words = " ".join(line.text for line in item.block.lines)
            if len(words) > 3:
                found.append((item, words))
    return found


def read(program: str, image: Image.Image) -> str:
    """As one block of text, dark on light, as whoever scans a page would hand it over."""
    out = BytesIO()
    image.save(out, "PNG", dpi=(150, 150))
    done = subprocess.run(
        [program, "-", "-", "--psm", "6", "-l", "eng"],
        input=out.getvalue(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    return done.stdout.decode()


def plain(words: str) -> str:
    """Which quotation mark or dash it is, and where the spaces are, is no matter of reading."""
    words = unicodedata.normalize("NFKC", typeset(words, "en")).translate(
        str.maketrans("“”„’‘–—", '"""\'\'--')
    )
    return re.sub(r"\s+", "", words)


def test_words_are_read_back(tesseract: str) -> None:
    right = total = 0
    misread = []
    for picture in pictures():
        image = draw_picture(picture).convert("L")
        for item, words in blocks(picture):
            box = (item.x - 24, item.y - 12, item.x + item.block.width + 24, item.y + item.block.height + 12)
            wanted, found = (
                plain(words),
                plain(read(tesseract, image.crop([max(0, round(edge)) for edge in box]))),
            )
            same = sum(
                match.size
                for match in SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()
            )
            right, total = right + same, total + len(wanted)
            if same < len(wanted):
                misread.append((wanted, found))
    assert total > 1_500
    assert right >= LEAST * total, f"{right} of {total}: {misread}"
