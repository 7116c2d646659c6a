"""Every page that there is, found by its address: no browser complains. Nothing hinders a reader, in both themes: of
twelve pages in each run, of all in `make prove-access`."""

from __future__ import annotations

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts import members, workspaces
from accounts.access import tokens
from accounts.models import Invitation, Membership
from config.core import task_runner
from pipeline import plugins
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import receive, secrets
from pipeline.labels import SOURCE_ENTRIES
from pipeline.models import Mailing, Outlet, SavedView, SourceEntry, Subscriber, WeekPlan, WorkspaceDefaults
from pipeline.personas import drafts, topics
from pipeline.platforms.base import Platform
from pipeline.publish import workspace_hold
from pipeline.schedule import queues, series
from tests.browser.people import violations
from tests.browser.test_account import log_in
from tests.browser.test_sign_up import PASSWORD
from tests.factories import MembershipFactory, PublicationFactory, UserFactory
from tests.pages.test_roles import workspace_pages
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import NOON, make_items, promise, push_raw, send
from tests.sizes import IS_PROOF
from webhooks import endpoints
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.minutes(2)]
OF_A_PERSON = (
    "/",
    "/new",
    "/account/profile",
    "/account/email/",
    "/account/password/change/",
    "/account/2fa/",
    "/account/2fa/totp/activate/",
    "/account/sessions/",
    "/account/reauthenticate/",
    "/account/logout/",
)
OF_A_STRANGER = (
    "/",
    "/account/login/",
    "/account/signup/",
    "/account/login/code/",
    "/account/password/reset/",
    "/docs",
    "/docs/limits",
    "/nothing/here",
)
DOWNLOADS = ("subscribers_export", "sources_export", "analytics_csv")
"""A browser saves them, and shows no page."""
LOOKED_OVER = {
    "/account/login/",
    "/docs",
    "/",
    "items_page",
    "item_page",
    "review",
    "calendar",
    "sources_page",
    "outlet_page",
    "analytics_page",
    "keys",
    "webhook",
}
"""What axe reads in each run."""


@pytest.fixture
def ids(db):
    """What each kind of id in an address can name."""
    alice = UserFactory(email="alice@example.test", name="Alice", password=PASSWORD)
    alice.mark_email_verified()
    newsroom = workspaces.create("Newsroom", owner=alice, timezone="Europe/Berlin")
    workspaces.whitelist(newsroom, "operator@example.test")
    bob = MembershipFactory(
        workspace=newsroom, user__email="bob@example.test", role=Membership.Role.EDITOR
    ).user
    members.invite(newsroom, "dora@example.test", Membership.Role.VIEWER, by=alice)
    endpoint = endpoints.add(newsroom, "http://127.0.0.1:9/hook", actor=alice.email).endpoint
    endpoints.send_test(endpoint, actor=alice.email)
    persona = WorkspaceDefaults.everywhere.get(workspace=newsroom).persona
    given = collect.SourceSettings(type="webhook", config={"verification": {"type": "bearer"}})
    bridge = secrets.register(newsroom, given)
    headers = {"authorization": f"Bearer {bridge.secret}", "content-type": "application/json"}
    sent = receive.IncomingDelivery(b'{"title": "The ferry leaves earlier", "language": 5}', headers)
    received = receive.receive(bridge.source, sent, now=timezone.now())
    _log_entries(bridge.source)
    letter, reader, mailed = _letter(newsroom)
    by_hand = _handed_over(newsroom)
    slots = [{"weekday": 5, "time": "10:00"}]
    # Held, so that there is something to let go.
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by=alice.email)
    return {
        "que": queues.create(
            newsroom, {"name": "Saturdays", "timezone": "UTC", "slots": slots}, by="alice@example.test"
        ).pk,
        "ser": series.create(newsroom, {"name": "Weekly", "slots": slots}, test=False, now=NOON).pk,
        "out": letter.pk,
        "sub": reader.pk,
        "mlg": mailed.pk,
        "src": bridge.source.pk,
        "ind": received.delivery.pk,
        "ws": newsroom.pk,
        "tok": tokens.issue(newsroom, name="Website", created_by=alice).token.pk,
        "usr": bob.pk,
        "inv": Invitation.everywhere.get().pk,
        "whe": endpoint.pk,
        "dlv": Delivery.everywhere.get().pk,
        "raw": push_raw(newsroom).raw_item.pk,
        "gen": by_hand.item_id,
        "kind": next(
            (one.kind for one in plugins.every("platforms", Platform) if one.is_connectable), "none"
        ),
        "pub": by_hand.pk,
        "viw": SavedView.everywhere.create(workspace=newsroom, name="Ready", filters={"status": "ready"}).pk,
        "pln": WeekPlan.everywhere.create(workspace=newsroom, made_by=alice.email).pk,
        "per": persona.pk,
        "pdr": _draft(newsroom).pk,
        "top": topics.create(newsroom, {"title": "Winter", "persona_id": persona.pk}, now=NOON).pk,
    }


def _handed_over(workspace):
    """A post that waits for its person, with every field of its page."""
    steps_of_a_post = "Choose the section.\nAdd the tags."
    config = {"place": "Substack", "address": "https://example.com/new", "instructions": steps_of_a_post}
    desk = Outlet.everywhere.create(workspace=workspace, platform="handoff", name="Substack", config=config)
    return send(promise(make_items(workspace)[0], desk))


def _letter(workspace):
    """A newsletter with somebody on its list and a mailing that goes on."""
    outlet = make_letter(workspace, 25)
    reader = subscribe(outlet, "ann")[0]
    item = make_items(workspace)[0]
    publication = PublicationFactory(item=item, outlet=outlet)
    mailed = Mailing.everywhere.create(
        workspace=workspace, outlet=outlet, publication=publication, subject="The tram", html="x", text="x"
    )
    return outlet, reader, mailed


def _draft(workspace):
    """Done, with its form: what a person meets there."""
    draft = drafts.request(
        workspace,
        persona=None,
        url="",
        posts="Fog on the river.",
        by="alice@example.test",
        now=timezone.now(),
    )
    task_runner.work_all_due("generate.draft_persona")
    draft.refresh_from_db()
    assert draft.status == "done"
    return draft


def _log_entries(source):
    """An entry of each decision; whatever its kind, a source's page shows them."""
    for decision in SOURCE_ENTRIES:
        SourceEntry.everywhere.create(
            workspace_id=source.workspace_id, source=source, key=decision, title=f"Tram {decision}",
            decision=decision, decided_by="url", message="Said so.",
        )  # fmt: skip


def addresses(ids):
    """Name and address of each page of the workspace."""
    for name, _, converters in workspace_pages():
        if name in DOWNLOADS:
            continue
        prefixes = {key: type(converter).prefix for key, converter in converters.items()}
        yield name, reverse(name, kwargs={key: ids[prefix] for key, prefix in prefixes.items()})


def test_nothing_hinders_a_reader(page, ids, complaints, record_property):
    # The address of nothing, and pages that only take a form.
    complaints.expect("404 (Not Found)")
    complaints.expect("405 (Method Not Allowed)")
    looked_at, looked_over = set(), set()

    def look(address, name=None):
        answer = page.goto(address)
        if answer.status == 405 or not answer.headers["content-type"].startswith("text/html"):
            return
        assert answer.status in {200, 404}, address
        if not answer.text().lstrip().lower().startswith("<!doctype"):
            # A part that its page asks for.
            return
        if page.url in looked_at:
            return
        looked_at.add(page.url)
        if not IS_PROOF and (name or address) not in LOOKED_OVER:
            return
        looked_over.add(name or address)
        assert violations(page) == [], address
        page.emulate_media(color_scheme="dark")
        assert violations(page, of_colours_only=True) == [], address
        page.emulate_media(color_scheme="light")

    reader = Subscriber.everywhere.select_related("outlet").get(pk=ids["sub"])
    of_a_reader = (
        reverse("subscribe", kwargs={"secret": reader.outlet.secret}),
        reverse("unsubscribe", kwargs={"token": reader.token}),
        reverse("confirm_letter", kwargs={"token": reader.token}),
    )
    for address in (*OF_A_STRANGER, *of_a_reader):
        look(address)
    log_in(page)
    page.get_by_role("heading", name="Newsroom", level=1).wait_for()
    for address in OF_A_PERSON:
        look(address)
    for name, address in addresses(ids):
        look(address, name)
    assert len(looked_at) > 30
    assert looked_over >= LOOKED_OVER
    record_property(
        "told", f"axe found nothing on {len(looked_over)} of {len(looked_at)} pages, in both themes"
    )
