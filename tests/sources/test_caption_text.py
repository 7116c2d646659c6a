"""Captions to text: sentences, paragraphs, and nothing that nobody said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sources.caption_text import Cue, clean_cue, read_json3, read_timed_text, to_text


def cues(*texts, gap=0.1):
    return [Cue(number * (2 + gap), 2.0, text) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("[Music]", ""),
        ("♪ la la ♪", "la la"),
        ("(Applause) thanks", "thanks"),
        ("(not a sound)", "(not a sound)"),
        (">> so we begin", "so we begin"),
        ("- Yes. ", "Yes."),
        ("ten - twelve", "ten - twelve"),
        ("a > b and b >> c", "a > b and b c"),
        ("<i>so</i>\n  far\u200b", "so far"),
        ("\x00\x1bso", "so"),
        ("x < y", "x < y"),
    ],
)
def test_a_cue_keeps_the_words(written, said):
    assert clean_cue(written) == said


def test_sentences_run_over_cues():
    said = cues("One begins here", "and ends. Two is", "short. Three!")
    assert to_text(said) == "One begins here and ends. Two is short. Three!"


def test_a_long_silence_begins_a_paragraph():
    said = [Cue(0, 2, "One ends."), Cue(10, 2, "Two ends.")]
    assert to_text(said) == "One ends.\n\nTwo ends."


def test_what_has_no_stops_is_cut_at_silences():
    said = [Cue(0, 2, "we take the flour"), Cue(2, 2, "and the salt"), Cue(5.5, 2, "then we wait")]
    assert to_text(said) == "We take the flour and the salt. Then we wait."


def test_what_has_neither_stops_nor_silences_is_cut_by_length():
    text = to_text(cues(*["five words in each cue"] * 3, *["and five words of another"] * 20, gap=0.0))
    sentences = text.replace("\n\n", " ").split(". ")
    assert all(len(sentence.split()) <= 33 for sentence in sentences)
    assert len(sentences) > 2


def test_rolling_captions_are_said_once():
    assert to_text([Cue(0, 2, "Once."), Cue(1, 2, "Once."), Cue(9, 2, "Once.")]) == "Once. \n\nOnce.".replace(
        " \n", "\n"
    )


def test_languages_without_spaces_keep_their_stops():
    assert (
        to_text(cues("今日はパンを焼きます。", "塩を入れます。")) == "今日はパンを焼きます。 塩を入れます。"
    )


def test_nothing_said_is_an_empty_text():
    assert to_text([]) == ""


@pytest.mark.parametrize("document", [None, [], {}, {"events": 5}, {"events": [1, {}, {"segs": 3, "tStartMs": 1}, {"segs": [{}], "tStartMs": "x"}]}])  # fmt: skip
def test_json_of_another_shape_has_no_cues(document):
    assert read_json3(document) == []


@given(st.text())
def test_any_document_can_be_read(document):
    assert isinstance(to_text(read_timed_text(document)), str)


@given(st.lists(st.text(alphabet=st.sampled_from("ab .!?>-[]\n"), max_size=30), max_size=20))
def test_no_letter_is_lost_or_made_up(texts):
    said = [Cue(number * 3.0, 2.0, clean_cue(text)) for number, text in enumerate(texts)]
    said = [
        cue
        for number, cue in enumerate(said)
        if cue.text and (not number or cue.text != said[number - 1].text)
    ]
    letters = "".join(char for cue in said for char in cue.text if char.isalpha())
    assert "".join(char for char in to_text(said) if char.isalpha()).lower() == letters.lower()


def test_a_stop_is_one_however_it_is_written():
    said = cues("Is it?!", '"So." He', "went... and", 'said "no..."', "3.5 is. . more", "yes…”")
    assert " ".join(to_text(said).split()) == 'Is it?! "So." He went... and said "no..." 3.5 is. . more yes…”'


def test_long_captions_without_ends_are_read_once():
    """Reading what is open anew with each cue takes hours for so many, and so does giving back dots one by one."""
    stops = [Cue(0, 2, "a. " * 40_000)]
    open_ended = [Cue(3 + number, 1, f"{number} and so on it goes") for number in range(40_000)]
    assert to_text(stops + open_ended).startswith("a. a. ")
    assert to_text([Cue(0, 2, "." * 400_000 + "x")])[:2] == ".."
