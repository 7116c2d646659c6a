"""What the engines of words and of films make of three real-looking sources, with both writers; the outcome is kept to be read.

`golden/<source>/` holds the source, what a model answers, and for each engine what each writer makes of it.
`UPDATE_GOLDEN=1` writes those anew: read them as an editor would before they are committed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline import plugins
from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
from pipeline.generate.model import client as model_client
from pipeline.render.audio.transcript_sentences import text_of
from pipeline.render.video.material import Clip, FilmMaterial, StillImage
from pipeline.render.video.storyboard import Word
from pipeline.text.plain_text import plain_text
from pipeline.writers.claude import PLUGIN as CLAUDE
from pipeline.writers.extractive import PLUGIN as EXTRACTIVE
from tests.writers.messages_server import MessagesServer, ok

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("anthropic_sdk")

GOLDEN = Path(__file__).parent / "golden"
SOURCES = ("news", "essay", "transcript")
KINDS = ("thread", "linkedin_post", "blog_article", "persona_short", "composite_short")
MADE = [*((name, kind) for kind in KINDS for name in SOURCES), ("transcript", "clipped_short")]
ANSWERED_AS = {"composite_short": "persona_short"}
"""What a model is asked for in the same way: the pictures are chosen by the engine."""
PERSONA = PersonaCard(
    "Quay Letters", handle="quayletters", links=("https://quay.example.com/",), brand={"primary": "#0f3d4c"}
)


def source_of(name: str, engine: Engine | None = None) -> SourceText:
    """With a video and pictures for an engine that shows them; a transcript is what is said in the video then."""
    title, _, body = (GOLDEN / name / "source.md").read_text(encoding="utf-8").partition("\n\n")
    text = plain_text(body, "markdown")
    made = SourceText(title.removeprefix("# "), text, f"https://{name}.example.org/2026/story", language="en")
    if engine is None or "video" not in engine.made_from:
        return made
    words = spoken(text) if name == "transcript" else ()
    return replace(made, text=text_of(words) or text, material=material(words))


def spoken(text: str) -> tuple[Word, ...]:
    """Somebody who speaks on and on, and rests for a moment now and then."""
    words: list[Word] = []
    at, since = 0.5, 0
    for word in text.split():
        if since >= 9 and word in {"and", "so", "because", "but", "then", "now"}:
            at, since = at + 0.6, 0
        words.append(Word(word, round(at, 2), round(at + 0.3, 2)))
        at, since = at + 0.34, since + 1
    return tuple(words)


def material(words: tuple[Word, ...]) -> FilmMaterial:
    """What came with each of them: a long video and a short one, a wide picture and a tall one."""
    return FilmMaterial(
        clips=(
            Clip("upl_01jd0000000000000000000001", words, seconds=180.0),
            Clip("upl_01jd0000000000000000000002", seconds=7.5, author="Quay TV", licence="CC BY 4.0"),
        ),
        stills=(
            StillImage("upl_01jd0000000000000000000003", 1600, 1067, "Ines Duarte", "CC0"),
            StillImage("upl_01jd0000000000000000000004", 1080, 1620),
        ),
        credit="Night Desk",
    )


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


@pytest.mark.parametrize(("name", "kind"), MADE)
def test_words_without_ai_are_as_they_were_read(name: str, kind: str) -> None:
    engine = engine_of(kind)
    source = source_of(name, engine)
    assert engine.why_not(source) is None
    brief = engine.told(EXTRACTIVE.brief(source).brief, source)

    drafts = EXTRACTIVE.draft(engine, brief, PERSONA, variants=1, seed="s").drafts

    assert [check.outcome for check in engine.check(drafts[0], brief, source, PERSONA)] == ["passed"] * len(
        engine.check(drafts[0], brief, source, PERSONA)
    )
    compare(GOLDEN / name / f"{kind}.extractive.md", shown(drafts[0], brief, source, engine))


@pytest.mark.parametrize(("name", "kind"), MADE)
def test_words_of_the_model_are_as_they_were_read(server: MessagesServer, name: str, kind: str) -> None:
    """Nothing has to be mended: one call for the brief, one for the draft."""
    engine = engine_of(kind)
    source = source_of(name, engine)
    answers: dict[str, Any] = json.loads((GOLDEN / name / "answers.json").read_text(encoding="utf-8"))
    facts = [{"quote": quote, "kind": "statement"} for quote in answers["facts"]]
    server.script = [
        ok({"language": "en", "is_instruction_like": False, "facts": facts}),
        ok({"variants": [answers[ANSWERED_AS.get(kind, kind)]]}),
    ]
    with model_client.connect_account(api_key="key-of-ann", base_url=server.url, timeout=5) as client:
        found = CLAUDE.brief(source, client=client).brief
        brief = engine.told(found, source)
        judge = partial(engine.check, brief=brief, source=source, persona=PERSONA)
        written = CLAUDE.draft(engine, brief, PERSONA, variants=1, seed="s", client=client, judge=judge)

    assert len(found.facts) == len(facts)
    failed = [check for check in judge(written.drafts[0]) if check.outcome == "failed"]
    assert failed == []
    assert [call.outcome for call in written.calls] == ["answered"]
    compare(GOLDEN / name / f"{kind}.claude.md", shown(written.drafts[0], brief, source, engine))
