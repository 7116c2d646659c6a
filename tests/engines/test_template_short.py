"""Template Short: what it is made from, its slots, its checks, and its film to the last number."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText
from pipeline.engines.template_short import PLUGIN, values_of
from pipeline.plugins import Refused
from pipeline.render.picture_types import AvailableMedia, DrawnText
from pipeline.render.video.storyboard import SAFE_AREA, TITLE_BAND, storyboard_faults, texts_outside
from pipeline.render.video.storyboard_json import as_json, from_json
from pipeline.render.video.templates.points import POINTS, SLOTS
from tests.engines.test_nothing_unlisted import ATTACKS, PERSONA, read

TITLE = "Harbour ferries go electric"
SENTENCES = (
    "Forty-two boats will carry nine million people a year.",
    "The city paid 214 million crowns for them.",
    "Each boat charges for six minutes at the quay.",
    "The old engines go to a museum in the old town.",
    "Fishermen say that the water is quieter than it has been for 80 years.",
    "The first boat leaves at five in the morning.",
    "Tickets cost the same as before.",
)
TEXT = " ".join(SENTENCES)
SOURCE = SourceText(TITLE, TEXT, "https://www.lindholm-times.example/ferries", language="en")
ANN = PersonaCard(
    "Ann Whitfield", "annwhitfield", brand={"primary": "#1d3557", "accent": "#e76f51"}, links=()
)


def brief(sentences=SENTENCES, title=TITLE, url=SOURCE.url, language="en"):
    text = " ".join(sentences)
    facts = [
        Fact(f"f{place}", one, one, text.index(one), text.index(one) + len(one))
        for place, one in enumerate(sentences, start=1)
    ]
    return Brief(title, language, url, tuple(facts))


def draft(**changes):
    made = PLUGIN.offline(brief(), ANN, variants=1, seed="s")[0]
    return dataclasses.replace(made, **changes)


def failed(one, source=SOURCE, persona=ANN):
    return {
        check.code: check.message
        for check in PLUGIN.check(one, brief(), source, persona)
        if check.outcome == "failed"
    }


def test_offline_takes_title_and_sentences_word_for_word():
    one = draft()

    assert one.body.splitlines() == [TITLE, *SENTENCES[:3], "Source: lindholm-times.example"]
    assert one.title == TITLE
    assert one.content == {
        "caption": f"{TITLE}\n{SOURCE.url}",
        "tags": [],
        "script": one.body,
    }
    assert [(claim.text, TEXT[claim.start : claim.end]) for claim in one.claims] == [
        (said, said) for said in SENTENCES[:3]
    ]
    assert failed(one) == {}


def test_each_variant_has_points_of_its_own_in_the_order_of_the_source():
    shuffled = brief()
    shuffled = dataclasses.replace(shuffled, facts=shuffled.facts[::-1])

    made = PLUGIN.offline(shuffled, ANN, variants=5, seed="s")

    assert [values_of(one).points for one in made] == [SENTENCES[4:7], SENTENCES[1:4]]


def test_title_that_is_too_long_gives_way_to_a_short_sentence():
    long = "A title that goes on and on until nobody could read all of it in the three seconds that it has"

    one = PLUGIN.offline(brief(title=long), ANN, variants=1, seed="s")[0]

    assert one.body.splitlines()[:2] == list(SENTENCES[:2])


def test_sentences_that_are_long_alike_or_lead_elsewhere_are_no_points():
    given = (
        "Read it all at https://elsewhere.example today.",
        "Forty-two boats will carry nine million people a year.",
        "Forty-two boats will carry nine million people each year.",
        "It is the largest such fleet.",
        " ".join(["A sentence that never ends"] * 6) + ".",
        "The city paid 214 million crowns for them.",
        "Each boat charges for six minutes at the quay.",
    )

    one = PLUGIN.offline(brief(given), ANN, variants=1, seed="s")[0]

    assert values_of(one).points == (given[1], given[5], given[6])


def test_too_little_is_refused_in_a_sentence():
    assert PLUGIN.why_not(SOURCE) is None
    assert PLUGIN.why_not(SourceText(TITLE, SENTENCES[0])) == (
        "A Template Short needs 3 sentences of at most 110 characters; this item has 1."
    )
    with pytest.raises(Refused, match=r"a Template Short needs 3 sentences .* the source has 2\.$"):
        PLUGIN.offline(brief(SENTENCES[:2]), ANN, variants=1, seed="s")


@pytest.mark.parametrize(
    ("language", "url", "persona", "end"),
    [
        ("de", "https://www.zeitung.example/a", ANN, "Quelle: zeitung.example"),
        ("sv-SE", "https://tidning.example/a", ANN, "Källa: tidning.example"),
        ("xx", "https://blog.example/a", ANN, "Source: blog.example"),
        ("en", "", ANN, "@annwhitfield"),
        ("en", "", PersonaCard("Ann"), "Ann"),
    ],
)
def test_the_end_card_names_where_it_comes_from(language, url, persona, end):
    one = PLUGIN.offline(brief(url=url, language=language), persona, variants=1, seed="s")[0]

    assert values_of(one).end == end


ANSWER = {
    "angle": "number",
    "title": "42 ferries, no diesel",
    "points": [
        "They carry nine million people a year.",
        "They cost 214 million crowns.",
        "Six minutes charge one.",
    ],
    "description": "Lindholm's ferries run on batteries.",
    "tags": ["ferries", "#batteries"],
    "claims": [{"text": "They cost 214 million crowns.", "fact": "f2"}],
}


def test_an_answer_becomes_a_draft():
    one = PLUGIN.draft_from(ANSWER, brief(), ANN, "number")

    assert one.body.splitlines() == [
        ANSWER["title"],
        *ANSWER["points"],
        "Source: lindholm-times.example",
    ]
    assert one.content["caption"] == f"{ANSWER['description']}\n{SOURCE.url}"
    assert one.content["tags"] == ["ferries", "batteries"]
    assert [claim.quote for claim in one.claims] == [SENTENCES[1]]
    assert (one.angle, one.language) == ("number", "en")


def test_an_answer_with_other_points_than_three_is_stopped():
    one = PLUGIN.draft_from({**ANSWER, "points": ANSWER["points"][:2]}, brief(), ANN, "number")

    assert failed(one)["slots"].endswith("The text has 4 lines.")


@pytest.mark.parametrize("words", [words for words, _ in ATTACKS.values()], ids=ATTACKS)
def test_what_leads_to_strangers_is_neither_title_nor_point(words):
    """The way that other engines go in test_nothing_unlisted.py, which have enough with two sentences."""
    led, _ = read(words, *SENTENCES, title=words)

    made = PLUGIN.offline(led, PERSONA, variants=3, seed="s")

    assert made[0].title == SENTENCES[0]
    assert [one for one in made if words in f"{one.title}{one.body}{one.content}"] == []


def test_the_schema_and_the_rules_are_the_same_each_time():
    assert PLUGIN.draft_schema() == PLUGIN.draft_schema()
    assert list(PLUGIN.draft_schema()["properties"]) == [
        "angle",
        "title",
        "points",
        "description",
        "tags",
        "claims",
    ]
    assert PLUGIN.rules() == PLUGIN.rules()
    assert "Exactly 3 points" in PLUGIN.rules()


def lines(*changes):
    said = draft().body.splitlines()
    for place, words in changes:
        said[place] = words
    return "\n".join(said)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"body": TITLE}, "slots", "The text has 1 line."),
        ({"body": lines((0, "Boats " * 13))}, "slots", "The title has 77 characters; the maximum is 72."),
        ({"body": lines((2, "Boats and " * 12))}, "slots", "Point 2 has 119 characters; the maximum is 110."),
        ({"body": lines((4, "s" * 80))}, "slots", "The end card has 80 characters; the maximum is 72."),
        (
            {"body": lines((1, "More at https://lindholm-times.example/ferries now."))},
            "links_in_film",
            "can't be followed",
        ),
        ({"body": lines((1, "Boats \U00012000 sail."))}, "glyphs", "no glyphs for"),
        ({"body": lines((1, "It has 987 boats."))}, "numbers", "987"),
        ({"content": {"caption": 5, "tags": []}}, "content", "is a caption, tags and a script"),
        ({"content": {"caption": "a", "tags": ["a"] * 6}}, "content", "6 tags; the maximum is 5"),
        ({"content": {"caption": "a", "tags": ["two words"]}}, "content", "A tag is one word."),
        (
            {"content": {"caption": "See https://strange.example", "tags": []}},
            "content",
            "neither the source's nor the persona's",
        ),
        ({"title": "t" * 91}, "content", "The title has 91 characters; the maximum is 90."),
    ],
)
def test_what_breaks_a_rule_is_stopped(changes, code, message):
    assert message in failed(draft(**changes))[code]


def test_words_too_wide_for_their_slot_are_refused_and_never_cut(monkeypatch):
    monkeypatch.setitem(SLOTS, "title", dataclasses.replace(SLOTS["title"], height=60.0))
    one = draft(body=lines((0, "W" * 72)))

    assert failed(one)["fits"].startswith("The title doesn't fit into 810 × 60 pixels at 40 pixels")
    with pytest.raises(Refused, match="The title doesn't fit"):
        PLUGIN.film(one, ANN, AvailableMedia())


def test_longer_words_are_set_smaller_down_to_the_floor():
    def size(title):
        board = PLUGIN.film(draft(body=lines((0, title))), ANN, AvailableMedia())
        return next(one.items[0].block.size for one in board.overlays if one.name == "title")

    sizes = [
        size(title)
        for title in ("Ferries", TITLE, "The ferries of Lindholm's harbour go electric from Monday on")
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == SLOTS["title"].largest
    assert sizes[-1] >= SLOTS["title"].smallest


def test_the_film_is_as_recorded():
    """Every number of the storyboard; `UPDATE` below writes it anew after a look at the film."""
    board = PLUGIN.film(draft(), ANN, AvailableMedia())
    path = Path(__file__).parent / "samples" / "template_short.storyboard"
    made = as_json(board)
    assert made == json.loads(path.read_text())
    assert from_json(made) == board


def test_the_film_has_the_shape_of_its_template():
    board = PLUGIN.film(draft(), ANN, AvailableMedia())

    assert storyboard_faults(board) == ()
    assert texts_outside(board) == ()
    assert 6 <= board.duration <= 20
    assert len(board.scenes) == POINTS + 2
    assert (board.fps, board.width, board.height) == (30, 1080, 1920)
    title = next(one for one in board.overlays if one.name == "title")
    words = title.items[0]
    assert (title.start, title.enter.kind) == (0.0, "none"), "the first frame is the hook"
    assert title.end <= 3.0
    assert words.y == TITLE_BAND[0]
    assert words.y + words.block.height <= TITLE_BAND[1]
    shown = [
        " ".join(line.text for line in item.block.lines)
        for one in board.overlays
        for item in one.items
        if isinstance(item, DrawnText)
    ]
    for sentence in (TITLE, "Source", "lindholm-times.example", "Ann Whitfield", "@annwhitfield"):
        assert sentence in shown
    assert " ".join(said for said in shown).count("nine million people") == 1


@pytest.mark.parametrize("has_portrait", [False, True])
def test_the_persona_shows_its_face(has_portrait):
    board = PLUGIN.film(draft(), ANN, AvailableMedia(has_portrait=has_portrait))

    assert board.needs_portrait is has_portrait
    assert texts_outside(board) == ()


def test_a_film_from_right_to_left_stands_on_the_right_edge():
    said = (
        "المجلس يوافق على خط الترام",
        "ستبلغ التكلفة 214 مليون.",
        "يبدأ البناء في الربيع.",
        "التذكرة بسعر زهيد.",
        "المصدر: news.example",
    )
    one = draft(body="\n".join(said), language="ar")
    board = PLUGIN.film(one, PersonaCard("ليلى حداد", "layla"), AvailableMedia())

    assert texts_outside(board) == ()
    for overlay in board.overlays:
        for item in overlay.items:
            if (
                isinstance(item, DrawnText)
                and item.block.size > 30
                and overlay.name.startswith(("title", "point", "end"))
            ):
                assert max(
                    run.x + run.width for line in item.block.lines for run in line.runs
                ) == pytest.approx(SAFE_AREA[2] - SAFE_AREA[0], abs=2)


def test_two_personas_without_colours_look_each_their_own():
    boards = [
        PLUGIN.film(draft(), PersonaCard(name), AvailableMedia()) for name in ("Ann", "Ben", "Cleo", "Dora")
    ]

    assert len({board.scenes[0].visual.colour for board in boards}) > 1
