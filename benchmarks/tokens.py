"""Measures the cost of five engines with three variants each, in US cents by the price table.

Ours reads the source once and writes each engine's variants in one call from the facts that it found. The other way, one
by one, makes a call for each variant, with the whole source in each call and its quotes in each answer. Both write the same
words. The tests' server counts the tokens and caches prompts as the service does. The goal is a third of the other way's
price. Nothing lowers the price of the written words, which are a larger part of the whole if the source is short or cheap
to read: short sources miss the goal.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.table import Row
from pipeline import plugins
from pipeline.engines.base import ANGLES, Engine, PersonaCard, SourceText
from pipeline.generate.model import client as model_client
from pipeline.text.prose.sentences import split_sentences
from pipeline.writers.claude import PLUGIN as CLAUDE
from pipeline.writers.claude import prompts
from pipeline.writers.model_calls import ModelChoice, ModelRequest
from tests.writers.messages_server import MessagesServer, Recorded, Scripted, ok
from tests.writers.metering import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.service import Session

ON: Final = ("sqlite",)
SIZES: Final = {"lengths": (3, 1), "models": (2, 1), "lists": (2, 1)}
"""How many of the `LENGTHS`, the `MODELS` and the lists of engines are measured."""

ENGINES: Final = ("short_post", "persona_tweet", "quote_graphic", "thread", "linkedin_post")
ENGINES_WITH_ARTICLE: Final = (*ENGINES[:4], "blog_article")
VARIANTS: Final = 3
LENGTHS: Final = (800, 2_000, 6_000)
"""The lengths of the sources, in words."""
MODELS: Final = {
    "claude-haiku-5-5 for both": ModelChoice(),
    "claude-sonnet-5-5 for drafts": ModelChoice(draft="claude-sonnet-5-5"),
}
MAX_RATIO: Final = 1 / 3
"""The goal: our price as a part of the price one by one."""
PERSONA: Final = PersonaCard(
    "Harrow Herald",
    handle="herald",
    language="en",
    who_you_are="A small paper for the people of Harrow, written by two editors who ride every line themselves.",
    voice="Dry and short. Numbers before adjectives. One joke a week, never in the first line.",
    banned_words=("game changer", "exciting"),
    reference_posts=(
        "The 8 o'clock tram left at 8. We checked with a watch that the council pays for, so the minute is official.",
        "Forty-one people asked for a bench at Mill Street. There will be a bench. It seats three, in turns.",
        "The depot opens on Saturday. Bring children, leave drones, and do not ask the driver about the bell.",
    ),
)
_PLACES: Final = ("Mill Street", "the northern depot", "Harbour Square", "the old brewery", "Castle Hill")
_SENTENCE_ENDS: Final = (
    "and the council calls that more than it had hoped for when the plans were drawn up",
    "while shopkeepers along the route say that their own tills tell another story",
    "which the operator puts down to the new timetable and to the rain of the last month",
    "though the drivers' union warns that two vehicles are still waiting for spare parts",
)


def make_article(words: int) -> SourceText:
    """Return a source with sentences of about 28 words, no two of which begin alike."""
    sentences: list[str] = []
    while sum(len(sentence.split()) for sentence in sentences) < words:
        week = len(sentences) + 1
        sentences.append(
            f"In week {week} the trams at {_PLACES[week % 5]} carried {1_000 + 37 * week:,} passengers, "
            f"{week % 9 + 2} % more than in the week before, {_SENTENCE_ENDS[week % 4]}."
        )
    return SourceText(
        "Harrow counts its trams", " ".join(sentences), "https://news.example.org/t", language="en"
    )


def _sentences_of(data: str) -> list[tuple[str, str]]:
    """Return the facts of a draft's request by id, or the sentences of a whole source."""
    # A document's text is its description, a mark, the content, and the mark again.
    content = "\n".join(data.split("\n")[2:-1])
    if content.startswith("["):
        return [(fact["id"], fact["quote"]) for fact in json.loads(content)]
    words = content.partition("\n\n")[2] if content.startswith("{") else content
    return [("", words[first:last]) for first, last in split_sentences(words)]


SENTENCES_BY_KIND: Final = {
    "short_post": 1,
    "persona_tweet": 1,
    "quote_graphic": 1,
    "thread": 5,
    "linkedin_post": 6,
    "blog_article": 22,
}
"""The number of sentences in a variant, by the engine's kind."""


def _answer_fields(kind: str, sentences: Sequence[str]) -> dict[str, Any]:
    """Return the sentences in the form of an engine's answer."""
    if kind == "thread":
        return {"posts": list(sentences)}
    if kind == "linkedin_post":
        return {"paragraphs": list(sentences), "hashtags": []}
    if kind == "quote_graphic":
        return {"quote": sentences[0], "speaker": ""}
    if kind == "blog_article":
        sections = [
            {"heading": f"What week {start} showed", "text": " ".join(sentences[start : start + 5])}
            for start in range(5, len(sentences), 5)
        ]
        return {
            "title": "Harrow counts its trams",
            "meta_description": sentences[0],
            "introduction": " ".join(sentences[:2]),
            "points": list(sentences[2:5]),
            "sections": sections,
            "tags": ["harrow"],
        }
    return {"text": sentences[0]}


def _make_variant(
    kind: str, facts: Sequence[tuple[str, str]], index: int, *, by_quote: bool
) -> dict[str, Any]:
    """Return the variant of a number, with the same words both ways.

    A claim quotes its sentence if `by_quote`; ours names it by its first words, and its fact by an id.
    """
    count = SENTENCES_BY_KIND[kind]
    start = (index * count) % max(len(facts) - count, 1)
    used = facts[start : start + count]
    claims = [
        {"text": quote, "quote": quote, "derived": ""}
        if by_quote
        else {"text": f"{' '.join(quote.split()[:4])}\u2026", "fact": name, "derived": ""}
        for name, quote in used
    ]
    return {"angle": ANGLES[index], **_answer_fields(kind, [quote for _, quote in used]), "claims": claims}


def _shorten(quote: str) -> str:
    """Return the quote's first and last words, as the prompt's rules ask for a fact's quote."""
    words = quote.split()
    return f"{' '.join(words[:5])} \u2026 {' '.join(words[-4:])}"


class FakeModel:
    """Answers each request: with a brief, with variants from facts, or with one variant from the whole source."""

    kind = ""
    """The kind of the engine whose variants are requested."""
    variant = 0
    """The number of the variant that is requested from the whole source."""
    variants = VARIANTS
    """The number of variants of a draft from facts."""

    def __call__(self, request: Recorded) -> Scripted:
        document = request.body["messages"][0]["content"][0]
        facts = _sentences_of(document["text"])
        if "You read one document" in request.raw:
            facts_named = [
                {"quote": _shorten(quote), "kind": "number"} for _, quote in facts[: prompts.MAX_FACTS]
            ]
            return ok({"language": "en", "is_instruction_like": False, "facts": facts_named})
        if self.variants > 1 and "Write 1 variant" in request.raw:
            return ok({"variants": [_make_variant(self.kind, facts, self.variant, by_quote=True)]})
        drafts = [_make_variant(self.kind, facts, index, by_quote=False) for index in range(self.variants)]
        return ok({"variants": drafts})


@dataclass(frozen=True)
class Price:
    """A cost in micro US dollars, and the tokens of the prompts and of the answers."""

    cost: int
    sent: int
    answered: int


class Prices(NamedTuple):
    """The prices of the variants of one source."""

    ours: Price
    ours_next_item: Price
    """Our price for a second source, after the first one has filled the server's prompt cache."""
    one_by_one: Price
    one_by_one_kept: Price
    """The price one by one if the server may keep the prompts in its cache."""


def _sum_calls(calls: Sequence[Any]) -> Price:
    """Return the price of all calls together; tokens count as sent whether the cache had them or not."""
    sent = (
        call.input_tokens + call.cache_write_5m_tokens + call.cache_write_1h_tokens + call.cache_read_tokens
        for call in calls
    )
    return Price(
        sum(call.cost_micro_usd for call in calls), sum(sent), sum(call.output_tokens for call in calls)
    )


def price_ours(client: Any, model: FakeModel, source: SourceText, kinds: Sequence[str]) -> Price:
    """Brief the source, draft each engine's variants in one call, and return the price."""
    answer = CLAUDE.brief(source, client=client)
    calls = list(answer.calls)
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        drafted = CLAUDE.draft(
            engine, answer.brief, PERSONA, variants=VARIANTS, seed=source.text[-40:], client=client
        )
        calls += drafted.calls
    return _sum_calls(calls)


def price_one_by_one(
    client: Any, model: FakeModel, source: SourceText, kinds: Sequence[str], *, keeps_prompts: bool
) -> Price:
    """Draft each variant in a separate call with the whole source, and return the price.

    Without `keeps_prompts` the prompt lacks the marks by which the server caches its parts.
    """
    calls = []
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        system = prompts.draft_system(engine, PERSONA)
        if not keeps_prompts:
            system = tuple({"type": "text", "text": block["text"]} for block in system)
        request = ModelRequest(
            step="draft",
            model=client.choice.draft,
            system=system,
            messages=_whole_source_messages(engine, source),
            schema=prompts.variants_schema(_with_quotes(engine.draft_schema() or {})),
            max_tokens=engine.draft_tokens,
            effort=client.choice.effort,
            prompt_version="one by one",
        )
        for number in range(VARIANTS):
            model.variant = number
            calls.append(client.ask(request).record)
    return _sum_calls(calls)


def _whole_source_messages(engine: Engine, source: SourceText) -> tuple[Mapping[str, Any], ...]:
    """Return the messages that ask for one variant from the document of a brief's request."""
    [message] = prompts.brief_request(source, source.text)
    task = f"Write 1 variant of the {engine.name} from the document by your rules; quote what each claim rests on."
    return ({**message, "content": [message["content"][0], {"type": "text", "text": task}]},)


def _with_quotes(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with a quote in each claim, because without a list of facts only quotes can prove it."""
    text = {"type": "string"}
    claim = {
        "type": "object",
        "properties": {"text": text, "quote": text, "derived": text},
        "required": ["text", "quote", "derived"],
        "additionalProperties": False,
    }
    properties = {**variant["properties"], "claims": {"type": "array", "items": claim}}
    return {**variant, "properties": properties}


@contextmanager
def connect_model(choice: ModelChoice) -> Iterator[tuple[Any, FakeModel]]:
    """Yield a client of a new server, whose prompt cache is empty, and the model that answers there."""
    model = FakeModel()
    with (
        MessagesServer() as server,
        model_client.connect_account(api_key="key", base_url=server.url, choice=choice) as client,
    ):
        server.answer = model
        server.meter = Meter()
        yield client, model


def compare_prices(words: int, kinds: Sequence[str], choice: ModelChoice) -> Prices:
    """Return the prices of a source of so many words, each measured on a new server."""
    source = make_article(words)
    with connect_model(choice) as (client, model):
        ours = price_ours(client, model, source, kinds)
    with connect_model(choice) as (client, model):
        # The first source fills the cache with the parts of the prompts that both have.
        price_ours(client, model, source, kinds)
        ours_next_item = price_ours(client, model, make_article(words + 30), kinds)
    with connect_model(choice) as (client, model):
        one_by_one = price_one_by_one(client, model, source, kinds, keeps_prompts=False)
    with connect_model(choice) as (client, model):
        one_by_one_kept = price_one_by_one(client, model, source, kinds, keeps_prompts=True)
    return Prices(ours, ours_next_item, one_by_one, one_by_one_kept)


def measure(session: Session) -> Iterator[Row]:
    """Yield a row for each list of engines, choice of models and length of the source."""
    size = session.size
    for kinds in (ENGINES, ENGINES_WITH_ARTICLE)[: size.lists]:
        for label, choice in list(MODELS.items())[: size.models]:
            for words in LENGTHS[: size.lengths]:
                prices = compare_prices(words, kinds, choice)
                ours, floor = prices.ours, prices.one_by_one
                yield Row(
                    f"{words:,} words, {label}, with {kinds[-1]} (floor: one by one)",
                    "US cents",
                    [ours.cost / 1e4],
                    [floor.cost / 1e4],
                    max_ratio=round(MAX_RATIO, 3),
                    note=f"next raw item {prices.ours_next_item.cost / floor.cost:.2f}, against kept prompts "
                    f"{ours.cost / prices.one_by_one_kept.cost:.2f}; {ours.sent:,} tokens sent and {ours.answered:,} "
                    f"answered, one by one {floor.sent:,} and {floor.answered:,}",
                )
