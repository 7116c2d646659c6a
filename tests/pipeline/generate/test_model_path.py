"""The whole path with a model's words: pushed, made for five buckets, approved, published."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from accounts import workspaces
from pipeline.review import decisions
from tests.engines.test_golden import GOLDEN, source_of
from tests.pipeline.steps import (
    NOON,
    accepted,
    items_of,
    make_stage,
    promise,
    push_raw,
    reread,
    run_generations,
    send,
)
from tests.writers.messages_server import material_of, ok

if TYPE_CHECKING:
    from tests.writers.messages_server import Recorded, Scripted

pytestmark = [pytest.mark.usefixtures("anthropic_sdk"), pytest.mark.slow]


ENGINES = {
    "Thread": "text",
    "Quote Graphic": "image",
    "Newsletter Issue": "newsletter",
    "Blog Article": "blog",
    "Persona Short": "video",
}


class Model:
    """It reads what arrives and writes from the facts that it is shown; nothing else reaches it."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = json.loads((GOLDEN / "news" / "answers.json").read_text("utf-8"))
        self.read: list[str] = []

    def __call__(self, request: Recorded) -> Scripted:
        given = material_of(request)
        if "You read one document" in request.raw:
            self.read.append(given)
            facts = [
                {"quote": quote, "kind": "statement"} for quote in self.answers["facts"] if quote in given
            ]
            return ok({"language": "en", "is_instruction_like": False, "facts": facts})
        facts = {one["id"]: one["quote"] for one in json.loads(given)}
        engine = next(name for name in ENGINES if f"of the {name} from" in request.raw)
        kind = engine.lower().replace(" ", "_")
        return ok({"variants": [self.answers.get(kind) or getattr(self, f"_{kind}")(facts)]})

    def _quote_graphic(self, facts: dict[str, str]) -> dict[str, Any]:
        name, quote = next((name, quote) for name, quote in facts.items() if 40 < len(quote) < 200)
        return {"angle": "story", "quote": quote, "speaker": "", "claims": _claims((quote, name))}

    def _newsletter_issue(self, facts: dict[str, str]) -> dict[str, Any]:
        told = [(quote, name) for name, quote in facts.items()][:8]
        return {
            "angle": "story",
            "subject": " ".join(told[0][0].split()[:6]),
            "preheader": max(facts.values(), key=len)[:86].rpartition(" ")[0],
            "headline": " ".join(told[0][0].split()[:8]),
            "paragraphs": [quote for quote, _ in told],
            "claims": _claims(*told),
        }


def _claims(*told: tuple[str, str]) -> list[dict[str, str]]:
    return [
        {"text": f"{' '.join(text.split()[:4])}\u2026", "fact": name, "derived": ""} for text, name in told
    ]


def test_words_of_a_model_come_through_for_every_bucket(workspace: Any, model_server: Any) -> None:
    workspaces.lift_limits(workspace, "op")
    model_server.answer = model = Model()
    source = source_of("news")
    raw = push_raw(
        workspace, title=source.title, body=source.text, url=source.url, engines=list(ENGINES)
    ).raw_item
    run_generations(raw)
    items = items_of(raw)
    assert [(item.engine_output, item.status, item.error) for item in items] == [
        (name, "ready", None) for name in ENGINES
    ]
    # Read once for all five, and every word of the source was there to be read.
    assert [source.text in words for words in model.read] == [True]
    assert {item.engine_output: (item.bucket, item.generator["offline"]) for item in items} == {
        name: (bucket, False) for name, bucket in ENGINES.items()
    }
    stage = make_stage(workspace)
    for item in items:
        approved = decisions.approve(reread(item), by="alice", now=NOON)
        assert send(promise(approved, stage)).status == "published"
    assert len(accepted(workspace)) == len(ENGINES)
