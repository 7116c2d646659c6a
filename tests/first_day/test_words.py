"""What an editor would see first in the drafts of the first-day texts: language, fragments, speakers, sameness."""

from __future__ import annotations

from itertools import combinations

import pytest

from pipeline.engines.blog_article.markdown import phrases_in
from pipeline.engines.checks.grounded import remove_added_words
from pipeline.engines.quote_graphic.speakers import speech_in
from pipeline.engines.shared.fixed_words import fixed_words, source_word
from pipeline.text.newsletter_sections import read_more
from pipeline.text.similarity import opening_words
from tests.first_day.matrix import ENGINES, PERSONAS, URLS, asked, with_url
from tests.first_day.texts import texts

LANGUAGES = sorted({text.language for text in texts()} - {"en"} | {"el", "hu", "ro", "nb", "no", "hi"})
BY_NAME = {text.name: text for text in texts()}


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_are_in_the_language(language):
    for said, english in (
        (read_more(language), read_more("en")),
        (phrases_in(language).excerpt, phrases_in("en").excerpt),
        (phrases_in(language).read_on, phrases_in("en").read_on),
        (fixed_words(language).read_on, fixed_words("en").read_on),
        (fixed_words(language).follow, fixed_words("en").follow),
    ):
        assert said != english
    # French says it as English does.
    assert language == "fr" or source_word(language) != source_word("en")


def test_labels_are_in_the_script():
    for said in (read_more, source_word, fixed_words, phrases_in):
        assert said("zh-Hant") == said("zh-TW") != said("zh") == said("zh-CN")


@pytest.mark.parametrize("engine", ENGINES, ids=lambda one: one.kind)
def test_no_two_texts_begin_alike(engine):
    """`repetition` warns where an item begins as another does: not for what the engine says itself."""
    begins = {}
    for text in texts():
        if engine.kind == "newsletter_digest" or asked(text, engine, URLS[1], PERSONAS[1]).status != "ready":
            continue
        _, brief = with_url(text, engine, URLS[1])
        for draft in asked(text, engine, URLS[1], PERSONAS[1]).drafts:
            begins[text.name] = opening_words(
                remove_added_words(draft.body, engine.marked(draft, brief, PERSONAS[1]))
            )
    alike = [(one, other) for one, other in combinations(begins, 2) if begins[one] == begins[other] != ()]
    assert alike == []


SPOKEN = {
    "en_news": ("Ruth Okafor", "We waited eleven years for this line."),
    "en_page": ("Maud Halloran", "We never wanted it to be perfect."),
    "de_news": ("Geschäftsführerin Anke Brodersen", "Wir haben lange gerechnet."),
    "fr_news": ("Maëlle Kerdoncuff", "Les gens venaient en voiture."),
    "es_news": ("Eulalia Ribas", "Mi padre tenía 900 ovejas."),
    "ru_news": ("главный архитектор Вера Мельникова", "Мост стоял пустым двадцать лет."),
    "zh_news": ("馆长林若溪", "孩子们以前只在手机上看星星。"),
    "ja_news": ("農家の三浦さくらさん", "最初は誰も信じなかった。"),
    "ko_news": ("빵집을 이끄는 한여울 씨", "처음에는 종소리가 그리웠어요."),
    "ar_news": ("مديرة المصنع سلمى الهادي", "كنا نحرق السعف كل خريف."),
    "th_news": ("คุณสายใจ ทองพันธ์ เจ้าของร้านก๋วยเตี๋ยวเรือ", "เมื่อก่อนน้ำเน่าจนไม่มีใครอยากมา"),
}


@pytest.mark.parametrize("name", SPOKEN)
def test_a_quotation_of_several_sentences_is_found_with_its_speaker(name):
    speaker, begins = SPOKEN[name]
    _, brief = with_url(BY_NAME[name], ENGINES[0], "")
    found = [one for fact in brief.facts for one in speech_in(fact.text) if one.words.startswith(begins)]
    assert [one.speaker for one in found] == [speaker]


@pytest.mark.parametrize(
    "sentence",
    [
        "“We lost two boats that night,” he said in May.",
        "“Wir haben zwei Boote verloren”, sagte am Hafen Bürgermeisterin Anna Weber.",
        "«Мы потеряли две лодки», — сказал он в Москве.",
        "“We lost two boats that night,” said one of them.",
        "“我们丢了两条船。”很多人这样想。",
    ],
)
def test_nobody_is_named_who_may_not_be_the_speaker(sentence):
    assert list(speech_in(sentence)) == []


FRAGMENTS = ("4 min read", "Privacy policy", "all of them:", "Read more about", "How it was done:")


@pytest.mark.parametrize(
    "engine", [one for one in ENGINES if "text" in one.made_from], ids=lambda one: one.kind
)
@pytest.mark.parametrize("name", ["en_page", "en_code", "en_guide"])
def test_menus_bylines_announcements_and_the_title_are_no_words_of_a_draft(engine, name):
    text = BY_NAME[name]
    for draft in asked(text, engine, URLS[0], PERSONAS[0]).drafts:
        assert [one for one in FRAGMENTS if one in draft.body] == []
        lines = [line.strip("“”*- ") for line in draft.body.splitlines()]
        is_titled = engine.bucket == "video"
        assert lines.count(text.title) <= is_titled
