"""The edits that a verbatim sentence may undergo."""

from __future__ import annotations

import pytest

from pipeline.wording import (
    clause_cuts,
    collapse,
    drop_asides,
    first_words,
    is_clean,
    is_self_contained,
    opens_dangling,
    paragraph_of,
    trim_conjunction,
)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("But opponents warned.", "Opponents warned."),
        ("However, opponents warned.", "Opponents warned."),
        ("“And opponents warned,” he said.", "“Opponents warned,” he said."),
        ("Butter is dear.", "Butter is dear."),
        ("But", "But"),
    ],
)
def test_leading_conjunction_is_trimmed(sentence: str, expected: str) -> None:
    assert trim_conjunction(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Eight stops (two below ground), and more.", "Eight stops, and more."),
        ("He said [sic] so (twice).", "He said so."),
        ("It is 1(one)2 here.", "It is 1 2 here."),
        ("Left open (here.", "Left open (here."),
    ],
)
def test_asides_are_dropped(sentence: str, expected: str) -> None:
    assert drop_asides(sentence) == expected


def test_cuts_stand_at_clause_edges_longest_first() -> None:
    assert clause_cuts("The line is late, as expected; work goes on: slowly.") == (
        "The line is late, as expected; work goes on…",
        "The line is late, as expected…",
        "The line is late…",
    )


def test_no_cut_changes_what_is_said() -> None:
    assert clause_cuts("The pill is safe, unless taken with wine, but costly.") == ()
    assert clause_cuts("“We won, at last, today,” said Ann.") == ()
    assert clause_cuts("It cost 1,500 (or so, they say) then.") == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "He left.",
        "“It's so,” she said.",
        "'That’s it'",
        "These rose.",
        "But yes.",
        "They’re in.",
        "Er sagte nichts.",
        "Elle a dit non.",
        "Il a dit non.",
        "Hij zei niets.",
        "Он сказал нет.",
        "הוא אמר לא.",
    ],
)
def test_dangling_openings_are_seen_through_quotation_marks(sentence: str) -> None:
    assert opens_dangling(sentence) is True
    assert is_self_contained(sentence) is False


@pytest.mark.parametrize(
    "sentence",
    [
        "Heat rose.",
        "“We won,” said Ann.",
        "Italy voted.",
        "42 came.",
        "今日は晴れ。",
        "Es gibt 40 Bäume.",
        "Il y a 40 arbres.",
        "Il faut 40 arbres.",
        "Han Kang won.",
        "Elle Macpherson won.",
    ],
)
def test_other_openings_stand_alone(sentence: str) -> None:
    assert opens_dangling(sentence) is False
    assert is_self_contained(sentence) is True


@pytest.mark.parametrize(
    "sentence", ["“We won.", "We (all won.", '"We won" or "lost.', "“We won today.”", '"Ann won today."']
)
def test_open_or_unattributed_quotations_do_not_stand_alone(sentence: str) -> None:
    assert is_self_contained(sentence) is False


def test_collapse_keeps_the_spaces_that_hold_numbers() -> None:
    assert collapse(" a\n\t b  10\u202f000 \u00a0x ") == "a b 10\u202f000 \u00a0x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three", "one two three"),
        ("one two three four", "one two…"),
        ("字" * 20, "字" * 12 + "…"),
        ("", ""),
    ],
)
def test_first_words_fit(text: str, expected: str) -> None:
    assert first_words(text, 13) == expected


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\u202e", "\u2066", "\ufffd", chr(0xDC00), "\U000e0041"])
def test_breaking_characters_are_not_clean(sign: str) -> None:
    assert is_clean(f"a{sign}b") is False


@pytest.mark.parametrize("sign", ["\n", "\u00ad", "\u200d", "é", "\U0001f600", "\u200f"])
def test_ordinary_characters_are_clean(sign: str) -> None:
    assert is_clean(f"a{sign}b") is True


def test_sentences_stand_one_after_the_other_as_their_script_has_it() -> None:
    assert paragraph_of(["One.", "Two!"]) == "One. Two!"
    assert (
        paragraph_of(["港が開く。", "「本当だ。」", "船が来る！", "Then rest."])
        == "港が開く。「本当だ。」船が来る！Then rest."
    )
