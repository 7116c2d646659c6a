"""The offline writer's own behaviour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
from pipeline.writers.base import Usage
from pipeline.writers.extractive import PLUGIN
from pipeline.writers.extractive.telling_sentences import MAX_CHARACTERS, MAX_FACTS, find_facts
from tests.timing import least_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FIVE_MEBIBYTES = 5 * 1024 * 1024

hostile_text = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from(" .!?。…\"'\n()“”,;:0123456789abcdefAB")),
    max_size=500,
)


@given(hostile_text, st.text(max_size=40))
def test_every_quote_is_verbatim(text: str, title: str) -> None:
    facts = find_facts(text, title=title)

    assert [fact.quote for fact in facts] == [text[fact.start : fact.end] for fact in facts]
    assert [fact.id for fact in facts] == [f"f{place}" for place in range(1, len(facts) + 1)]


@given(
    st.lists(
        st.sampled_from(
            ["The dog barks at 9 today.", "Cats sleep all day long.", "“Rain fell,” said the old man."]
        )
    )
)
def test_same_text_gives_the_same_facts_once_each(sentences: list[str]) -> None:
    text = " ".join(sentences)

    facts = find_facts(text)

    assert facts == find_facts(text)
    assert sorted(fact.text for fact in facts) == sorted(set(sentences))


def test_what_the_lead_says_comes_first_and_dangling_sentences_later() -> None:
    text = (
        "The Harrow Council voted 14 to 9 on Tuesday to build a tram line to the university. "
        "It will run every seven minutes in the busiest hours of the day. "
        "The tram line costs the council 214 million pounds over six years. "
        "“We waited long for the tram line,” said the mayor of Harrow."
    )

    facts = find_facts(text, title="Harrow builds a tram line")

    assert facts[0].start == 0
    assert facts[-1].text == "It will run every seven minutes in the busiest hours of the day."


NAME = "The harbour gets a new ferry line in spring"
VOTE = "The council voted for it on Tuesday evening by a wide margin."


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (NAME, NAME),
        (f"{NAME}!", NAME),
        (NAME.upper(), NAME),
        (f"{NAME} | Brackwater Gazette", NAME),
        (
            "Der Hafen bekommt im Frühjahr eine neue Fährlinie",
            "Der Hafen bekommt im Frühjahr eine neue Fährlinie",
        ),
        ("Новая паромная линия откроется весной", "Новая паромная линия откроется весной."),
    ],
)
@pytest.mark.parametrize("between", ["\n", "\n\n"])
def test_the_title_once_more_is_no_fact(line: str, title: str, between: str) -> None:
    text = f"{line}{between}{VOTE}"
    assert [(fact.quote, fact.start) for fact in find_facts(text, title=title)] == [(VOTE, text.index(VOTE))]


def test_a_first_sentence_that_says_more_than_the_title_is_one() -> None:
    text = f"{NAME}, said the mayor. {VOTE}"
    assert {fact.quote for fact in find_facts(text, title=NAME)} == {f"{NAME}, said the mayor.", VOTE}


def test_a_question_comes_after_what_is_said() -> None:
    text = (
        "Who pays for the new tram line of 14 kilometres? "
        "The state pays 60 percent of the tram line. The city council voted for the tram on Monday."
    )
    facts = find_facts(text, title="Who pays for the new tram line")
    assert facts[-1].text == "Who pays for the new tram line of 14 kilometres?"


def test_near_copies_come_after_what_is_new() -> None:
    text = (
        "The council approved the new tram line to the harbour on Tuesday evening. "
        "The council approved the new tram line to the harbour late on Tuesday evening. "
        "Retailers in Mill Street fear that customers will stay away for eighteen months."
    )

    assert [fact.start for fact in find_facts(text)] == [
        0,
        text.index("Retailers"),
        text.index("The council", 5),
    ]


@pytest.mark.parametrize(
    "unclean",
    ["It was \x00 a fine day today.", "It was \u202e a fine day today.", "It was \ufffd a fine day today."],
    ids=["control", "direction", "lost"],
)
def test_sentences_with_breaking_characters_are_left_out(unclean: str) -> None:
    assert [fact.text for fact in find_facts(f"{unclean} The sun shone on the whole town.")] == [
        "The sun shone on the whole town."
    ]


@pytest.mark.parametrize("text", ["", " \n ", "Go.", "...", "\u200b", "Two words."])
def test_text_that_says_nothing_has_no_facts(text: str) -> None:
    assert find_facts(text) == ()


def _hostile() -> Iterator[tuple[str, Callable[[int], str]]]:
    units = {
        "letters": "x",
        "dots": ".",
        "short-sentences": "a. ",
        "initials": "A. ",
        "spaces": " ",
        "lines": "\n",
        "blank-lines": "\n \t",
        "quotes": '" ',
        "brackets": "( ",
        "bullets": "- ",
        "time-stamps": "1:11 ",
        "numbers": "1. ",
        "cjk": "字",
        "cjk-enders": "。",
        "domains": "a.",
        "schemes": "https://",
        "same-sentence": "One two three four five. ",
        "clauses": "one, two; three: ",
    }
    for name, unit in units.items():
        yield name, lambda length, unit=unit: unit * (length // len(unit))
    yield (
        "different-sentences",
        lambda length: "".join(
            f"Word{place} has the number {place} in it. " for place in range(length // 35)
        ),
    )


@pytest.mark.parametrize("length", [20_000, pytest.param(FIVE_MEBIBYTES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in _hostile()])
def test_the_time_grows_with_the_length_and_no_faster(make: Callable[[int], str], length: int) -> None:
    text = make(length)
    facts, seconds = least_of(3, lambda: find_facts(text))

    # Measured: 0.2 s at most; its square would be minutes.
    assert seconds < 5
    assert len(facts) <= MAX_FACTS
    assert all(fact.end <= MAX_CHARACTERS and fact.quote == text[fact.start : fact.end] for fact in facts)


class _Recorder(Engine):
    """Repeats what it was asked."""

    kind = "recorder"
    asked: tuple[Brief, PersonaCard, int, str] | None = None

    def why_not(self, source: SourceText) -> str | None:
        raise NotImplementedError

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        self.asked = (brief, persona, variants, seed)
        return (Draft("T", "B", "text", {"parts": ["B"]}, (), "en"),)

    def check(self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> tuple[()]:
        raise NotImplementedError


def test_draft_is_the_engines_own_offline_one() -> None:
    engine = _Recorder()
    brief = Brief("Title", "en", "", ())
    persona = PersonaCard("Ann")

    answer = PLUGIN.draft(engine, brief, persona, variants=2, seed="s")

    assert engine.asked == (brief, persona, 2, "s")
    assert answer.drafts == (Draft("T", "B", "text", {"parts": ["B"]}, (), "en"),)
    assert answer.usage == Usage("offline", "extractive-1", offline=True, prompt_version="extractive-1")


def test_nothing_that_people_read_calls_it_ai() -> None:
    assert PLUGIN.label == "Without AI: sentences taken from the source"
    assert PLUGIN.offline is True
