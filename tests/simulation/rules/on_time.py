"""With nothing in the way a promise is kept to the second."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from config.core.ids import encode
from pipeline import publish
from pipeline.models import Event, GeneratedItem, Outlet, Publication
from pipeline.review import decisions
from tests.simulation.people import BY
from tests.simulation.rules.deliveries import wants
from tests.simulation.world import ON_TIME, SKEW
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from accounts.models import Workspace
    from tests.simulation.instance import Instance
    from tests.simulation.people import People
    from tests.simulation.world import World


def probe(world: World, instance: Instance, people: People) -> None:
    """With nothing in the way a promise is kept to the second, and told as soon."""
    due_at = world.now + timedelta(minutes=10)
    promised: list[Publication] = []

    def promise(workspace: Workspace) -> str:
        item = (
            GeneratedItem.everywhere.filter(workspace=workspace, status="ready", deleted_at=None)
            .order_by("-id")
            .first()
        )
        if item is None:
            return "nothing"
        decisions.approve(item, by=BY, now=world.now)
        outlet = Outlet.everywhere.filter(workspace=workspace, is_simulated=True).first()
        wish = publish.PublishWish(
            outlets=[encode("out", outlet.pk)], publish_at=due_at, late_policy="publish"
        )
        promised.extend(publish.request(item, wish, by=BY)[1])
        return "promised"

    for pk in people.workspaces:
        people.do(promise, pk)
    world.run_until(due_at + timedelta(minutes=5))
    for row in promised:
        now = Publication.everywhere.get(pk=row.pk)
        if now.status != "published" or not due_at - SKEW < now.published_at < due_at + ON_TIME + SKEW:
            world.broken(
                f"{encode('pub', row.pk)} was due at {due_at} and is {now.status} at {now.published_at}: {_why(now)}"
            )
            continue
        event = Event.everywhere.get(publication_id=row.pk, type="published.success")
        for endpoint in Endpoint.everywhere.filter(workspace_id=row.workspace_id, deleted_at=None):
            if not wants(endpoint, event):
                continue
            came = [at for at, event_id, _ in instance.receivers[endpoint.url].got if event_id == event.pk]
            if not came or came[0] > due_at + timedelta(seconds=10):
                world.broken(f"{endpoint.url} heard of {encode('pub', row.pk)} at {came}, due at {due_at}")


def _why(row: Publication) -> str:
    return f"held {row.item.held!r}, waits for {row.waits_for}, error {row.error}, wakes at {row.wake_at}, rests until {row.outlet.rests_until}"
