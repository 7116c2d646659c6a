"""Every case through brief and engines, against recorded replies: what was found, what the checks stopped, its price."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline import plugins
from pipeline.engines.base import Engine, PersonaCard, SourceText
from pipeline.generate.autopilot import check_gates
from pipeline.generate.checks import run_checks
from pipeline.generate.model import client as model_client
from pipeline.plugins import PluginError
from pipeline.writers.claude import PLUGIN as CLAUDE
from tests.writers.messages_server import MessagesServer, Recorded, Scripted, material_of, ok, refusal
from tests.writers.metering import Meter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.evaluation.cases import Case

ENGINES = ("short_post", "persona_tweet", "thread")
_LEAST_POSTS = 3
PERSONA = PersonaCard("Harrow Herald", handle="herald", voice="Dry and short.")


@dataclass
class Outcome:
    """Of one case. `stopped` are the failed checks of what was written first, by engine; `ended` how each ended."""

    case: Case
    found: int = 0
    kept: int = 0
    right: int = 0
    dropped: int = 0
    is_suspect: bool = False
    stopped: dict[str, list[str]] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    flies: dict[str, bool] = field(default_factory=dict)
    cost: int = 0
    calls: int = 0


class Replay:
    """Answers as was recorded: first what `lines` say, after a repair or a refusal what `mended` does."""

    def __init__(self, case: Case, engine: str = "") -> None:
        self.case, self.engine, self.asked = case, engine, 0

    def __call__(self, request: Recorded) -> Scripted:
        self.asked += 1
        if "You read one document" in request.raw:
            facts = [{"quote": quote, "kind": "statement"} for quote in self.case.quotes]
            listed = {
                "language": self.case.language,
                "is_instruction_like": self.case.is_hostile,
                "facts": facts,
            }
            return ok(listed)
        if self.asked == 1 and self.case.flaw == "refused":
            return refusal("cyber")
        if self.asked == 1 and self.case.flaw == "truncated":
            return ok('{"variants": [{"angle": "num', stop_reason="max_tokens")
        lines = self.case.mended if self.asked > 1 and self.case.mended else self.case.lines
        return ok({"variants": [_variant(self.engine, lines, _numbers(request))]})


def _numbers(request: Recorded) -> list[tuple[str, str]]:
    """The facts as the model is shown them: what was dropped has no number."""
    return [(one["id"], one["quote"]) for one in json.loads(material_of(request))]


def _variant(
    engine: str, lines: Sequence[tuple[str, int]], facts: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    taken = lines if engine == "thread" else lines[:1]
    words = [text for text, _ in taken]
    said = {"posts": words} if engine == "thread" else {"text": words[0]}
    claims = [
        {"text": f"{' '.join(text.split()[:4])}\u2026", "fact": f"f{number}", "derived": ""}
        for text, number in taken
    ]
    return {"angle": "number", **said, "claims": claims}


def run(cases: Sequence[Case], engines: Sequence[str] = ENGINES) -> list[Outcome]:
    with MessagesServer() as server:
        server.meter = Meter()
        with model_client.connect_account(api_key="key", base_url=server.url, timeout=30) as client:
            return [_one(case, engines, server, client) for case in cases]


def _one(case: Case, engines: Sequence[str], server: MessagesServer, client: Any) -> Outcome:
    outcome = Outcome(case)
    source = SourceText(
        case.title, case.text, f"https://news.example.org/{case.name}", language=case.language
    )
    server.answer = Replay(case)
    answer = CLAUDE.brief(source, client=client)
    brief = answer.brief
    quotes = {fact.quote for fact in brief.facts}
    outcome.kept, outcome.dropped, outcome.is_suspect = len(quotes), answer.dropped, brief.is_suspect
    outcome.found = sum(fact in quotes for fact in case.facts)
    outcome.right = sum(quote in case.facts for quote in quotes)
    calls = list(answer.calls)
    for name in engines:
        if name == "thread" and len(case.mended or case.lines) < _LEAST_POSTS:
            continue
        engine = plugins.get("engines", name, Engine)
        server.answer = Replay(case, name)
        first: list[list[str]] = []
        persona = dataclasses.replace(PERSONA, language=case.language)

        def checked(draft: Any, *, first: list[list[str]] = first, engine: Engine = engine) -> Any:
            checks = run_checks(engine, draft, brief, source, persona)  # noqa: B023  asked within this turn
            first.append([check.code for check in checks if check.outcome == "failed"])
            return checks

        try:
            drafted = CLAUDE.draft(
                engine, brief, persona, variants=1, seed=case.name, client=client, judge=checked
            )
        except PluginError as error:
            outcome.ended[name] = error.code
            calls += getattr(error, "calls", ())
            continue
        calls += drafted.calls
        outcome.stopped[name] = first[0]
        checks = run_checks(engine, drafted.drafts[0], brief, source, persona)
        failed = [check.code for check in checks if check.outcome == "failed"]
        outcome.ended[name] = f"failed: {', '.join(failed)}" if failed else "ready"
        shown = [dataclasses.asdict(check) for check in checks]
        gates = check_gates(drafted.drafts[0], persona, shown, is_suspect=brief.is_suspect)
        outcome.flies[name] = not failed and all(gate.outcome == "passed" for gate in gates)
    outcome.cost, outcome.calls = sum(call.cost_micro_usd for call in calls), len(calls)
    return outcome
