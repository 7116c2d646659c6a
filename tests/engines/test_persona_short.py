"""Persona Short: what it is told from, its parts, its checks, and its film to the last number."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from pipeline.engines.base import APPROVED, Brief, Fact, PersonaCard, SourceText, TopicBrief
from pipeline.engines.checks.persona_rules import first_person_in
from pipeline.engines.persona_short import PLUGIN
from pipeline.engines.shared.story_lines import STORY_WORDS, telling_of
from pipeline.generate.run_state import draft_from
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.render.picture_types import AvailableMedia, DrawnText
from pipeline.render.video.storyboard import TITLE_BAND, storyboard_faults, texts_outside
from pipeline.render.video.storyboard_json import as_json, from_json
from pipeline.render.video.templates.telling import CALL_SECONDS, HOOK_SECONDS, SLOTS
from pipeline.voices.system import PLUGIN as VOICE
from pipeline.writers.approved_line_drafts import NEEDS_AI, draft_approved_lines
from tests.engines.test_nothing_unlisted import ATTACKS, PERSONA, read

TITLE = "Harbour ferries go electric"
SENTENCES = (
    "Forty-two boats will carry nine million people a year between the islands.",
    "The city paid 214 million crowns for the boats, and the state gave 90 million more.",
    "Each boat charges for 6 minutes at the quay while the passengers go on board.",
    "The old engines go to a museum in the old town, where children may start one.",
    "Fishermen say that the water is quieter than it has been for 80 years.",
    "The first boat leaves at five in the morning, and the last one long after midnight.",
    "Tickets cost the same as before, and bicycles travel without one.",
    "Two smaller towns on the coast have asked for the plans of the boats.",
    "The yard in Lindholm hired 120 welders, most of them from the closed steelworks.",
    "A spare battery waits in a shed behind the fish market for cold mornings.",
    "Captains trained for three weeks on a machine that imitates wind and current.",
    "Divers look at the cables twice a year because anchors may have touched them.",
)
TEXT = " ".join(SENTENCES)
SOURCE = SourceText(TITLE, TEXT, "https://www.lindholm-times.example/ferries", language="en")
ANN = PersonaCard("Ann Whitfield", "annwhitfield", brand={"primary": "#1d3557", "accent": "#e76f51"})


def brief(sentences=SENTENCES, title=TITLE, url=SOURCE.url, language="en", **changes):
    text = " ".join(sentences)
    facts = [
        Fact(f"f{place}", one, one, text.index(one), text.index(one) + len(one))
        for place, one in enumerate(sentences, start=1)
    ]
    return Brief(title, language, url, tuple(facts), **changes)


def draft(**changes):
    made = PLUGIN.offline(brief(), ANN, variants=1, seed="s")[0]
    return dataclasses.replace(made, **changes)


def told(one, source=SOURCE, persona=ANN, outcome="failed", of=None):
    return {
        check.code: check.message
        for check in PLUGIN.check(one, of or brief(), source, persona)
        if check.outcome == outcome
    }


def spoken(one, persona=ANN):
    script = PLUGIN.script(one, persona)
    speech = VOICE.speak(script.text, language="en", rate=script.rate, pitch=script.pitch, environment={})
    return narration.spoken(script, speech, voice="voice.wav"), speech


def test_offline_tells_sentences_word_for_word_in_their_order():
    one = draft()
    story = telling_of(one)

    assert (story.hook, story.call, story.end) == (
        TITLE,
        "Read the whole story",
        "Source: lindholm-times.example",
    )
    said = [claim.text for claim in one.claims]
    assert said == [sentence for sentence in SENTENCES if sentence in said]
    assert " ".join(story.passages) == " ".join(said)
    assert one.content == {"caption": f"{TITLE}\n{SOURCE.url}", "tags": [], "script": one.body}
    words = sum(len(passage.split()) for passage in PLUGIN.script(one, ANN).passages)
    assert STORY_WORDS[0] <= words <= STORY_WORDS[1]
    assert told(one) == told(one, outcome="warning") == {}


def test_each_variant_tells_sentences_of_its_own():
    made = PLUGIN.offline(brief(), ANN, variants=5, seed="s")

    assert len(made) == 2
    first, second = ({claim.text for claim in one.claims} for one in made)
    assert first & second == set()


def test_too_little_is_refused_in_a_sentence():
    assert PLUGIN.why_not(SOURCE) is None
    assert PLUGIN.why_not(SourceText(TITLE, SENTENCES[0])) == (
        "A Persona Short needs 45 words in sentences of at most 220 characters that stand alone; this item has 12."
    )
    with pytest.raises(Refused, match=r"a Persona Short needs 45 words .* the source has \d+\.$"):
        PLUGIN.offline(brief(SENTENCES[:2]), ANN, variants=1, seed="s")


def test_nobody_says_i_of_what_others_did():
    """Sentences in the first person are left out, and so is a title; a model's are stopped, but the author's own."""
    mine = ("I have sailed here for 40 years and never slept through a morning.", *SENTENCES)
    given = brief(mine, title="Why we like our ferries")

    one = PLUGIN.offline(given, ANN, variants=1, seed="s")[0]

    assert first_person_in(one.body, "en") == ""
    said = draft(body=draft().body.replace("Forty-two boats will", "I think that 42 boats will"))
    assert "“I” would be the persona's own" in told(said)["first_person"]
    author = dataclasses.replace(SOURCE, author="Ann Whitfield")
    assert "first_person" not in told(said, source=author)


@pytest.mark.parametrize(
    ("words", "language", "found"),
    [
        ("I'm here", "en", "I'"),
        ("All of us know it", "en", "us"),
        ("The US voted in World War I and after.", "en", ""),
        ("“We are late,” said Ann.", "en", ""),
        ("Wir bauen ein Boot", "de", "Wir"),
        ("Nous partons", "fr", "Nous"),
        ("Nosotros vamos", "es", "Nosotros"),
        ("Minä lähden", "fi", ""),
    ],
)
def test_first_person_is_read_outside_of_quotations(words, language, found):
    assert first_person_in(words, language).startswith(found)
    assert bool(first_person_in(words, language)) is bool(found)


@pytest.mark.parametrize("words", [words for words, _ in ATTACKS.values()], ids=ATTACKS)
def test_what_leads_to_strangers_is_not_told(words):
    led, _ = read(words, *SENTENCES, title=words)

    made = PLUGIN.offline(led, PERSONA, variants=3, seed="s")

    assert made != ()
    assert [one for one in made if words in f"{one.title}{one.body}{one.content}"] == []


def lane(lines, kind=APPROVED):
    made = brief(lines, title="Ferries and boats", url="", lane=TopicBrief("Ferries and boats"))
    return dataclasses.replace(made, facts=tuple(dataclasses.replace(one, kind=kind) for one in made.facts))


@pytest.mark.parametrize("title", ["The ferries of Lindholm run on batteries " * 3, ""])
def test_a_hook_is_cut_at_words_where_nothing_is_short_enough(title):
    long = tuple(f"{one[:-1]}, as the harbour master of the old town of Lindholm says." for one in SENTENCES)
    (one,) = PLUGIN.offline(brief(long, title=title), ANN, variants=1, seed="s")
    hook = telling_of(one).hook

    assert hook.endswith("\u2026")
    assert len(hook) <= SLOTS["hook"].characters
    assert hook[:-1] in (title or " ".join(long))
    assert PLUGIN.film(one, ANN, AvailableMedia()).scenes


@pytest.mark.parametrize(
    ("language", "hook"),
    [
        ("ar", "البلدي في المستشفى على الميناء القديم في المدينة"),
        ("hi", "मैं यहाँ हूँ और पुस्तक पढ़ रहा हूँ"),
        ("vi", "CHẾ ĐỘ MỚI Ễ ĐẾN BẾN CẢNG"),
    ],
)
def test_a_hook_fits_in_every_script(language, hook):
    assert PLUGIN.film(draft(body=lines((0, hook)), language=language), ANN, AvailableMedia()).scenes


def test_a_brand_lane_is_told_from_approved_lines_or_needs_a_model():
    lines = tuple(f"We build boats: {one[0].lower()}{one[1:]}" for one in SENTENCES[:6])
    [one] = draft_approved_lines(PLUGIN, lane(lines), ANN, variants=1, seed="s", judge=None)

    assert all(claim.quote in one.body for claim in one.claims)
    assert telling_of(one).end == "@annwhitfield"
    assert "first_person" not in told(one, source=SourceText("", " ".join(lines)), of=lane(lines))
    with pytest.raises(Refused) as refused:
        draft_approved_lines(PLUGIN, lane(lines, kind="statement"), ANN, variants=1, seed="s", judge=None)
    assert refused.value.code == NEEDS_AI


ANSWER = {
    "angle": "number",
    "hook": "42 ferries, no diesel",
    "passages": [f"{SENTENCES[0]} {SENTENCES[1]}", f"{SENTENCES[2]} {SENTENCES[4]}", SENTENCES[3]],
    "call": "Would you ride one?",
    "description": "Lindholm's ferries run on batteries.",
    "tags": ["ferries", "#batteries"],
    "claims": [{"text": "214 million crowns", "fact": "f2"}],
}


def test_an_answer_becomes_a_draft():
    one = PLUGIN.draft_from(ANSWER, brief(), ANN, "number")

    assert one.body.splitlines() == [
        ANSWER["hook"],
        *ANSWER["passages"],
        ANSWER["call"],
        "Source: lindholm-times.example",
    ]
    assert one.content["caption"] == f"{ANSWER['description']}\n{SOURCE.url}"
    assert one.content["tags"] == ["ferries", "batteries"]
    assert ([claim.quote for claim in one.claims], one.angle) == ([SENTENCES[1]], "number")
    assert told(one) == {}


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("would you " * 6 + "ride?", "The call to action has 13 words; the maximum is 11."),
        (
            "Call 020 7946 0958 about the line today.",
            "The call to action takes 5.3 seconds to say; the maximum is 4.",
        ),
        ("—", "The call to action has no word that can be said."),
    ],
)
def test_a_call_to_action_that_is_a_speech_is_sent_back(call, fault):
    """Among all that is wrong with an answer, so that the model mends it at once."""
    answer = {**ANSWER, "passages": ANSWER["passages"][:2], "call": call, "tags": ["two words"]}
    one = PLUGIN.draft_from(answer, brief(), ANN, "number")

    assert told(one)["call"] == fault
    assert told(one)["content"] == "A tag is one word."
    # As a run keeps it.
    kept = json.loads(json.dumps(dataclasses.asdict(one)))
    assert told(draft_from(kept))["call"] == fault


def lines(*changes):
    said = draft().body.splitlines()
    for place, words in changes:
        said[place] = words
    return "\n".join(line for line in said if line)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"body": TITLE}, "script", "The text has 1 line, 0 passages among them."),
        ({"body": lines((0, "Boats " * 13))}, "script", "The hook has 77 characters; the maximum is 72."),
        (
            {"body": lines((1, "Boats and more. " * 28))},
            "script",
            "Passage 1 has 447 characters; the maximum is 420.",
        ),
        ({"body": lines((5, "s" * 80))}, "script", "The end card has 80 characters; the maximum is 72."),
        ({"body": lines((1, ""), (2, ""), (3, "It ends."))}, "length", "a film takes 15 to 60"),
        (
            {"body": lines((1, "More at https://lindholm-times.example/ferries now."))},
            "links_in_film",
            "can't be followed",
        ),
        ({"body": lines((1, "Boats \U00012000 sail."))}, "glyphs", "no glyphs for"),
        ({"body": lines((1, "It has 987 boats."))}, "numbers", "987"),
        ({"content": {"caption": 5, "tags": []}}, "content", "of a Persona Short is a caption, tags"),
    ],
)
def test_what_breaks_a_rule_is_stopped(changes, code, message):
    assert message in told(draft(**changes))[code]


def test_a_hook_that_does_not_fit_is_stopped(monkeypatch):
    monkeypatch.setitem(SLOTS, "hook", dataclasses.replace(SLOTS["hook"], height=60.0))
    assert "The hook doesn't fit into 810 × 60 pixels" in told(draft(body=lines((0, "W" * 72))))["fits"]


def test_a_story_that_is_too_short_to_be_good_is_shown_to_a_person():
    short = draft(body=lines((1, SENTENCES[0]), (2, SENTENCES[1])))

    assert "70 to 110 words in 20 to 45 seconds are best." in told(short, outcome="warning")["length"]


def test_the_film_is_laid_on_the_words_as_they_are_heard():
    one = draft()
    heard, _ = spoken(one)

    board = PLUGIN.film(one, ANN, AvailableMedia(narration=heard))

    assert storyboard_faults(board) == texts_outside(board) == ()
    hook, *passages, end = board.scenes
    assert 3 <= len(board.scenes) <= 5
    assert hook.end <= HOOK_SECONDS
    assert end.end - end.start <= CALL_SECONDS
    assert 20 <= board.duration <= 45
    # Each scene comes less than a tenth of a second before its first word.
    starts = [scene.start for scene in (*passages, end)]
    for start, words in zip(starts, heard.passages[1:], strict=True):
        assert 0 <= words[0].start - start <= 0.1 + 1 / 30
    assert board.audio.voice == "voice.wav"
    # Captions come with their words.
    said = {(word.t, word.start) for word in heard.words}
    assert {(word.t, word.start) for card in board.captions for word in card.words} == said
    for card in board.captions:
        assert abs(card.start - card.words[0].start) <= 0.05
    # Each figure comes when it is said.
    figures = {
        overlay.items[0].block.lines[0].text: overlay.start
        for overlay in board.overlays
        if overlay.name == "figure"
    }
    when = {word.t: word.start for word in heard.words}
    assert figures["214"] == pytest.approx(when["214"] - 0.05, abs=0.01)
    assert figures["6"] == pytest.approx(when["6"] - 0.05, abs=0.01)


def test_a_figure_leaves_with_its_sentence_and_a_bare_one_never_comes():
    passage = (
        "Tickets are $5 for under-18s. The doors of the hall are opened by a volunteer who has done it since she was a girl. "
        "There are 412 of them."
    )
    board = PLUGIN.film(draft(body=lines((1, passage))), ANN, AvailableMedia())

    shown = {
        overlay.items[0].block.lines[0].text: overlay
        for overlay in board.overlays
        if overlay.name == "figure"
    }
    (said,) = (word for card in board.captions for word in card.words if word.t == "volunteer")
    assert "412" not in shown
    assert shown["$5"].end < said.start
    assert storyboard_faults(board) == texts_outside(board) == ()


def test_without_a_voice_the_same_film_is_read_in_silence():
    board = PLUGIN.film(draft(), ANN, AvailableMedia())

    assert (board.audio.voice, storyboard_faults(board), texts_outside(board)) == ("", (), ())
    shown = " ".join(word.t for card in board.captions for word in card.words)
    assert shown == " ".join(PLUGIN.script(draft(), ANN).passages)


def test_a_hook_that_is_too_long_to_say_is_shown_while_the_voice_begins():
    long = "The ferries of Lindholm's harbour go electric from Monday on"
    one = draft(body=lines((0, long)))

    assert PLUGIN.script(one, ANN).passages[0].startswith("Forty-two boats")
    heard, _ = spoken(one)
    board = PLUGIN.film(one, ANN, AvailableMedia(narration=heard))
    assert 1.6 <= board.scenes[0].end <= HOOK_SECONDS
    starts = [word.start for word in heard.words]
    assert min(abs(board.scenes[0].end + 0.08 - start) for start in starts) <= 1 / 30


def test_a_hook_stays_until_it_is_said():
    one = draft(body=lines((0, "Lindholm's ferries switch off their engines")))
    heard, _ = spoken(one)
    hook = heard.passages[0]

    board = PLUGIN.film(one, ANN, AvailableMedia(narration=heard))

    assert hook[-1].t == "engines"
    assert hook[-1].end - 0.15 <= board.scenes[0].end <= HOOK_SECONDS


@pytest.mark.parametrize("has_portrait", [False, True])
def test_the_persona_shows_its_face_and_the_hook_stands_there_at_once(has_portrait):
    board = PLUGIN.film(draft(), ANN, AvailableMedia(has_portrait=has_portrait))

    assert board.needs_portrait is has_portrait
    assert {"face", "person"} <= {one.name for one in board.overlays}
    title = next(one for one in board.overlays if one.name == "title")
    assert (title.start, title.enter.kind) == (0.0, "none")
    words = title.items[0]
    assert TITLE_BAND[0] <= words.y
    assert words.y + words.block.height <= TITLE_BAND[1]


def test_nothing_that_is_read_lies_under_a_caption():
    """Wherever a card may stand, no other words are: both would be lost."""
    board = PLUGIN.film(draft(), ANN, AvailableMedia(has_portrait=True))
    look = board.caption_look
    top, bottom = look.y - look.size * 1.12, look.y + look.size * 1.12
    for overlay in board.overlays:
        for item in overlay.items:
            if isinstance(item, DrawnText):
                assert item.y + item.block.height <= top or item.y >= bottom, overlay.name


def test_the_pace_is_the_personas():
    persona = dataclasses.replace(ANN, brand={"voice_rate": "190", "voice_pitch": "35"})

    script = PLUGIN.script(draft(), persona)

    assert (script.rate, script.pitch) == (190, 35)


def test_the_film_is_as_recorded():
    """Every number of the silent storyboard; it is written anew only after a look at the film."""
    board = PLUGIN.film(draft(), ANN, AvailableMedia())
    path = Path(__file__).parent / "samples" / "persona_short.storyboard"
    made = as_json(board)
    assert made == json.loads(path.read_text())
    assert from_json(made) == board


def test_a_story_from_right_to_left_is_told_on_the_right_edge():
    said = (
        "المجلس يوافق على خط الترام",
        "ستبلغ التكلفة 214 مليون، وتدفع الحكومة منها 92 مليون، ويبدأ البناء في الربيع القادم في شارع الميناء.",
        "سيكون سعر التذكرة زهيدا كما في الحافلات، وتسير العربات كل سبع دقائق في ساعات الذروة من الميناء إلى الجامعة.",
        "المصدر: news.example",
    )
    one = draft(body="\n".join(said), language="ar")
    board = PLUGIN.film(one, PersonaCard("ليلى حداد", "layla"), AvailableMedia())

    assert storyboard_faults(board) == texts_outside(board) == ()


def test_passage_without_a_word_is_told():
    hook, *passages, call, end = draft().body.splitlines()
    silent = draft(body="\n".join([hook, passages[0], "—", call, end]))
    assert told(silent)["fits"] == "Passage 2 has no word that can be said."
    with pytest.raises(Refused, match=r"^Passage 2 has no word"):
        PLUGIN.film(silent, ANN, AvailableMedia(has_portrait=False, size=PLUGIN.sizes[0]))
