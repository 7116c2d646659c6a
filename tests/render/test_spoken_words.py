"""Words as they are written against what a synthesiser says of what it speaks."""

from __future__ import annotations

import pytest

from pipeline.render.audio.word_timing import Pause, SpeechEvent, time_words, written_words
from pipeline.render.typography.word_segmentation import MAX_WORD_CHARACTERS, join_words


def timed(text, events, pauses=(), seconds=4.0):
    words = time_words(text, [SpeechEvent(*one) for one in events], [Pause(*one) for one in pauses], seconds)
    return [(word.t, word.start, word.end) for word in words]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One  two\nthree", ["One", "two", "three"]),
        ("Wait — what?", ["Wait —", "what?"]),
        ("— So what", ["— So", "what"]),
        ("« Bonjour »", ["« Bonjour »"]),
        ("5 % of $ 3", ["5", "%", "of", "$", "3"]),
        ("港では新しいフェリーが始まります。", ["港では", "新しい", "フェリーが", "始まります。"]),
        ("我们在码头买票，票价为20元。", ["我们", "在", "码头", "买票，", "票价", "为20元。"]),
        ("ท่าเรือใหม่ เปิด", ["ท่า", "เรือ", "ใหม่", "เปิด"]),
        ("부산항의 새 배", ["부산항의", "새", "배"]),
        ("…", []),
        ("", []),
    ],
)
def test_marks_that_stand_alone_belong_to_a_word(text, shown):
    assert [token.text for token in written_words(text)] == shown


@pytest.mark.parametrize(
    "text",
    [
        "港では、新しいフェリーが「六月」に始まります。",
        "使用iPhone 15拍照（免费）",
        "Wait — what?",
        "부산항의 새 배",
    ],
)
def test_words_are_joined_as_they_were_written(text):
    assert join_words(token.text for token in written_words(text)) == text


def test_a_long_word_of_a_script_without_spaces_is_parted_and_never_before_a_small_sign():
    words = [token.text for token in written_words("インターナショナルコミュニケーションセンター" * 3)]
    assert "".join(words) == "インターナショナルコミュニケーションセンター" * 3
    assert max(map(len, words)) <= MAX_WORD_CHARACTERS + 1
    assert not any(word[0] in "ーァィゥェォッャュョ" for word in words)


def test_a_number_is_one_word_of_several_events():
    assert timed("paid $1,200 now", [(0, 0.0), (5, 0.5), (6, 0.8), (8, 1.4), (12, 2.5)]) == [
        ("paid", 0.0, 0.5),
        ("$1,200", 0.5, 2.5),
        ("now", 2.5, 4.0),
    ]


def test_words_without_an_event_share_time_by_letters():
    assert timed("of the bread", [(0, 0.0), (7, 1.0)]) == [
        ("of", 0.0, 0.4),
        ("the", 0.4, 1.0),
        ("bread", 1.0, 4.0),
    ]


def test_last_words_without_an_event_share_what_is_left():
    assert timed("go on", [(0, 0.0)], seconds=2.0) == [("go", 0.0, 1.0), ("on", 1.0, 2.0)]


def test_events_that_turn_back_are_not_believed():
    words = timed("one two three", [(0, 1.0), (4, 0.2), (8, 3.0)])
    assert [start for _, start, _ in words] == [1.0, 2.0, 3.0]


def test_a_word_ends_where_the_silence_before_the_next_begins():
    pauses = [(0.4, 0.5), (0.9, 1.0), (1.0, 1.2), (3.5, 4.0)]
    # The first lies inside the word; two in a row are one silence.
    assert timed("twelve thirty", [(0, 0.0), (7, 1.2)], pauses) == [
        ("twelve", 0.0, 0.9),
        ("thirty", 1.2, 3.5),
    ]
