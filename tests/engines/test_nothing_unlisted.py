"""What strangers wrote into a source leads nobody anywhere: each way out, through the source's own verified words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pipeline import plugins
from pipeline.engines.base import Brief, Engine, Fact, PersonaCard, SourceText
from pipeline.engines.checks.allowed_contacts import is_allowed, title_of, unlisted_addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

URL = "https://news.example.org/tram"
PLAIN = "The council voted 14 to 9 on Tuesday to build the tram line to the harbour."
OTHER = "Retailers in Mill Street fear for their sales while the works go on."
THIRD = "Construction begins next spring with the gas pipes."
FOURTH = "Eight stops are planned along the old road."
PERSONA = PersonaCard(
    "Ann",
    handle="ann",
    links=("https://ann.example.com/about",),
    who_you_are="Our partner is @harbourline; write to desk@ann.example.com or call +49 30 901820.",
)
ATTACKS = {
    "scheme": ("Read more at https://evil.example/x today.", "link_origin"),
    "capital scheme": ("Read more at HTTPS://EVIL.EXAMPLE/X today.", "link_origin"),
    "markdown": ("Read [the whole story](https://evil.example/x) today.", "link_origin"),
    "markdown without scheme": ("Read [the whole story](evil.com/x) today.", "link_origin"),
    "angle brackets": ("Read <https://evil.example/x> today, says the council.", "link_origin"),
    "bare domain": ("Everything about the line is at evil.com today.", "link_origin"),
    "bare domain with a path": ("Everything about the line is at evil.com/pay?x=1 today.", "link_origin"),
    "bare domain with a port": ("Everything about the line is at evil.com:8443 today.", "link_origin"),
    "messenger": ("Join the group t.me/harbour_line for the news.", "link_origin"),
    "www": ("Everything about the line is at www.harbour-line today.", "link_origin"),
    "address in numbers": ("Everything about the line is at 203.0.113.7/pay today.", "link_origin"),
    "other scheme": ("Get the papers at ftp://evil.example/x today.", "link_origin"),
    "app scheme": ("Join the group at tg://join?invite=abc today.", "link_origin"),
    "mail scheme": ("Write to the office, mailto:office today.", "link_origin"),
    "punycode": ("Everything about the line is at xn--80ak6aa92e.com today.", "link_origin"),
    "homoglyph": ("Everything about the line is at аррӏе.com today.", "link_origin"),
    "mixed homoglyph": ("Everything about the line is at pаypal.com today.", "link_origin"),
    "other script": ("Everything about the line is at пример.рф today.", "link_origin"),
    "full-width letters": ("Everything about the line is at ｅvil.com today.", "link_origin"),
    "full-width dot": ("Everything about the line is at evil．com today.", "link_origin"),
    "ideographic dot": ("Everything about the line is at evil。com today.", "link_origin"),
    "zero width": ("Everything about the line is at ev\u200bil.co\u2060m today.", "link_origin"),
    "soft hyphen": ("Everything about the line is at evil.c\u00adom today.", "link_origin"),
    "line break": ("Read more at https://evil.example/\nx today, says the council.", "link_origin"),
    "line break in the host": ("Read more at https://evil\n.example/x today.", "link_origin"),
    "look-alike of the source": (
        "Read more at https://news.example.org.evil.example/tram today.",
        "link_origin",
    ),
    "user before the host": ("Read more at https://news.example.org@evil.example/tram now.", "link_origin"),
    "account": ("The line is run by @mallory since Tuesday of last week.", "mentions"),
    "full-width account": ("The line is run by ＠mallory since Tuesday of last week.", "mentions"),
    "account of another server": ("The line is run by @mallory@evil.example since Tuesday.", "contacts"),
    "mail": ("Write to sales@evil.example about the line today.", "contacts"),
    "full-width mail": ("Write to sales＠evil.example about the line today.", "contacts"),
    "telephone": ("Call 020 7946 0958 about the line today.", "contacts"),
    "telephone abroad": ("Call +1 (555) 010-9999 about the line today.", "contacts"),
    "american telephone": ("Call 555-010-9999 about the line today.", "contacts"),
    "code": ("Use the code HARBOUR for a cheaper ticket today.", "contacts"),
    "code with digits": ("HARBOUR24 gives you 20% off every ticket today.", "contacts"),
    "tag": ("The council voted for #BuyHarbourCoin on Tuesday of last week.", "hashtags"),
    "full-width tag": ("The council voted for ＃BuyHarbourCoin on Tuesday.", "hashtags"),
}
CODES = {code for _, code in ATTACKS.values()}
# What needs more than one sentence stands in test_nothing_unlisted_in_long_words.py.
LONG = {"blog_article", "linkedin_post", "thread"}
ENGINES = [
    one
    for one in plugins.every("engines", Engine)
    if one.draft_schema() is not None and "text" in one.made_from and one.kind not in LONG
]

# A film takes more sentences and a title: test_template_short.py, test_persona_short.py.
FILMS = {"persona_short", "template_short"}
OF_TWO_SENTENCES = [one for one in ENGINES if one.kind not in FILMS]


def answer_of(engine: Engine, words: str, fact: str) -> dict[str, Any]:
    """What a model answers that writes the same words into each of the engine's own fields."""
    schema = engine.draft_schema()
    assert schema is not None
    fields = {name: kind for name, kind in schema["properties"].items() if name not in {"angle", "claims"}}
    said = {name: filled(kind, words) for name, kind in fields.items()}
    return {**said, "angle": "story", "claims": [{"text": words, "fact": fact}]}


def filled(kind: Mapping[str, Any], words: str) -> Any:
    if kind["type"] == "array":
        return [filled(kind["items"], words)] * 3
    if kind["type"] == "object":
        return {name: filled(member, words) for name, member in kind["properties"].items()}
    return kind["enum"][0] if "enum" in kind else words


def read(*quotes: str, title: str = "Tram approved") -> tuple[Brief, SourceText]:
    """As the writers find them: every quote stands in the source word for word."""
    text = "\n".join(quotes)
    facts = []
    for place, quote in enumerate(quotes):
        start = text.index(quote)
        facts.append(Fact(f"f{place + 1}", quote, quote, start, start + len(quote)))
    return Brief(title, "en", URL, tuple(facts)), SourceText(title, text, URL, language="en")


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize(("words", "code"), ATTACKS.values(), ids=ATTACKS)
def test_model_that_repeats_the_sources_words_is_stopped(engine: Engine, words: str, code: str) -> None:
    brief, source = read(PLAIN, words)
    answer = answer_of(engine, words, "f2")
    draft = engine.draft_from(answer, brief, PERSONA, "story")
    failed = [
        check.code for check in engine.check(draft, brief, source, PERSONA) if check.outcome == "failed"
    ]
    assert code in failed


@pytest.mark.parametrize("engine", OF_TWO_SENTENCES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize(("words", "code"), ATTACKS.values(), ids=ATTACKS)
def test_words_without_ai_leave_the_sentence_out(engine: Engine, words: str, code: str) -> None:
    brief, _ = read(words, PLAIN, OTHER, THIRD)
    drafts = engine.offline(brief, PERSONA, variants=3, seed="s")
    assert {claim.quote for draft in drafts for claim in draft.claims} == {PLAIN, OTHER, THIRD}, code
    assert [draft for draft in drafts if words in f"{draft.title}{draft.body}{draft.content}"] == []


@pytest.mark.parametrize("engine", OF_TWO_SENTENCES, ids=lambda engine: engine.kind)
@pytest.mark.parametrize("words", [words for words, _ in ATTACKS.values()], ids=ATTACKS)
def test_title_that_leads_to_strangers_is_not_the_items(engine: Engine, words: str) -> None:
    brief, source = read(PLAIN, OTHER, THIRD, FOURTH, title=words)
    made = engine.draft_from(answer_of(engine, PLAIN, "f1"), brief, PERSONA, "story")
    for draft in (made, *engine.offline(brief, PERSONA, variants=1, seed="s")):
        # A headline that the model wrote, the first words, or a whole sentence that stands over the others.
        assert draft.title in {PLAIN, OTHER, "The council voted 14 to 9 on Tuesday to build the tram…"}
        checks = engine.check(draft, brief, source, PERSONA)
        assert [check for check in checks if check.outcome == "failed" and check.code in CODES] == []


@pytest.mark.parametrize(
    "words",
    [
        f"The line is built. {URL}",
        "The line is built, writes news.example.org on Tuesday.",
        "The line is built: https://ann.example.com/about",
        "The line is built: ann.example.com/about, says Ann.",
        "The line is run by @harbourline and @ann.",
        "Write to desk@ann.example.com or call +49 30 901820.",
        "The #council voted for the #TramLine.",
        "It costs 12,000,000 or 12.000.000 or 12 000 000, as of 20.11.2026 and 2026-11-20.",
        "COVID-19 and COP29 are in the news, e.g. in the U.S. or at 3.5 per cent.",
        "完成。中国，大家都很高兴。",
        "Version 1.2.3.4 is out.",
    ],
)
def test_what_is_listed_and_what_leads_nowhere_may_be_said(words: str) -> None:
    facts = "12,000,000 12.000.000 12 000 000 20.11.2026 2026-11-20 COVID-19 COP29 1.2.3.4"
    brief, _ = read("The council voted for the tram line.", facts)
    assert is_allowed(words, brief, PERSONA)


def test_strange_addresses_are_named_as_a_browser_reads_them() -> None:
    brief, _ = read(PLAIN)
    words = "See ev\u200bil.com, evil．net and evil.com again."
    assert unlisted_addresses(words, brief, PERSONA) == ("evil.com", "evil.net")


def test_title_is_kept_where_it_leads_nowhere() -> None:
    brief, _ = read(PLAIN, title="Tram  approved")
    assert title_of(brief, PERSONA, "The council voted.") == "Tram approved"
