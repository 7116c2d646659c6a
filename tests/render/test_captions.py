"""Caption cards: what is on each, when it comes and goes, and the files read back by another program's parser."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pysubs2
import pytest

from pipeline.plugins import Refused
from pipeline.render.captions import (
    LAST_CARD_HOLD_SECONDS,
    MAX_CARD_WIDTH,
    MAX_DELAY_SECONDS,
    MAX_GAP_SECONDS,
    MIN_CARD_SECONDS,
    caption_cards,
    to_srt,
    to_text,
    to_vtt,
)
from pipeline.render.typography.fonts import INTER
from pipeline.render.typography.measure import RunStyle, advance
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import layout
from pipeline.render.typography.word_segmentation import join_words, split_words
from pipeline.render.video.storyboard import CaptionStyle, Scene, Storyboard, Visual, Word, storyboard_faults
from pipeline.voices.system import PLUGIN as SYSTEM_VOICE

STORY = (
    "The bakery on the corner sold 1,234 loaves of bread in May, more than in any month before it. Nobody could "
    "say why at first. Then Dr. Smith looked at the till. She hired two more bakers — and opened at five. "
    "By June the U.S. council put up a bench for internationalisation."
)


def spoken(text, *, each=0.3, gap=0.0, start=0.0):
    return [
        Word(word, start + number * (each + gap), start + number * (each + gap) + each)
        for number, word in enumerate(text.split())
    ]


def shown(captions):
    return [" ".join(word.t for word in card.words) for card in captions]


@pytest.fixture(scope="module")
def speech():
    return SYSTEM_VOICE.speak(STORY, language="en", environment={})


@pytest.fixture(scope="module")
def story(speech):
    return caption_cards(speech.words, language="en", film_seconds=speech.seconds + LAST_CARD_HOLD_SECONDS)


@pytest.mark.parametrize("kept", ["212 000 euros", "2,5 Mio.", "1. Mai", "40 %"])
def test_a_number_stays_on_one_card_with_its_unit(kept):
    for before in ("", "La ", "La grande ", "La grande ville de ", "La grande ville de Lyon a "):
        words = spoken(f"{before}{kept} pour toute la nouvelle école du quartier.")
        assert any(kept in card for card in shown(caption_cards(words, language="fr", film_seconds=99.0)))


def test_cards_break_where_people_pause(story):
    assert shown(story)[:8] == [
        "The bakery on",
        "the corner sold",
        "1,234 loaves of",
        "bread in May,",
        "more than in any",
        "month before it.",
        "Nobody could",
        "say why at first.",
    ]


def test_every_word_is_shown_once_and_in_order(speech, story):
    assert [word.t for card in story for word in card.words] == [word.t for word in speech.words]


def test_words_are_marked_when_the_synthesiser_speaks_them(speech, story):
    marked = [word for card in story for word in card.words]
    off = [abs(mark.start - word.start) for mark, word in zip(marked, speech.words, strict=True)]
    assert max(off) <= MAX_DELAY_SECONDS
    assert max(abs(card.start - card.words[0].start) for card in story) <= MAX_DELAY_SECONDS


def test_one_line_is_as_wide_as_it_may_be_and_no_wider(story):
    look = CaptionStyle()
    pen = RunStyle(INTER, look.size, look.weight, 32, "en", "ltr")
    widths = {text: advance(typeset(text, "en"), pen) for text in shown(story)}
    width_fault = [text for text, width in widths.items() if width > min(look.width, MAX_CARD_WIDTH) + 1]
    # A word that is too long for a card is set smaller, alone.
    assert width_fault == ["internationalisation."]
    assert max(width for text, width in widths.items() if text not in width_fault) > 600


def test_cards_hold_one_to_four_words(story):
    assert {len(card.words) for card in story} <= {1, 2, 3, 4}


def test_cards_make_a_storyboard_without_faults(speech, story):
    length = speech.seconds + LAST_CARD_HOLD_SECONDS
    board = Storyboard(scenes=(Scene(0.0, length, Visual("colour")),), captions=story)
    assert storyboard_faults(board) == ()


def test_short_forms_do_not_end_a_card(story):
    assert "Then Dr. Smith" in shown(story)
    assert [text for text in shown(story) if text.endswith(("Dr.", "U.S.")) and len(text) < 6] == []


def test_the_end_of_a_sentence_closes_a_card():
    assert shown(caption_cards(spoken("It rose. They sold it. Yes."), film_seconds=9)) == [
        "It rose.",
        "They sold it.",
        "Yes.",
    ]


def test_the_end_of_a_spoken_title_closes_a_card_and_a_line():
    title = "An evening with the Marlow Quartet"
    captions = caption_cards(
        spoken(f"{title} The Marlow Quartet plays on Friday."), film_seconds=9, title=title
    )

    assert [one for one in shown(captions) if one.endswith("Quartet")] == ["Marlow Quartet"]
    assert not any("Quartet The" in one for one in shown(captions))
    assert to_text(captions, title=title).splitlines() == [title, "The Marlow Quartet plays on Friday."]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("橋の修理は昨年9月から3か月間行われ、今年の春に終わりました。", ["昨年9月から3か月間", "行われ、"]),
        ("工事は3ヶ月間続き、12か所で行われた。", ["工事は3ヶ月間続き、", "12か所で"]),
        ("参加費は1500円で、5歳以下は無料です。", ["参加費は1500円で、", "5歳以下は"]),
        ("市は2026年11月24日に発表した。", ["市は2026年11月24日に", "発表した。"]),
    ],
)
def test_japanese_words_end_with_their_particle_and_their_counter(text, said):
    assert [one for one in split_words(text) if one in said] == said
    assert join_words(split_words(text)) == text


def test_words_that_only_begin_like_the_title_go_on():
    captions = caption_cards(spoken("The mill opens in May."), film_seconds=9, title="The mill opens")

    assert shown(captions)[0] != "The mill opens"
    assert to_text(captions, title="The mill opens") == "The mill opens in May.\n"


def test_a_silence_closes_a_card():
    words = [*spoken("we sold it"), *spoken("in May", start=0.9 + MAX_GAP_SECONDS + 0.01)]
    assert shown(caption_cards(words, film_seconds=9)) == ["we sold it", "in May"]
    words = [*spoken("we sold it"), *spoken("in", start=0.9 + MAX_GAP_SECONDS - 0.01)]
    assert shown(caption_cards(words, film_seconds=9)) == ["we sold it in"]


def test_a_card_stays_through_a_short_silence_and_goes_in_a_long_one():
    short = caption_cards([*spoken("It rose."), *spoken("So what", start=1.1)], film_seconds=9)
    assert short[0].end == short[1].start == 1.1
    long = caption_cards([*spoken("It rose."), *spoken("So what", start=3.0)], film_seconds=9)
    assert (long[0].end, long[1].start) == (pytest.approx(0.6 + LAST_CARD_HOLD_SECONDS), 3.0)


def test_the_last_card_is_held():
    words = spoken("we sold it")
    (card,) = caption_cards(words, film_seconds=words[-1].end + LAST_CARD_HOLD_SECONDS)
    assert card.end == pytest.approx(0.9 + LAST_CARD_HOLD_SECONDS)
    (card,) = caption_cards(words, film_seconds=1.0)
    assert card.end == 1.0


def test_cards_never_change_faster_than_people_read():
    captions = caption_cards(spoken("No. Yes. No. Yes. No! Yes! Go. On.", each=0.1), film_seconds=9)
    assert min(later.start - card.start for card, later in pairwise(captions)) >= MIN_CARD_SECONDS
    assert shown(captions) == ["No. Yes.", "No. Yes.", "No! Yes!", "Go. On."]


def test_words_that_nobody_can_read_are_refused():
    with pytest.raises(Refused, match=r"Around 0\.\d s the words come faster than captions can be read"):
        caption_cards(spoken("extraordinarily " * 40, each=0.02), film_seconds=9)


def test_two_lines_never_have_more_than_three_words_each():
    random.seed(7)
    lengths = [random.randint(1, 9) for _ in range(400)]
    words = spoken(" ".join("n" * length for length in lengths), each=0.1)
    look = CaptionStyle()
    for card in caption_cards(words, film_seconds=99):
        text = " ".join(word.t for word in card.words)
        lines = layout(text, (look.width, 190), _style(look), largest=look.size, smallest=look.smallest).lines
        assert len(card.words) <= 4
        assert len(lines) == 1 or all(len(line.text.split()) <= 3 for line in lines)


def _style(look):
    from pipeline.render.typography.layout_types import Style

    return Style(weight=look.weight, optical=32, line_height=1.12, align="center")


def test_words_that_overlap_give_way_to_the_next():
    (card,) = caption_cards([Word("so", 0.0, 0.8), Word("what", 0.5, 1.0)], film_seconds=5)
    assert [(word.start, word.end) for word in card.words] == [(0.0, 0.5), (0.5, 1.0)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([Word("b", 1, 2), Word("a", 0, 1)], "The words don't follow one another: 'a' comes before 'b'."),
        ([Word("late", 9, 10)], "The word 'late' is spoken at 9.00 s; the film ends at 5.00 s."),
        ([Word("早上好", 0, 1)], "早"),
        ([Word("n" * 90, 0, 1)], "The text doesn't fit"),
    ],
)
def test_words_that_cannot_be_shown_are_refused_in_words(words, message):
    with pytest.raises(Refused, match=re.escape(message)):
        caption_cards(words, film_seconds=5)


def test_nothing_spoken_makes_no_cards():
    assert caption_cards([], film_seconds=5) == caption_cards([Word(" \n", 0, 1)], film_seconds=5) == ()
    assert to_srt(()) == ""
    assert to_vtt(()) == "WEBVTT\n"


@pytest.mark.parametrize(("write", "form"), [(to_srt, "srt"), (to_vtt, "vtt")])
def test_files_are_read_back_by_another_parser(story, write, form):
    read = pysubs2.SSAFile.from_string(write(story, language="en"), format_=form)
    assert [event.plaintext for event in read] == shown(story)
    # Within the millisecond that the files can say.
    assert [(event.start, event.end) for event in read] == [
        (round(card.start * 1000), round(card.end * 1000)) for card in story
    ]


def test_both_files_tell_the_same_times(story):
    times = re.compile(r"(\d\d:\d\d:\d\d)[.,](\d{3}) --> (\d\d:\d\d:\d\d)[.,](\d{3})")
    assert times.findall(to_srt(story)) == times.findall(to_vtt(story)) != []


def test_long_films_have_hours():
    card = caption_cards(spoken("late", start=3725.5), film_seconds=3800)
    assert "01:02:05,500 --> 01:02:06,200" in to_srt(card)


def test_signs_of_markup_stay_signs():
    captions = caption_cards(spoken("a<b> --> &amp; c", each=0.4), film_seconds=9)
    written = to_vtt(captions)
    assert "-->" not in "".join(line for line in written.splitlines() if "0:00:0" not in line)
    read = pysubs2.SSAFile.from_string(written, format_="vtt")
    assert len(read) == len(captions)
    assert "a&lt;b&gt;" in written
    assert "&amp;amp;" in written


def test_line_breaks_in_words_make_no_new_cues():
    captions = caption_cards(
        [Word("one\n\n2\n00:00:00,000 -->\nevil", 0, 1)],
        film_seconds=5,
        style=CaptionStyle(size=20, smallest=8),
    )
    assert len(pysubs2.SSAFile.from_string(to_srt(captions), format_="srt")) == 1
    assert to_srt(captions).count("\n\n") == 0


def test_right_to_left_cards_say_so():
    arabic = caption_cards(spoken("OpenAI أعلنت عن ذلك."), language="ar", film_seconds=5)
    assert all(line.startswith("\u202b") for line in to_srt(arabic, language="ar").splitlines()[2::4])
    (first, *_) = pysubs2.SSAFile.from_string(to_vtt(arabic, language="ar"), format_="vtt")
    assert first.plaintext.strip("\u202b\u202c").split()[0] == "OpenAI"
    assert "\u202b" not in to_srt(caption_cards(spoken("plain words"), film_seconds=5), language="en")
    assert "\u202b" in to_srt(caption_cards(spoken("שלום לכולם"), film_seconds=5))


def test_text_has_a_sentence_a_line(story):
    assert to_text(story).splitlines()[1:3] == [
        "Nobody could say why at first.",
        "Then Dr. Smith looked at the till.",
    ]
    assert " ".join(to_text(story).split()) == STORY
