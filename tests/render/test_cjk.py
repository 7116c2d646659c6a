"""Chinese, Japanese and Korean, drawn with Noto Sans CJK where it is installed."""

from __future__ import annotations

import pytest

from pipeline.engines.base import Draft, PersonaCard
from pipeline.engines.quote_graphic import QuoteGraphic
from pipeline.render.draw_layout import draw_picture
from pipeline.render.picture_types import SQUARE, AvailableMedia
from pipeline.render.typography import clusters, fonts
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from tests.cjk import cjk  # noqa: F401  a fixture

TEXTS = {
    "ja": "港のフェリー42隻が、すべて電池で走るようになった。最後の一隻は月曜日に出港する。",
    "zh-Hans": "港口的42艘渡轮现在全部使用电池，最后一艘将于星期一出发。",
    "zh-Hant": "港口的42艘渡輪現在全部使用電池，最後一艘將於星期一出發。",
    "ko": "항구의 여객선 42척이 모두 배터리로 운항하며, 마지막 배는 월요일에 출항한다.",
}


def test_without_it_they_are_refused_in_words():
    assert fonts.search_order() == fonts.BUNDLED
    with pytest.raises(clusters.MissingGlyphs, match="no glyphs for 港"):
        layout(TEXTS["ja"], (900, 600), Style(), largest=90, smallest=40)


@pytest.mark.usefixtures("cjk")
@pytest.mark.parametrize("language", TEXTS)
def test_they_are_laid_out_within_their_box(language):
    text = TEXTS[language]
    assert clusters.undrawable_clusters(text) == ()
    block = layout(text, (900, 600), Style(weight=700), largest=90, smallest=40, language=language)
    assert len(block.lines) > 2
    assert max(line.width for line in block.lines) <= 900
    said = "".join(line.text for line in block.lines).replace(" ", "")
    assert said == text.replace(" ", "")
    # No line begins with what closes something, nor with a mark of the sentence.
    assert not {line.text[0] for line in block.lines} & set("、。，,.」』）っー")


@pytest.mark.usefixtures("cjk")
def test_korean_lines_end_at_spaces():
    block = layout(TEXTS["ko"], (900, 900), Style(weight=700), largest=90, smallest=40, language="ko")
    assert [word for line in block.lines for word in line.text.split()] == TEXTS["ko"].split()


@pytest.mark.usefixtures("cjk")
def test_numbers_and_latin_letters_keep_their_font():
    block = layout("フェリー42隻 NEXT", (900, 200), Style(), largest=60, smallest=40, language="ja")
    by_font = {run.font: run.text for line in block.lines for run in line.runs}
    assert by_font[fonts.INTER].strip() == "NEXT"
    assert {fonts.INTER, fonts.CJK} == set(by_font)


@pytest.mark.usefixtures("cjk")
def test_a_sign_has_the_form_of_its_language():
    """直 is written otherwise in Japan, in China and on Taiwan; one code point for all."""
    face = fonts.face(fonts.CJK, 80, 400, fonts.MIN_OPTICAL_SIZE)
    forms = {
        language: bytes(face.getmask("直", language=language)) for language in ("ja", "zh-Hans", "zh-Hant")
    }
    assert forms["ja"] != forms["zh-Hans"]
    assert bytes(face.getmask("直")) == forms["ja"]


@pytest.mark.usefixtures("cjk")
def test_heavy_text_is_drawn_heavier():
    light, heavy = (
        sum(bytes(fonts.face(fonts.CJK, 80, weight, fonts.MIN_OPTICAL_SIZE).getmask("港")))
        for weight in (400, 800)
    )
    assert heavy > light * 1.2


@pytest.mark.usefixtures("cjk")
@pytest.mark.parametrize("language", TEXTS)
def test_a_quote_graphic_is_made(language):
    words = f"“{TEXTS[language]}”\n– 東京"
    draft = Draft("", words, "text", {"caption": words, "slides": []}, (), language)
    planned = QuoteGraphic().plan(draft, PersonaCard("東京 Daily"), AvailableMedia(size=SQUARE))
    picture = draw_picture(planned.pictures[0])
    # A box for what is missing has straight edges only; letters leave greys on a flat ground.
    assert len(picture.convert("L").getcolors(256) or []) > 50


@pytest.mark.usefixtures("cjk")
def test_a_line_ends_where_a_word_does():
    block = layout(
        "青石镇把旧水塔改成天文台", (810, 260), Style(weight=700), largest=112, smallest=56, language="zh"
    )
    assert [line.text for line in block.lines] == ["青石镇把旧水塔", "改成天文台"]
