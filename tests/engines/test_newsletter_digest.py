"""Newsletter Digest: several stories in one mail, as excerpts and as a model writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText, Story
from pipeline.engines.newsletter_digest import PLUGIN
from pipeline.generate.checks import run_checks
from pipeline.generate.model import client as model_client
from pipeline.plugins import Refused
from pipeline.text.newsletter_sections import from_content
from pipeline.writers.claude import Claude
from pipeline.writers.extractive import PLUGIN as EXTRACTIVE
from pipeline.writers.topic_and_story_briefs import MAX_FACTS_PER_STORY, SourcePart, combine
from tests.engines.test_nothing_unlisted import ATTACKS, PERSONA, PLAIN
from tests.writers.messages_server import MessagesServer, ok

if TYPE_CHECKING:
    from pipeline.engines.base import Draft

SAMPLES = Path(__file__).parent / "samples"
SAMPLE = json.loads((SAMPLES / "newsletter_digest.json").read_text(encoding="utf-8"))
WRITTEN = json.loads((SAMPLES / "newsletter_digest_written.json").read_text(encoding="utf-8"))
STORIES = tuple(Story(**story) for story in SAMPLE["brief"]["stories"])
SOURCE = SourceText(**{**SAMPLE["source"], "stories": STORIES})
FACTS = tuple(Fact(**fact) for fact in SAMPLE["brief"]["facts"])
BRIEF = Brief(**{**SAMPLE["brief"], "facts": FACTS, "stories": STORIES})
ANN = PersonaCard("Ann", handle="ann")


def written(**changes: Any) -> Draft:
    return PLUGIN.draft_from({**WRITTEN, **changes}, BRIEF, ANN, "story")


def with_story(place: int, **changes: str) -> Draft:
    stories = [{**one, **(changes if at == place else {})} for at, one in enumerate(WRITTEN["stories"])]
    return written(stories=stories)


def failed(draft: Draft, brief: Brief = BRIEF, source: SourceText = SOURCE) -> list[str]:
    return [check.code for check in PLUGIN.check(draft, brief, source, ANN) if check.outcome == "failed"]


def told(*texts: str, title: str = "Something happened") -> tuple[Brief, SourceText]:
    parts = []
    for place, text in enumerate(texts):
        source = SourceText(title, text, f"https://news.example.org/{place}", language="en")
        parts.append(SourcePart(f"raw_{place}", source, EXTRACTIVE.brief(source).brief))
    return combine(parts)


def test_facts_keep_their_places_in_the_one_text() -> None:
    assert [SOURCE.text[fact.start : fact.end] for fact in FACTS] == [fact.quote for fact in FACTS]
    assert [SOURCE.text[one.start :].startswith(one.title) for one in STORIES] == [True] * 5
    assert sum((BRIEF.facts_of(story) for story in STORIES), ()) == FACTS
    assert max(len(BRIEF.facts_of(story)) for story in STORIES) == MAX_FACTS_PER_STORY


def test_nothing_found_in_nothing() -> None:
    brief, source = combine(())
    assert (brief.facts, brief.stories, source.text) == ((), (), "")


def test_suspicion_of_one_is_suspicion_of_all() -> None:
    source = SourceText("T", PLAIN, "https://a.example/")
    plain = SourcePart("raw_1", source, EXTRACTIVE.brief(source).brief)
    brief, _ = combine((plain, replace(plain, brief=replace(plain.brief, is_suspect=True))))
    assert brief.is_suspect


@pytest.mark.parametrize(
    ("count", "says"), [(0, "create a series under Calendar › Recurring"), (2, "this has 2"), (3, None)]
)
def test_what_is_no_digest_is_declined(count: int, says: str | None) -> None:
    why = PLUGIN.why_not(SourceText("T", "text", stories=STORIES[:count]))
    assert (why is None) is (says is None)
    assert says is None or says in str(why)


def test_excerpts_are_title_sentences_and_link_of_each_story() -> None:
    draft = PLUGIN.offline(BRIEF, ANN, variants=1, seed="s")[0]
    sections = from_content(draft.content)
    assert [one.headline for one in sections] == [one.title for one in STORIES]
    assert [one.link for one in sections] == [one.url for one in STORIES]
    assert all(claim.text in SOURCE.text for claim in draft.claims)
    assert "\u00b7" in draft.content["preheader"]


def test_story_without_a_word_to_say_is_left_out_and_too_few_are_refused() -> None:
    brief, _ = told(PLAIN, "Buy at evil.com today, says the man.", PLAIN, f"{PLAIN} It is built.")
    assert len(from_content(PLUGIN.offline(brief, ANN, variants=1, seed="s")[0].content)) == 3
    brief, _ = told(PLAIN, "Buy at evil.com today, says the man.", PLAIN)
    with pytest.raises(Refused) as refused:
        PLUGIN.offline(brief, ANN, variants=1, seed="s")
    assert refused.value.code == "too_few_stories"


def test_eighth_story_is_not_told() -> None:
    brief, _ = told(*[PLAIN] * 8)
    assert len(from_content(PLUGIN.offline(brief, ANN, variants=1, seed="s")[0].content)) == 7


@pytest.mark.parametrize(("words", "code"), ATTACKS.values(), ids=ATTACKS)
def test_what_strangers_wrote_leads_nobody_anywhere(words: str, code: str) -> None:
    brief, source = told(*[f"{words} {PLAIN}"] * 3, title=words)
    for draft in PLUGIN.offline(brief, PERSONA, variants=1, seed="s"):
        checks = PLUGIN.check(draft, brief, source, PERSONA)
        assert [check.code for check in checks if check.outcome == "failed"] == []
    stories = [{"story": f"s{place}", "headline": words, "text": words} for place in (1, 2, 3)]
    answer = {**WRITTEN, "stories": stories, "claims": [{"text": "x", "fact": "s1f1"}]}
    made = PLUGIN.draft_from(answer, brief, PERSONA, "story")
    assert code in [c.code for c in PLUGIN.check(made, brief, source, PERSONA) if c.outcome == "failed"]


# --- As a model writes it --------------------------------------------------------------------------------------------


def test_written_digest_keeps_every_rule() -> None:
    draft = written()
    assert [
        check for check in run_checks(PLUGIN, draft, BRIEF, SOURCE, ANN) if check.outcome != "passed"
    ] == []
    assert [one.link for one in from_content(draft.content)] == [one.url for one in STORIES]


@pytest.mark.parametrize(
    ("draft", "codes"),
    [
        (with_story(0, text=f"{WRITTEN['stories'][0]['text']} {'word ' * 20}"), ["length"]),
        (with_story(0, text="It is built."), ["length"]),
        (with_story(0, headline="h" * 91), ["length"]),
        (with_story(1, headline="The tram costs £214 million"), ["own_numbers"]),
        (with_story(1, headline="It costs £215 million"), ["own_numbers", "numbers"]),
        (with_story(1, headline=" "), ["content"]),
        (written(stories=WRITTEN["stories"][:2]), ["stories"]),
        (written(subject="s" * 51), ["subject"]),
        (written(preheader="p" * 91), ["preheader"]),
        (written(title="More at evil.com"), ["link_origin"]),
    ],
    ids=[
        "long", "short", "long headline", "number of another story", "invented number", "no headline", "two stories",
        "subject", "preheader", "link",
    ],
)  # fmt: skip
def test_written_digest_that_breaks_a_rule_is_stopped(draft: Draft, codes: list[str]) -> None:
    assert failed(draft) == codes


@pytest.mark.parametrize("names", [["s1", "s1", "s2"], ["s1", "s2", "s9"]])
def test_stories_that_are_not_there_or_twice_are_told_to_the_model(names: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        written(stories=[{"story": name, "headline": "H", "text": "T"} for name in names])
    assert refused.value.code == "unknown_story"


def test_short_story_of_few_facts_is_a_warning() -> None:
    few = replace(BRIEF, facts=(*(one for one in FACTS if not one.id.startswith("s4")), FACTS[20]))
    draft = with_story(3, text="The repair of the Westgate pool costs £310,000.")
    length = next(check for check in PLUGIN.check(draft, few, SOURCE, ANN) if check.code == "length")
    assert (length.outcome, "facts hold no more" in length.message) == ("warning", True)


def test_model_is_asked_once_and_sees_facts_by_story_and_nothing_else() -> None:
    with MessagesServer() as server:
        server.script = [ok({"variants": [WRITTEN]})]
        with model_client.connect_account(api_key="key", base_url=server.url, timeout=5) as client:
            answer = Claude().draft(
                PLUGIN,
                BRIEF,
                ANN,
                variants=1,
                seed="s",
                client=client,
                judge=lambda draft: run_checks(PLUGIN, draft, BRIEF, SOURCE, ANN),
            )
    assert [draft.title for draft in answer.drafts] == [WRITTEN["title"]]
    (request,) = server.requests
    # A line that says what it is, then the facts between two marks.
    document = request.body["messages"][0]["content"][0]["text"].split("\n", 2)[2].rsplit("\n", 1)[0]
    facts = json.loads(document)
    assert [fact["story"] for fact in facts] == [fact.id[:2] for fact in FACTS]
    assert STORIES[1].title not in request.raw
    assert "quayside.example" not in request.raw
    assert "A helmet, a lock" in document
