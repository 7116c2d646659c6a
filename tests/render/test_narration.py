"""Scripts with the times of their words: as they were spoken, and as they are read where nobody speaks."""

from __future__ import annotations

import pytest

from pipeline.media import text_to_speech
from pipeline.render.audio import narration
from pipeline.render.audio.narration import NarrationScript
from pipeline.render.audio.word_timing import written_words

SCRIPT = NarrationScript(
    (
        "Harbour ferries go electric",
        "They carry nine million people. “Quiet,” says Ann – the skipper.",
        "Would you ride?",
    ),
    "en",
)


def test_each_passage_is_heard_to_end_and_shown_as_it_is_written():
    assert SCRIPT.text.startswith("Harbour ferries go electric.\n\nThey carry")
    speech = text_to_speech.speak(SCRIPT.text, language="en").speech

    made = narration.spoken(SCRIPT, speech, voice="voice.wav")

    assert [[word.t for word in passage] for passage in made.passages] == [
        [token.text for token in written_words(passage)] for passage in SCRIPT.passages
    ]
    assert [(word.start, word.end) for word in made.words] == [
        (word.start, word.end) for word in speech.words
    ]
    assert (made.seconds, made.voice) == (speech.seconds, "voice.wav")
    # A title without a full stop is followed by as long a rest as a sentence.
    assert made.passages[1][0].start - made.passages[0][-1].end > 0.25
    assert narration.from_json(narration.as_json(made)) == made


def test_the_pace_of_silence_is_that_of_speech():
    """Within a fifth: a draft is judged by it before anybody has spoken."""
    said = NarrationScript(
        (
            "The council voted 14 to 9 on Tuesday to build the tram line to the harbour.",
            "Retailers in Mill Street fear for their sales while the works go on, and construction begins next spring.",
        ),
        "en",
    )
    heard = text_to_speech.speak(said.text, language="en", rate=said.rate).speech.seconds

    assert narration.seconds_of(said) == pytest.approx(heard, rel=0.2)
    read = narration.silent(said)
    assert read.voice == ""
    assert all(one.end <= other.start for one, other in zip(read.words, read.words[1:], strict=False))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "上海港的新渡轮航线将于六月开通，票价比去年便宜，市民可以在码头买票。"),
        ("ko", "부산항의 새 여객선 노선이 유월에 시작되며 표는 선착장에서 살 수 있습니다."),
        ("ja", "みなとのあたらしいふぇりーはろくがつにはじまります。きっぷはさんばしでかえます。"),
    ],
)
def test_the_pace_of_silence_is_that_of_speech_where_a_sign_is_a_syllable(language, text):
    heard = text_to_speech.speak(text, language=language).speech.seconds
    assert narration.seconds_of(NarrationScript((text,), language)) == pytest.approx(heard, rel=0.3)


def test_a_faster_voice_reads_faster():
    quick = NarrationScript(SCRIPT.passages, "en", rate=200)

    assert narration.seconds_of(quick) < narration.seconds_of(SCRIPT)
