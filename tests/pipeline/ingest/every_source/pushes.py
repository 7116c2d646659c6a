"""webhook: what a bridge sends to the source's own address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from config.core.errors import Conflict
from pipeline.ingest import collect
from pipeline.models import InboundDelivery
from tests.inbound.conftest import post
from tests.pipeline import steps
from tests.pipeline.ingest.every_source.world import Kind
from tests.pipeline.steps import NOON

if TYPE_CHECKING:
    from pipeline.models import Source
    from tests.pipeline.ingest.every_source.world import World

KIND = Kind(
    "webhook",
    not_applicable={
        "withdrawn": (
            "No sender's format that is known here says in a common way that something was taken back; what a bridge "
            "tells of a deletion is an event of its own, which is mapped or ignored like any other."
        ),
        "redirected": "The source asks nobody, so that nobody can send it elsewhere: its senders come to its own address.",
    },
)
STORM = {"external_id": "7", "title": "Storm", "body": "The storm took the pier."}


def send(source: Source, payload: Any, **headers: str) -> tuple[int, str]:
    """The answer's status, and its outcome or the code of its first detail."""
    answer = post(source, payload, **headers)
    said = answer.json()
    return answer.status_code, said.get("outcome") or said["detail"][0]["code"]


def deliveries(source: Source) -> list[tuple[str, str | None]]:
    rows = InboundDelivery.everywhere.filter(source=source).order_by("id")
    return [(row.status, row.reason and row.reason["code"]) for row in rows]


def asks_nobody(world: World, source: Source) -> None:
    """It is never polled, and a person who tries is told why."""
    shown = world.shown(source)
    assert (shown["status"], shown["last_error"], shown["next_poll_at"]) == ("active", None, None)
    with pytest.raises(Conflict) as refused:
        collect.poll_now(source, now=NOON)
    assert (refused.value.detail[0].code, "POST /v1/raw" in refused.value.detail[0].message) == (
        "not_fetched",
        True,
    )


@KIND.cell
def new(world: World) -> None:
    source = world.add("webhook")
    asks_nobody(world, source)
    assert send(source, STORM) == (202, "new")
    assert send(source, {**STORM, "external_id": "8", "title": "Calm"}) == (202, "new")
    assert world.raws(source) == {"Storm": (1, False), "Calm": (1, False)}
    assert deliveries(source) == [("taken", None), ("taken", None)]
    assert world.ingested() == 2


@KIND.cell
def unchanged(world: World) -> None:
    source = world.add("webhook")
    send(source, STORM)
    before = world.facts(source)
    assert [send(source, STORM) for _ in range(2)] == [(200, "duplicate"), (200, "duplicate")]
    assert world.facts(source) == before
    assert deliveries(source) == [("taken", None), ("duplicate", None), ("duplicate", None)]


@KIND.cell
def edited(world: World) -> None:
    source = world.add("webhook")
    send(source, STORM)
    world.make(source)
    assert send(source, {**STORM, "title": "Storm over"}) == (200, "revised")
    assert world.raws(source) == {"Storm over": (2, False)}
    assert world.held(source) == {("Storm over", "source_changed")}
    assert deliveries(source) == [("taken", None), ("taken", None)]
    assert world.ingested() == 1
    assert send(source, {**STORM, "title": "Storm over"}) == (200, "duplicate")


@KIND.cell
def malformed(world: World) -> None:
    source = world.add("webhook")
    assert send(source, "{not json")[0] == 400
    assert send(source, [1, 2]) == (400, "not_an_object")
    assert send(source, {"strange": 1}) == (400, "nothing_found")
    assert [status for status, _ in deliveries(source)] == ["failed"] * 3
    assert all(code for _, code in deliveries(source))
    # What can be used is used, and the rest is said.
    assert send(source, {**STORM, "language": "not one at all", "published_at": "soon"}) == (202, "new")
    last = InboundDelivery.everywhere.filter(source=source).latest("id")
    assert {note["code"] for note in last.notes} == {"left_out"}
    assert world.raws(source) == {"Storm": (1, False)}


@KIND.cell
def huge(world: World) -> None:
    source = world.add("webhook")
    assert send(source, {**STORM, "body": "x" * 1024 * 1024})[0] == 413
    assert (deliveries(source), world.raws(source)) == ([], {})
    # A deep body and a long field are bounded too.
    assert send(source, '{"a":' * 40 + "1" + "}" * 40)[0] == 400
    assert send(source, {**STORM, "title": "x" * 2000}) == (202, "new")
    assert [(len(title), *rest) for title, rest in world.raws(source).items()] == [(500, 1, False)]
    last = InboundDelivery.everywhere.filter(source=source).latest("id")
    assert [note["code"] for note in last.notes] == ["cut"]


@KIND.cell
def slow(world: World) -> None:
    # A mapping that doubles what it holds with each step would take for ever.
    source = world.add("webhook", mapping={"title": "[@,@]" + "|[@,@]" * 30 + "|to_string(@)"})
    assert send(source, STORM) == (400, "mapping_too_costly")
    assert deliveries(source) == [("failed", "mapping_too_costly")]
    world.change(source, mapping={"title": "title", "external_id": "external_id"})
    assert send(source, STORM) == (202, "new")
    assert send(source, STORM) == (200, "duplicate")
    assert world.raws(source) == {"Storm": (1, False)}


@KIND.cell
def blocked(world: World) -> None:
    secret = "correct-horse-battery-staple"
    source = world.add("webhook", verification={"type": "header", "secret": secret})
    assert send(source, STORM)[0] == 401
    assert send(source, STORM, X_Webhook_Secret="another-secret-of-a-stranger")[0] == 401
    assert {status for status, _ in deliveries(source)} == {"refused"}
    assert InboundDelivery.everywhere.filter(source=source, body__isnull=False).count() == 0
    assert send(source, STORM, X_Webhook_Secret=secret) == (202, "new")
    # Too many at once are told to wait, and nothing of them is kept.
    world.monkeypatch.setattr("pipeline.limits.INBOUND_CALLS", "1/m")
    other = world.add("webhook")
    assert [send(other, STORM | {"external_id": str(number)})[0] for number in range(3)] == [202, 429, 429]
    assert deliveries(other) == [("taken", None)]


@KIND.cell
def gone(world: World) -> None:
    source = world.add("webhook")
    send(source, STORM)
    collect.change(source, {"status": "paused"}, workspace=world.workspace, now=NOON)
    # The sender has to come again.
    assert send(source, {**STORM, "external_id": "8"}) == (503, "paused")
    token = source.inbound_token
    collect.delete(steps.reread(source), now=NOON)
    gone_now = Client().post(f"/hooks/{token}", STORM, content_type="application/json")
    never_there = Client().post(f"/hooks/{'x' * 32}", STORM, content_type="application/json")
    assert (gone_now.status_code, gone_now.json()) == (404, never_there.json())
    assert world.raws(source) == {"Storm": (1, False)}
