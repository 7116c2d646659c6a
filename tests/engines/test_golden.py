"""What the engines of words make of three real-looking sources, with both writers; the outcome is kept to be read.

`golden/<source>/` holds the source, what a model answers, and for each engine what each writer makes of it.
`UPDATE_GOLDEN=1` writes those anew: read them as an editor would before they are committed.
"""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic  # noqa: F401 - loaded before any test looks at the clock
import pytest

from pipeline import model_client, plugins
from pipeline.canonical import plain_text
from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
from pipeline.writers.claude import PLUGIN as CLAUDE
from pipeline.writers.extractive import PLUGIN as EXTRACTIVE
from tests.writers.messages_server import MessagesServer, ok

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).parent / "golden"
SOURCES = ("news", "essay", "transcript")
KINDS = ("thread", "linkedin_post", "blog_article")
PERSONA = PersonaCard(
    "Quay Letters", handle="quayletters", links=("https://quay.example.com/",), brand={"primary": "#0f3d4c"}
)


def source_of(name: str) -> SourceText:
    title, _, body = (GOLDEN / name / "source.md").read_text(encoding="utf-8").partition("\n\n")
    url = f"https://{name}.example.org/2026/story"
    return SourceText(title.removeprefix("# "), plain_text(body, "markdown"), url, language="en")


def engine_of(kind: str) -> Engine:
    found: Engine = plugins.get("engines", kind, Engine)
    return found


def shown(draft: Draft, brief: Brief, source: SourceText, engine: Engine) -> str:
    """As a reviewer sees it: words, what goes with them, and every check."""
    checks = engine.check(draft, brief, source, PERSONA)
    about = [f"title: {draft.title}", f"angle: {draft.angle}", f"language: {draft.language}"]
    about += [
        f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in draft.content.items()
        if name != "parts"
    ]
    told = [f"{check.outcome:8}{check.code}: {check.message}" for check in checks]
    return "\n".join([*about, "", draft.body, "", "---", *told, ""])


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with MessagesServer() as running:
        yield running


def compare(path: Path, made: str) -> None:
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SOURCES)
def test_words_without_ai_are_as_they_were_read(name: str, kind: str) -> None:
    source, engine = source_of(name), engine_of(kind)
    assert engine.why_not(source) is None
    brief = EXTRACTIVE.brief(source).brief

    drafts = EXTRACTIVE.draft(engine, brief, PERSONA, variants=1, seed="s").drafts

    assert [check.outcome for check in engine.check(drafts[0], brief, source, PERSONA)] == ["passed"] * len(
        engine.check(drafts[0], brief, source, PERSONA)
    )
    compare(GOLDEN / name / f"{kind}.extractive.md", shown(drafts[0], brief, source, engine))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SOURCES)
def test_words_of_the_model_are_as_they_were_read(server: MessagesServer, name: str, kind: str) -> None:
    """Nothing has to be mended: one call for the brief, one for the draft."""
    source, engine = source_of(name), engine_of(kind)
    answers: dict[str, Any] = json.loads((GOLDEN / name / "answers.json").read_text(encoding="utf-8"))
    facts = [{"quote": quote, "kind": "statement"} for quote in answers["facts"]]
    server.script = [
        ok({"language": "en", "is_instruction_like": False, "facts": facts}),
        ok({"variants": [answers[kind]]}),
    ]
    with model_client.connect(api_key="key-of-ann", base_url=server.url, timeout=5) as client:
        brief = CLAUDE.brief(source, client=client).brief
        judge = partial(engine.check, brief=brief, source=source, persona=PERSONA)
        written = CLAUDE.draft(engine, brief, PERSONA, variants=1, seed="s", client=client, judge=judge)

    assert len(brief.facts) == len(facts)
    failed = [check for check in judge(written.drafts[0]) if check.outcome == "failed"]
    assert failed == []
    assert [call.outcome for call in written.calls] == ["answered"]
    compare(GOLDEN / name / f"{kind}.claude.md", shown(written.drafts[0], brief, source, engine))
