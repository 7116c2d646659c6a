"""Laying out: sizes, lines, long words, directions, refusals."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from pipeline.plugins import Refused
from pipeline.render.typography import fit_text
from pipeline.render.typography.clusters import MissingGlyphs, split_clusters, undrawable_clusters
from pipeline.render.typography.layout_types import Block, Style
from pipeline.render.typography.text_layout import TextDoesNotFit, draw_block, ink_box, layout

SNAPSHOTS = Path(__file__).parent / "snapshots" / "blocks.json"
BOX = (800, 400)
GERMAN = "Die Donaudampfschifffahrtsgesellschaftskapitänswitwenrentenanpassung wird verschoben."
ARABIC = "قرر المجلس في 12 نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون."
HEBREW = "המועצה אישרה ב-12 בנובמבר את פרויקט Tram 2030 (שלב א')."
ENGLISH = "The council voted 14 to 9 for the tram, and retailers in Mill Street fear for their sales."
TEXTS = {
    "english": (ENGLISH, "en"),
    "german": (GERMAN, "de"),
    "arabic": (ARABIC, "ar"),
    "hebrew": (HEBREW, "he"),
    "emoji": ("Three launches, one outage 🔥 and 👍🏽 from 🇩🇪", "en"),
    "address": ("Read https://example.com/a/very/long/address/that-goes-on?and=on&never=stops today", "en"),
    "paragraphs": ("One line.\n\nAnother line, a little longer than the first one was.", "en"),
}


def lay(text: str, box: tuple[float, float] = BOX, **changed: Any) -> Block:
    style = changed.pop("style", Style())
    return layout(text, box, style, **{"largest": 72, "smallest": 24, **changed})


def lines(block: Block) -> list[str]:
    return [line.text for line in block.lines]


@pytest.mark.parametrize("name", TEXTS)
def test_layout_is_as_recorded(name: str) -> None:
    """Recorded with `json.dumps(dataclasses.asdict(block))`; look at a drawing before recording anew."""
    text, language = TEXTS[name]
    recorded = json.loads(SNAPSHOTS.read_text(encoding="utf-8"))

    assert json.loads(json.dumps(dataclasses.asdict(lay(text, language=language)))) == recorded[name]


def test_layout_is_the_same_each_time() -> None:
    assert lay(ENGLISH) == lay(ENGLISH)


def test_largest_size_that_fits_is_taken() -> None:
    block = lay(ENGLISH, (800, 300), style=Style(line_height=1.25), largest=200)

    assert block.height <= 300
    with pytest.raises(TextDoesNotFit):
        lay(ENGLISH, (800, 300), style=Style(line_height=1.25), largest=200, smallest=block.size + 2)


def test_what_reaches_beyond_the_end_of_a_line_fits_too() -> None:
    """A digit's accent stands behind it where no font has a place for it."""
    block = lay("00000000001\u0301", (888, 600), largest=150)
    left, _, right, _ = ink_box(block)

    assert right > block.lines[0].width
    assert right - left <= 889
    assert lay("00000000001", (888, 600), largest=150).size > block.size


def test_short_text_stays_at_the_largest_size() -> None:
    block = lay("Yes.", largest=72)

    assert (block.size, lines(block), block.height) == (72, ["Yes."], round(72 * 1.3, 2))


def test_lines_stand_at_the_line_height() -> None:
    block = lay(ENGLISH, style=Style(line_height=1.3))
    steps = {round(b.baseline - a.baseline, 1) for a, b in zip(block.lines, block.lines[1:], strict=False)}

    assert steps == {round(block.size * 1.3, 1)}


@pytest.mark.parametrize(
    ("align", "edges"),
    [("start", {0.0}), ("end", {800.0}), ("center", {400.0})],
)
def test_alignment_sets_one_edge(align: Any, edges: set[float]) -> None:
    block = lay(ENGLISH, style=Style(align=align))
    place = {"start": 0.0, "center": 0.5, "end": 1.0}[align]

    assert {round(line.x + place * line.width) for line in block.lines} == edges


def test_words_are_all_there() -> None:
    assert " ".join(lines(lay(ENGLISH))) == ENGLISH


def test_lines_are_even() -> None:
    block = lay(ENGLISH, (800, 300))
    widths = [line.width for line in block.lines]

    assert min(widths) >= 0.75 * max(widths)


def test_no_line_begins_with_a_mark_or_an_emoji() -> None:
    block = lay("We had one outage 🔥, and nobody slept on the day after it 😴 at all !", (420, 900))

    assert [line for line in lines(block) if line[0] in ",.!🔥😴"] == []


def test_hyphenated_words_break_at_their_hyphens() -> None:
    block = lay("A well-documented state-of-the-art", (400, 400), largest=40, smallest=40)

    assert " ".join(lines(block)).replace("- ", "-") == "A well-documented state-of-the-art"


def test_no_break_space_holds() -> None:
    block = lay("about 10\u00a0000 people", (260, 400), largest=48, smallest=48)

    assert "10\u00a0000" in " / ".join(lines(block))


@pytest.mark.parametrize(
    "kept",
    [
        "212 000",
        "1 212 000",
        "212\u00a0000",
        "212\u202f000",
        "212 euros",
        "40 %",
        "2,5 Mio.",
        "1. Mai",
        "3 May",
    ],
)
def test_a_number_stays_on_one_line_with_its_unit(kept: str) -> None:
    plain = kept.replace("\u00a0", " ").replace("\u202f", " ")
    for before in ("La rue", "La ville", "La commune", "Les communes donc"):
        drawn = "\n".join(lines(lay(f"{before} {kept} donc en tout", (420, 900), largest=48, smallest=48)))
        assert plain in drawn.replace("\u00a0", " ").replace("\u202f", " ")


def test_soft_hyphen_is_drawn_only_where_a_line_ends() -> None:
    assert lines(lay("Donau\u00addampf", largest=40)) == ["Donaudampf"]
    assert lines(lay("Donau\u00addampf", (150, 400), largest=40, smallest=40)) == ["Donau-", "dampf"]


def test_ideographs_would_break_anywhere_but_before_closing_marks() -> None:
    from pipeline.render.typography.line_breaks import split_pieces

    found = split_clusters("東京は「雨」です。")

    assert ["".join(found[piece.start : piece.end]) for piece in split_pieces(found)] == [
        "東",
        "京",
        "は",
        "「雨」",
        "で",
        "す。",
    ]


def test_long_word_is_kept_whole_where_the_size_allows() -> None:
    assert lines(lay("Rindfleischetikettierung", (800, 200), largest=72, smallest=40)) == [
        "Rindfleischetikettierung"
    ]


def test_longer_word_is_broken_at_syllables_with_hyphens() -> None:
    block = lay(GERMAN, (800, 400), smallest=40)
    said = lines(block)

    assert "".join(said).replace("-", "").replace(" ", "") == GERMAN.replace(" ", "")
    assert [line for line in said if line.endswith("-")] != []
    assert block.size >= 48


def test_address_is_broken_without_hyphens() -> None:
    address = "https://example.com/a/very/long/address/that_goes_on?and=on&never=stops"
    block = lay(address, (420, 400), largest=40, smallest=40)

    assert "".join(lines(block)) == address
    assert all(line[-1] in "/.?&=_:" for line in lines(block)[:-1])


def test_account_is_broken_without_hyphens() -> None:
    assert "".join(lines(lay("@" + "maria" * 9, (300, 600), largest=40, smallest=40))) == "@" + "maria" * 9


def test_dash_stays_at_the_end_of_a_line() -> None:
    block = lay("Second: measure – don’t guess.", (824, 600), largest=84)

    assert lines(block) == ["Second: measure –", "don’t guess."]


def test_endless_word_is_broken_anywhere() -> None:
    block = lay("x" * 60, (300, 600), largest=40, smallest=40)

    assert "".join(lines(block)).replace("-", "") == "x" * 60


def test_too_much_text_is_refused_in_a_sentence() -> None:
    with pytest.raises(TextDoesNotFit) as refusal:
        lay("word " * 400, (300, 200), smallest=40)

    assert refusal.value.code == "does_not_fit"
    assert refusal.value.message == (
        "The text doesn't fit into 300 × 200 pixels at 40 pixels, the smallest size; shorten it."
    )


def test_piled_marks_are_refused() -> None:
    with pytest.raises(TextDoesNotFit):
        lay("Z" + "\u0301\u0302\u0303" * 12 + "algo")


def test_missing_glyphs_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(MissingGlyphs) as refusal:
        lay("Hello 東京 and \u0b95, 東 again")

    assert refusal.value.characters == ("東", "京", "\u0b95")
    assert refusal.value.message == (
        "The fonts for pictures have no glyphs for 東 (U+6771), 京 (U+4EAC), \u0b95 (U+0B95); "
        "leave these characters out."
    )


@pytest.mark.parametrize("sign", ["\u202e", "\u2066", "\x01", "\ue000", "\U000e0041", "\ufffe", "\ud800"])
def test_characters_without_a_look_are_refused(sign: str) -> None:
    with pytest.raises(MissingGlyphs):
        lay(f"a {sign} b")


def test_emoji_that_the_font_has_only_in_parts_is_refused() -> None:
    assert undrawable_clusters("👩🏽‍💻 👩‍💻 👍🏽 🇩🇪 ❤️ 1️⃣ 🏳️‍🌈") == ("👩🏽‍💻",)


def test_many_missing_glyphs_are_counted() -> None:
    with pytest.raises(MissingGlyphs, match=r"and 4 more; leave"):
        lay("一二三四五六七八九十百千")


def test_clusters_stay_together() -> None:
    text = "e\u0301👩‍💻👍🏽🇩🇪🇺🇸1\ufe0f\u20e3"

    assert split_clusters(text) == ["e\u0301", "👩‍💻", "👍🏽", "🇩🇪", "🇺🇸", "1\ufe0f\u20e3"]


def test_combining_marks_are_composed_and_drawn() -> None:
    assert lines(lay("Cafe\u0301 ở Việt Nam")) == ["Café ở Việt Nam"]


def test_each_run_has_a_font_that_draws_it() -> None:
    block = lay("Tram الترام חשמלית 🚋")

    assert [(run.font, run.text) for run in block.lines[0].runs] == [
        ("Inter", "Tram "),
        ("NotoSansHebrew", "חשמלית"),
        ("NotoSansArabic", "الترام "),
        ("NotoSansHebrew", " "),
        ("NotoColorEmoji", "🚋"),
    ]


def test_right_to_left_paragraph_stands_at_the_right() -> None:
    block = lay(ARABIC)

    assert block.direction == "rtl"
    assert {round(line.x + line.width) for line in block.lines} == {800}


def test_right_to_left_line_runs_from_the_right() -> None:
    block = lay("מחיר 1,500 Tram ok.", (800, 100), largest=40)

    assert [run.text for run in block.lines[0].runs] == [".", "Tram ok", " ", "1,500", "מחיר "]
    assert [run.direction for run in block.lines[0].runs] == ["rtl", "ltr", "rtl", "ltr", "rtl"]


def test_runs_touch_and_never_overlap() -> None:
    for text in (ARABIC, HEBREW, "Tram الترام חשמלית 🚋 ok"):
        for line in lay(text).lines:
            ends = [run.x + run.width for run in line.runs]
            starts = [run.x for run in line.runs[1:]] + [line.x + line.width]
            assert [round(end - start) for end, start in zip(ends, starts, strict=True)] == [0] * len(ends)


def test_neutral_text_follows_the_language() -> None:
    assert lay("2026 – 2027", language="ar").direction == "rtl"
    assert lay("2026 – 2027", language="en").direction == "ltr"


def test_direction_can_be_given() -> None:
    assert lay("Tram", direction="rtl").lines[0].x > 0


def test_opening_quotation_mark_hangs_out() -> None:
    block = lay("“We have waited.”", style=Style(hang=20), largest=72)

    assert block.lines[0].x == -20
    assert lay("We have waited.", style=Style(hang=20)).lines[0].x == 0


def test_accents_colour_their_stretch_only() -> None:
    block = lay("See #tram now", accents=[(4, 9)])

    assert [(run.text, run.is_accented) for run in block.lines[0].runs] == [
        ("See ", False),
        ("#tram", True),
        (" now", False),
    ]


def test_accents_of_a_later_paragraph_are_counted_from_the_text() -> None:
    block = lay("One.\n  Two #b.", accents=[(11, 13)])

    assert [run.text for line in block.lines for run in line.runs if run.is_accented] == ["#b"]


@pytest.mark.parametrize("language", ["", "en", "no such language", "\u202e", "x" * 40])
def test_language_is_never_a_reason_to_fail(language: str) -> None:
    assert lines(lay("Tram", language=language)) == ["Tram"]


def test_nothing_makes_no_lines() -> None:
    assert lines(lay(" \n\t ")) == []


MIXED = st.text(
    st.one_of(
        st.sampled_from("abcdeilnorstuwxyz    WM-–—/.,:;!?()\"'’“”\n0123456789#@"),
        st.sampled_from("אבגדהושלםאשר قرردالملعفيهاة،"),
        st.sampled_from("🔥😴👍\u200d\ufe0f🏽🇩🇪\u0301\u0308\u00ad\u200b\u2060\u00a0é"),
        st.characters(codec="utf-8", exclude_categories=["Cs"]),
    ),
    max_size=120,
)
PLAIN = st.text(
    st.sampled_from("abcdeilnorstuw     WM-–/.,!?()’“”0123456789אבגשלם  قردالملة🔥🇩🇪\u0301éÄß"), max_size=160
)


def stands_inside(block: Block, width: float) -> None:
    beyond = 0.18 * block.size + 1
    for line in block.lines:
        assert line.x >= -0.51
        assert line.x + line.width <= width + 0.51
    left, top, right, bottom = ink_box(block)
    assert left >= -beyond
    assert top >= -beyond
    assert right <= width + beyond
    assert bottom <= block.height + beyond


@settings(max_examples=150, deadline=None)
@given(MIXED, st.sampled_from(["", "en", "ar", "de"]))
def test_any_text_stays_in_its_box_or_is_refused(text: str, language: str) -> None:
    try:
        block = lay(text, (500, 600), language=language)
    except (MissingGlyphs, TextDoesNotFit):
        return
    assert block.height <= 600.5
    stands_inside(block, 500)


@settings(max_examples=60, deadline=None)
@given(PLAIN)
def test_no_pixel_leaves_the_box(text: str) -> None:
    try:
        block = lay(text, (500, 600))
    except Refused:
        return
    image = Image.new("RGB", (700, 800), "white")
    draw_block(image, block, (100, 100), colour="#000000")
    drawn = ImageChops.invert(image).getbbox()

    if drawn is not None:
        beyond = 0.3 * block.size + 2
        assert drawn[0] >= 100 - beyond
        assert drawn[1] >= 100 - beyond
        assert drawn[2] <= 600 + beyond
        assert drawn[3] <= 100 + block.height + beyond


@settings(max_examples=100, deadline=None)
@given(PLAIN)
def test_nothing_is_left_out(text: str) -> None:
    try:
        block = lay(text, (500, 600))
    except Refused:
        return
    kept = "".join("".join(lines(block)).split()).replace("-", "")

    import unicodedata

    normal = unicodedata.normalize("NFC", text)
    assert kept == "".join(normal.split()).replace("-", "")


WIDTHS = st.lists(st.integers(1, 30), min_size=1, max_size=40)


@given(WIDTHS, st.integers(30, 120))
def test_balanced_lines_fit_and_are_as_few_as_can_be(widths: list[int], width: int) -> None:
    parts = [fit_text.MeasuredPiece(float(one), 2.0, 0.0, 0.0) for one in widths]
    made = fit_text.balance_lines(parts, width)

    assert [place for start, end in made for place in range(start, end)] == list(range(len(parts)))
    sums = [sum(widths[start:end]) + 2 * (end - start - 1) for start, end in made]
    assert max(sums) <= width
    assert len(made) == fit_text.count_lines(parts, width)


@given(WIDTHS, st.integers(30, 120))
def test_balanced_lines_are_hardly_longer_than_filled_ones(widths: list[int], width: int) -> None:
    parts = [fit_text.MeasuredPiece(float(one), 2.0, 0.0, 0.0) for one in widths]
    made = fit_text.balance_lines(parts, width)
    sums = [sum(widths[start:end]) + 2 * (end - start - 1) for start, end in made]
    filled = [0]
    for one in widths:
        if filled[-1] and filled[-1] + 2 + one > width:
            filled.append(0)
        filled[-1] += one + (2 if filled[-1] else 0)

    assert max(sums) <= 1.25 * max(filled) + 1


def test_piece_wider_than_the_line_has_no_lines() -> None:
    parts = [fit_text.MeasuredPiece(10.0, 0.0, 0.0, 0.0)]

    assert fit_text.count_lines(parts, 5) is None
    with pytest.raises(ValueError, match="wider"):
        fit_text.balance_lines(parts, 5)


@pytest.mark.parametrize("word", ["ورقًا", "قًّا", "آلًا", "مُحَمَّدٌ"])
def test_vowel_signs_over_high_letters_have_room(word: str) -> None:
    """A card of a film's captions: one word, on a line that is hardly higher than its letters."""
    style = Style(weight=800, optical=32, line_height=1.12, align="center")

    assert lines(lay(word, (720, 189), style=style, largest=84, smallest=54, language="ar")) == [word]


@pytest.mark.parametrize(
    ("language", "word"),
    [
        ("ar", "في"),
        ("ar", "البلدي"),
        ("ar", "يِ"),
        ("hi", "द्धू"),
        ("hi", "हूँ"),
        ("th", "ฎฺู"),
        ("vi", "Ễ"),
        ("da", "Ǻ"),
    ],
)
@pytest.mark.parametrize("line_height", [1.0, 1.08, 1.2])
def test_what_reaches_far_below_or_above_its_line_has_room(
    language: str, word: str, line_height: float
) -> None:
    """No smaller size would help: what leaves a line leaves it at each."""
    style = Style(weight=800, optical=32, line_height=line_height)
    block = lay(word, (810, 260), style=style, largest=112, smallest=112, language=language)

    assert lines(block) == [word]
