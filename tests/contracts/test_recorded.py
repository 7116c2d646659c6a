"""What 200 requests are answered is what was recorded, and so are the names that operators' tools read.

`UPDATE_RECORDED=1` writes tests/contracts/recorded/ anew.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import random
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from accounts.access import workspace_rate_limit
from config.core import work_queue
from config.core.errors import CODES
from config.core.http_client import shared
from pipeline.ingest.collect import poll_source, source_preview
from pipeline.outlets import simulated_server
from tests.contracts.conftest import Newsroom
from tests.contracts.recorder import Recorder
from tests.contracts.test_storyboards import filmed
from tests.contracts.walk import Walk
from tests.documents.flow import NOON, OPERATOR, PUBLIC_URL
from tests.documents.test_examples import LISTED, METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_UPDATE = os.environ.get("UPDATE_RECORDED") == "1"
KEPT = Path(__file__).parent / "recorded"
ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "tests/documents/openapi.json"
PACKAGES = ("accounts", "analytics", "config", "pipeline", "webhooks")
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}

__all__ = ["filmed"]


def compare(name: str, text: str) -> None:
    file = KEPT / name
    if IS_UPDATE:
        KEPT.mkdir(exist_ok=True)
        file.write_text(text)
    kept = file.read_text() if file.exists() else ""
    changes = list(difflib.unified_diff(kept.splitlines(), text.splitlines(), name, "now", lineterm="", n=2))
    assert not changes, "\n".join([*changes[:80], "UPDATE_RECORDED=1 writes it anew."])


@pytest.fixture
def walk(db, settings, monkeypatch, tmp_path) -> Iterator[Walk]:
    # As on a machine without yt-dlp and without a browser, whatever this one has.
    bare = {"VIDEO_TOOL": "", "CHROMIUM_PATH": "/nowhere"}
    settings.SOURCE_ENVIRONMENT = {**settings.SOURCE_ENVIRONMENT, **bare}
    settings.PUBLIC_URL = PUBLIC_URL
    settings.OPERATOR_CONTACT = OPERATOR
    shared.client.cache_clear()
    # One clock for everything, the database's included.
    monkeypatch.setattr(work_queue, "database_now", timezone.now)
    monkeypatch.setattr(simulated_server, "made_up_metrics", lambda *_: METRICS)
    monkeypatch.setattr(poll_source, "_jitter", lambda: 0.0)
    for module in (poll_source, source_preview):
        monkeypatch.setattr(module, "fetch", lambda *_, **__: LISTED)
    # Redis has a clock of its own.
    allowed = workspace_rate_limit.Decision(
        allowed=True, limit=120, remaining=119, reset_seconds=1, retry_after=0
    )
    monkeypatch.setattr(workspace_rate_limit, "take_request", lambda _: allowed)
    monkeypatch.setattr(Newsroom, "_numbers", count(1))
    random.seed(0)
    with time_machine.travel(NOON, tick=False) as traveller:
        newsroom = Newsroom("Alice's newsroom")
        yield Walk(Recorder(newsroom.api, traveller.shift), newsroom)
    shared.client.cache_clear()


@pytest.mark.both_databases
def test_answers_are_those_recorded(walk):
    walk.run()
    compare("requests.txt", "\n\n".join(walk.ask.entries) + "\n")


def _recorded() -> list[tuple[str, str, str, str]]:
    """Method, path, status and error code of each."""
    entries = (KEPT / "requests.txt").read_text().split("\n\n## ")
    found = []
    for entry in entries:
        method, path = entry.removeprefix("## ").split()[:2]
        status = re.search(r"^< (\d+)$", entry, re.MULTILINE)[1]
        error = re.search(r'^(?:\{.*|  )"error": "(\w+)"\}?$', entry, re.MULTILINE)
        found.append((method, path.partition("?")[0], status, error[1] if error else ""))
    return found


def test_every_operation_and_error_code_is_recorded():
    recorded = _recorded()
    paths = json.loads(DOCUMENT.read_text())["paths"]
    # `/sources/preview` before `/sources/{id}`.
    forms = {
        path: re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for path in sorted(paths, key=lambda one: "{" in one)
    }
    answered = {
        (method, next((path for path, form in forms.items() if form.fullmatch(asked)), asked), status)
        for method, asked, status, _ in recorded
    }
    promised = {
        (method.upper(), path, status)
        for path, operations in paths.items()
        for method, operation in operations.items()
        if method != "parameters"
        for status in operation["responses"]
        if status.startswith("2")
    }
    assert promised - answered == set()
    assert {error for *_, error in recorded} - {""} == set(CODES)


@pytest.mark.django_db
def test_metrics_have_the_names_recorded(settings):
    """And their labels' values, which are names of ours."""
    settings.METRICS_TOKEN = "of this test"
    answer = Client().get("/metrics", headers={"Authorization": "Bearer of this test"})
    samples = re.findall(r'^(\w+)(?:\{(\w+)="([^"]+)"\})? \S+$', answer.content.decode(), re.MULTILINE)
    names = {f"{name}{{{label}}}" if label else name for name, label, _ in samples}
    values = {f'{label}="{value}"' for _, label, value in samples if label}
    compare("metrics.txt", "\n".join([*sorted(names), "", *sorted(values)]) + "\n")


def test_log_events_have_the_names_recorded():
    names = {
        name
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if "structlog.get_logger" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and (name := _event_of(node))
    }
    compare("log_events.txt", "\n".join(sorted(names)) + "\n")


def _event_of(call: ast.Call) -> str | None:
    """What a call of a structlog logger names; the server's own sentences are no names."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in LOG_METHODS and call.args):
        return None
    if not (isinstance(call.func.value, ast.Name) and call.func.value.id == "log"):
        return None
    first = call.args[0]
    assert isinstance(first, ast.Constant), ast.unparse(call)
    return first.value
