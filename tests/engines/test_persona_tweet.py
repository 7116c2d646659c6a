"""Persona Tweet: what it says, what it stops, where everything stands on the card."""

from __future__ import annotations

import dataclasses
import json
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops

from pipeline.engines.base import Brief, Claim, Draft, PersonaCard, SourceText
from pipeline.engines.persona_tweet import MIN_SIZE, SIZES, PersonaTweet
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render.colour import contrast
from pipeline.render.draw_layout import draw_picture, render_layout
from pipeline.render.picture_types import (
    MARGIN,
    SQUARE,
    UPRIGHT,
    AvailableMedia,
    Disc,
    DrawnText,
    Panel,
    PicturePlan,
    Portrait,
)
from pipeline.render.typography.clusters import MissingGlyphs
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box
from pipeline.text.weighted_length import MAX_LENGTH
from tests.engines.material import URL, blocks, brief_of, said

ENGINE = PersonaTweet()
ANN = PersonaCard("Ann Whitfield", handle="ann", brand={"primary": "#1d3557", "accent": "#e63946"})
DAY = date(2026, 11, 20)
RECORDED = Path(__file__).parent.parent / "render" / "snapshots" / "cards.json"
SENTENCES = (
    "The council voted 14 to 9 for the tram.",
    "Retailers in Mill Street fear for their sales.",
    "“We have waited long enough,” said the mayor.",
)
ARABIC = "قرر المجلس في 12 نوفمبر 2026 أن يبدأ مشروع Tram 2030 (المرحلة الأولى) بتكلفة 1,500 مليون."
HEBREW = "המועצה אישרה ב-12 בנובמבר 2026 את פרויקט Tram 2030 (שלב א')."
GERMAN = (
    "Das Bundesverfassungsgericht bestätigt die Geschwindigkeitsbegrenzung: Die Donaudampfschifffahrtsgesellschaft "
    "darf ihre Kapitänsmützenverordnung behalten."
)
CARDS: dict[str, tuple[PersonaCard, str, str, bool]] = {
    "english": (ANN, SENTENCES[0], "en", True),
    "long": (
        PersonaCard("Studio Okafor & Partners International Communications", "okafor.partners"),
        "We cut the time to first draft from 48 minutes to 11. " * 5,
        "en",
        False,
    ),
    "german": (
        PersonaCard("Jörg Müller-Lüdenscheidt", "jmuelu", "de", brand={"primary": "#2d6a4f"}),
        GERMAN,
        "de",
        True,
    ),
    "arabic": (PersonaCard("ليلى حداد", "layla", "ar", brand={"accent": "#ff9e00"}), ARABIC, "ar", False),
    "hebrew": (PersonaCard("נועה לוי", "noa", "he", brand={"primary": "#e9ecef"}), HEBREW, "he", True),
    "short": (PersonaCard("K", "k", brand={"primary": "#000", "accent": "#fff"}), "Ship it.", "en", False),
    "emoji": (
        PersonaCard("DevNotes"),
        "One outage 🔥, louder alarms 🚨 and sleep 😴 #oncall @dev",
        "en",
        False,
    ),
    "quoted": (PersonaCard("Łukasz Żółć", "@lukasz", "pl"), SENTENCES[2], "en", False),
}


def draft_of(words: str, language: str = "en", **content: Any) -> Draft:
    return Draft("Title", words, "text", {"caption": words, "slides": [], **content}, (), language)


def card(words: str, persona: PersonaCard = ANN, language: str = "en", **media: Any) -> PicturePlan:
    (picture,) = ENGINE.plan(
        draft_of(words, language), persona, AvailableMedia(**{"shown_on": DAY, **media})
    ).pictures
    return picture


def failures(
    words: str, *quotes: str, persona: PersonaCard = ANN, content: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    brief, source = brief_of(*(quotes or (words,)))
    fact = brief.facts[0]
    draft = dataclasses.replace(
        draft_of(words, **(content or {})), claims=(Claim(words, fact.quote, fact.start, fact.end),)
    )
    checks = ENGINE.check(draft, brief, source, persona)
    return [(check.code, check.message) for check in checks if check.outcome == "failed"]


def the_words(picture: PicturePlan) -> DrawnText:
    return max(blocks(picture), key=lambda item: item.block.height * (item.block.size >= MIN_SIZE))


def test_engine_is_described() -> None:
    assert (ENGINE.kind, ENGINE.name, ENGINE.bucket) == ("persona_tweet", "Persona Tweet", "image")
    assert (ENGINE.version, ENGINE.credits, ENGINE.made_from) == (1, 2, ("text", "topic"))


def test_draft_says_one_sentence_without_the_address() -> None:
    brief, _ = brief_of(*SENTENCES)

    assert ENGINE.offline(brief, ANN, variants=1, seed="s") == (
        Draft(
            title="Tram approved",
            body=SENTENCES[0],
            body_format="text",
            content={"caption": f"{SENTENCES[0]}\n{URL}", "slides": []},
            claims=(Claim(SENTENCES[0], SENTENCES[0], 0, len(SENTENCES[0])),),
            language="en",
            angle="number",
        ),
    )


def test_sentences_are_those_of_a_short_post() -> None:
    brief, _ = brief_of(*SENTENCES)
    posts = ShortPost().offline(brief, ANN, variants=3, seed="s")
    cards = ENGINE.offline(brief, ANN, variants=3, seed="s")

    assert [draft.body for draft in cards] == [draft.body.partition("\n")[0] for draft in posts]


def test_source_without_an_address_has_the_words_as_caption() -> None:
    brief, _ = brief_of(SENTENCES[0], url="")

    assert ENGINE.offline(brief, ANN, variants=1, seed="s")[0].content == {
        "caption": SENTENCES[0],
        "slides": [],
    }


def test_offline_drafts_pass_every_check() -> None:
    brief, source = brief_of(*SENTENCES)
    drafts = ENGINE.offline(brief, ANN, variants=3, seed="s")
    checks = [check for draft in drafts for check in ENGINE.check(draft, brief, source, ANN)]

    assert len(drafts) == 3
    assert [check.message for check in checks if check.outcome != "passed"] == []


def test_source_that_says_nothing_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        ENGINE.offline(Brief("", "en", URL, ()), ANN, variants=1, seed="s")

    assert refusal.value.code == "nothing_to_say"


def test_source_that_says_nothing_is_declined() -> None:
    assert ENGINE.why_not(SourceText("", "", URL)) is not None
    assert ENGINE.why_not(SourceText("Tram", "")) is None


def test_checks_name_each_rule_once() -> None:
    brief, source = brief_of(*SENTENCES)
    codes = [check.code for check in ENGINE.check(draft_of(SENTENCES[0]), brief, source, ANN)]

    assert codes[:2] == ["content", "length"]
    assert codes[-3:] == ["links_in_picture", "glyphs", "fits"]
    assert {"numbers", "quotations", "claims", "mentions", "hashtags"} <= set(codes)
    assert len(set(codes)) == len(codes)


def test_too_many_characters_are_stopped() -> None:
    words = "a " * (MAX_LENGTH // 2 + 3)

    assert ("length", "The post counts 286 characters, 6 more than the 280 that fit.") in failures(words)


def test_invented_numbers_are_stopped() -> None:
    assert ("numbers", "These numbers aren't in the source: 15.") in failures("15 of them.", SENTENCES[0])


def test_missing_glyphs_are_named() -> None:
    assert failures("The tram of 東京 opens.") == [
        ("glyphs", "The fonts for pictures have no glyphs for 東 (U+6771), 京 (U+4EAC)."),
        (
            "fits",
            (
                "At 1080 × 1350 pixels: The fonts for pictures have no glyphs for 東 (U+6771), 京 (U+4EAC); "
                "leave these characters out."
            ),
        ),
    ]


def test_glyphs_of_the_name_count_too() -> None:
    codes = [code for code, _ in failures("The tram opens.", persona=PersonaCard("東京"))]

    assert codes == ["glyphs", "fits"]


def test_words_that_do_not_fit_are_stopped() -> None:
    ((code, message),) = failures("W" * 270)

    assert code == "fits"
    assert message.startswith("At 1080 × 1080 pixels: The text doesn't fit into 824 × ")


def test_link_in_the_words_is_stopped() -> None:
    codes = [code for code, _ in failures(f"Read {URL} now.")]

    assert codes == ["links_in_picture"]


@pytest.mark.parametrize("caption", [None, 7, ["a"]])
def test_caption_that_is_no_text_is_stopped(caption: object) -> None:
    assert failures("The tram opens.", content={"caption": caption}) == [
        ("content", "The content of a Persona Tweet is a caption and no slides.")
    ]


def test_slides_are_stopped() -> None:
    assert [code for code, _ in failures("The tram opens.", content={"slides": [{}]})] == ["content"]


def test_caption_with_a_strange_link_is_stopped() -> None:
    assert failures("The tram opens.", content={"caption": "See https://evil.example/x"}) == [
        ("content", "The caption has a link that is neither the source's nor the persona's.")
    ]


def test_model_is_asked_for_words_and_gets_no_address() -> None:
    brief, _ = brief_of(*SENTENCES)
    schema = ENGINE.draft_schema()
    answer = {
        "text": "The tram won 14 to 9.",
        "angle": "number",
        "claims": [{"text": "14 to 9", "fact": "f0"}],
    }
    draft = ENGINE.draft_from(answer, brief, ANN, "number")

    assert "text" in schema["properties"]
    assert "Write no link" in ENGINE.rules()
    assert draft.body == "The tram won 14 to 9."
    assert draft.content == {"caption": f"The tram won 14 to 9.\n{URL}", "slides": []}


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", CARDS)
def test_card_is_as_recorded(name: str, size: tuple[int, int]) -> None:
    """Recorded with `asdict`; look at the picture before recording anew."""
    persona, words, language, has_portrait = CARDS[name]
    plan = ENGINE.plan(draft_of(words.strip(), language), persona, AvailableMedia(has_portrait, size, DAY))
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))[f"{name} {size[0]}x{size[1]}"]

    assert json.loads(json.dumps(dataclasses.asdict(plan))) == recorded["plan"]
    (asset,) = render_layout(plan, portrait=portrait() if has_portrait else None)
    assert (int(recorded["dhash"], 16) ^ dhash(asset.bytes)).bit_count() <= 4


def dhash(data: bytes) -> int:
    """Which of its neighbours is lighter, over 17 by 16 fields."""
    with Image.open(BytesIO(data)) as image:
        small = image.convert("L").resize((17, 16), Image.Resampling.BOX)
    fields = list(small.tobytes())
    bits = 0
    for row in range(16):
        for column in range(16):
            bits = bits << 1 | (fields[row * 17 + column] < fields[row * 17 + column + 1])
    return bits


def portrait() -> bytes:
    out = BytesIO()
    Image.linear_gradient("L").convert("RGB").save(out, "JPEG")
    return out.getvalue()


def test_card_is_the_same_each_time() -> None:
    plan = ENGINE.plan(draft_of(SENTENCES[0]), ANN, AvailableMedia(shown_on=DAY))

    assert render_layout(plan) == render_layout(
        ENGINE.plan(draft_of(SENTENCES[0]), ANN, AvailableMedia(shown_on=DAY))
    )


def test_card_says_who_and_what_and_when() -> None:
    assert [said(item) for item in blocks(card(SENTENCES[0]))] == [
        "AW",
        "Ann Whitfield",
        "@ann",
        SENTENCES[0],
        "20 November 2026",
    ]


def test_alt_text_is_the_words_and_the_name() -> None:
    (asset,) = render_layout(ENGINE.plan(draft_of(SENTENCES[0]), ANN, AvailableMedia()))

    assert asset.alt_text == f"{SENTENCES[0]} – Ann Whitfield"
    assert (asset.name, asset.role, asset.mime_type) == ("persona-tweet-1080x1350.jpg", "image", "image/jpeg")


def test_card_without_a_day_has_no_line_for_it() -> None:
    assert [said(item) for item in blocks(card(SENTENCES[0], shown_on=None))][-1] == SENTENCES[0]


def test_persona_without_a_handle_has_no_line_for_it() -> None:
    assert "@" not in "".join(said(item) for item in blocks(card("Hello.", PersonaCard("Ann"))))


def test_portrait_takes_the_place_of_the_initials() -> None:
    kinds = {item.kind for item in card("Hello.", has_portrait=True).items}

    assert kinds == {"panel", "portrait", "words"}
    assert {item.kind for item in card("Hello.").items} == {"panel", "disc", "words"}


@pytest.mark.parametrize(
    ("name", "initials"),
    [
        ("Ann Whitfield", "AW"),
        ("ann", "A"),
        ("Studio of Many Words", "SW"),
        ("🔥 Hot Takes", "HT"),
        ("Aaron Adams", "A"),
        ("ליאת כהן", "ל"),
        ("Łukasz Żółć", "ŁŻ"),
    ],
)
def test_initials_are_the_first_and_the_last(name: str, initials: str) -> None:
    assert said(blocks(card("Hello.", PersonaCard(name)))[0]) == initials


def test_name_without_letters_has_a_plain_disc() -> None:
    picture = card("Hello.", PersonaCard("123"))

    assert said(blocks(picture)[0]) == "123"
    assert any(isinstance(item, Disc) for item in picture.items)


def test_right_to_left_card_is_mirrored() -> None:
    left = next(item for item in card(SENTENCES[0], has_portrait=True).items if isinstance(item, Portrait))
    right = next(
        item for item in card(ARABIC, language="ar", has_portrait=True).items if isinstance(item, Portrait)
    )

    assert left.x + right.x + left.size == 1080
    edges = {
        round(item.x + line.x + line.width)
        for item in blocks(card(ARABIC, language="ar"))
        for line in item.block.lines
    }
    # The disc's initials stand inside of it; everything else ends at one of two edges.
    assert {1080 - 128, 1080 - 128 - 112 - 28} <= edges


def test_marks_of_a_post_take_the_accent() -> None:
    runs = [
        run.text
        for line in the_words(card("See #tram and @ann in mail@x, 5 # 6.")).block.lines
        for run in line.runs
        if run.is_accented
    ]

    assert runs == ["#tram", "@ann"]


def test_quotation_mark_hangs_out_into_the_margin() -> None:
    item = the_words(card(SENTENCES[2]))

    assert item.block.lines[0].x < 0
    assert item.x + item.block.lines[0].x >= MARGIN


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_words_are_never_smaller_than_they_may_be(size: tuple[int, int]) -> None:
    words = "We have waited long enough for it. " * 8

    assert the_words(card(words.strip(), size=size)).block.size >= MIN_SIZE


def test_other_sizes_are_our_own_fault() -> None:
    with pytest.raises(ValueError, match="not \\(500, 500\\)"):
        card("Hello.", size=(500, 500))


def test_name_of_the_greatest_length_fits() -> None:
    name = "Wilhelmina Konstantinopolitanska " * 4

    assert the_words(card("Hello.", PersonaCard(name[:120], "w" * 60))).block.size >= MIN_SIZE


@pytest.mark.parametrize(
    "primary", ["#ffffff", "#000000", "#ffff00", "#808080", "#95d5b2", "nonsense", None, 3]
)
@pytest.mark.parametrize("accent", ["#ffffff", "#000000", "#ffff00", "#808080", "#3a86ff", None])
def test_everything_can_be_read(primary: object, accent: object) -> None:
    persona = PersonaCard("Ann", "ann", brand={"primary": primary, "accent": accent})
    picture = card("See #tram.", persona)
    disc = next(item for item in picture.items if isinstance(item, Disc))
    initials, *others = blocks(picture)

    assert contrast(initials.colour, disc.colour) >= 4.5
    assert contrast(disc.colour, "#ffffff") >= 1.25
    assert [item.colour for item in others if contrast(item.colour, "#ffffff") < 4.5] == []
    assert contrast(others[0].accent, "#ffffff") >= 4.5


WORDS = st.text(
    st.sampled_from("abcdeilnorstuw     WM-–/.,!?()’“”#@0123456789אבגשלם  قردالملة🔥🇩🇪\u0301éÄß\n"),
    min_size=1,
    max_size=280,
)
NAMES = st.text(st.sampled_from("abcde WMאבג قرد🔥é-.'"), max_size=120)


@settings(max_examples=80, deadline=None)
@given(WORDS, NAMES, st.sampled_from(SIZES), st.sampled_from(["en", "de", "ar"]))
def test_everything_stands_inside_the_margins(
    words: str, name: str, size: tuple[int, int], language: str
) -> None:
    try:
        picture = card(words, PersonaCard(name, "ann", language), language, size=size)
    except (TextDoesNotFit, MissingGlyphs):
        return
    panel = next(item for item in picture.items if isinstance(item, Panel))
    assert 0 <= panel.y <= panel.y + panel.height <= size[1]
    for item in blocks(picture):
        left, top, right, bottom = ink_box(item.block)
        assert item.x + left >= MARGIN
        assert item.x + right <= size[0] - MARGIN
        assert item.y + top >= MARGIN
        assert item.y + bottom <= size[1] - MARGIN


@settings(max_examples=15, deadline=None)
@given(WORDS, st.sampled_from(SIZES))
def test_no_pixel_of_the_words_leaves_the_margins(words: str, size: tuple[int, int]) -> None:
    try:
        picture = card(words, size=size)
    except (TextDoesNotFit, MissingGlyphs):
        return
    bare = dataclasses.replace(
        picture, items=tuple(item for item in picture.items if isinstance(item, Panel))
    )
    drawn = ImageChops.difference(draw_picture(picture), draw_picture(bare)).getbbox()

    assert drawn is not None
    assert min(drawn[:2]) >= MARGIN
    assert drawn[2] <= size[0] - MARGIN
    assert drawn[3] <= size[1] - MARGIN


def test_files_have_the_sizes_that_are_promised() -> None:
    assert SIZES == (UPRIGHT, SQUARE) == ((1080, 1350), (1080, 1080))
    for size in SIZES:
        (asset,) = render_layout(ENGINE.plan(draft_of(SENTENCES[0]), ANN, AvailableMedia(size=size)))
        with Image.open(BytesIO(asset.bytes)) as image:
            assert image.size == size
        assert len(asset.bytes) < 500_000
