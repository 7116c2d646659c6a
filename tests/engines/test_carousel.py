"""Carousel: its slides without a model and with one, what it stops, where everything stands."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.base import Claim, Draft, PersonaCard, SourceText
from pipeline.engines.carousel import SIZES, Carousel
from pipeline.engines.carousel.slides import MAX_SLIDE_WORDS, MAX_SLIDES, MIN_SIZE, MIN_SLIDES
from pipeline.engines.checks.persona_rules import check_persona
from pipeline.engines.shared.fixed_words import fixed_words
from pipeline.plugins import Refused
from pipeline.render.colour import contrast
from pipeline.render.picture_types import MARGIN, UPRIGHT, AvailableMedia, Disc, Layout, Panel, Portrait, Wash
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.text_layout import ink_box, visible_box
from tests.engines.material import URL, blocks, brief_of, said

ENGINE = Carousel()
ANN = PersonaCard("Ann Whitfield", handle="ann", brand={"primary": "#1d3557", "accent": "#e63946"})
SENTENCES = (
    "The council voted 14 to 9 on Tuesday for the tram line to the harbour.",
    "It will cost £214 million, says the report.",
    "The line will cost £214 million, of which the government pays £92 million.",
    "Retailers in Mill Street fear for their sales.",
    "Construction begins next spring with the removal of gas pipes.",
    "Eight stops are planned along the old harbour road.",
    "A single ticket costs the same as on buses.",
    "The depot stands on the site of a former rope factory.",
)
ARABIC = "قرر المجلس في 12 نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون."


def slide(kind: str, title: str = "", text: str = "") -> dict[str, str]:
    return {"kind": kind, "title": title, "text": text}


GOOD = [
    slide("hook", "Harrow gets its tram"),
    slide("point", "The vote: 14 to 9", "After eleven years the council decided."),
    slide("point", "", SENTENCES[3]),
    slide("recap", "In short", "Approved 14 to 9\nMill Street pays"),
    slide("cta", "Read the whole story", "example.com\nFollow @ann"),
]


def draft_of(slides: Any = GOOD, language: str = "en", **content: Any) -> Draft:
    return Draft(
        "Title", SENTENCES[0], "text", {"caption": SENTENCES[0], "slides": slides, **content}, (), language
    )


def failures(draft: Draft, persona: PersonaCard = ANN) -> dict[str, str]:
    brief, source = brief_of("After eleven years the council decided.", *SENTENCES)
    fact = brief.facts[1]
    claimed = dataclasses.replace(draft, claims=(Claim(fact.quote, fact.quote, fact.start, fact.end),))
    checks = ENGINE.check(claimed, brief, source, persona)
    return {check.code: check.message for check in checks if check.outcome == "failed"}


def layout_of(slides: Any = GOOD, persona: PersonaCard = ANN, language: str = "en", **media: Any) -> Layout:
    return ENGINE.plan(draft_of(slides, language), persona, AvailableMedia(**media))


def kinds(draft: Draft) -> list[str]:
    return [one["kind"] for one in draft.content["slides"]]


# --- Without a model -------------------------------------------------------------------------------------------------


def test_each_slide_has_one_sentence_in_the_sources_order() -> None:
    best_last = (SENTENCES[4], SENTENCES[0], SENTENCES[2])
    brief, _ = brief_of(*sorted(best_last, key=SENTENCES.index))
    ranked = dataclasses.replace(
        brief, facts=tuple(next(fact for fact in brief.facts if fact.quote == quote) for quote in best_last)
    )
    (draft,) = ENGINE.offline(ranked, ANN, variants=1, seed="s")

    assert draft.content["slides"] == [
        slide("hook", "Tram approved"),
        slide("point", "", SENTENCES[0]),
        slide("point", "", SENTENCES[2]),
        slide("point", "", SENTENCES[4]),
        slide("recap", "In short", f"{SENTENCES[4]}\n{SENTENCES[2]}"),
        slide("cta", "Read the whole story", "example.com\nFollow @ann"),
    ]
    assert (draft.body, draft.content["caption"]) == (SENTENCES[4], f"{SENTENCES[4]}\n{URL}")
    assert [claim.quote for claim in draft.claims] == [SENTENCES[0], SENTENCES[2], SENTENCES[4]]


def test_sentence_that_leans_on_another_is_left_out() -> None:
    brief, _ = brief_of(*SENTENCES[:4])
    (draft,) = ENGINE.offline(brief, ANN, variants=3, seed="s")

    assert SENTENCES[1] not in str(draft.content)


def test_further_variant_takes_other_sentences() -> None:
    brief, source = brief_of(*SENTENCES)
    drafts = ENGINE.offline(brief, ANN, variants=3, seed="s")
    claimed = [{claim.quote for claim in draft.claims} for draft in drafts]

    assert len(drafts) == 2
    assert claimed[0] & claimed[1] == set()
    assert [kinds(draft) for draft in drafts] == [
        ["hook", *["point"] * 5, "recap", "cta"],
        ["hook", "point", "point", "cta"],
    ]
    checks = [check for draft in drafts for check in ENGINE.check(draft, brief, source, ANN)]
    assert [check for check in checks if check.outcome != "passed"] == []


def test_name_alone_is_no_last_slide_where_there_are_enough() -> None:
    brief, source = brief_of(*SENTENCES, url="")
    drafts = ENGINE.offline(brief, PersonaCard("Demo"), variants=2, seed="s")

    assert kinds(drafts[0]) == ["hook", *["point"] * 5, "recap"]
    checks = [check for draft in drafts for check in ENGINE.check(draft, brief, source, PersonaCard("Demo"))]
    assert [check for check in checks if check.outcome == "failed"] == []


def test_what_opens_a_carousel_is_not_its_next_slide_again() -> None:
    brief, _ = brief_of(*SENTENCES)
    for draft in ENGINE.offline(dataclasses.replace(brief, title=""), ANN, variants=2, seed="s"):
        said = [one["title"] or one["text"] for one in draft.content["slides"] if one["kind"] != "recap"]
        assert len(said) == len(set(said))


def test_one_sentence_makes_no_carousel() -> None:
    brief, _ = brief_of(SENTENCES[0])

    with pytest.raises(Refused) as refusal:
        ENGINE.offline(brief, ANN, variants=1, seed="s")
    assert refusal.value.code == "nothing_to_say"


@pytest.mark.parametrize(("title", "text"), [("Tram", ""), ("", "Yes it is so."), ("", "")])
def test_too_few_words_are_declined(title: str, text: str) -> None:
    reason = ENGINE.why_not(SourceText(title, text, URL))

    assert (reason is None) is (text == "Yes it is so.")


def test_persona_without_handle_and_source_without_address_still_sign_off() -> None:
    brief, _ = brief_of(SENTENCES[0], SENTENCES[2], url="")
    (draft,) = ENGINE.offline(brief, PersonaCard("Ann"), variants=1, seed="s")

    assert draft.content["slides"][-1] == slide("cta", "Ann")


# --- A model's words -------------------------------------------------------------------------------------------------


ANSWER = {
    "angle": "number",
    "caption": "Harrow builds a tram, 14 to 9.",
    "hook": "Harrow gets its tram",
    "points": [{"title": "The vote", "text": "It ended 14 to 9."}, {"title": "Who pays", "text": "Mill Street."}],
    "recap": ["Approved 14 to 9", "Mill Street pays"],
    "call": "Would you ride it?",
    "claims": [{"text": "14 to 9", "fact": "f0"}],
}  # fmt: skip


def test_model_gives_slides_and_gets_no_address() -> None:
    brief, source = brief_of(*SENTENCES)
    draft = ENGINE.draft_from(ANSWER, brief, ANN, "number")

    assert draft.content == {
        "caption": f"Harrow builds a tram, 14 to 9.\n{URL}",
        "slides": [
            slide("hook", "Harrow gets its tram"),
            slide("point", "The vote", "It ended 14 to 9."),
            slide("point", "Who pays", "Mill Street."),
            slide("recap", "In short", "Approved 14 to 9\nMill Street pays"),
            slide("cta", "Would you ride it?", "example.com\nFollow @ann"),
        ],
    }
    assert [c for c in ENGINE.check(draft, brief, source, ANN) if c.outcome == "failed"] == []


def test_model_that_writes_too_many_slides_is_told() -> None:
    brief, _ = brief_of(*SENTENCES)

    with pytest.raises(Refused, match=r"^With hook, recap and call it has 11 slides; 4 to 10 fit\.$"):
        ENGINE.draft_from({**ANSWER, "points": ANSWER["points"] * 4}, brief, ANN, "number")


def changed(place: int, **values: Any) -> list[dict[str, Any]]:
    return [{**one, **values} if index == place else one for index, one in enumerate(GOOD)]


@pytest.mark.parametrize(
    ("slides", "code", "message"),
    [
        (GOOD[:3], "content", "A carousel has 4 to 10 slides; this has 3."),
        (GOOD * 3, "content", "A carousel has 4 to 10 slides; this has 15."),
        (None, "content", "A carousel has 4 to 10 slides; this has 0."),
        (changed(1, kind="poll"), "content", "A slide has kind, title and text; its kind is hook, point, recap or cta."),
        (changed(1, extra="x"), "content", "A slide has kind, title and text; its kind is hook, point, recap or cta."),
        (changed(1, text=7), "content", "A slide has the texts kind, title and text."),
        (changed(2, text=" "), "content", "Slide 3 has no words."),
        (GOOD[1:], "content", "The first slide is the hook and the last one the call."),
        (changed(2, text="tram " * 46), "slide_words", "Slide 3 has 46 words; the maximum is 45."),
        (changed(1, text="There are 15 of them."), "numbers", "These numbers aren't in the source: 15."),
        (changed(1, text="Ask @mallory about it."), "mentions", "The persona doesn't name these accounts: @mallory."),
    ],
)  # fmt: skip
def test_slides_that_keep_no_rule_are_stopped(slides: Any, code: str, message: str) -> None:
    assert failures(draft_of(slides))[code] == message


def test_good_slides_pass() -> None:
    assert failures(draft_of()) == {}


def test_link_in_a_slide_is_stopped() -> None:
    assert "links_in_picture" in failures(draft_of(changed(1, text=f"Read {URL} now.")))


def test_banned_words_of_a_slide_are_found() -> None:
    (check,) = check_persona(draft_of(), dataclasses.replace(ANN, banned_words=("Mill Street pays",)))

    assert (check.code, check.outcome) == ("banned_words", "failed")


# --- The pictures ----------------------------------------------------------------------------------------------------


def test_slides_are_counted_and_named() -> None:
    layout = layout_of()

    assert [picture.name for picture in layout.pictures] == [f"carousel-{n:02d}.jpg" for n in range(1, 6)]
    assert {(picture.width, picture.height, picture.role) for picture in layout.pictures} == {
        (*UPRIGHT, "image")
    }
    assert [said(blocks(picture)[0]) for picture in layout.pictures] == [f"{n}/5" for n in range(1, 6)]
    assert layout.pictures[1].alt_text == "2/5: The vote: 14 to 9\nAfter eleven years the council decided."
    assert (layout.document, layout.title, layout.language) == ("carousel.pdf", "Title", "en")


def test_all_words_of_a_slide_are_drawn() -> None:
    for picture, one in zip(layout_of().pictures, GOOD, strict=True):
        drawn = " ".join(said(item) for item in blocks(picture))
        assert [line for line in f"{one['title']}\n{one['text']}".splitlines() if line not in drawn] == []


def test_only_the_first_slide_leads_on() -> None:
    cues = [[said(item) for item in blocks(one) if "→" in said(item)] for one in layout_of().pictures]

    assert cues == [["Swipe →"], [], [], [], []]


def test_progress_shows_how_far_one_is() -> None:
    for place, picture in enumerate(layout_of().pictures):
        bars = [item for item in picture.items if isinstance(item, Panel) and item.height == 6]
        assert len(bars) == 5
        assert len({bar.colour for bar in bars[: place + 1]}) == 1
        assert bars[0].colour not in {bar.colour for bar in bars[place + 1 :]}


def test_last_slide_shows_the_persona() -> None:
    faces = [
        any(isinstance(item, Portrait) for item in one.items) for one in layout_of(has_portrait=True).pictures
    ]

    assert faces == [False] * 4 + [True]


def test_right_to_left_is_mirrored() -> None:
    slides = [
        slide("hook", ARABIC[:20]),
        slide("point", "", ARABIC),
        slide("point", "", ARABIC),
        slide("cta", "اقرأ", "example.com"),
    ]
    first, point, _, last = layout_of(slides, PersonaCard("ليلى", "layla", "ar"), "ar").pictures
    count, number = blocks(first)[0], blocks(point)[2]

    assert count.x + count.block.lines[0].x == pytest.approx(MARGIN, abs=1)
    assert number.x + visible_box(number.block)[2] == pytest.approx(1080 - MARGIN, abs=1)
    assert "اسحب ←" in [said(item) for item in blocks(first)]
    (face,) = (item for item in last.items if isinstance(item, Disc))
    assert face.x + face.size == 1080 - MARGIN


def test_slide_that_can_not_be_drawn_is_named() -> None:
    for text, code in (("The tram of 東京", "missing_glyphs"), ("W" * 3000, "does_not_fit")):
        with pytest.raises(Refused, match=r"^Slide 3: ") as refusal:
            layout_of(changed(2, text=text))
        assert (refusal.value.code, refusal.value.field) == (code, "content.slides[2]")


def test_recap_that_does_not_fit_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        layout_of(changed(3, text="\n".join(["Line"] * 40)))
    assert (refusal.value.code, refusal.value.field) == ("does_not_fit", "content.slides[3]")


def test_other_sizes_are_our_own_fault() -> None:
    with pytest.raises(ValueError, match="not \\(1080, 1080\\)"):
        layout_of(size=(1080, 1080))
    assert SIZES == (UPRIGHT,)


@pytest.mark.parametrize("primary", ["#ffffff", "#000000", "#ffff00", "#808080", "#7a7a7a", "#95d5b2", None])
@pytest.mark.parametrize("accent", ["#ffffff", "#000000", "#ffff00", "#808080", "#3a86ff", None])
def test_everything_can_be_read(primary: object, accent: object) -> None:
    persona = PersonaCard("Ann", "ann", brand={"primary": primary, "accent": accent})
    for picture in layout_of(persona=persona).pictures:
        wash = next(item for item in picture.items if isinstance(item, Wash))
        disc = [item.colour for item in picture.items if isinstance(item, Disc) and item.size > 100]
        pill = [item.colour for item in picture.items if isinstance(item, Panel) and item.height > 20]
        for item in blocks(picture):
            grounds = disc if said(item) == "A" else pill if "→" in said(item) else [wash.top, wash.bottom]
            assert min(contrast(item.colour, ground) for ground in grounds) >= 4.5, said(item)


def test_fixed_words_know_scripts_and_regions() -> None:
    assert {fixed_words(one).recap for one in ("zh-Hant", "zh-TW", "zh_HK", "zh-Hant-TW")} == {"重點"}
    assert {fixed_words(one).recap for one in ("zh", "zh-CN", "zh-Hans")} == {"要点"}
    assert fixed_words("nn") == fixed_words("no-NO") == fixed_words("nb")


@pytest.mark.parametrize(
    "language", [*("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ar", "he", "el", "hu")]
)
def test_fixed_words_can_be_drawn(language: str) -> None:
    words = fixed_words(language)

    assert undrawable_clusters(f"{words.swipe} {words.recap} {words.read_on} {words.follow}") == ()
    assert (language == "en") is (words == fixed_words("tlh"))
    assert "@ann" in words.follow.format("@ann")


WORDS = st.text(
    st.sampled_from("abcdeilnorstuw     WM-–/.,!?()’@#0123456789אבגשלם  قردالملة🔥éÄß"), max_size=200
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["hook", "point", "recap", "cta"]), WORDS, WORDS),
        min_size=MIN_SLIDES,
        max_size=MAX_SLIDES,
    ),
    st.sampled_from(["en", "de", "ar"]),
)
def test_everything_stands_inside_the_margins(slides: list[tuple[str, str, str]], language: str) -> None:
    try:
        layout = layout_of([slide(*one) for one in slides], language=language)
    except Refused:
        return
    for picture in layout.pictures:
        for item in blocks(picture):
            is_number = said(item).isdigit() and item.block.size == 168
            left, top, right, bottom = visible_box(item.block) if is_number else ink_box(item.block)
            assert item.x + left >= MARGIN - 1
            assert item.x + right <= 1080 - MARGIN + 1
            assert item.y + top >= MARGIN - 1
            assert item.y + bottom <= 1350 - MARGIN + 1


def test_slide_of_the_most_words_is_still_read() -> None:
    words = "We have waited long enough for it and now " * 5
    sizes = [
        max(item.block.size for item in blocks(picture) if len(said(item)) > 20)
        for picture in layout_of(changed(2, text=words.strip())).pictures[2:3]
    ]

    assert len(words.split()) == MAX_SLIDE_WORDS
    assert min(sizes) >= MIN_SIZE
