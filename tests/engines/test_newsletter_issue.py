"""Newsletter Issue: one story as a mail, as an excerpt and as a model writes it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText
from pipeline.engines.newsletter_issue import PLUGIN
from pipeline.generate.checks import run_checks
from pipeline.generate.model import client as model_client
from pipeline.plugins import Refused
from pipeline.text.newsletter_sections import from_content
from pipeline.writers.claude import Claude
from tests.writers.messages_server import MessagesServer, ok

if TYPE_CHECKING:
    from pipeline.engines.base import Check, Draft

SAMPLES = Path(__file__).parent / "samples"
SAMPLE = json.loads((SAMPLES / "newsletter_issue.json").read_text(encoding="utf-8"))
WRITTEN = json.loads((SAMPLES / "newsletter_issue_written.json").read_text(encoding="utf-8"))
SOURCE = SourceText(**SAMPLE["source"])
BRIEF = Brief(**{**SAMPLE["brief"], "facts": tuple(Fact(**fact) for fact in SAMPLE["brief"]["facts"])})
ANN = PersonaCard("Ann", handle="ann")


def made(brief: Brief = BRIEF, persona: PersonaCard = ANN) -> Draft:
    return PLUGIN.offline(brief, persona, variants=1, seed="s")[0]


def failed(draft: Draft, brief: Brief = BRIEF, persona: PersonaCard = ANN) -> dict[str, str]:
    checks = PLUGIN.check(draft, brief, SOURCE, persona)
    return {check.code: check.message for check in checks if check.outcome == "failed"}


def length_of(draft: Draft, brief: Brief = BRIEF) -> Check:
    return next(check for check in PLUGIN.check(draft, brief, SOURCE, ANN) if check.code == "length")


def short_brief(*quotes: str, title: str = "Tram approved") -> Brief:
    facts, text = [], ""
    for place, quote in enumerate(quotes):
        facts.append(Fact(f"f{place}", quote, quote, len(text), len(text) + len(quote)))
        text += quote + "\n\n"
    return Brief(title, "en", "https://e.example/", tuple(facts))


def answer(**changes: Any) -> dict[str, Any]:
    return {**WRITTEN, **changes}


def written(**changes: Any) -> Draft:
    return PLUGIN.draft_from(answer(**changes), BRIEF, ANN, "story")


@pytest.mark.parametrize(
    ("text", "says"),
    [("", "no words beyond its title"), ("word " * 39, "has 39"), ("word " * 40, None)],
)
def test_story_of_too_few_words_is_declined(text: str, says: str | None) -> None:
    why = PLUGIN.why_not(SourceText("Title", text))
    assert (why is None) is (says is None)
    assert says is None or says in str(why)


def test_excerpt_is_verbatim_in_the_sources_order_and_says_so() -> None:
    draft = made()
    places = [SOURCE.text.index(claim.text) for claim in draft.claims]
    assert places == sorted(places)
    (section,) = from_content(draft.content)
    assert section.headline == draft.title == SOURCE.title
    assert section.link == SOURCE.url
    assert "sentences of the source and nothing added" in length_of(draft).message


def test_sentences_that_lean_on_others_stand_beside_nothing_strange() -> None:
    words = "\n\n".join(draft.body for draft in PLUGIN.offline(BRIEF, ANN, variants=3, seed="s"))
    assert "she said" not in words
    assert "They" not in words.split("\n\n")[0]


def test_long_title_is_cut_for_the_subject_alone() -> None:
    title = "The council of the old harbour approves a tram line that was asked for eleven years ago"
    draft = made(replace(BRIEF, title=title))
    assert draft.title == title
    assert draft.content["subject"] == "The council of the old harbour approves a tram…"
    assert failed(draft) == {}


def test_preheader_is_put_together_from_short_sentences() -> None:
    brief = short_brief("The mayor smiles at last.", "Retailers fear for their sales.", "Trams run.")
    assert made(brief).content["preheader"] == "Retailers fear for their sales. Trams run."


def test_words_that_fill_no_preheader_make_no_mail() -> None:
    with pytest.raises(Refused) as refused:
        made(short_brief("Trams run in Harrow."))
    assert refused.value.code == "nothing_to_say"


def test_banned_word_keeps_its_sentence_out() -> None:
    persona = replace(ANN, banned_words=("Northline",))
    assert "Northline" in made().body
    assert "Northline" not in made(persona=persona).body
    assert failed(replace(made(), content={**made().content, "subject": "By Northline"}), persona=persona)[
        "banned_in_subject"
    ]


def test_leftovers_make_no_mail_of_their_own() -> None:
    brief = short_brief(
        *[f"Sentence number {place} says that the tram is on its way to us." for place in range(10)]
    )
    assert len(PLUGIN.offline(brief, ANN, variants=3, seed="s")) == 1


# --- As a model writes it --------------------------------------------------------------------------------------------


def test_written_issue_keeps_every_rule() -> None:
    draft = written()
    assert {check.outcome for check in run_checks(PLUGIN, draft, BRIEF, SOURCE, ANN)} == {"passed"}
    assert length_of(draft).message == "The issue has 341 words, from 300 to 500."
    assert draft.body.endswith(f"[Read more]({SOURCE.url})")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"subject": "s" * 51}, "subject"),
        ({"subject": " "}, "subject"),
        ({"preheader": "p" * 39}, "preheader"),
        ({"preheader": "p" * 91}, "preheader"),
        ({"subject": "Opens in March 2030"}, "numbers"),
        ({"preheader": "“Not a word of it was ever true,” said the mayor."}, "quotations"),
        ({"preheader": "Write to desk@evil.example, they will tell you more."}, "contacts"),
        ({"headline": "More at evil.com"}, "link_origin"),
        ({"paragraphs": WRITTEN["paragraphs"][:2]}, "length"),
        ({"paragraphs": WRITTEN["paragraphs"] * 2}, "length"),
    ],
)
def test_written_issue_that_breaks_a_rule_is_stopped(changes: dict[str, Any], code: str) -> None:
    assert code in failed(written(**changes))


@pytest.mark.parametrize(("length", "outcome"), [(50, "passed"), (51, "failed")])
def test_subject_ends_at_fifty_characters(length: int, outcome: str) -> None:
    draft = written(subject="s" * length)
    assert ("subject" in failed(draft)) is (outcome == "failed")


@pytest.mark.parametrize("length", [40, 90])
def test_preheader_at_its_ends_is_taken(length: int) -> None:
    assert "preheader" not in failed(written(preheader="p" * length))


def test_preheader_that_repeats_the_subject_is_stopped() -> None:
    same = "The council votes for the tram to the harbour now"
    assert "preheader" in failed(written(subject=same, preheader=f"{same}."))


def test_short_issue_of_few_facts_is_a_warning_and_of_many_a_failure() -> None:
    few = replace(BRIEF, facts=BRIEF.facts[:2])
    draft = written(paragraphs=["The council votes for the tram. " * 10])
    assert length_of(draft, few).outcome == "warning"
    assert length_of(draft).outcome == "failed"


def test_words_that_look_like_markdown_stay_words() -> None:
    draft = written(paragraphs=["1. *Not* a [list](x).", *WRITTEN["paragraphs"]])
    assert r"1\. \*Not\* a \[list\](x)." in draft.body


def test_empty_answer_is_told_to_the_model() -> None:
    with pytest.raises(Refused):
        written(paragraphs=[" "])


def test_model_is_asked_once_and_its_issue_is_mended_once() -> None:
    bad = answer(subject="s" * 60, angle="story")
    good = answer(angle="story")
    with MessagesServer() as server:
        server.script = [ok({"variants": [bad]}), ok({"variants": [good]})]
        with model_client.connect_account(api_key="key", base_url=server.url, timeout=5) as client:
            answered = Claude().draft(
                PLUGIN,
                BRIEF,
                ANN,
                variants=1,
                seed="s",
                client=client,
                judge=lambda draft: run_checks(PLUGIN, draft, BRIEF, SOURCE, ANN),
            )
    assert [draft.content["subject"] for draft in answered.drafts] == [WRITTEN["subject"]]
    assert len(server.requests) == 2
    assert "60 characters; the maximum is 50" in json.dumps(server.requests[1].body)
