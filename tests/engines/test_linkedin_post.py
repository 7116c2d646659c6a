"""LinkedIn Post: what opens it, how paragraphs are made, what is stopped."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.base import Check, Claim, Draft, Fact, PersonaCard, SourceText
from pipeline.engines.linkedin_post import (
    HARD_MAX_CHARACTERS,
    MAX_CHARACTERS,
    MIN_CHARACTERS,
    PLUGIN,
    VISIBLE_CHARACTERS,
)
from pipeline.platforms.linkedin import MAX_TEXT_CHARACTERS
from pipeline.plugins import Refused
from pipeline.text.prose.sentences import split_sentences
from pipeline.writers.extractive import PLUGIN as WRITER
from tests.engines.test_thread import ANN, SENTENCES, URL, brief_of, words

LONG = (
    "The council of Harrow, which had met since the spring and had heard residents, retailers, engineers and "
    "judges of the court, voted 14 to 9 on Tuesday evening for the tram that leads from the old harbour to the university."
)
MORE = (
    "Nine versions of the plan were drawn up by the officials over eleven long years of dispute.",
    "A single ticket will cost £2.40 on the whole route, the same price as on the buses of the town.",
    "Archaeologists found the remains of a medieval quay on the site of the depot last summer.",
    *SENTENCES,
)


def posts(*quotes: str, url: str = URL, variants: int = 1, persona: PersonaCard = ANN) -> list[str]:
    brief, source = brief_of(*quotes, url=url)
    drafts = PLUGIN.offline(brief, persona, variants=variants, seed="s")
    checks = [check for draft in drafts for check in PLUGIN.check(draft, brief, source, persona)]
    assert [check for check in checks if check.outcome != "passed"] == []
    assert [draft.content for draft in drafts] == [{"parts": [draft.body]} for draft in drafts]
    return [draft.body for draft in drafts]


def checked(body: str) -> tuple[Check, ...]:
    brief, source = brief_of(*MORE)
    fact = brief.facts[0]
    claims = (Claim(fact.text, fact.quote, fact.start, fact.end),)
    return PLUGIN.check(Draft("Title", body, "text", {"parts": [body]}, claims, "en"), brief, source, ANN)


def failures(body: str) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in checked(body) if one.outcome == "failed"]


def sound(*instead: str) -> str:
    return "\n\n".join([*(instead or MORE[:1]), *MORE[1:9], URL])


def test_every_sentence_is_a_paragraph_and_the_address_the_last() -> None:
    assert posts(*MORE) == ["\n\n".join([*MORE, URL])]


def test_no_further_sentence_is_added_to_a_post_that_is_long_enough() -> None:
    more = (
        "Bakers near the market square open an hour earlier while the works go on.",
        "Cyclists keep both lanes of Customs Road, says the newest version of the drawings.",
        "Residents asked for quieter rails, and engineers promised rubber under each of them.",
        "Insurance for the tunnel costs less than anybody in the finance office had expected.",
    )
    (body,) = posts(*MORE, *more)

    assert 900 <= len(body) <= 1_000


def test_sentence_that_opens_it_ends_where_readers_stop_to_see() -> None:
    (body,) = posts(LONG, *MORE)

    assert body.split("\n\n")[0] == MORE[0]
    assert LONG in body.split("\n\n")


def test_sentence_that_leans_on_another_stands_behind_it() -> None:
    brief, source = brief_of(*MORE)
    leaning = "They took the last one from a drawer."
    fact = brief.facts[1]
    joined = f"{source.text[: fact.end]} {leaning}"
    text = f"{joined}{source.text[fact.end :]}"
    shift = len(leaning) + 1
    facts = [
        dataclasses.replace(one, start=one.start + shift, end=one.end + shift)
        if one.start > fact.start
        else one
        for one in brief.facts
    ]
    facts.append(Fact("f9", leaning, leaning, fact.end + 1, fact.end + 1 + len(leaning)))
    brief = dataclasses.replace(brief, facts=tuple(facts))

    draft = PLUGIN.offline(brief, ANN, variants=1, seed="s")[0]

    assert f"{fact.quote} {leaning}" in draft.body.split("\n\n")
    assert [text[claim.start : claim.end] for claim in draft.claims] == [
        claim.quote for claim in draft.claims
    ]
    source = dataclasses.replace(source, text=text)
    assert [one for one in PLUGIN.check(draft, brief, source, ANN) if one.outcome != "passed"] == []


def test_sentence_that_leans_on_another_is_not_told_again_by_itself() -> None:
    text = (
        "My grandmother's dumplings are the plainest food I know, and the best on a wet November evening. You need flour, "
        "butter, salt and a pot of good broth with plenty of room in it. Rub the butter into the flour until it looks like "
        "coarse sand, and don't hurry. Stir in the butter and salt. Work in just enough flour to make a soft dough; that "
        "number of spoonfuls depends on the flour.\n\nDrop spoonfuls into the simmering broth and cover the pot for twelve "
        "minutes without lifting the lid. The dumplings double in size, so leave room between them. Do NOT freeze them. My "
        "gran, who was born in 1911, made dozens of them every Sunday in November. Serve them at once with parsley and black "
        "pepper on top, in wide bowls that hold the heat. Leftover broth keeps for three days in the fridge."
    )
    source = SourceText("Dumplings", text, URL, language="en")

    drafts = PLUGIN.offline(WRITER.brief(source).brief, ANN, variants=3, seed="s")
    for draft in drafts:
        said = [draft.body[start:end] for start, end in split_sentences(draft.body)]
        assert len(said) == len(set(said))


def test_source_that_says_too_little_is_refused_in_a_sentence() -> None:
    with pytest.raises(Refused) as refused:
        PLUGIN.offline(brief_of(*MORE[:4])[0], ANN, variants=1, seed="s")

    assert refused.value.code == "nothing_to_say"
    assert refused.value.message == (
        "A LinkedIn Post needs 600 characters in whole sentences that make sense out of their context, and one of at most "
        "200 to begin with that says what it is about. The source has too few of them."
    )


def test_source_whose_sentences_are_all_long_is_refused() -> None:
    with pytest.raises(Refused):
        PLUGIN.offline(
            brief_of(*(LONG.replace("Harrow", name) + name * 9 for name in "ABCDE"))[0],
            ANN,
            variants=1,
            seed="s",
        )


def test_rule_of_the_persona_that_no_post_keeps_is_named() -> None:
    short = PersonaCard("Ann", required_structures=({"kind": "max_words", "most": 40},))
    with pytest.raises(Refused, match=r"as a LinkedIn Post: It has \d+ words; the maximum is 40\.$"):
        PLUGIN.offline(brief_of(*MORE)[0], short, variants=1, seed="s")


def test_why_not_counts_characters() -> None:
    assert PLUGIN.why_not(SourceText("T", "word " * 100)) == (
        "This item has 499 characters of text; a LinkedIn Post has 600 or more, and none is invented."
    )
    assert PLUGIN.why_not(SourceText("T", "word " * 200)) is None


def test_chinese_takes_half_as_many_characters() -> None:
    assert PLUGIN.why_not(SourceText("T", "渡轮早七点开。" * 43)) is None
    assert PLUGIN.why_not(SourceText("T", "渡轮早七点开。" * 42)) == (
        "This item has 294 characters of text; a LinkedIn Post has 300 or more, and none is invented."
    )
    assert failures("渡轮早七点开。\n\n" * 34)[0] == (
        "length",
        "The post has 272 characters; a LinkedIn Post has 300 or more.",
    )


def test_sound_post_fails_nothing() -> None:
    assert failures(sound()) == []
    assert [one.outcome for one in checked(sound())] == ["passed"] * 14


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            "\n\n".join(MORE[:3]),
            "length",
            f"The post has 279 characters; a LinkedIn Post has {MIN_CHARACTERS} or more.",
        ),
        (sound(*["word " * 12 + "word."] * 60), "length", f"The post has 4629 characters; LinkedIn takes {HARD_MAX_CHARACTERS}."),
        (sound(LONG), "opening", f"The first sentence ends after {len(LONG)} characters; readers see {VISIBLE_CHARACTERS} before they have to click."),
        (sound("They voted for the tram."), "opening", "The first word points at something said before."),
        (
            sound("A vote. A tram. A bridge."),
            "paragraphs",
            "Paragraph 1 has more than two sentences; a blank line belongs after every one or two.",
        ),
        (sound(f"Harrow builds a tram.\n\n{URL}"), "link_count", "The post has 2 links; the maximum is one."),
        (sound("Harrow builds #a #b #c #d."), "hashtags", "The post has 4 hashtags; the maximum is three."),
        (sound("Harrow builds 15 trams."), "numbers", "These numbers aren't in the source: 15."),
        (
            sound("Harrow: “We have waited far too long.”"),
            "quotations",
            ("These quotations aren't in the source word for word: We have waited far too long.. "
            "Nearest in the source: “We have waited long enough for this line,” said mayor Ellen Okafor."),
        ),
    ],
)  # fmt: skip
def test_broken_rule_is_named(body: str, code: str, message: str) -> None:
    assert failures(body) == [(code, message)]


def test_long_post_is_a_warning() -> None:
    (length,) = [one for one in checked(sound(*["word " * 12 + "word."] * 15)) if one.code == "length"]

    assert (length.outcome, length.message) == (
        "warning",
        f"The post has 1614 characters; few read on after {MAX_CHARACTERS}.",
    )


def test_models_paragraphs_tags_and_the_address_are_put_together() -> None:
    brief, source = brief_of(*MORE)
    answer = {
        "paragraphs": [f"{MORE[0]}\n\n{MORE[1]}", *MORE[2:9], " "],
        "hashtags": ["#Council", "Mill Street", "", "tram"],
        "angle": "story",
        "claims": [{"text": "nine versions", "fact": "f0"}],
    }

    draft = PLUGIN.draft_from(answer, brief, ANN, "story")

    assert draft.body == "\n\n".join([*MORE[:9], URL, "#Council #MillStreet #tram"])
    assert [one for one in PLUGIN.check(draft, brief, source, ANN) if one.outcome == "failed"] == []


def test_answer_without_paragraphs_is_refused() -> None:
    with pytest.raises(Refused, match=r"^The list of paragraphs is empty\.$"):
        PLUGIN.draft_from({"paragraphs": [], "hashtags": [], "claims": []}, brief_of(*MORE)[0], ANN, "story")


@settings(deadline=None)
@given(words, st.sampled_from(["", URL, "https://example.com/ä ö?q=日#."]))
def test_whatever_the_source_holds_offline_posts_pass_every_check(text: str, url: str) -> None:
    source = SourceText("Title", f"{' '.join(MORE[:5])}\n\n{text}\n\n{' '.join(MORE[5:])} {text[::-1]}", url)
    brief = WRITER.brief(source).brief
    try:
        drafts = PLUGIN.offline(brief, ANN, variants=2, seed="s")
    except Refused:
        drafts = ()

    checks = [check for draft in drafts for check in PLUGIN.check(draft, brief, source, ANN)]
    assert [check for check in checks if check.outcome != "passed"] == []


def test_its_longest_is_what_the_platform_takes():
    assert HARD_MAX_CHARACTERS == MAX_TEXT_CHARACTERS
