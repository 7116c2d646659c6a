"""Ten situations times six kinds of source, each through the real stage: what a user sees, and nothing taken in twice."""

from __future__ import annotations

import pytest
from django.core.cache import caches
from pytest_httpserver import HTTPServer

from pipeline import plugins
from pipeline.sources import scraper
from pipeline.sources.base import Source
from pipeline.sources.isolated_child import IsolatedChild
from pipeline.sources.web_pages import page_reader, polite_fetch
from tests.pipeline.ingest.every_source import feeds, lanes, pages, pushes, tiktoks, videos
from tests.pipeline.ingest.every_source.world import CASES, World, is_sentence

KINDS = (lanes.KIND, feeds.KIND, pages.KIND, tiktoks.KIND, pushes.KIND, videos.KIND)
CELLS = [(kind, case) for kind in KINDS for case in kind.cells]


@pytest.fixture(scope="module")
def server():
    """With a thread for each call, because calls that drip outlast their caller."""
    with HTTPServer(host="127.0.0.1", port=0, threaded=True) as made:
        yield made


@pytest.fixture(scope="module")
def reader():
    with IsolatedChild(page_reader.CHILD, library="trafilatura") as child:
        yield child


@pytest.fixture
def world(workspace, clock, server, reader, settings, monkeypatch):
    server.clear()
    caches["counts"].clear()
    # One reader of pages for all: starting it costs more than everything that is asked of it here.
    monkeypatch.setattr(page_reader, "IsolatedChild", lambda *_, **__: reader)
    monkeypatch.setattr(page_reader.PageReader, "__exit__", lambda *_: None)
    monkeypatch.setattr(polite_fetch, "pause", lambda _: None)
    # A busy machine must not run out of it.
    monkeypatch.setattr(scraper, "FETCH_SECONDS", 600)
    made = World(workspace, clock, server, settings, monkeypatch)
    yield made
    made.over.set()


@pytest.mark.parametrize(("kind", "case"), CELLS, ids=[f"{kind.name}-{case}" for kind, case in CELLS])
def test_cell(world, kind, case):
    kind.cells[case](world)
    world.check()


def test_every_cell_is_tested_or_explained():
    assert [kind.name for kind in KINDS] == sorted(one.kind for one in plugins.every("sources", Source))
    for kind in KINDS:
        assert sorted({*kind.cells, *kind.not_applicable}) == sorted(CASES), kind.name
        assert not kind.cells.keys() & kind.not_applicable.keys(), kind.name
        assert all(is_sentence(why) for why in kind.not_applicable.values()), kind.name
