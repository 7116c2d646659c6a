"""Sentences of a transcript: at full stops where somebody wrote them, else where the speaker rests."""

from __future__ import annotations

import pytest

from pipeline.render.audio.transcript_sentences import MAX_SENTENCE_SECONDS, sentences
from pipeline.render.video.storyboard import Word


def said(text, *, rests=None, each=0.3):
    """Words of 0.3 s each; before the words that `rests` numbers, so many seconds."""
    words, at = [], 0.0
    for number, word in enumerate(text.split()):
        at += (rests or {}).get(number, 0.0)
        words.append(Word(word, round(at, 3), round(at + each, 3)))
        at += each
    return words


def test_sentences_end_at_full_stops_and_have_their_times():
    words = said("The tram is late. Dr. Ann Lee paid 3.5 crowns! Why?")
    found = sentences(words)
    assert [one.text for one in found] == ["The tram is late.", "Dr. Ann Lee paid 3.5 crowns!", "Why?"]
    assert (found[1].first, found[1].last) == (4, 10)
    assert (found[1].start, found[1].end) == (words[4].start, words[9].end)


def test_without_full_stops_rests_are_their_ends():
    words = said(" ".join(f"word{number}" for number in range(60)), rests={10: 0.8, 25: 0.6, 40: 0.2})
    assert [(one.first, one.last) for one in sentences(words)] == [(0, 10), (10, 25), (25, 60)]


def test_long_stretch_is_parted_at_its_longest_rest():
    words = said(" ".join(f"word{number}" for number in range(80)), rests={45: 0.3})
    found = sentences(words)
    assert (found[0].first, found[0].last) == (0, 45)
    assert found[-1].last == 80


def test_no_words_are_no_sentences():
    assert sentences([]) == ()


@pytest.mark.parametrize("each", [0.3, 0.304])
def test_many_words_with_equal_rests_are_parted_in_halves(each):
    """As tools write them that know no rests: also more words than Python calls functions within one another."""
    words = [
        Word(f"word{number}", round(number * 0.4, 3), round(number * 0.4 + each, 3))
        for number in range(5_000)
    ]
    found = sentences(words)
    assert [one.last for one in found[:-1]] == [one.first for one in found[1:]]
    assert (found[0].first, found[-1].last) == (0, 5_000)
    # 15 seconds are 37 of these words: halves of halves are longer than half of that.
    assert min(one.last - one.first for one in found) >= 18
    assert max(one.seconds for one in found) <= MAX_SENTENCE_SECONDS


def test_longest_rest_parts_before_the_middle_one():
    words = said(
        " ".join(f"word{number}" for number in range(90)),
        rests=dict.fromkeys(range(90), 0.1) | {5: 0.4},
    )
    assert [one.first for one in sentences(words)] == [0, 5, 26, 47, 68]


@pytest.mark.timeout(20)
def test_rests_that_grow_take_no_longer_than_others():
    """Each word's rest is the longest until then: one word after the other is parted from the rest."""
    at, words = 0.0, []
    for number in range(100_000):
        at += number / 1000
        words.append(Word("word", round(at, 3), round(at + 0.2, 3)))
        at += 0.2
    found = sentences([*words[:-1], Word("word.", words[-1].start, words[-1].end)])
    assert found[-1].last == 100_000
