"""Transcripts with times, in the forms that people and tools hand over."""

from __future__ import annotations

import json
from contextlib import suppress
from time import process_time

import pytest

from pipeline.plugins import Refused
from pipeline.render.audio.transcript_formats import TimedTranscript, read_transcript
from pipeline.render.captions import caption_cards, to_srt, to_vtt
from pipeline.render.video.storyboard import Word

SRT = """1
00:00:01,000 --> 00:00:02,000
Bakers sold

2
00:00:02,500 --> 00:00:04,000
<i>more</i> bread &amp; rolls.
[Music]

"""
# As YouTube writes automatic captions: times at words, each line shown twice.
ROLLING = """WEBVTT
Kind: captions
Language: en

00:00:00.080 --> 00:00:02.310 align:start position:0%
BLANK
Bakers<00:00:00.480><c> sold</c><00:00:00.900><c> more</c>

00:00:02.310 --> 00:00:02.320 align:start position:0%
Bakers sold more
BLANK

00:00:02.320 --> 00:00:04.000 align:start position:0%
Bakers sold more
bread<00:00:02.900><c> in</c><00:00:03.100><c> May.</c>
""".replace("BLANK", " ")
SPACED = "1\n00:00:01,000 --> 00:00:02,000\nIn 2024\n \n2\n00:00:02,000 --> 00:00:03,000\nit rose\n"


def told(transcript):
    return [(word.t, word.start, word.end) for word in transcript.words]


def test_lines_share_their_time_by_letters():
    found = read_transcript(SRT)
    assert found.is_word_timed is False
    assert told(found)[:2] == [("Bakers", 1.0, 1.583), ("sold", 1.583, 2.0)]
    assert [word.t for word in found.words] == ["Bakers", "sold", "more", "bread", "&", "rolls."]
    assert found.words[2].start == 2.5


def test_rows_of_blanks_end_no_caption_and_numbers_are_no_words():
    assert [word.t for word in read_transcript(SPACED).words] == ["In", "2024", "it", "rose"]


def test_words_with_times_keep_them_and_are_told_once():
    found = read_transcript(ROLLING)
    assert found.is_word_timed is True
    assert [(word.t, word.start) for word in found.words] == [
        ("Bakers", 0.08),
        ("sold", 0.48),
        ("more", 0.9),
        ("bread", 2.32),
        ("in", 2.9),
        ("May.", 3.1),
    ]
    assert found.words[-1].end == 4.0


@pytest.mark.parametrize(
    "shape",
    [
        lambda words: words,
        lambda words: {"words": words},
        lambda words: {"text": "x", "segments": [{"words": words[:1]}, {"words": words[1:]}]},
    ],
)
@pytest.mark.parametrize("name", ["word", "text", "punctuated_word"])
def test_json_is_read_in_the_shapes_of_tools(shape, name):
    words = [{name: " Bakers", "start": 0, "end": 0.4}, {name: "sold.", "start": 0.5, "end": 0.9}]
    found = read_transcript(json.dumps(shape(words)))
    assert found == TimedTranscript((Word("Bakers", 0.0, 0.4), Word("sold.", 0.5, 0.9)), is_word_timed=True)


def test_words_are_put_in_order_and_give_way_to_the_next():
    found = read_transcript('[{"word": "b", "start": 1, "end": 9}, {"word": "a", "start": 0, "end": 5}]')
    assert told(found) == [("a", 0.0, 1.0), ("b", 1.0, 4.0)]


def test_a_span_has_its_own_clock():
    found = read_transcript(ROLLING).between(0.4, 3.0)
    assert [word.t for word in found] == ["sold", "more", "bread"]
    assert found[0].start == pytest.approx(0.08)


@pytest.mark.parametrize("write", [to_srt, to_vtt])
def test_our_own_captions_are_read_back(write):
    captions = caption_cards(read_transcript(ROLLING).words, language="en", film_seconds=5.0)
    found = read_transcript(write(captions))
    assert [word.t for word in found.words] == ["Bakers", "sold", "more", "bread", "in", "May."]
    assert found.words[0].start == pytest.approx(captions[0].start, abs=0.001)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "There are no words with times in the transcript"),
        ("Just words, no times.", "There are no words with times in the transcript"),
        ("WEBVTT\n\n00:00:01.000 --> 00:00:02.000\n[Music]\n", "There are no words with times"),
        ("[{]", "The transcript can't be read as JSON."),
        ("[" * 100_000, "The transcript can't be read as JSON."),
        ("[1, 2]", "Word 1 of the transcript isn't"),
        ('[{"word": "a", "start": 2, "end": 1}]', "Word 1 of the transcript isn't"),
        ('[{"word": "a", "start": NaN, "end": NaN}]', "Word 1 of the transcript isn't"),
        ('[{"word": "a", "start": true, "end": 1}]', "Word 1 of the transcript isn't"),
        ('[{"word": "a", "start": -1, "end": 1}]', "Word 1 of the transcript isn't"),
        ("x" * 2_000_001, "The transcript has 2,000,001 characters"),
    ],
)
def test_what_is_no_transcript_is_refused_in_words(text, message):
    with pytest.raises(Refused, match=message.replace(".", r"\.")):
        read_transcript(text)


@pytest.mark.parametrize(
    "piece",
    [
        "00:00:01.000 --> ",
        "<00:00:01.000>",
        "<c",
        "[",
        "{\\",
        "&amp",
        "-->\n",
        "1\n\n",
        "00:00:00,000 --> 00:00:01,000\n<<<\n\n",
    ],
)
def test_time_grows_with_the_length_alone(piece):
    started = process_time()
    with suppress(Refused):
        read_transcript(piece * (400_000 // len(piece)))
    assert process_time() - started < 5


def test_too_many_words_are_refused():
    with pytest.raises(Refused, match=r"The transcript has 100,001 words; the maximum is 100,000\."):
        read_transcript("00:00:01.000 --> 01:00:00.000\n" + "a " * 100_001)
