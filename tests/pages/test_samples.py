"""Sample data on the pages: its badge, and the button that removes all of it."""

from __future__ import annotations

import pytest

from accounts import samples
from accounts.models import AuditEntry, Membership, Workspace
from config.templatetags.ui import sample
from pipeline.ingest import collect
from pipeline.models import Outlet, Persona, PublishQueue, Source, Topic
from pipeline.personas import topics
from tests.pages.answers import at
from tests.pipeline.steps import NOON, make_items
from webhooks import endpoints
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db
BADGE = '<span class="badge" title="Sample data">Sample</span>'


def set_samples(workspace, state):
    Workspace.everywhere.filter(pk=workspace.pk).update(samples=state)


def test_the_badge_stands_beside_samples_alone(newsroom):
    source = Source.everywhere.filter(workspace=newsroom).first()
    assert sample(source) == ""
    source.is_sample = True
    assert sample(source) == BADGE
    assert sample({"is_sample": True}) == BADGE
    assert sample({}) == ""
    assert sample(None) == ""


def test_lists_and_heads_mark_samples(owner, newsroom, bob):
    source = collect.register(newsroom, collect.SourceSettings(type="webhook", name="Harbour"), now=NOON)
    persona = Persona.everywhere.get(workspace=newsroom)
    topic = topics.create(newsroom, {"title": "Tides"}, now=NOON)
    outlet = Outlet.everywhere.get(workspace=newsroom, platform="simulated")
    queue = PublishQueue.everywhere.get(workspace=newsroom)
    endpoint = endpoints.add(newsroom, "https://hooks.example/in", actor="alice").endpoint
    item = make_items(newsroom, engines=["Short Post"])[0]
    pages = {
        Source: [at(newsroom, "sources_page"), at(newsroom, "source_page", src=source.pk)],
        Persona: [at(newsroom, "personas"), at(newsroom, "persona", per=persona.pk)],
        Topic: [
            at(newsroom, "topics", per=persona.pk),
            at(newsroom, "topic", per=persona.pk, top=topic.pk),
        ],
        Outlet: [at(newsroom, "outlets_page"), at(newsroom, "outlet_page", out=outlet.pk)],
        PublishQueue: [at(newsroom, "queues_page"), at(newsroom, "queue_edit", que=queue.pk)],
        Endpoint: [at(newsroom, "webhooks"), at(newsroom, "webhook", whe=endpoint.pk)],
        Membership: [at(newsroom, "members")],
        type(item): [
            at(newsroom, "items_page"),
            at(newsroom, "item_page", gen=item.pk),
            at(newsroom, "review"),
            at(newsroom, "home"),
        ],
    }
    for model, addresses in pages.items():
        for address in addresses:
            assert BADGE not in owner.get(address).content.decode(), address
        row = model.everywhere.filter(workspace=newsroom).order_by("-id").first()
        model.everywhere.filter(pk=row.pk).update(is_sample=True)
        for address in addresses:
            assert BADGE in owner.get(address).content.decode(), address
        # A persona stands above its topics.
        model.everywhere.filter(pk=row.pk).update(is_sample=False)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("", None),
        ("filling", "Sample data is being added."),
        ("filled", "This workspace contains sample data."),
        ("removing", "The sample data is being removed."),
        ("removed", None),
    ],
)
def test_home_says_how_far_it_is(owner, newsroom, state, said):
    set_samples(newsroom, state)
    page = owner.get(at(newsroom, "home")).content.decode()
    every = ["Sample data is being added.", "contains sample data.", "sample data is being removed."]
    assert [one for one in every if one in page] == (
        [] if said is None else [one for one in every if one in said]
    )
    offers = at(newsroom, "samples_remove") in page
    assert offers is (state in {"filling", "filled"})
    settings_page = owner.get(at(newsroom, "workspace")).content.decode()
    assert (at(newsroom, "samples_remove") in settings_page) is offers


def test_only_owners_are_offered_the_button(newsroom, bob, as_person):
    set_samples(newsroom, "filled")
    page = as_person(bob).get(at(newsroom, "home")).content.decode()
    assert "contains sample data" in page
    assert at(newsroom, "samples_remove") not in page


def test_the_button_asks_once_more_and_removes(owner, newsroom):
    set_samples(newsroom, "filled")
    address = at(newsroom, "samples_remove")
    page = owner.get(address).content.decode()
    assert "your own content, and any sample persona" in page
    owner.post(address)
    assert Workspace.everywhere.get(pk=newsroom.pk).samples == "filled"
    answer = owner.post(address, {"sure": "True"})
    assert answer["Location"] == at(newsroom, "home")
    assert Workspace.everywhere.get(pk=newsroom.pk).samples == "removing"
    while samples.remove_some():
        pass
    assert Workspace.everywhere.get(pk=newsroom.pk).samples == "removed"
    noted = AuditEntry.objects.of(newsroom).filter(action__startswith="samples.").order_by("id")
    assert list(noted.values_list("action", "actor")) == [
        ("samples.removal_asked", "alice@example.test"),
        ("samples.removed", "system"),
    ]
