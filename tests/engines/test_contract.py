"""What every engine has to keep, run over the registry; a new kind fails until its sample is recorded.

A sample holds a `source`, a `persona`, the `brief` with its facts, the `drafts` that the engine makes of them without
a model, and the codes of its `checks`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from pipeline import plugins
from pipeline.engines.base import (
    ANGLES,
    BUCKETS,
    Brief,
    Claim,
    Draft,
    Engine,
    Fact,
    PersonaCard,
    SourceText,
    Story,
)
from pipeline.render.video.material import Clip, FilmMaterial, StillImage
from pipeline.render.video.storyboard import Word

SAMPLES = Path(__file__).parent / "samples"
ENGINES = plugins.every("engines", Engine)
MADE_FROM = {"text", "image", "video", "topic", "series"}


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.kind)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


def stories_of(kept: dict[str, Any]) -> tuple[Story, ...]:
    return tuple(Story(**story) for story in kept.get("stories", ()))


@pytest.fixture
def sample(engine: Engine) -> dict[str, Any]:
    path = SAMPLES / f"{engine.kind}.json"
    assert path.is_file(), (
        f"Record tests/engines/samples/{engine.kind}.json as tests/engines/test_contract.py says."
    )
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def material_of(kept: dict[str, Any]) -> FilmMaterial | None:
    """The videos and pictures of a sample; its words are `[word, start, end]`."""
    told = kept.get("material")
    if told is None:
        return None
    clips = [
        Clip(**{**clip, "words": tuple(Word(*word) for word in clip["words"])}) for clip in told["clips"]
    ]
    stills = [StillImage(**still) for still in told["stills"]]
    return FilmMaterial(**{**told, "clips": tuple(clips), "stills": tuple(stills)})


@pytest.fixture
def source(sample: dict[str, Any]) -> SourceText:
    known = sample["source"]
    return SourceText(**{**known, "stories": stories_of(known), "material": material_of(known)})


@pytest.fixture
def persona(sample: dict[str, Any]) -> PersonaCard:
    return PersonaCard(**sample["persona"])


@pytest.fixture
def brief(engine: Engine, sample: dict[str, Any], source: SourceText) -> Brief:
    known = sample["brief"]
    facts = {name: tuple(Fact(**fact) for fact in known.get(name, ())) for name in ("facts", "headings")}
    return engine.told(Brief(**{**known, **facts, "stories": stories_of(known)}), source)


@pytest.fixture
def drafts(sample: dict[str, Any]) -> tuple[Draft, ...]:
    return tuple(
        Draft(**{**draft, "claims": tuple(Claim(**claim) for claim in draft["claims"])})
        for draft in sample["drafts"]
    )


def test_engine_is_described(engine: Engine) -> None:
    assert engine.name.strip() == engine.name != ""
    assert engine.bucket in BUCKETS
    assert engine.version >= 1
    assert engine.credits >= 1
    assert engine.made_from != ()
    assert set(engine.made_from) - MADE_FROM == set()


def test_names_are_taken_once() -> None:
    names = [engine.name for engine in ENGINES]

    assert sorted(names) == sorted(set(names))


def test_source_of_the_sample_will_do(engine: Engine, source: SourceText) -> None:
    assert engine.why_not(source) is None


def test_empty_source_is_declined_in_a_sentence(engine: Engine) -> None:
    reason = engine.why_not(SourceText(title="", text="", url="https://example.com/"))

    assert reason is not None
    assert re.fullmatch(r"[A-Z].*\.", reason)


def test_offline_drafts_are_as_recorded(
    engine: Engine, brief: Brief, persona: PersonaCard, drafts: tuple[Draft, ...]
) -> None:
    assert engine.offline(brief, persona, variants=len(drafts), seed="s") == drafts


def test_offline_drafts_are_the_same_each_time_and_all_different(
    engine: Engine, brief: Brief, persona: PersonaCard
) -> None:
    made = engine.offline(brief, persona, variants=3, seed="s")

    assert made == engine.offline(brief, persona, variants=3, seed="s")
    assert len({draft.body for draft in made}) == len(made)
    assert engine.offline(brief, persona, variants=1, seed="s") == made[:1]


def test_offline_drafts_say_what_the_source_says(source: SourceText, drafts: tuple[Draft, ...]) -> None:
    claims = [claim for draft in drafts for claim in draft.claims]

    assert claims != []
    assert [source.text[claim.start : claim.end] for claim in claims] == [claim.quote for claim in claims]
    assert {draft.angle for draft in drafts} - {*ANGLES, ""} == set()


def test_offline_drafts_pass_every_check(
    engine: Engine, sample: dict[str, Any], brief: Brief, source: SourceText, persona: PersonaCard
) -> None:
    drafts = engine.offline(brief, persona, variants=3, seed="s")

    for draft in drafts:
        checks = engine.check(draft, brief, source, persona)
        assert [check.code for check in checks] == sample["checks"]
        assert [(check.code, check.message) for check in checks if check.outcome != "passed"] == []
        assert [check.code for check in checks if not re.fullmatch(r"(?s)[A-Z].*\.", check.message)] == []


def test_invented_number_is_stopped(
    engine: Engine, brief: Brief, source: SourceText, persona: PersonaCard, drafts: tuple[Draft, ...]
) -> None:
    said = drafts[0]
    body = f"{said.body} 987654321"
    parts = said.content.get("parts")
    content = {**said.content, "parts": [*parts[:-1], f"{parts[-1]} 987654321"]} if parts else said.content
    invented = dataclasses.replace(said, body=body, content=content)

    failed = [
        check.code for check in engine.check(invented, brief, source, persona) if check.outcome == "failed"
    ]

    assert failed == ["numbers"]


def test_source_that_says_nothing_is_refused_in_a_sentence(engine: Engine, persona: PersonaCard) -> None:
    with pytest.raises(plugins.Refused, match=r"^[A-Z].*\.$") as refusal:
        engine.offline(Brief("", "en", "https://example.com/", ()), persona, variants=1, seed="s")

    assert refusal.value.code in {"nothing_to_say", "too_few_stories"}
