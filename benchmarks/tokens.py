"""Measures what five engines with three variants each cost, in US dollars by the price table.

Ours reads the source once and writes each engine's variants in one call from the facts found; the other way makes one call
for each variant, with the whole source in each call and its quotes in each answer. Both write the same words. The tests'
server counts the tokens and caches prompts as the service does; prices are those of the table. The goal is a third of the
other way's price. Nothing lowers the price of the written words, and the shorter the source and the cheaper its reading,
the more of the whole they are: short sources miss the goal.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
"""The number of `LENGTHS`, `MODELS` and lists of engines."""

ENGINES: Final = ("short_post", "persona_tweet", "quote_graphic", "thread", "linkedin_post")
ENGINES_WITH_ARTICLE: Final = (*ENGINES[:4], "blog_article")
VARIANTS: Final = 3
LENGTHS: Final = (800, 2_000, 6_000)
MODELS: Final = {
    "claude-haiku-5-5 for both": ModelChoice(),
    "claude-sonnet-5-5 for drafts": ModelChoice(draft="claude-sonnet-5-5"),
}
MAX_RATIO: Final = 1 / 3
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


@dataclass(frozen=True)
class _AnswerShape:
    """The number of sentences in an engine's variant, and the form of its answer."""

    sentences: int

    def fields(self, kind: str, sentences: Sequence[str]) -> dict[str, Any]:
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


ANSWER_SHAPES: Final = {
    "short_post": _AnswerShape(1),
    "persona_tweet": _AnswerShape(1),
    "quote_graphic": _AnswerShape(1),
    "thread": _AnswerShape(5),
    "linkedin_post": _AnswerShape(6),
    "blog_article": _AnswerShape(22),
}


def _variant(kind: str, facts: Sequence[tuple[str, str]], index: int, *, by_quote: bool) -> dict[str, Any]:
    """Return a variant with the same words both ways; ours names a statement by its first words and its fact by an id."""
    count = ANSWER_SHAPES[kind].sentences
    start = (index * count) % max(len(facts) - count, 1)
    used = facts[start : start + count]
    claims = [
        {"text": quote, "quote": quote, "derived": ""}
        if by_quote
        else {"text": f"{' '.join(quote.split()[:4])}\u2026", "fact": name, "derived": ""}
        for name, quote in used
    ]
    return {
        "angle": ANGLES[index],
        **ANSWER_SHAPES[kind].fields(kind, [quote for _, quote in used]),
        "claims": claims,
    }


def _shortened(quote: str) -> str:
    """Return the quote's first and last words, as the rules ask for it."""
    words = quote.split()
    return f"{' '.join(words[:5])} \u2026 {' '.join(words[-4:])}"


class FakeModel:
    """Answers by the request: a brief, some variants from facts, one variant from the whole source."""

    kind = ""
    variant = 0
    variants = VARIANTS
    """Variants of a draft from facts."""

    def __call__(self, request: Recorded) -> Scripted:
        document = request.body["messages"][0]["content"][0]
        facts = _sentences_of(document["text"])
        if "You read one document" in request.raw:
            facts_named = [
                {"quote": _shortened(quote), "kind": "number"} for _, quote in facts[: prompts.MAX_FACTS]
            ]
            return ok({"language": "en", "is_instruction_like": False, "facts": facts_named})
        if self.variants > 1 and "Write 1 variant" in request.raw:
            return ok({"variants": [_variant(self.kind, facts, self.variant, by_quote=True)]})
        drafts = [_variant(self.kind, facts, index, by_quote=False) for index in range(self.variants)]
        return ok({"variants": drafts})


@dataclass(frozen=True)
class Price:
    """A price in micro US dollars, and the tokens that were sent and answered."""

    cost: int
    sent: int
    answered: int


def _total(calls: Sequence[Any]) -> Price:
    sent = (
        call.input_tokens + call.cache_write_5m_tokens + call.cache_write_1h_tokens + call.cache_read_tokens
        for call in calls
    )
    return Price(
        sum(call.cost_micro_usd for call in calls), sum(sent), sum(call.output_tokens for call in calls)
    )


def price_of_ours(client: Any, model: FakeModel, source: SourceText, kinds: Sequence[str]) -> Price:
    answer = CLAUDE.brief(source, client=client)
    calls = list(answer.calls)
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        drafted = CLAUDE.draft(
            engine, answer.brief, PERSONA, variants=VARIANTS, seed=source.text[-40:], client=client
        )
        calls += drafted.calls
    return _total(calls)


def price_one_by_one(
    client: Any, model: FakeModel, source: SourceText, kinds: Sequence[str], *, is_kept: bool
) -> Price:
    calls = []
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        system = prompts.draft_system(engine, PERSONA)
        if not is_kept:
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
        for model.variant in range(VARIANTS):
            calls.append(client.ask(request).record)
    return _total(calls)


def _whole_source_messages(engine: Engine, source: SourceText) -> tuple[Mapping[str, Any], ...]:
    [message] = prompts.brief_request(source, source.text)
    task = f"Write 1 variant of the {engine.name} from the document by your rules; quote what each claim rests on."
    return ({**message, "content": [message["content"][0], {"type": "text", "text": task}]},)


def _with_quotes(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with a quote in each claim: without a list of facts nothing could be proven otherwise."""
    text = {"type": "string"}
    claim = {
        "type": "object",
        "properties": {"text": text, "quote": text, "derived": text},
        "required": ["text", "quote", "derived"],
        "additionalProperties": False,
    }
    properties = {**variant["properties"], "claims": {"type": "array", "items": claim}}
    return {**variant, "properties": properties}


def compare_prices(words: int, kinds: Sequence[str], choice: ModelChoice) -> dict[str, Price]:
    """Return the price of each way, each with a new server, whose prompt cache is empty."""
    source, prices = make_article(words), {}
    for name in ("ours", "ours, next raw item", "one by one", "one by one, kept"):
        model = FakeModel()
        with (
            MessagesServer() as server,
            model_client.connect_account(api_key="key", base_url=server.url, choice=choice) as client,
        ):
            server.answer = model
            server.meter = Meter()
            if name.startswith("ours"):
                prices[name] = price_of_ours(client, model, source, kinds)
                if name != "ours":
                    prices[name] = price_of_ours(client, model, make_article(words + 30), kinds)
            else:
                prices[name] = price_one_by_one(client, model, source, kinds, is_kept=name.endswith("kept"))
    return prices


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    for kinds in (ENGINES, ENGINES_WITH_ARTICLE)[: size.lists]:
        for label, choice in list(MODELS.items())[: size.models]:
            for words in LENGTHS[: size.lengths]:
                prices = compare_prices(words, kinds, choice)
                own, floor_price = prices["ours"], prices["one by one"]
                one_by_one_kept, next_item = prices["one by one, kept"], prices["ours, next raw item"]
                yield Row(
                    f"{words:,} words, {label}, with {kinds[-1]} (floor: one by one)",
                    "US cents",
                    [own.cost / 1e4],
                    [floor_price.cost / 1e4],
                    max_ratio=round(MAX_RATIO, 3),
                    note=f"next raw item {next_item.cost / floor_price.cost:.2f}, against kept prompts "
                    f"{own.cost / one_by_one_kept.cost:.2f}; {own.sent:,} tokens sent and {own.answered:,} answered, "
                    f"one by one {floor_price.sent:,} and {floor_price.answered:,}",
                )
