"""What five engines with three variants each cost, in US dollars of the price table.

Ours reads the source once and writes each engine's variants in one call from what was found; the other way asks once
for each variant, with the whole source in each call and its quotes in each answer. Both say the same words. The server
that the tests use counts the tokens and keeps prompts as the service does; prices are those of the table. The bound is a
third of the other way's price. Both ways write the same words, whose price nothing lowers, and the shorter the source
and the cheaper its reading, the more of the whole they are: short sources miss it.
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
"""How many of `LENGTHS`, `MODELS` and lists of engines."""

ENGINES: Final = ("short_post", "persona_tweet", "quote_graphic", "thread", "linkedin_post")
WITH_ARTICLE: Final = (*ENGINES[:4], "blog_article")
VARIANTS: Final = 3
LENGTHS: Final = (800, 2_000, 6_000)
MODELS: Final = {
    "claude-haiku-5-5 for both": ModelChoice(),
    "claude-sonnet-5-5 for drafts": ModelChoice(draft="claude-sonnet-5-5"),
}
MOST: Final = 1 / 3
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
_ENDS: Final = (
    "and the council calls that more than it had hoped for when the plans were drawn up",
    "while shopkeepers along the route say that their own tills tell another story",
    "which the operator puts down to the new timetable and to the rain of the last month",
    "though the drivers' union warns that two vehicles are still waiting for spare parts",
)


def article(words: int) -> SourceText:
    """Sentences of about 28 words, no two of which begin alike."""
    said: list[str] = []
    while sum(len(one.split()) for one in said) < words:
        week = len(said) + 1
        said.append(
            f"In week {week} the trams at {_PLACES[week % 5]} carried {1_000 + 37 * week:,} passengers, "
            f"{week % 9 + 2} % more than in the week before, {_ENDS[week % 4]}."
        )
    return SourceText("Harrow counts its trams", " ".join(said), "https://news.example.org/t", language="en")


def _sentences_of(data: str) -> list[tuple[str, str]]:
    """The facts of a draft's request by id, or the sentences of a whole source."""
    # What it is, a mark, the words, the mark again.
    inside = "\n".join(data.split("\n")[2:-1])
    if inside.startswith("["):
        return [(fact["id"], fact["quote"]) for fact in json.loads(inside)]
    words = inside.partition("\n\n")[2] if inside.startswith("{") else inside
    return [("", words[first:last]) for first, last in split_sentences(words)]


@dataclass(frozen=True)
class _Shape:
    """How many sentences a variant of an engine has, and how its answer holds them."""

    sentences: int

    def fields(self, kind: str, said: Sequence[str]) -> dict[str, Any]:
        if kind == "thread":
            return {"posts": list(said)}
        if kind == "linkedin_post":
            return {"paragraphs": list(said), "hashtags": []}
        if kind == "quote_graphic":
            return {"quote": said[0], "speaker": ""}
        if kind == "blog_article":
            sections = [
                {"heading": f"What week {place} showed", "text": " ".join(said[place : place + 5])}
                for place in range(5, len(said), 5)
            ]
            return {
                "title": "Harrow counts its trams",
                "meta_description": said[0],
                "introduction": " ".join(said[:2]),
                "points": list(said[2:5]),
                "sections": sections,
                "tags": ["harrow"],
            }
        return {"text": said[0]}


SHAPES: Final = {
    "short_post": _Shape(1),
    "persona_tweet": _Shape(1),
    "quote_graphic": _Shape(1),
    "thread": _Shape(5),
    "linkedin_post": _Shape(6),
    "blog_article": _Shape(22),
}


def _variant(kind: str, facts: Sequence[tuple[str, str]], place: int, *, by_quote: bool) -> dict[str, Any]:
    """The same words both ways; ours names a statement by its first words and its fact by an id."""
    wanted = SHAPES[kind].sentences
    start = (place * wanted) % max(len(facts) - wanted, 1)
    taken = facts[start : start + wanted]
    claims = [
        {"text": quote, "quote": quote, "derived": ""}
        if by_quote
        else {"text": f"{' '.join(quote.split()[:4])}\u2026", "fact": name, "derived": ""}
        for name, quote in taken
    ]
    return {
        "angle": ANGLES[place],
        **SHAPES[kind].fields(kind, [quote for _, quote in taken]),
        "claims": claims,
    }


def _named(quote: str) -> str:
    """By its first and its last words, as the rules ask."""
    words = quote.split()
    return f"{' '.join(words[:5])} \u2026 {' '.join(words[-4:])}"


class Model:
    """Answers by what is asked: a brief, some variants from facts, one variant from the whole source."""

    kind = ""
    variant = 0
    variants = VARIANTS
    """Of a draft from facts."""

    def __call__(self, request: Recorded) -> Scripted:
        document = request.body["messages"][0]["content"][0]
        facts = _sentences_of(document["text"])
        if "You read one document" in request.raw:
            listed = [{"quote": _named(quote), "kind": "number"} for _, quote in facts[: prompts.MAX_FACTS]]
            return ok({"language": "en", "is_instruction_like": False, "facts": listed})
        if self.variants > 1 and "Write 1 variant" in request.raw:
            return ok({"variants": [_variant(self.kind, facts, self.variant, by_quote=True)]})
        made = [_variant(self.kind, facts, place, by_quote=False) for place in range(self.variants)]
        return ok({"variants": made})


@dataclass(frozen=True)
class Price:
    """Micro US dollars, and the tokens that were sent and answered."""

    cost: int
    sent: int
    answered: int


def _sum(calls: Sequence[Any]) -> Price:
    sent = (
        one.input_tokens + one.cache_write_5m_tokens + one.cache_write_1h_tokens + one.cache_read_tokens
        for one in calls
    )
    return Price(sum(one.cost_micro_usd for one in calls), sum(sent), sum(one.output_tokens for one in calls))


def ours(client: Any, model: Model, source: SourceText, kinds: Sequence[str]) -> Price:
    answer = CLAUDE.brief(source, client=client)
    calls = list(answer.calls)
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        drafted = CLAUDE.draft(
            engine, answer.brief, PERSONA, variants=VARIANTS, seed=source.text[-40:], client=client
        )
        calls += drafted.calls
    return _sum(calls)


def one_by_one(
    client: Any, model: Model, source: SourceText, kinds: Sequence[str], *, is_kept: bool
) -> Price:
    calls = []
    for kind in kinds:
        model.kind = kind
        engine = plugins.get("engines", kind, Engine)
        system = prompts.draft_system(engine, PERSONA)
        if not is_kept:
            system = tuple({"type": "text", "text": block["text"]} for block in system)
        ask = ModelRequest(
            step="draft",
            model=client.choice.draft,
            system=system,
            messages=_whole(engine, source),
            schema=prompts.variants_schema(_with_quotes(engine.draft_schema() or {})),
            max_tokens=engine.draft_tokens,
            effort=client.choice.effort,
            prompt_version="one by one",
        )
        for model.variant in range(VARIANTS):
            calls.append(client.ask(ask).record)
    return _sum(calls)


def _whole(engine: Engine, source: SourceText) -> tuple[Mapping[str, Any], ...]:
    [message] = prompts.brief_request(source, source.text)
    task = f"Write 1 variant of the {engine.name} from the document by your rules; quote what each claim rests on."
    return ({**message, "content": [message["content"][0], {"type": "text", "text": task}]},)


def _with_quotes(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Without a list of facts a claim has to bring its quote, or nothing can be proven."""
    text = {"type": "string"}
    claim = {
        "type": "object",
        "properties": {"text": text, "quote": text, "derived": text},
        "required": ["text", "quote", "derived"],
        "additionalProperties": False,
    }
    properties = {**variant["properties"], "claims": {"type": "array", "items": claim}}
    return {**variant, "properties": properties}


def compare(words: int, kinds: Sequence[str], choice: ModelChoice) -> dict[str, Price]:
    """Each way by itself, its prompts unknown to the service at first."""
    source, found = article(words), {}
    for name in ("ours", "ours, next raw item", "one by one", "one by one, kept"):
        model = Model()
        with (
            MessagesServer() as server,
            model_client.connect_account(api_key="key", base_url=server.url, choice=choice) as client,
        ):
            server.answer = model
            server.meter = Meter()
            if name.startswith("ours"):
                found[name] = ours(client, model, source, kinds)
                if name != "ours":
                    found[name] = ours(client, model, article(words + 30), kinds)
            else:
                found[name] = one_by_one(client, model, source, kinds, is_kept=name.endswith("kept"))
    return found


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    for kinds in (ENGINES, WITH_ARTICLE)[: size.lists]:
        for label, choice in list(MODELS.items())[: size.models]:
            for words in LENGTHS[: size.lengths]:
                found = compare(words, kinds, choice)
                ours, floor = found["ours"], found["one by one"]
                kept, following = found["one by one, kept"], found["ours, next raw item"]
                yield Row(
                    f"{words:,} words, {label}, with {kinds[-1]} (floor: one by one)",
                    "US cents",
                    [ours.cost / 1e4],
                    [floor.cost / 1e4],
                    most_ratio=round(MOST, 3),
                    note=f"next raw item {following.cost / floor.cost:.2f}, against kept prompts "
                    f"{ours.cost / kept.cost:.2f}; {ours.sent:,} tokens sent and {ours.answered:,} answered, "
                    f"one by one {floor.sent:,} and {floor.answered:,}",
                )
