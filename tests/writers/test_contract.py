"""What every writer has to keep, run over the registry; a new kind fails until its sample is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline import plugins
from pipeline.engines.base import SourceText
from pipeline.writers.base import Writer

SAMPLES = Path(__file__).parent / "samples"
WRITERS = plugins.every("writers", Writer)
OFFLINE = [writer for writer in WRITERS if writer.offline]


def sample(writer: Writer) -> dict[str, Any]:
    path = SAMPLES / f"{writer.kind}.json"
    assert path.is_file(), (
        f"Record tests/writers/samples/{writer.kind}.json: a source and the facts found in it."
    )
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(params=WRITERS, ids=lambda writer: writer.kind)
def writer(request: pytest.FixtureRequest) -> Writer:
    found: Writer = request.param
    return found


@pytest.fixture(params=OFFLINE, ids=lambda writer: writer.kind)
def offline_writer(request: pytest.FixtureRequest) -> Writer:
    found: Writer = request.param
    return found


def test_writer_is_named(writer: Writer) -> None:
    assert writer.label.strip() == writer.label != ""
    assert writer.prompt_version.strip() == writer.prompt_version != ""
    assert writer.offline is (writer in OFFLINE)


def test_every_writer_has_its_sample(writer: Writer) -> None:
    assert sorted(sample(writer)) == ["facts", "source"]


def test_offline_brief_is_as_recorded(offline_writer: Writer) -> None:
    recorded = sample(offline_writer)
    source = SourceText(**recorded["source"])

    answer = offline_writer.brief(source)

    found = [
        {"id": fact.id, "quote": fact.quote, "start": fact.start, "end": fact.end}
        for fact in answer.brief.facts
    ]
    assert found == recorded["facts"]
    assert [source.text[fact.start : fact.end] for fact in answer.brief.facts] == [
        fact["quote"] for fact in found
    ]
    assert (answer.brief.title, answer.brief.url, answer.brief.language) == (
        source.title,
        source.url,
        source.language,
    )


def test_offline_brief_costs_nothing_and_names_no_model_of_a_vendor(offline_writer: Writer) -> None:
    usage = offline_writer.brief(SourceText(**sample(offline_writer)["source"])).usage

    assert (usage.provider, usage.offline) == ("offline", True)
    assert (usage.input_tokens, usage.output_tokens, usage.cost_micro_usd) == (0, 0, 0)
    assert usage.prompt_version == offline_writer.prompt_version


def test_offline_brief_of_nothing_has_no_facts(offline_writer: Writer) -> None:
    assert offline_writer.brief(SourceText(title="", text="")).brief.facts == ()
