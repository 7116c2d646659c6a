"""Which way text runs, by the examples of UAX #9."""

from __future__ import annotations

import pytest

from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language, levels, visual_order

MIRRORED = str.maketrans("()", ")(")


def shown(text: str, *, is_rtl: bool) -> str:
    found = levels(text, is_rtl=is_rtl)
    seen = [sign.translate(MIRRORED) if level % 2 else sign for sign, level in zip(text, found, strict=True)]
    return "".join(visual_order(seen, found))


def in_capitals(text: str, *, is_rtl: bool) -> str:
    """Capitals stand for Hebrew letters, as in the annex."""
    hebrew = text.translate({ord("A") + place: 0x5D0 + place for place in range(26)})
    return shown(hebrew, is_rtl=is_rtl).translate({0x5D0 + place: ord("A") + place for place in range(26)})


@pytest.mark.parametrize(
    ("text", "is_rtl", "seen"),
    [
        ("car means CAR.", False, "car means RAC."),
        ("CAR MEANS car.", True, ".car SNAEM RAC"),
        ("he said CAR 123, OK", False, "he said KO ,123 RAC"),
        ("CAR 1,500 (OK)", True, "(KO) 1,500 RAC"),
        ("CAR (car) OK", True, "KO (car) RAC"),
        ("A 50% B", True, "B 50% A"),
        ("A-12 B", True, "B 12-A"),
        ("A 1+2 B", True, "B 1+2 A"),
        ("a(B)c", False, "a(B)c"),
        ("A (b C) D", True, "D (C b) A"),
        ("12 A", False, "12 A"),
        ("plain", False, "plain"),
    ],
)
def test_order_is_that_of_the_annex(text: str, is_rtl: bool, seen: str) -> None:
    assert in_capitals(text, is_rtl=is_rtl) == seen


def test_arabic_digits_stay_in_order() -> None:
    assert levels("ب ١٢٣ ب", is_rtl=True) == [1, 1, 2, 2, 2, 1, 1]


def test_european_digits_after_arabic_run_left_to_right() -> None:
    assert levels("ب 1,5 ب", is_rtl=True) == [1, 1, 2, 2, 2, 1, 1]


def test_marks_follow_their_letter() -> None:
    assert levels("ב\u05bc a", is_rtl=True) == [1, 1, 1, 2]


def test_lone_closing_bracket_is_no_pair() -> None:
    assert levels("a) ב (", is_rtl=False) == [0, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("language", "is_rtl"), [("ar", True), ("he-IL", True), ("fa_IR", True), ("en", False), ("", False)]
)
def test_languages_are_known_by_their_first_part(language: str, is_rtl: bool) -> None:
    assert is_rtl_language(language) is is_rtl


def test_first_letter_decides() -> None:
    assert first_strong_is_rtl("12 – ב a") is True
    assert first_strong_is_rtl("12 a ב") is False
    assert first_strong_is_rtl("12 –") is None
