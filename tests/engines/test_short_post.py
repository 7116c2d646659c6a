"""Short Post: what is said, what is cut, what is stopped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.base import Claim, Draft, PersonaCard, SourceText
from pipeline.engines.short_post import PLUGIN
from pipeline.plugins import Refused
from pipeline.text.weighted_length import MAX_LENGTH, weighted_length
from pipeline.writers.extractive import PLUGIN as WRITER
from tests.engines.material import URL, brief_of

ANN = PersonaCard("Ann", handle="ann", links=("https://ann.example.com/about",))
SENTENCES = (
    "The council voted 14 to 9 for the tram.",
    "Retailers in Mill Street fear for their sales.",
    "“We have waited long enough,” said the mayor.",
)


def bodies(*quotes: str, title: str = "Tram approved", url: str = URL, variants: int = 3) -> list[str]:
    brief, source = brief_of(*quotes, title=title, url=url)
    drafts = PLUGIN.offline(brief, ANN, variants=variants, seed="s")
    failed = [
        check
        for draft in drafts
        for check in PLUGIN.check(draft, brief, source, ANN)
        if check.outcome != "passed"
    ]
    assert failed == []
    return [draft.body for draft in drafts]


def failures(body: str, *quotes: str, claims: tuple[Claim, ...] | None = None) -> list[tuple[str, str]]:
    brief, source = brief_of(*(quotes or SENTENCES))
    if claims is None:
        fact = brief.facts[0]
        claims = (Claim(fact.text, fact.quote, fact.start, fact.end),)
    draft = Draft("Title", body, "text", {"parts": [body]}, claims, "en")
    checks = PLUGIN.check(draft, brief, source, ANN)
    return [(check.code, check.message) for check in checks if check.outcome == "failed"]


def test_draft_says_one_sentence_and_where_it_stands() -> None:
    brief, _ = brief_of(*SENTENCES)

    assert PLUGIN.offline(brief, ANN, variants=1, seed="s") == (
        Draft(
            title="Tram approved",
            body=f"{SENTENCES[0]}\n{URL}",
            body_format="text",
            content={"parts": [f"{SENTENCES[0]}\n{URL}"]},
            claims=(Claim(SENTENCES[0], SENTENCES[0], 0, len(SENTENCES[0])),),
            language="en",
            angle="number",
        ),
    )


def test_variants_use_different_sentences() -> None:
    assert bodies(*SENTENCES) == [f"{sentence}\n{URL}" for sentence in SENTENCES]


def test_fewer_sentences_make_fewer_variants() -> None:
    assert bodies(SENTENCES[0], SENTENCES[0], "The council voted 14 to 9 for the new tram.") == [
        f"{SENTENCES[0]}\n{URL}"
    ]


def test_source_without_address_has_no_link() -> None:
    assert bodies(SENTENCES[0], url="") == [SENTENCES[0]]
    assert bodies(SENTENCES[0], url="javascript:alert(1)") == [SENTENCES[0]]


def test_title_is_the_first_words_where_the_source_has_none() -> None:
    brief, _ = brief_of(
        "The council voted for the tram that has been asked for since the harbour was closed.", title=""
    )

    draft = PLUGIN.offline(brief, ANN, variants=1, seed="s")[0]

    assert draft.title == "The council voted for the tram…"


def test_leading_conjunction_is_trimmed_and_the_claim_stays_verbatim() -> None:
    brief, _ = brief_of("But opponents warned of the works.")

    draft = PLUGIN.offline(brief, ANN, variants=1, seed="s")[0]

    assert draft.body == f"Opponents warned of the works.\n{URL}"
    assert draft.claims == (
        Claim("Opponents warned of the works.", "But opponents warned of the works.", 0, 34),
    )


def test_sentence_that_fits_comes_before_a_better_one_that_has_to_be_cut() -> None:
    long = (
        "The council, which met until midnight, voted for the tram"
        + " line" * 40
        + ", and went home"
        + " late" * 10
        + "."
    )

    assert bodies(long, SENTENCES[1])[0] == f"{SENTENCES[1]}\n{URL}"


def test_brackets_go_before_anything_is_cut() -> None:
    long = f"The council voted for the tram ({'for many good reasons ' * 12}) on Tuesday."

    assert bodies(long) == [f"The council voted for the tram on Tuesday.\n{URL}"]


def test_long_sentence_is_cut_at_a_clause_edge() -> None:
    long = (
        f"The council voted on Tuesday for the tram to the harbour and back, ending {'a long ' * 40}dispute."
    )

    assert bodies(long) == [f"The council voted on Tuesday for the tram to the harbour and back…\n{URL}"]


def test_sentence_that_can_not_be_cut_gives_way_to_the_title() -> None:
    assert bodies("word " * 80) == [f"Tram approved\n{URL}"]


def test_dangling_sentence_is_used_only_where_nothing_else_is() -> None:
    assert bodies("It was approved on Tuesday evening.", SENTENCES[1]) == [f"{SENTENCES[1]}\n{URL}"]
    assert bodies("It was approved on Tuesday evening.") == [f"It was approved on Tuesday evening.\n{URL}"]


def test_sentence_with_an_address_of_its_own_gets_no_second_link() -> None:
    assert bodies("Prices at Example.com rose again.") == ["Prices at Example.com rose again."]
    assert bodies("More at https://other.example.com/x today.", SENTENCES[1]) == [f"{SENTENCES[1]}\n{URL}"]


@pytest.mark.parametrize(
    "spoilt", ["#one #two #three are tags here.", "A thread 🧵 on the tram.", "It is \u202e here now."]
)
def test_sentence_that_breaks_a_rule_is_left_out(spoilt: str) -> None:
    assert bodies(spoilt, SENTENCES[1]) == [f"{SENTENCES[1]}\n{URL}"]


def test_title_alone_makes_one_post() -> None:
    brief = WRITER.brief(SourceText("Tram approved", "", URL)).brief

    drafts = PLUGIN.offline(brief, ANN, variants=3, seed="s")

    assert [(draft.body, draft.claims) for draft in drafts] == [(f"Tram approved\n{URL}", ())]


@pytest.mark.parametrize(
    "title", ["word " * 100, "字" * 300, "x" * 900, "Go" + "😀" * 300, f"Words ({'aside ' * 80}) here"]
)
def test_long_title_is_shortened_to_fit(title: str) -> None:
    body = bodies(title=title)[0]

    assert weighted_length(body) <= MAX_LENGTH
    assert body.endswith(f"\n{URL}")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            SourceText("", "", URL),
            "This item has only an address: without a title or any words there is nothing to say.",
        ),
        (SourceText(" ", "\n…\u200b"), "This item has no title and no words, so there is nothing to say."),
        (SourceText("Title", ""), None),
        (SourceText("", "Text"), None),
    ],
)
def test_why_not_says_what_is_missing(source: SourceText, reason: str | None) -> None:
    assert PLUGIN.why_not(source) == reason


words = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from(" .!?,;:()[]\"'“”\n0123456789\u00a0\u202f#@🧵"),
        st.sampled_from("abcdeABCDE. "),
    ),
    max_size=600,
)


@given(words, st.text(max_size=60), st.sampled_from(["", URL, "https://example.com/ä ö?q=日#.", "nonsense"]))
def test_whatever_the_source_holds_offline_drafts_pass_every_check(text: str, title: str, url: str) -> None:
    source = SourceText(title, text, url)
    brief = WRITER.brief(source).brief
    try:
        drafts = PLUGIN.offline(brief, ANN, variants=3, seed="s")
    except Refused:
        drafts = ()

    checks = [check for draft in drafts for check in PLUGIN.check(draft, brief, source, ANN)]
    assert [check for check in checks if check.outcome != "passed"] == []


def test_sound_post_fails_nothing() -> None:
    assert failures(f"{SENTENCES[0]}\n{URL}") == []
    assert failures("Ann on it: ann.example.com/about @ann") == []


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("", "content", "The post is empty."),
        ("x" * 281, "length", "The post counts 281 characters, 1 more than the 280 that fit."),
        ("字" * 141, "length", "The post counts 282 characters, 2 more than the 280 that fit."),
        (f"{URL} {URL}", "link_count", "The post has 2 links; the maximum is one."),
        (
            "See https://evil.example.org/x",
            "link_origin",
            "These links are neither the source's nor the persona's: https://evil.example.org/x.",
        ),
        ("See evil.com", "link_origin", "These links are neither the source's nor the persona's: evil.com."),
        ("#a #b #c", "hashtags", "The post has 3 hashtags; the maximum is two."),
        (
            "Ask @mallory",
            "mentions",
            "The persona doesn't name these accounts: @mallory.",
        ),
        ("Read on 🧵", "thread_mark", "The post announces a thread, and it is a single post."),
        ("Read \u202eon", "characters", "The post holds hidden or control characters."),
        ("It was 15 to 9.", "numbers", "These numbers aren't in the source: 15."),
        (
            "“We have waited far too long,” she said.",
            "quotations",
            (
                "These quotations aren't in the source word for word: We have waited far too long. "
                "Nearest in the source: “We have waited long enough,” said the mayor."
            ),
        ),
    ],
)
def test_broken_rule_is_named(body: str, code: str, message: str) -> None:
    assert failures(body) == [(code, message)]


@pytest.mark.parametrize("shift", [-1, 1])
def test_claim_has_to_stand_where_it_says(shift: int) -> None:
    claim = Claim(SENTENCES[1], SENTENCES[1], 40 + shift, 40 + shift + len(SENTENCES[1]))

    assert failures(SENTENCES[1], claims=(claim,)) == [
        ("claims", "A claim's quote isn't in the source at the place that it names.")
    ]


def test_post_without_claims_has_to_be_the_title() -> None:
    assert failures(f"Tram approved\n{URL}", claims=()) == []
    assert failures("Something else", claims=()) == [
        ("claims", "The post quotes no passage of the source as evidence.")
    ]


def test_body_and_parts_have_to_agree() -> None:
    brief, source = brief_of(*SENTENCES)
    draft = PLUGIN.offline(brief, ANN, variants=1, seed="s")[0]
    other = Draft(draft.title, draft.body, "text", {"parts": ["Other."]}, draft.claims, "en")

    failed = [check.code for check in PLUGIN.check(other, brief, source, ANN) if check.outcome == "failed"]

    assert failed == ["content"]


def test_what_has_words_of_its_own_is_not_told_by_its_title_alone() -> None:
    text = (
        "Q: Do you miss the stage?\nA: I don't miss the stage. I miss the people behind it.\n\n"
        "Q: Will you come back?\nA: No. I've said what I had to say, and my knees agree with me."
    )
    source = SourceText('"I don\'t miss the stage": ten minutes with Orla Finn', text, URL, language="en")

    with pytest.raises(Refused, match=r"^The source has no sentence that makes sense on its own, and .*\.$"):
        PLUGIN.offline(WRITER.brief(source).brief, ANN, variants=1, seed="s")


def test_a_post_of_one_sentence_that_is_its_title_too_is_told() -> None:
    said = "Rye on day three: the crust cracks first."
    source = SourceText(said, f"{said} #rye", URL)
    (draft,) = PLUGIN.offline(WRITER.brief(source).brief, ANN, variants=1, seed="s")
    assert said in draft.body
