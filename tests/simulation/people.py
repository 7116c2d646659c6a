"""What people do to an instance, drawn by chance: each act is one request, and may be refused."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from accounts.ledger import credits, reports
from accounts.models import Workspace
from config.core import errors
from config.core.clock import utc_now
from config.core.errors import AppError, NotFound
from config.core.ids import encode
from pipeline import outlets, publish
from pipeline.ingest import raw_content, store_raw_item
from pipeline.models import (
    GeneratedItem,
    Outlet,
    Publication,
    PublishQueue,
    SimulatedPost,
    Switch,
    WorkspaceDefaults,
)
from pipeline.publish import workspace_hold
from pipeline.review import decisions, regenerate
from pipeline.schedule import queues
from pipeline.switches import kill_switch
from tests.simulation.instance import OVERLAP
from tests.simulation.receivers import Receiver
from webhooks import endpoints, recovery
from webhooks.models import Delivery, Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from django.db.models import QuerySet

    from tests.simulation.instance import Instance

SENTENCES: Final = (
    "The city council approved the new tram line on Monday evening after six hours of debate.",
    "Construction of the northern depot begins in April and will employ about 340 people.",
    "Critics warned that rents along the route have already risen faster than anywhere else.",
    "Passengers can travel free of charge during the first two weeks of regular service.",
    "An auditor found an error in the tender and asked for a fresh vote before the summer.",
    "The mayor said that the second bridge will stay closed until the end of October.",
    "A survey of 1,200 households shows that most residents want longer opening hours.",
)
SCRIPTS: Final = (
    "ok",
    "429",
    "reject",
    "expired",
    "error",
    "timeout_after_accept",
    "timeout_before_accept",
    "silence",
)
BY: Final = "usr_somebody"


def change_outlet(outlet: Outlet, **values: Any) -> None:
    """Change some of an outlet's settings, as its page does; the others stay."""
    kept = ("name", "config", "per_day", "gap_minutes", "discloses_ai")
    values = {name: getattr(outlet, name) for name in kept} | values
    outlets.change(outlet, **values, by=BY, now=utc_now())


class People:
    """They act on two workspaces; the second one wants every revision approved, and has few credits."""

    def __init__(self, instance: Instance, workspaces: list[UUID]) -> None:
        self.instance = instance
        self.world = instance.world
        self.chance = instance.world.chance
        self.workspaces = workspaces
        self.pushed = 0
        self.refused: dict[str, int] = {}
        self.acts: dict[Callable[[Workspace], object], int] = {
            self.push: 20,
            self.publish_item: 24,
            self.publish_many: 3,
            self.approve: 10,
            self.edit: 7,
            self.reject: 3,
            self.restore: 3,
            self.regenerate: 2,
            self.retry_item: 2,
            self.cancel: 4,
            self.retry: 4,
            self.leave: 1,
            self.reconcile: 2,
            self.settle: 2,
            self.remove: 3,
            self.hold: 2,
            self.release: 3,
            self.stop: 1,
            self.resume: 2,
            self.change_queue: 2,
            self.change_outlet: 5,
            self.adjust: 2,
            self.change_endpoint: 4,
            self.rotate: 1,
            self.resend: 3,
            self.recover: 1,
            self.change_receiver: 5,
        }

    def act(self) -> None:
        """One request of somebody's."""
        pk = self.chance.choices(self.workspaces, (3, 1))[0]
        (act,) = self.chance.choices(list(self.acts), list(self.acts.values()))
        self.do(act, pk)

    def do(self, act: Callable[[Workspace], object], pk: UUID) -> None:
        name = act.__name__

        def request() -> None:
            try:
                done = act(Workspace.everywhere.select_related("plan", "credits").get(pk=pk))
            except AppError as error:
                done = error.code
                self.refused[name] = self.refused.get(name, 0) + 1
            self.world.note(f"{name}: {done}")

        # A secret is shown once: who lost it would ask for another one.
        dies = 0.0 if act in (self.rotate, self.change_endpoint) else 0.03
        self.world.spawn(self.instance.web, name, request, dies=dies)

    def any_of(self, rows: QuerySet[Any]) -> Any:
        """One of the newest, or a refusal."""
        found = list(rows.order_by("-id")[:12])
        if not found:
            raise NotFound
        return self.chance.choice(found)

    # --- Content -------------------------------------------------------------------------------------------------

    def push(self, workspace: Workspace) -> str:
        if not self.world.chance.randrange(8):
            number = self.chance.randrange(self.pushed + 1)
        else:
            self.pushed += 1
            number = self.pushed
        defaults = WorkspaceDefaults.everywhere.select_related("push_source").get(workspace=workspace)
        words = " ".join(self.chance.sample(SENTENCES, 3))
        content = raw_content.RawContent(title=f"Story {number}", body=words, external_id=str(number))
        before = reports.usage(workspace, utc_now())
        try:
            return store_raw_item.push(workspace, defaults.push_source, content, defaults=defaults).outcome
        except credits.QuotaExceeded:
            if before.available >= 1 and not self.world.has_faults:
                self.world.broken(f"a push was refused though {before.available} credits were left")
            raise

    def items(self, workspace: Workspace, *statuses: str) -> QuerySet[GeneratedItem]:
        rows = GeneratedItem.everywhere.filter(workspace=workspace, deleted_at=None)
        return rows.filter(status__in=statuses) if statuses else rows

    def publications(self, workspace: Workspace, *statuses: str) -> QuerySet[Publication]:
        rows = Publication.everywhere.filter(workspace=workspace)
        return rows.filter(status__in=statuses) if statuses else rows

    def publish_item(self, workspace: Workspace) -> str:
        item = self.any_of(
            self.items(workspace, "ready", "ready", "scheduled", "publish_failed", "published", "removed")
        )
        if workspace.requires_approval and self.chance.random() < 0.8:
            decisions.approve(item, by=BY, now=utc_now())
        outlets = list(Outlet.everywhere.filter(workspace=workspace, is_simulated=True).order_by("id"))
        named = self.chance.sample(outlets, self.chance.choice((1, 1, 2)))
        ahead = self.chance.choice((None, None, 1, 30, 600, 3000))
        is_queued = not self.chance.randrange(4)
        wish = publish.PublishWish(
            outlets=[encode("out", outlet.pk) for outlet in named],
            publish_at=None if ahead is None or is_queued else utc_now() + timedelta(minutes=ahead),
            is_queued=is_queued,
            keep_siblings=bool(self.chance.randrange(2)),
            late_policy=self.chance.choice((None, "publish", "next_slot", "hold")),
            max_lateness_minutes=self.chance.choice((5, 60)),
        )
        made = publish.request(item, wish, by=BY)[1]
        if wish.late_policy and any(
            (one.late_policy, one.max_lateness_minutes) != (wish.late_policy, wish.max_lateness_minutes)
            for one in made
        ):
            self.world.broken("a publication has another late policy than was asked for")
        with self.world.observing():
            if GeneratedItem.everywhere.get(pk=item.pk).held == "approval_stale":
                self.world.broken("an item waits for an approval though a person has just published it")
        siblings = self.items(workspace, "ready").filter(variant_group=item.variant_group)
        if not wish.keep_siblings and siblings.exclude(pk=item.pk).exists():
            self.world.broken("a variant is ready though another one was chosen")
        return ", ".join(f"{encode('pub', one.pk)} {one.due_at:%d %H:%M:%S}" for one in made)

    def publish_many(self, workspace: Workspace) -> int:
        """All at once, as after a morning's review."""
        items = list(self.items(workspace, "ready").order_by("id")[:12])
        rows = Outlet.everywhere.filter(workspace=workspace, is_simulated=True)
        outlets = [encode("out", outlet.pk) for outlet in rows.order_by("id")]
        for item in items:
            decisions.approve(item, by=BY, now=utc_now())
            publish.request(item, publish.PublishWish(outlets=outlets, keep_siblings=True), by=BY)
        return len(items)

    def approve(self, workspace: Workspace) -> str:
        return decisions.approve(self.any_of(self.items(workspace)), by=BY, now=utc_now()).status

    def edit(self, workspace: Workspace) -> str:
        item = self.any_of(self.items(workspace, "ready", "scheduled", "publish_failed"))
        words = self.chance.choice(SENTENCES)
        return decisions.edit(item, {"body": words}, by=BY, now=utc_now()).status

    def reject(self, workspace: Workspace) -> str:
        return decisions.reject(
            self.any_of(self.items(workspace, "ready")), reason="No.", by=BY, now=utc_now()
        ).status

    def restore(self, workspace: Workspace) -> str:
        return decisions.restore(self.any_of(self.items(workspace, "rejected")), now=utc_now()).status

    def regenerate(self, workspace: Workspace) -> str:
        return regenerate.regenerate(
            self.any_of(self.items(workspace)), workspace=workspace, now=utc_now()
        ).status

    def retry_item(self, workspace: Workspace) -> str:
        return regenerate.retry(
            self.any_of(self.items(workspace, "failed")), workspace=workspace, now=utc_now()
        ).status

    # --- Publications --------------------------------------------------------------------------------------------

    def cancel(self, workspace: Workspace) -> str:
        return publish.cancel(self.any_of(self.items(workspace, "scheduled")), now=utc_now()).status

    def retry(self, workspace: Workspace) -> str:
        return publish.retry(self.any_of(self.publications(workspace, "failed")), by=BY, now=utc_now()).status

    def leave(self, workspace: Workspace) -> str:
        return publish.cancel_failed(
            self.any_of(self.publications(workspace, "failed")), now=utc_now()
        ).status

    def reconcile(self, workspace: Workspace) -> str:
        return publish.reconcile_now(
            self.any_of(self.publications(workspace, "unknown")), now=utc_now()
        ).status

    def settle(self, workspace: Workspace) -> str:
        """They look at the platform, and say what is so."""
        row = self.any_of(self.publications(workspace, "unknown"))
        was_sent = SimulatedPost.everywhere.filter(ref=encode("pub", row.pk), is_accepted=True).exists()
        return publish.settle_publication(row, was_sent=was_sent, by=BY, now=utc_now()).status

    def remove(self, workspace: Workspace) -> str:
        return publish.request_removal(
            self.any_of(self.publications(workspace, "published")), now=utc_now()
        ).status

    def hold(self, workspace: Workspace) -> str:
        return workspace_hold.hold_workspace(workspace, reason="Wait.", by=BY).reason

    def release(self, workspace: Workspace) -> None:
        workspace_hold.release_workspace(workspace, by=BY, now=utc_now())

    def stop(self, workspace: Workspace) -> str:
        whose = self.chance.choice((workspace, None))
        return kill_switch.stop("publishing", workspace=whose, reason="Wait.", actor="operator").reason

    def resume(self, _: Workspace) -> bool:
        return kill_switch.resume(self.any_of(Switch.everywhere.all()), actor="operator")

    def change_queue(self, workspace: Workspace) -> str:
        queue = self.any_of(PublishQueue.everywhere.filter(workspace=workspace))
        return str(queues.change(queue, {"is_paused": bool(self.chance.randrange(2))}, by=BY).is_paused)

    def change_outlet(self, workspace: Workspace) -> str:
        """Its pace, or how its platform answers for a while."""
        outlet = self.any_of(Outlet.everywhere.filter(workspace=workspace, is_simulated=True))
        script = [self.chance.choice(SCRIPTS) for _ in range(self.chance.randrange(4))]
        values = self.chance.choice(
            ({"config": {"script": script}}, {"gap_minutes": self.chance.choice((None, 20))},
             {"per_day": self.chance.choice((None, 2))})
        )  # fmt: skip
        change_outlet(outlet, **values)
        return str(values)

    # --- Money and events ----------------------------------------------------------------------------------------

    def adjust(self, workspace: Workspace) -> int:
        amount = self.chance.choice((-2, 3, 5))
        credits.adjust(workspace, amount, "Because.", "operator")
        return amount

    def endpoints(self, workspace: Workspace) -> QuerySet[Endpoint]:
        return Endpoint.everywhere.filter(workspace=workspace, deleted_at=None)

    def add_endpoint(self, workspace: Workspace) -> str:
        url = f"https://receiver-{len(self.instance.receivers)}.example/hook"
        receiver = self.instance.receivers[url] = Receiver([])
        kinds = self.chance.choice(((), ("*",), ("published.success", "published.failed")))
        rate = self.chance.choice((None, 2))
        secret = endpoints.add(workspace, url, events=kinds, rate=rate, actor=BY).secret
        receiver.secrets.append((secret, self.world.now))
        return url

    def change_endpoint(self, workspace: Workspace) -> str:
        what = self.chance.choice(("add", "remove", "off", "on", "on", "on", "test"))
        if what == "add":
            if self.endpoints(workspace).count() >= 3:
                return "enough"
            return self.add_endpoint(workspace)
        # Now and then of a page that is older than the endpoint's removal.
        known = Endpoint.everywhere.filter(workspace=workspace)
        endpoint = self.any_of(self.endpoints(workspace) if self.chance.randrange(4) else known)
        if what == "remove":
            endpoints.remove(endpoint, actor=BY)
        elif what == "off":
            endpoints.switch_off(endpoint, actor=BY)
        elif what == "on":
            endpoints.switch_on(endpoint, actor=BY)
        else:
            endpoints.send_test(endpoint, actor=BY)
        return f"{what} {endpoint.url}"

    def rotate(self, workspace: Workspace) -> str:
        endpoint = self.any_of(self.endpoints(workspace))
        secret = endpoints.rotate_secret(endpoint, OVERLAP, actor=BY)
        self.instance.receivers[endpoint.url].secrets.append((secret, self.world.now))
        return endpoint.url

    def resend(self, workspace: Workspace) -> str:
        rows = Delivery.everywhere.filter(workspace=workspace)
        delivery = self.any_of(rows.exclude(status="delivered") if self.chance.randrange(2) else rows)
        self.instance.sent_again.add(delivery.endpoint_id)
        try:
            endpoints.resend(delivery, actor=BY)
        except errors.Conflict as error:
            codes = {detail.code for detail in error.detail}
            if codes & {"event_expired", "move_not_allowed"}:
                self.world.broken(f"a delivery that is {delivery.status} couldn't be sent again: {codes}")
            raise
        with self.world.observing():
            if Delivery.everywhere.get(pk=delivery.pk).status != "pending":
                self.world.broken(f"a delivery that was {delivery.status} isn't sent again")
        return delivery.status

    def recover(self, workspace: Workspace) -> str:
        endpoint = self.any_of(self.endpoints(workspace))
        since = utc_now() - timedelta(days=2)
        self.instance.sent_again.add(endpoint.pk)
        return recovery.start(endpoint, since, is_everything=not self.chance.randrange(4), actor=BY).status

    def change_receiver(self, workspace: Workspace) -> str:
        """Somebody's server fails, or works again."""
        receiver = self.instance.receivers[self.any_of(self.endpoints(workspace)).url]
        modes = ("ok", "ok", "500", "429", "slow", "hangs", "410")
        receiver.mode = self.chance.choice(modes)
        return receiver.mode
