"""Scripts without their font are told before anything is accepted, with the package that brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import plugins
from pipeline.engines.base import Engine, PersonaCard, SourceText, drawable_brief
from pipeline.generate.checks import run_checks
from pipeline.render.typography import clusters, fonts, supported_scripts
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.text_layout import layout
from pipeline.writers.base import Writer

TEXTS = {
    "hi": "शहर के बंदरगाह पर सोमवार से नई नाव चलेगी। नगर परिषद ने इसके लिए 42 लाख रुपये मंज़ूर किए हैं। "
    "नाव हर घंटे दो बार नदी पार करेगी और रात दस बजे तक चलेगी। बच्चों के लिए यात्रा मुफ़्त रहेगी।",
    "th": "เรือข้ามฟากลำใหม่จะเริ่มให้บริการที่ท่าเรือของเมืองในวันจันทร์ สภาเมืองอนุมัติงบประมาณ 42 ล้านบาทสำหรับโครงการนี้",
    "ar": "قرر المجلس في 12 نوفمبر أن يبدأ مشروع الميناء الجديد. تبلغ كلفة المشروع 42 مليونا. تعبر السفن النهر مرتين في الساعة.",
    "ja": "港のフェリー42隻が、すべて電池で走るようになった。最後の一隻は月曜日に出港する。市議会は新しい桟橋の建設を認めた。",
    "zh": "港口的42艘渡轮现在全部使用电池，最后一艘将于星期一出发。市议会批准了建设新码头。工程预计明年三月完成。",
    "ko": "항구의 여객선 42척이 모두 배터리로 운항하며, 마지막 배는 월요일에 출항한다. 시의회는 새 부두 건설을 승인했다.",
}
BUNDLED = ("hi", "th", "ar")
NAMES = {"ja": "Chinese and Japanese", "zh": "Chinese", "ko": "Korean"}
DRAWN = [one for one in plugins.every("engines", Engine) if one.bucket in {"image", "video"}]
SYSTEM = Path("/usr/share/fonts/opentype/noto")


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_accepted_is_drawn_and_what_cannot_be_drawn_is_told(language):
    source = SourceText(
        title=TEXTS[language][:30], text=TEXTS[language], language=language, url="https://example.com/tram"
    )
    persona = PersonaCard(name="News", handle="@news")
    brief = plugins.get("writers", "extractive", Writer).brief(source).brief
    for engine in (
        plugins.get("engines", kind, Engine) for kind in ("quote_graphic", "persona_tweet", "short_post")
    ):
        reason = engine.why_not(source) or engine.unshown(source)
        if language in BUNDLED or engine.bucket == "text":
            assert reason is None
            (draft,) = engine.offline(engine.told(brief, source), persona, variants=1, seed="x")
            checks = run_checks(engine, draft, brief, source, persona)
            assert [one.message for one in checks if one.outcome == "failed"] == []
        else:
            assert reason == (
                f"The fonts for pictures and films on this service have no letters for {NAMES[language]}. Ask the operator "
                "to install Debian's package fonts-noto-cjk, or choose a format without pictures."
            )


@pytest.mark.parametrize("engine", DRAWN, ids=lambda one: one.kind)
def test_every_engine_that_draws_words_asks(engine):
    assert engine.unshown(SourceText(title="", text=TEXTS["zh"])) is not None
    assert engine.unshown(SourceText(title="", text="The ferry leaves at seven.")) is None


def test_one_foreign_name_takes_no_picture_away_and_is_not_drawn():
    text = "The ferry 港丸 leaves at seven in the morning. It crosses the river twice in every hour."
    engine = plugins.get("engines", "quote_graphic", Engine)
    source = SourceText(title="港丸", text=text, language="en")
    assert engine.unshown(source) is None
    brief = plugins.get("writers", "extractive", Writer).brief(source).brief
    told = engine.told(brief, source)
    assert [fact.quote for fact in told.facts] == ["It crosses the river twice in every hour."]
    assert told.title == ""
    assert plugins.get("engines", "short_post", Engine).told(brief, source) == brief
    assert drawable_brief(told) == told


def test_scripts_that_are_missing_are_listed_with_their_package():
    assert [one.name for one in supported_scripts.missing_scripts()] == ["Chinese", "Japanese", "Korean"]
    why = supported_scripts.unshown_scripts()
    assert why is not None
    assert why.reason == "Pictures and films can't show Chinese, Japanese and Korean here."
    assert "Debian's package fonts-noto-cjk" in why.remedy


@pytest.mark.skipif(not SYSTEM.is_dir(), reason="Debian's package fonts-noto-cjk isn't installed")
def test_with_the_package_nothing_is_missing(monkeypatch):
    kept = (fonts.search_order, fonts.coverage, clusters.font_of, supported_scripts.unshown_text)
    monkeypatch.setattr(fonts, "SYSTEM_FOLDER", SYSTEM)
    for one in kept:
        one.cache_clear()
    try:
        assert supported_scripts.missing_scripts() == ()
        assert [language for language, text in TEXTS.items() if supported_scripts.unshown_text(text)] == []
    finally:
        monkeypatch.undo()
        for one in kept:
            one.cache_clear()


def test_devanagari_and_thai_are_laid_out_whole():
    for language in ("hi", "th"):
        block = layout(
            TEXTS[language], (900, 900), Style(weight=700), largest=80, smallest=30, language=language
        )
        said = "".join(line.text for line in block.lines)
        assert said.replace(" ", "") == TEXTS[language].replace(" ", "")
        # No line begins with a vowel that belongs to the one before, nor ends with one that belongs to the next.
        assert not [
            line.text
            for line in block.lines
            if line.text.strip()[0] in "ะาำ" or line.text.strip()[-1] in "เแโใไ"
        ]
