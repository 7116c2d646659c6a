"""Clipped Short: which stretch is chosen, what a model may say of it, and what its checks stop."""

from __future__ import annotations

import dataclasses
import json
from functools import partial

import pytest

from pipeline.engines.base import Brief, PersonaCard, SourceText
from pipeline.engines.clipped_short import PLUGIN
from pipeline.engines.clipped_short.spans import MAX_SHOWN_CHARACTERS, is_on_edges, sentences_in
from pipeline.generate.model import client as model_client
from pipeline.plugins import Refused
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.picture_types import AvailableMedia
from pipeline.render.video.material import Clip, FilmMaterial, Shot, VideoSpan
from pipeline.render.video.storyboard import Crop, Word, texts_outside
from pipeline.render.video.storyboard_json import as_json, from_json
from pipeline.writers.claude import PLUGIN as CLAUDE
from tests.writers.messages_server import MessagesServer, ok

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

NAME = "upl_01jd0000000000000000000000"
SENTENCES = (
    "Hello and welcome back to the channel.",
    "Lindholm had the loudest harbour in the country ten years ago.",
    "Today forty-two electric ferries carry nine million people a year.",
    "The city paid 214 million crowns for all of the boats.",
    "Each boat charges for six minutes at the quay while people get on.",
    "Fishermen say the water is quieter than for 80 years.",
    "Read everything at https://evil.example/boats today.",
    "Three winters later every single battery is still at work.",
    "Tickets cost the same as before, and the boats are full.",
    "School classes learn in the museum how a diesel engine works.",
    "Nobody in the harbour wants the noise of the old days back.",
)
ANN = PersonaCard("Ann Whitfield", "annwhitfield", brand={"primary": "#1d3557", "accent": "#e76f51"})


def words_of(sentences, each=0.4, rest=0.5):
    words, at = [], 0.5
    for sentence in sentences:
        for word in sentence.split():
            words.append(Word(word, round(at, 3), round(at + each - 0.05, 3)))
            at += each
        at += rest
    return tuple(words)


def source_of(sentences=SENTENCES, **changes):
    words = words_of(sentences)
    material = FilmMaterial((Clip(NAME, words, **changes),), (), "", "Lindholm Times")
    text = f"Notes.\n\n{text_of(words)}"
    return SourceText("Quiet harbour", text, "https://times.example/a", language="en", material=material)


def told(source):
    return PLUGIN.told(Brief("Quiet harbour", "en", source.url, ()), source)


SOURCE = source_of()
BRIEF = told(SOURCE)


def answer(first, last, **changes):
    return {
        "first": first,
        "last": last,
        "title": "Nine million people, no noise",
        "description": "A harbour went electric.",
        "tags": ["ferries"],
        "claims": [],
        **changes,
    }


def failed(draft, source=SOURCE, brief=BRIEF):
    checks = PLUGIN.check(draft, brief, source, ANN)
    return {check.code: check.message for check in checks if check.outcome == "failed"}


def test_stretch_is_whole_sentences_without_what_leads_elsewhere():
    made = PLUGIN.offline(BRIEF, ANN, variants=3, seed="s")
    assert len(made) == 2
    said = sentences_in(SOURCE)
    for one in made:
        [span] = PLUGIN.spans(one)
        assert 15 <= span.end - span.start <= 60
        assert is_on_edges(span, said)
        assert "evil" not in one.body
        assert failed(one) == {}
        assert one.title in one.body
        assert [SOURCE.text[claim.start : claim.end] for claim in one.claims] == [
            claim.quote for claim in one.claims
        ]
    assert not PLUGIN.shares(*made)
    assert PLUGIN.shares(made[0], made[0])


def test_model_names_sentences_and_the_words_are_those_that_are_said():
    one = PLUGIN.draft_from(answer("s2", "s5"), BRIEF, ANN, "story")
    assert one.body == " ".join(SENTENCES[1:5])
    assert one.title == "Nine million people, no noise"
    assert one.content["tags"] == ["ferries"]
    assert failed(one) == {}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("s9", "s2"), "s2 is said before s9"),
        (("s1", "s99"), "No sentence has the id 's99'"),
        (("the first", "s2"), "No sentence has the id 'the first'"),
    ],
)
def test_stretch_that_is_none_is_told_to_the_model(given, says):
    with pytest.raises(Refused, match=says):
        PLUGIN.draft_from(answer(*given), BRIEF, ANN, "story")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (answer("s2", "s2"), "span"),
        (answer("s2", "s5", title="word " * 20), "title"),
        (answer("s2", "s5", title="99 million people, no noise"), "numbers"),
        (answer("s2", "s5", title="More at evil.com"), "link_origin"),
        (answer("s5", "s8"), "link_origin"),
        (answer("s2", "s5", tags=["two words"]), "content"),
    ],
)
def test_what_a_model_gets_wrong_is_stopped(given, code):
    assert code in failed(PLUGIN.draft_from(given, BRIEF, ANN, "story"))


def test_cut_within_a_sentence_is_stopped():
    one = PLUGIN.draft_from(answer("s2", "s5"), BRIEF, ANN, "story")
    [clip] = one.content["clips"]
    moved = dataclasses.replace(one, content={**one.content, "clips": [{**clip, "start": clip["start"] + 1}]})
    assert failed(moved)["span"] == "The stretch doesn't begin and end with a sentence."


def test_times_of_lines_are_a_warning():
    source = source_of(is_word_timed=False)
    one = PLUGIN.offline(told(source), ANN, variants=1, seed="s")[0]
    checks = PLUGIN.check(one, told(source), source, ANN)
    assert [check.code for check in checks if check.outcome == "warning"] == ["word_times"]


def test_film_shows_the_span_with_title_captions_and_credit():
    one = PLUGIN.draft_from(answer("s2", "s5"), BRIEF, ANN, "story")
    [span] = PLUGIN.spans(one)
    clip = SOURCE.material.spoken
    middle = round((span.start + span.end) / 2, 2)
    shots = (Shot(span.start, middle, Crop(0.3, 0.0, 0.3164, 1.0)), Shot(middle, span.end, None))
    material = dataclasses.replace(SOURCE.material, clips=(dataclasses.replace(clip, shots=shots),))
    board = PLUGIN.film(one, ANN, AvailableMedia(material=material))
    assert from_json(json.loads(json.dumps(as_json(board)))) == board
    assert texts_outside(board) == ()
    assert [scene.visual.fit for scene in board.scenes] == ["cover", "pad"]
    second = board.scenes[1]
    assert second.visual.since == pytest.approx(span.start + second.start, abs=1e-5)
    assert 0 <= second.visual.since - middle < 1 / 30
    assert [overlay.name for overlay in board.overlays] == ["title", "credit"]
    assert "Source: Lindholm Times" in str(board.overlays[1].items)
    said = [word.t for card in board.captions for word in card.words]
    assert said == one.body.split()
    [take] = board.audio.takes
    assert (take.since, take.start, take.end) == (span.start, 0.0, board.duration)


def test_video_that_is_gone_is_named():
    one = PLUGIN.draft_from(answer("s2", "s5"), BRIEF, ANN, "story")
    assert PLUGIN.film(one, ANN, AvailableMedia()) is None
    with pytest.raises(Refused, match="no longer exists"):
        PLUGIN.film(one, ANN, AvailableMedia(material=FilmMaterial()))


def test_short_talk_is_declined():
    assert PLUGIN.why_not(source_of(SENTENCES[:2])).startswith("A Clipped Short lasts 15 seconds at least")
    assert PLUGIN.why_not(SOURCE) is None
    strange = dataclasses.replace(SOURCE, text="Other words.")
    assert PLUGIN.why_not(strange).startswith("The item's text doesn't hold the words")


def test_of_a_long_talk_the_best_parts_are_shown():
    many = tuple(
        f"Part {number} says that {sentence}" for number in range(160) for sentence in SENTENCES[1:6]
    )
    source = source_of(many)
    brief = told(source)
    assert sum(len(fact.text) for fact in sentences_in(source)) > MAX_SHOWN_CHARACTERS
    assert 0.9 * MAX_SHOWN_CHARACTERS <= sum(len(fact.text) for fact in brief.facts) <= MAX_SHOWN_CHARACTERS


def test_what_was_not_shown_is_not_skipped():
    brief = dataclasses.replace(BRIEF, facts=(*BRIEF.facts[:3], *BRIEF.facts[4:]))
    with pytest.raises(Refused, match="There is more between s2 and s5 than was shown"):
        PLUGIN.draft_from(answer("s2", "s5"), brief, ANN, "story")


def test_span_is_no_longer_than_its_pad_where_somebody_speaks():
    one = PLUGIN.draft_from(answer("s2", "s5"), BRIEF, ANN, "story")
    [span] = PLUGIN.spans(one)
    said = sentences_in(SOURCE)
    assert span == VideoSpan(NAME, round(said[1].seconds[0] - 0.15, 3), round(said[4].seconds[1] + 0.15, 3))


def test_claude_chooses_by_number_and_stretches_that_overlap_are_one():
    given = [
        {**answer("s2", "s5"), "angle": "number"},
        {**answer("s3", "s5", title="Six minutes at the quay"), "angle": "story"},
        {**answer("s8", "s11", title="Three winters later"), "angle": "question"},
    ]
    with MessagesServer() as server:
        server.script = [ok({"variants": given})]
        with model_client.connect_account(api_key="key-of-ann", base_url=server.url, timeout=5) as client:
            judge = partial(PLUGIN.check, brief=BRIEF, source=SOURCE, persona=ANN)
            made = CLAUDE.draft(PLUGIN, BRIEF, ANN, variants=3, seed="s", client=client, judge=judge)
        asked = json.dumps(server.requests[0].body)
    assert [one.title for one in made.drafts] == ["Nine million people, no noise", "Three winters later"]
    assert [one.content["clips"][0]["upload"] for one in made.drafts] == [NAME, NAME]
    assert "seconds" in asked
