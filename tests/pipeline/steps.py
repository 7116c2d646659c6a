"""Short ways through the stages, each by the functions that the doors and the hands call."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from accounts.models import CreditBalance
from config.core.ids import encode
from pipeline import publish
from pipeline.generate import lifecycle, rendering, run, save, shared_brief
from pipeline.generate.topics import topic_run
from pipeline.ingest import raw_content, store_raw_item
from pipeline.models import (
    Attempt,
    Event,
    GeneratedItem,
    Generation,
    Outlet,
    Publication,
    RawItem,
    SimulatedPost,
    WorkspaceDefaults,
)
from pipeline.publish import steps as publish_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from accounts.models import Workspace
    from config.core.work_queue import DueModel

NOON = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
LEASE = timedelta(seconds=60)
MINUTE = timedelta(minutes=1)

TEXT = (
    "The city council approved the new tram line on Monday evening after six hours of debate. "
    "Construction of the northern depot begins in April and will employ about 340 people. "
    "Critics warned that rents along the route have already risen faster than anywhere else in the region. "
    "Passengers can travel free of charge during the first two weeks of regular service."
)
OTHER_TEXT = (
    "The council has withdrawn its approval of the tram because an auditor found an error in the tender. "
    "A fresh vote about the whole project is expected before the summer break begins."
)


def claimed(row: DueModel) -> Any:
    """The same row, read anew and under a fresh lease, as a hand gets it."""
    fresh = type(row).everywhere.get(pk=row.pk)
    fresh.lease_token += 1
    fresh.attempts += 1
    fresh.wake_at = datetime.now(UTC) + LEASE
    type(row).everywhere.filter(pk=row.pk).update(
        lease_token=fresh.lease_token, attempts=fresh.attempts, wake_at=fresh.wake_at
    )
    return fresh


def pass_points_of_generate(patch: pytest.MonkeyPatch, passed: Callable[[str], None]) -> None:
    """`passed` is told the name of each crash point that a generation comes by."""
    for module in (shared_brief, lifecycle, rendering, run, topic_run, save):
        patch.setattr(module, "crash_point", passed)


def reread(row: Any) -> Any:
    return type(row).everywhere.get(pk=row.pk)


def balance(workspace: Workspace) -> tuple[int, int]:
    """Credits that are available, and those that are reserved."""
    row = CreditBalance.everywhere.get(workspace=workspace)
    return row.available, row.reserved


def codes(raised: pytest.ExceptionInfo[Any]) -> list[tuple[str | None, str]]:
    """Field and code of each detail of an error."""
    return [(one.field, one.code) for one in raised.value.detail]


def content(**changes: Any) -> raw_content.RawContent:
    given = {"title": "Tram line approved", "body": TEXT, "url": "https://news.example/tram", **changes}
    return raw_content.RawContent(**given)


def push_raw(
    workspace: Workspace, *, test: bool = False, source: Any = None, **changes: Any
) -> store_raw_item.PushResult:
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    pushed_to = source or (defaults.test_push_source if test else defaults.push_source)
    options = {name: changes.pop(name) for name in ("when_short", "skip", "now") if name in changes}
    return store_raw_item.push(workspace, pushed_to, content(**changes), defaults=defaults, **options)


def run_generations(raw: RawItem) -> None:
    for generation in Generation.everywhere.filter(raw_item=raw, wake_at__isnull=False).order_by("id"):
        run.run_generation(claimed(generation))


def make_items(workspace: Workspace, **changes: Any) -> list[GeneratedItem]:
    """The items of a raw item that was pushed and made, in the order of their variants."""
    raw = push_raw(workspace, **changes).raw_item
    run_generations(raw)
    return items_of(raw)


def items_of(raw: RawItem) -> list[GeneratedItem]:
    return list(
        GeneratedItem.everywhere.select_related("workspace")
        .filter(raw_item=raw)
        .order_by("variant_index", "id")
    )


def make_stage(workspace: Workspace, *script: str, name: str = "Stage") -> Outlet:
    """A simulated outlet that answers by the script."""
    return Outlet.everywhere.create(
        workspace=workspace,
        platform="simulated",
        name=name,
        is_simulated=True,
        config={"script": list(script)},
    )


def to(*outlets: Outlet, **wish: Any) -> publish.PublishWish:
    return publish.PublishWish(outlets=[encode("out", outlet.pk) for outlet in outlets], **wish)


def promise(item: GeneratedItem, *outlets: Outlet, **wish: Any) -> Publication:
    """The one publication, or the first of several."""
    return publish.request(item, to(*outlets, **wish), by="alice")[1][0]


def send(publication: Publication) -> Publication:
    """One look of a hand at the publication; the row as it is afterwards."""
    publish_steps.advance_publication(claimed(publication))
    return reread(publication)


def facts(workspace: Workspace, *, since: int = 0) -> list[str]:
    """The types of all events so far, oldest first."""
    rows = Event.everywhere.filter(workspace=workspace).order_by("id")
    return list(rows.values_list("type", flat=True))[since:]


def told(workspace: Workspace, event_type: str) -> list[dict[str, Any]]:
    rows = Event.everywhere.filter(workspace=workspace, type=event_type).order_by("id")
    return [json.loads(bytes(row.body)) for row in rows]


def failures(workspace: Workspace) -> list[tuple[str, bool, str | None]]:
    """Of each `published.failed`: the error's code, whether it is tried again, and when."""
    return [
        (one["data"]["error"]["code"], one["data"]["will_retry"], one["data"]["next_attempt_at"])
        for one in told(workspace, "published.failed")
    ]


def attempts(publication: Publication) -> list[tuple[int, int, str]]:
    rows = Attempt.everywhere.filter(publication=publication).order_by("number")
    return list(rows.values_list("number", "revision", "status"))


def accepted(workspace: Workspace) -> list[tuple[str, str]]:
    """What the simulated platform took: the publication's key and the words."""
    rows = SimulatedPost.everywhere.filter(workspace=workspace, is_accepted=True).order_by("id")
    return list(rows.values_list("ref", "body"))


def calls(workspace: Workspace) -> list[str]:
    rows = SimulatedPost.everywhere.filter(workspace=workspace).order_by("id")
    return list(rows.values_list("answer", flat=True))


def state(row: Any, *names: str) -> dict[str, Any]:
    fresh = reread(row)
    return {name: getattr(fresh, name) for name in names}
