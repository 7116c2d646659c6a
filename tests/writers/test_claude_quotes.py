"""Finding a quote in a source, and what is read of one."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.base import SourceText
from pipeline.writers.claude.answers import AnswerUnreadable, parse_answer
from pipeline.writers.claude.quotes_in_source import FoldedText, Haystack
from pipeline.writers.claude.source_text import LEFT_OUT, select_readable_text

texts = st.text(
    alphabet=st.one_of(
        st.characters(), st.sampled_from(" \n\u00a0aA1.,'\"’“”ﬁ①e\u0301\u1100\u1161\u11a8\u200b字")
    ),
    max_size=80,
)


@given(texts, st.integers(0, 80), st.integers(0, 80))
def test_what_is_found_says_what_was_looked_for(text: str, start: int, length: int) -> None:
    quote = text[start : start + length]

    span = Haystack(text).find(quote)

    if span is not None:
        assert 0 <= span[0] < span[1] <= len(text)
        assert FoldedText(text[slice(*span)]).folded.strip() == FoldedText(quote).folded.strip()


@given(texts, texts)
def test_whatever_is_found_is_the_same_when_folded(text: str, quote: str) -> None:
    span = Haystack(text).find(quote)

    if span is not None:
        assert FoldedText(text[slice(*span)]).folded.strip() == FoldedText(quote).folded.strip()


@pytest.mark.parametrize("quote", ["", " ", "\u200b", "nothing of it"])
def test_what_is_not_there_is_not_found(quote: str) -> None:
    assert Haystack("Some words of a source.").find(quote) is None


def test_spaceless_scripts_part_anywhere() -> None:
    assert Haystack("今日は晴れでした。").find("晴れ") == (3, 5)


@pytest.mark.parametrize("length", [20_000, pytest.param(200_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("unit", ["e\u0301", "\u0301", "ﬁ ", "“", " ", "\u1161", "\u200b", "a."])
def test_folding_takes_time_in_proportion(unit: str, length: int) -> None:
    text = unit * (length // len(unit))
    started = process_time()

    assert Haystack(text).find("“not in it”") is None

    assert process_time() - started < 15


def test_short_source_is_read_whole_without_what_is_hidden() -> None:
    assert select_readable_text(SourceText("T", "a\u200bb\u202ec")) == "abc"


@pytest.mark.parametrize(
    ("unit", "length"),
    [
        ("x", 500_000),
        *(
            pytest.param(unit, 5_000_000, marks=pytest.mark.slow)
            for unit in ("x", "word ", "A sentence of the text. ", "字", "One line.\n\n")
        ),
    ],
)
def test_long_source_is_cut_to_what_is_paid_for(unit: str, length: int) -> None:
    text = unit * (length // len(unit))
    started = process_time()

    given_text = select_readable_text(SourceText("T", text))

    assert process_time() - started < 40
    assert 25_000 < len(given_text) <= 60_000 + len(LEFT_OUT)
    assert given_text.endswith(LEFT_OUT)


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "x": {"type": "number"},
        "k": {"type": "string", "enum": ["A", "b"]},
        "l": {"type": "array", "items": {"type": "boolean"}},
    },
    "required": ["n", "x", "k", "l"],
    "additionalProperties": False,
}


def test_answer_is_read_by_its_schema() -> None:
    assert parse_answer('{"n": 1, "x": 2, "k": " B ", "l": [true]}', SCHEMA) == {
        "n": 1,
        "x": 2,
        "k": "b",
        "l": [True],
    }


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("nonsense", ["The answer isn't valid JSON."]),
        ("[]", ["`answer` has to be of type object."]),
        (
            '{"n": true, "k": "c", "l": [1], "y": 0}',
            [
                "`answer.x` is missing.",
                "`answer` has no field 'y'.",
                "`answer.n` has to be of type integer.",
                "`answer.k` has to be one of A, b.",
                "`answer.l[0]` has to be of type boolean.",
            ],
        ),
        ('"' + "x" * 200_000 + '"', ["The answer has over 200000 characters."]),
    ],
)
def test_problems_are_named(text: str, problems: list[str]) -> None:
    with pytest.raises(AnswerUnreadable) as failure:
        parse_answer(text, SCHEMA)

    assert failure.value.problems == problems


# --- By its first and its last words ---------------------------------------------------------------------------------

PROSE = (
    "The council voted “14 to 9” on Tuesday to build\na tram line. The council voted for a depot on Monday, too. "
    "It was late."
)


@pytest.mark.parametrize(
    ("first", "last", "quote"),
    [
        ("The council voted “14", "a tram line.", PROSE[: PROSE.index(" The council voted for")]),
        ('The council voted "14', "build a tram", PROSE[: PROSE.index(" line")]),
        ("It was", "late.", "It was late."),
        ("The council voted", "tram line.", PROSE[: PROSE.index(" The council voted for")]),
        ("The council", "line.", PROSE[: PROSE.index(" The council voted for")]),
        ("The council", "o", None),
        ("The council voted", "never said.", None),
        ("Nobody voted", "tram line.", None),
        ("The council voted “14", "was late.", None),
    ],
    ids=[
        "as it is",
        "other marks",
        "short",
        "one end",
        "one end of two",
        "half a word",
        "end",
        "start",
        "too far",
    ],
)
def test_what_lies_between_is_found_once_or_not_at_all(first: str, last: str, quote: str | None) -> None:
    span = Haystack(PROSE).find_between(first, last, max_characters=100)

    assert (None if span is None else PROSE[slice(*span)]) == quote


def test_two_places_are_none() -> None:
    twice = "We met in May, and rain fell. We met in May, and rain fell."
    assert Haystack(twice).find_between("We met", "rain fell.", max_characters=40) is None


def test_spaceless_scripts_are_found_between_too() -> None:
    text = "東京都は月曜日に新しい路面電車の計画を発表した。費用は二億円である。"
    span = Haystack(text).find_between("東京都は月曜日", "発表した。", max_characters=100)
    assert span is not None
    assert text[slice(*span)] == "東京都は月曜日に新しい路面電車の計画を発表した。"


@pytest.mark.parametrize("times", [6_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_looking_between_takes_no_time_by_the_square(times: int) -> None:
    text = "we met and " * times
    haystack = Haystack(text)
    haystack.find_between("we met", "fell.", max_characters=600)
    started = process_time()
    assert haystack.find_between("we met", "never there", max_characters=600) is None
    assert process_time() - started < 5
