"""What the platform sees of each call: nothing may be sent that a person has forbidden, or not yet."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from config.core import ids
from pipeline.models import Attempt, Publication, PublishHold, Revision, Switch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tests.simulation.world import World

SKEW = timedelta(seconds=10.5)
"""The clocks of two processes differ by so much at most, and a call is on its way for half a second."""


def refuse_what_must_not_go_out(world: World, post: dict[str, Any]) -> None:
    row = Publication.everywhere.select_related("item", "outlet", "workspace", "queue").get(
        pk=ids.decode("pub", post["ref"])
    )
    attempt = Attempt.everywhere.filter(publication=row).order_by("-number").first()
    if attempt is None:
        world.broken(f"{post['ref']} was sent without an attempt")
        return
    armed_at = attempt.started_at
    words = Revision.everywhere.get(item=row.item, number=attempt.revision)
    if words.body != post["body"]:
        world.broken(f"{post['ref']} went out with other words than those of revision {attempt.revision}")
    if post["revision"] != attempt.revision:
        world.broken(
            f"{post['ref']} went out as revision {post['revision']}, and its attempt says {attempt.revision}"
        )
    # What a person has changed after the attempt was committed comes too late for this call.
    if row.status != "publishing" or row.updated_at > armed_at + SKEW or armed_at > world.now + SKEW:
        return
    if row.due_at is None or row.due_at > armed_at + SKEW:
        world.broken(f"{post['ref']} went out before its time {row.due_at}")
    if row.item.updated_at <= armed_at + SKEW:
        if row.item.held:
            world.broken(f"{post['ref']} went out though its item is held: {row.item.held}")
        if row.workspace.requires_approval and row.item.approved_revision != attempt.revision:
            world.broken(f"{post['ref']} went out without an approval of revision {attempt.revision}")
    for why in _what_stops(row, armed_at):
        world.broken(f"{post['ref']} went out though {why}")
    _keep_pace(world, row, attempt)


def _what_stops(row: Publication, armed_at: datetime) -> Iterator[str]:
    before = armed_at - SKEW
    if PublishHold.everywhere.filter(workspace=row.workspace, created_at__lt=before).exists():
        yield "its workspace is on hold"
    switches = Switch.everywhere.filter(what="publishing", created_at__lt=before)
    if any(one.workspace_id in {None, row.workspace_id} for one in switches):
        yield "publishing is stopped"
    if row.queue is not None and row.queue.is_paused and row.queue.updated_at < before:
        yield "its queue is paused"
    if row.late_policy != "publish" and row.max_lateness_minutes is not None:
        latest = row.due_at + timedelta(minutes=row.max_lateness_minutes)
        if before > latest:
            yield f"its late policy forbids that after {latest}"


def _keep_pace(world: World, row: Publication, attempt: Attempt) -> None:
    outlet = row.outlet
    if outlet.updated_at > attempt.started_at - SKEW:
        return
    before = list(
        Publication.everywhere.filter(outlet=outlet, published_at__lt=attempt.started_at)
        .exclude(pk=row.pk)
        .order_by("-published_at")
        .values_list("published_at", flat=True)
    )
    if outlet.gap_minutes and before:
        gap = timedelta(minutes=outlet.gap_minutes)
        if attempt.started_at - before[0] < gap - SKEW:
            world.broken(
                f"{post_of(row)} went out {attempt.started_at - before[0]} after the one before, not {gap}"
            )
    if outlet.per_day and len(before) >= outlet.per_day:
        since = attempt.started_at - before[outlet.per_day - 1]
        if since < timedelta(days=1) - SKEW:
            world.broken(f"{post_of(row)} is more than {outlet.per_day} in 24 hours")


def post_of(row: Publication) -> str:
    return ids.encode("pub", row.pk)
