"""/metrics: who sees it, and what it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from accounts import workspaces
from pipeline.models import Source
from tests.documents.text import read, section
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

LINE = re.compile(r'(?:# (?:HELP|TYPE) .+|[a-z_]+(?:\{kind="[a-z_.]+"\})? [0-9.e+-]+)')


@pytest.fixture(autouse=True)
def _ground(settings):
    settings.METRICS_TOKEN = "m" * 32
    settings.REDIS_URL = ""


def ask(client, token="m" * 32):
    return client.get("/metrics", headers={"Authorization": f"Bearer {token}"})


def values(response):
    lines = response.content.decode().splitlines()
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.parametrize("token", ["", "wrong", "m" * 31])
def test_others_are_told_that_it_is_not_there(client, token):
    assert ask(client, token).status_code == 404
    assert client.get("/metrics").status_code == 404


def test_without_the_setting_no_token_opens_it(client, settings):
    settings.METRICS_TOKEN = ""
    assert ask(client, "").status_code == 404
    assert ask(client, "None").status_code == 404


@pytest.mark.parametrize(("is_staff", "status"), [(True, 200), (False, 404)])
def test_staff_who_are_logged_in_see_it(client, is_staff, status):
    client.force_login(UserFactory(email="op@example.test", is_staff=is_staff))
    assert client.get("/metrics").status_code == status


def test_it_says_what_waits_and_what_is_dead(client):
    workspace = workspaces.create("Alice's newsroom")
    long_ago = datetime.now(UTC) - timedelta(seconds=90)
    Source.everywhere.create(workspace=workspace, name="Late", type="rss", wake_at=long_ago)
    gone = Source(workspace=workspace, name="Gone", type="rss")
    gone.status = "gone"
    gone.save(force_insert=True)
    answer = ask(client)
    assert answer["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    told = values(answer)
    assert told['pipeline_due_rows{kind="pipeline.collect"}'] == "1"
    assert 90 <= float(told['pipeline_oldest_due_seconds{kind="pipeline.collect"}']) < 120
    assert told['pipeline_dead_rows{kind="sources"}'] == "1"
    assert told['pipeline_late_seconds{kind="publications"}'] == "0.0"
    assert told["pipeline_overdue_publications"] == "0"
    assert (told["pipeline_database_up"], told["pipeline_stopped"]) == ("1", "0")


def test_every_metric_is_documented(client):
    named = {
        line.split()[2] for line in ask(client).content.decode().splitlines() if line.startswith("# TYPE")
    }
    text = section(read("running.md"), "## Metrics")
    assert {name for name in named if f"`{name}" not in text} == set()
