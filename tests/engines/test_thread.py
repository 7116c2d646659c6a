"""Thread: which sentences become posts, where the link stands, what is stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines.base import Brief, Check, Claim, Draft, Fact, PersonaCard, SourceText
from pipeline.engines.thread import PLUGIN
from pipeline.plugins import Refused
from pipeline.text.content_schema import PARTS_BETWEEN
from pipeline.text.weighted_length import MAX_LENGTH, weighted_length
from pipeline.writers.extractive import PLUGIN as WRITER

ANN = PersonaCard("Ann", handle="ann", links=("https://ann.example.com/about",))
URL = "https://example.com/news"
SENTENCES = (
    "The council voted 14 to 9 for the tram on Tuesday evening.",
    "Retailers in Mill Street fear for their sales during the works.",
    "“We have waited long enough for this line,” said mayor Ellen Okafor.",
    "Construction of the depot begins in April and employs 340 people.",
    "Passengers travel free of charge during the first weeks of service.",
    "The operator expects 38,000 passengers a day on the whole route.",
    "Work on the harbour bridge has to be finished before the rails come.",
)


def brief_of(*quotes: str, title: str = "Tram approved", url: str = URL) -> tuple[Brief, SourceText]:
    facts: list[Fact] = []
    text = ""
    for place, quote in enumerate(quotes):
        facts.append(Fact(f"f{place}", quote, quote, len(text), len(text) + len(quote)))
        text += quote + "\n\n"
    return Brief(title, "en", url, tuple(facts)), SourceText(title, text, url)


def threads(*quotes: str, url: str = URL, variants: int = 1, persona: PersonaCard = ANN) -> list[list[str]]:
    brief, source = brief_of(*quotes, url=url)
    drafts = PLUGIN.offline(brief, persona, variants=variants, seed="s")
    checks = [check for draft in drafts for check in PLUGIN.check(draft, brief, source, persona)]
    assert [check for check in checks if check.outcome != "passed"] == []
    assert [draft.body for draft in drafts] == [
        PARTS_BETWEEN.join(draft.content["parts"]) for draft in drafts
    ]
    return [list(draft.content["parts"]) for draft in drafts]


def checked(*parts: str, quotes: tuple[str, ...] = SENTENCES, url: str = URL) -> tuple[Check, ...]:
    brief, source = brief_of(*quotes, url=url)
    fact = brief.facts[0]
    claims = (Claim(fact.text, fact.quote, fact.start, fact.end),)
    draft = Draft("Title", PARTS_BETWEEN.join(parts), "text", {"parts": list(parts)}, claims, "en")
    return PLUGIN.check(draft, brief, source, ANN)


def failures(*parts: str, url: str = URL) -> list[tuple[str, str]]:
    return [(one.code, one.message) for one in checked(*parts, url=url) if one.outcome == "failed"]


def refusal(*quotes: str, persona: PersonaCard = ANN) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        PLUGIN.offline(brief_of(*quotes)[0], persona, variants=1, seed="s")
    return refused.value.code, refused.value.message


SOUND = (SENTENCES[0], SENTENCES[1], f"{SENTENCES[3]}\n{URL}")


def test_posts_are_sentences_and_the_last_one_leads_to_the_source() -> None:
    assert threads(*SENTENCES[:4]) == [[*SENTENCES[:3], f"{SENTENCES[3]}\n{URL}"]]


def test_best_sentences_stand_in_the_order_of_the_source() -> None:
    brief, _ = brief_of(*SENTENCES)
    best_first = Brief(brief.title, "en", URL, tuple(reversed(brief.facts)))

    draft = PLUGIN.offline(best_first, ANN, variants=1, seed="s")[0]

    assert draft.content["parts"] == [*SENTENCES[2:6], f"{SENTENCES[6]}\n{URL}"]
    assert [claim.text for claim in draft.claims] == list(SENTENCES[2:])


def test_second_thread_says_what_the_first_left_out() -> None:
    more = ("Nine versions of the plan were drawn up over eleven long years.", *SENTENCES)

    first, second = threads(*more, variants=3)

    assert first == [*more[:4], f"{more[4]}\n{URL}"]
    assert second == [*more[5:7], f"{more[7]}\n{URL}"]
    assert len(threads(*SENTENCES, variants=3)) == 1


def test_source_with_headings_gives_one_sentence_of_each_part_first() -> None:
    brief, _ = brief_of(*SENTENCES)
    last = brief.facts[-1]
    heading = Fact("h1", "The bridge", "The bridge", last.start - 1, last.start - 1, kind="heading")
    parted = Brief(brief.title, "en", URL, brief.facts, headings=(heading,))

    parts = PLUGIN.offline(parted, ANN, variants=1, seed="s")[0].content["parts"]

    assert parts == [*SENTENCES[:5], f"{SENTENCES[6]}\n{URL}"]


def test_heading_is_no_post() -> None:
    brief, _ = brief_of(*SENTENCES[:4])
    parted = Brief(brief.title, "en", URL, brief.facts, headings=(brief.facts[1],))

    parts = PLUGIN.offline(parted, ANN, variants=1, seed="s")[0].content["parts"]

    assert SENTENCES[1] not in parts
    assert len(parts) == 3


@pytest.mark.parametrize(
    "left_out",
    [
        "They have waited long enough for a tram to the harbour.",
        "In that time the engines burn 310 litres of diesel.",
        "One said that the count of passengers had been wrong for years.",
        "“I have promised my daughter a seat at the front,” she said.",
        "More about it stands on example.org for all who want to read.",
        "The council voted 14 to 9 for the new tram on Tuesday evening.",
    ],
    ids=["dangling", "that-time", "one-of-whom", "she-said", "address", "said-twice"],
)
def test_sentence_that_is_no_post_of_its_own_is_left_out(left_out: str) -> None:
    assert threads(*SENTENCES[:3], left_out) == [[*SENTENCES[:2], f"{SENTENCES[2]}\n{URL}"]]


@pytest.mark.parametrize(
    "leaning",
    [
        "Retailers don't believe it.",
        "Many passengers have already said what they think of them in public.",
    ],
)
def test_sentence_that_leans_on_another_is_said_only_where_too_few_others_are_there(leaning: str) -> None:
    assert leaning not in threads(leaning, *SENTENCES[:3])[0]
    assert leaning in threads(leaning, *SENTENCES[:2])[0]


def test_speech_without_marks_begins_with_a_capital_and_ends_with_an_ellipsis_where_it_goes_on() -> None:
    stream = (
        "so the display said 240 degrees every single time and",
        "when we took over the bakery nobody could get the oven out of the door",
        "on a sunday it took four screws and one very rusty bolt to get at the probe",
    )
    brief, _ = brief_of(*stream)
    first_fact, *others = brief.facts
    brief = replace(brief, facts=(replace(first_fact, is_cut=True), *others))

    [draft] = PLUGIN.offline(brief, ANN, variants=1, seed="s")
    first, second, third = draft.content["parts"]

    assert first == "The display said 240 degrees every single time…"
    assert second == "When we took over the bakery nobody could get the oven out of the door"
    assert third.startswith("On a sunday it took four screws")


def test_source_without_address_has_no_link() -> None:
    assert threads(*SENTENCES[:3], url="") == [list(SENTENCES[:3])]


def test_too_few_sentences_are_refused_in_a_sentence() -> None:
    assert refusal(*SENTENCES[:2]) == (
        "nothing_to_say",
        "A Thread needs 3 sentences that make sense out of their context and fit into a post; the source has 2.",
    )


def test_rule_of_the_persona_that_no_thread_keeps_is_named() -> None:
    asking = PersonaCard("Ann", required_structures=({"kind": "ends_with_question"},))

    assert refusal(*SENTENCES, persona=asking) == (
        "nothing_to_say",
        "The source's sentences don't keep the persona's rules as a Thread: It has to end with a question.",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "This item has no sentence; a Thread has a post for each of 3 or more."),
        (SENTENCES[0], "This item has one sentence; a Thread has a post for each of 3 or more."),
        (" ".join(SENTENCES[:2]), "This item has 2 sentences; a Thread has a post for each of 3 or more."),
        (" ".join(SENTENCES[:3]), None),
    ],
)
def test_why_not_counts_sentences(text: str, reason: str | None) -> None:
    assert PLUGIN.why_not(SourceText("Title", text)) == reason


def test_sound_thread_fails_nothing() -> None:
    assert failures(*SOUND) == []


@pytest.mark.parametrize(
    ("parts", "code", "message"),
    [
        ((SOUND[0], SOUND[2]), "part_count", "The thread has 2 posts; 3 to 8 make one."),
        ((SOUND[0], "", SOUND[2]), "content", "Post 2 is empty."),
        (
            (SOUND[0], "x" * 281, SOUND[2]),
            "length",
            "Post 2 counts 281 characters, 1 more than the 280 that fit.",
        ),
        (
            (f"It passed. {SOUND[0]}", SOUND[1], SOUND[2]),
            "stands_alone",
            "The first post doesn't stand alone: its first word points at something said before.",
        ),
        (
            (SENTENCES[2].partition(" said")[0], SOUND[1], SOUND[2]),
            "stands_alone",
            "The first post doesn't stand alone: it is a quotation that doesn't say whose.",
        ),
        (
            ("The council (of Harrow voted for the tram.", SOUND[1], SOUND[2]),
            "stands_alone",
            "The first post doesn't stand alone: a quotation or a bracket in it isn't closed.",
        ),
        (
            (SOUND[0], "They fear for their sales.", SOUND[2]),
            "dangling",
            "The first word of these posts points at something said before: 2 (“They”).",
        ),
        (
            (SOUND[0], f"Retailers fear the works. {URL}", SOUND[2]),
            "link_place",
            "Post 2 has a link; only the last one has.",
        ),
        (SENTENCES[:3], "link_place", "The last post doesn't lead to the source."),
        ((*SOUND[:2], f"{SOUND[2]} {URL}"), "link_place", "The last post has 2 links; the maximum is one."),
        (
            (SOUND[0], "The council voted 14 to 9 for the tram on Tuesday.", SOUND[2]),
            "distinct_posts",
            "Posts say the same twice: 2 repeats 1.",
        ),
        ((SOUND[0], "About 15 shops close.", SOUND[2]), "numbers", "These numbers aren't in the source: 15 (post 2)."),
        (
            (SOUND[0], "The mayor: “We have waited far too long for it.”", SOUND[2]),
            "quotations",
            ("These quotations aren't in the source word for word: We have waited far too long for it. (post 2). "
            "Nearest in the source: “We have waited long enough for this line,” said mayor Ellen Okafor."),
        ),
        ((SOUND[0], "Retailers #a #b fear #c.", SOUND[2]), "hashtags", "The thread has 3 hashtags; the maximum is two."),
        ((SOUND[0], "Retailers ask @mallory today.", SOUND[2]), "mentions", "The persona doesn't name these accounts: @mallory."),
        (
            (SOUND[0], "Retailers \u202efear the works.", SOUND[2]),
            "characters",
            "The thread holds hidden or control characters.",
        ),
    ],
)  # fmt: skip
def test_broken_rule_is_named(parts: tuple[str, ...], code: str, message: str) -> None:
    assert failures(*parts) == [(code, message)]


def test_first_post_with_a_word_that_stands_for_nothing_in_it_does_not_stand_alone() -> None:
    assert failures("Owners of the trams can skip this step.", SOUND[1], SOUND[2]) == [
        (
            "stands_alone",
            "The first post doesn't stand alone: it doesn't say whom or what one of its words means.",
        )
    ]


LAWYER = (
    "The council of Harrow voted for the tram, said its clerk, Sian Rowe.",
    "The union's lawyer, Mr. Peter van der Berg, called the plan unlawful.",
    "“Nobody asked us about the line,” said his colleague, Anna de la Cruz.",
    "The mill at Ash closes for a year on 3 May.",
)


def test_whoever_is_meant_in_a_post_is_named_in_the_one_before() -> None:
    brief, source = brief_of(*LAWYER, url="")
    claims = tuple(Claim(one.text, one.quote, one.start, one.end) for one in brief.facts)

    def outcome(*posts: str) -> str:
        made = Draft("T", PARTS_BETWEEN.join(posts), "text", {"parts": list(posts)}, claims, "en")
        checks = PLUGIN.check(made, brief, source, ANN)
        return next(one.outcome for one in checks if one.code == "dangling")

    assert outcome(LAWYER[0], LAWYER[2], LAWYER[3]) == "failed"
    assert outcome(*LAWYER[:3]) == "passed"
    assert threads(*LAWYER, url="") == [[LAWYER[0], LAWYER[1], LAWYER[3]]]


def test_parts_and_body_have_to_agree() -> None:
    brief, source = brief_of(*SENTENCES)
    draft = PLUGIN.offline(brief, ANN, variants=1, seed="s")[0]
    claims, body = draft.claims, draft.body
    other = Draft(
        "Title",
        body,
        "text",
        {"parts": [*draft.content["parts"][:-1], f"{SENTENCES[6]}\n{URL}"]},
        claims,
        "en",
    )

    codes = [check.code for check in PLUGIN.check(other, brief, source, ANN) if check.outcome == "failed"]

    assert codes == ["content"]


def test_number_in_front_of_a_models_post_goes_and_the_address_comes() -> None:
    brief, source = brief_of(*SENTENCES)
    answer = {
        "posts": [f"1/3 {SENTENCES[0]}", f"(2/3) {SENTENCES[1]}", f"3/ {SENTENCES[3]}", "  "],
        "angle": "number",
        "claims": [{"text": "14 to 9", "fact": "f0"}],
    }

    draft = PLUGIN.draft_from(answer, brief, ANN, "number")

    assert draft.content == {"parts": list(SOUND)}
    assert draft.body == PARTS_BETWEEN.join(SOUND)
    assert [one for one in PLUGIN.check(draft, brief, source, ANN) if one.outcome == "failed"] == []


def test_answer_without_posts_is_refused() -> None:
    with pytest.raises(Refused, match=r"^The list of posts is empty\.$"):
        PLUGIN.draft_from({"posts": [" "], "claims": []}, brief_of(*SENTENCES)[0], ANN, "story")


words = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(" .!?,;:()[]\"'“”\n0123456789\u00a0\u202f#@🧵"),
        st.sampled_from("abcdeABCDE. "),
    ),
    max_size=900,
)


@settings(deadline=None)
@given(words, st.text(max_size=60), st.sampled_from(["", URL, "https://example.com/ä ö?q=日#.", "nonsense"]))
def test_whatever_the_source_holds_offline_threads_pass_every_check(text: str, title: str, url: str) -> None:
    source = SourceText(title, f"{text}\n\n{' '.join(SENTENCES[:2])}\n\n{text[::-1]}", url)
    brief = WRITER.brief(source).brief
    try:
        drafts = PLUGIN.offline(brief, ANN, variants=3, seed="s")
    except Refused:
        drafts = ()

    checks = [check for draft in drafts for check in PLUGIN.check(draft, brief, source, ANN)]
    assert [check for check in checks if check.outcome != "passed"] == []
    assert all(weighted_length(part) <= MAX_LENGTH for draft in drafts for part in draft.content["parts"])
