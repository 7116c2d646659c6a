"""The bundled fonts: their licence, their size, what they cover."""

from __future__ import annotations

import re

import pytest
from PIL import features

from pipeline.engines.persona_tweet import format_date
from pipeline.render.colour import contrast, luminance, mix, parse, readable
from pipeline.render.typography import fonts
from pipeline.render.typography.clusters import font_of, is_emoji, undrawable_clusters
from pipeline.render.typography.punctuation import typeset


def test_pillow_shapes_text() -> None:
    assert features.check("raqm")


def test_each_font_is_named_in_the_licence() -> None:
    files = {path.name for path in fonts.FOLDER.iterdir()}
    licence = (fonts.FOLDER / "OFL.txt").read_text(encoding="utf-8")

    bundled = {fonts._font_path(font, weight).name for font in fonts.BUNDLED for weight in (400, 700)}
    assert files == bundled | {"OFL.txt"}
    assert [name for name in bundled if name not in licence] == []
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence


def test_fonts_stay_small() -> None:
    assert sum(path.stat().st_size for path in fonts.FOLDER.glob("*.ttf")) <= 6_600_000


@pytest.mark.parametrize(
    ("text", "font"),
    [
        ("abc ÄÖÜß żółć ğ ș ở Ω Ж – “ ” „ … € → ✓ 1", fonts.INTER),
        ("אבגדהוזחטיךםןףץ", fonts.HEBREW),
        ("ابجدهوزحطي،؟پچژگ", fonts.ARABIC),
        ("कहानियाँ।", fonts.DEVANAGARI),
        ("เรือข้ามฟาก", fonts.THAI),
        ("🔥😴🚀✅⭐☕", fonts.EMOJI),
    ],
)
def test_characters_have_their_font(text: str, font: str) -> None:
    assert {font_of(sign) for sign in text if sign != " "} == {font}


def test_coverage_agrees_with_what_is_drawn() -> None:
    """A character that the table denies is drawn as the box for missing ones."""
    face = fonts.face(fonts.INTER, 40, 400, 28)
    box = bytes(face.getmask("\u0b95"))
    letters = [chr(code) for code in range(0x21, 0x250) if code in fonts.coverage(fonts.INTER)]

    assert [letter for letter in letters if bytes(face.getmask(letter)) == box] == []
    assert bytes(face.getmask("\u6771")) == box


def test_private_characters_are_nobodys() -> None:
    assert undrawable_clusters("\ue000 \uf8ff \U000f0000") == ("\ue000", "\uf8ff", "\U000f0000")


def test_line_ends_and_tabs_count_as_drawn() -> None:
    assert undrawable_clusters("a\tb\r\nc\u2028d") == ()


@pytest.mark.parametrize(
    ("cluster", "answer"),
    [("☕", True), ("☀", False), ("☀\ufe0f", True), ("☕\ufe0e", False), ("1", False), ("🔥", True)],
)
def test_emoji_are_told_from_signs(cluster: str, answer: bool) -> None:
    assert is_emoji(cluster) is answer


def test_weights_differ() -> None:
    light, bold = (fonts.face(fonts.INTER, 40, weight, 28).getlength("Hamburg") for weight in (300, 800))

    assert bold > light * 1.05


@pytest.mark.parametrize(
    ("given", "colour"),
    [
        ("#1D3557", "#1d3557"),
        ("fff", "#ffffff"),
        (" #abc ", "#aabbcc"),
        ("red", None),
        ("#12", None),
        (7, None),
        (None, None),
    ],
)
def test_colours_are_read(given: object, colour: str | None) -> None:
    assert parse(given) == colour


def test_contrast_is_that_of_wcag() -> None:
    assert round(contrast("#000000", "#ffffff"), 1) == 21.0
    assert round(contrast("#767676", "#ffffff"), 2) == 4.54
    assert luminance("#ffffff") == 1.0
    assert mix("#000000", "#ffffff", 0.5) == "#808080"


@pytest.mark.parametrize("ink", ["#ffff00", "#ffffff", "#95d5b2", "#3a86ff", "#000000", "#808080"])
@pytest.mark.parametrize("ground", ["#ffffff", "#000000", "#777777", "#e63946"])
def test_unreadable_colours_are_shifted(ink: str, ground: str) -> None:
    assert contrast(readable(ink, ground), ground) >= 4.5


def test_readable_colours_stay() -> None:
    assert readable("#0000aa", "#ffffff") == "#0000aa"


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "3 March 2026"),
        ("en-US", "March 3, 2026"),
        ("de-AT", "3. März 2026"),
        ("fr", "3 mars 2026"),
        ("es", "3 de marzo de 2026"),
        ("ar", "3 مارس 2026"),
        ("he", "3 במרץ 2026"),
        ("xx", "2026-03-03"),
        ("", "2026-03-03"),
    ],
)
def test_dates_are_said_in_the_language(language: str, said: str) -> None:
    from datetime import date

    assert format_date(date(2026, 3, 3), language) == said


@pytest.mark.parametrize(
    ("text", "language", "printed"),
    [
        ('He said "go on" twice', "en", "He said “go on” twice"),
        ('Er sagte "weiter".', "de", "Er sagte „weiter“."),
        ('Il dit "oui".', "fr", "Il dit «\u202foui\u202f»."),
        ("it's 5'10\" tall", "en", "it’s 5'10\" tall"),
        ("one - two -- three", "en", "one – two – three"),
        ("2019-2021, -5 and a--b", "en", "2019-2021, -5 and a--b"),
        ("wait...", "en", "wait…"),
        ('unpaired " mark', "en", 'unpaired " mark'),
        ('צה"ל אמר', "he", 'צה"ל אמר'),
    ],
)
def test_typography_is_set(text: str, language: str, printed: str) -> None:
    assert typeset(text, language) == printed


def test_typography_is_set_once() -> None:
    once = typeset('He said "go on" - it\'s...', "en")

    assert typeset(once, "en") == once
    assert re.search(r"[\"']", once) is None
