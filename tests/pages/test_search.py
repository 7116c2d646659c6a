"""The search for everything: what it finds, for whom, and nothing of another workspace."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import workspaces
from accounts.access import tokens
from config.core.ids import encode, uuid7
from pipeline.models import GeneratedItem, Outlet, Persona, Series, Source
from tests.pipeline.steps import make_items, make_stage, promise
from tests.webhooks.factories import make_endpoint


@pytest.fixture
def ask(newsroom, as_person):
    def ask(user, text):
        answer = as_person(user).get(
            reverse("everything", kwargs={"ws": newsroom.pk}), {"q": text}, headers={"X-Part": "1"}
        )
        assert answer.status_code == 200
        return {
            str(label): [(row.label, row.address) for row in rows] for label, rows in answer.context["groups"]
        }

    return ask


def address(workspace, name, **arguments):
    return reverse(name, kwargs={"ws": workspace.pk, **arguments})


def add_zeppelins(workspace, place):
    item = make_items(workspace, title=f"Zeppelin over {place}", url=f"https://news.example/{place}")[0]
    source = Source.everywhere.create(workspace=workspace, name=f"Zeppelin feed {place}", type="rss")
    return item, source, make_stage(workspace, name=f"Zeppelin stage {place}")


def test_it_finds_items_sources_outlets_and_members_of_the_workspace_alone(
    newsroom, bob, vera, ask, as_person
):
    other = workspaces.create("Others")
    workspaces.whitelist(other, "operator@example.test")
    add_zeppelins(other, "Rome")
    item, source, outlet = add_zeppelins(newsroom, "Kiel")
    # Two formats of one story.
    items = GeneratedItem.everywhere.filter(raw_item=item.raw_item)
    found = ask(vera, "zeppelin")
    assert {**found, "Content": sorted(found["Content"])} == {
        "Content": sorted((row.title, address(newsroom, "item_page", gen=row.pk)) for row in items),
        "Sources": [("Zeppelin feed Kiel", address(newsroom, "source_page", src=source.pk))],
        "Outlets": [("Zeppelin stage Kiel", address(newsroom, "outlet_page", out=outlet.pk))],
    }
    html = as_person(vera).get(address(newsroom, "everything"), {"q": "zeppelin"}).content.decode()
    assert "Short Post · To review" in html
    assert ask(vera, "bob@")["Members"] == [(bob.name or bob.email, address(newsroom, "members"))]


def test_an_id_leads_to_its_page(newsroom, alice, vera, ask):
    item, source, outlet = add_zeppelins(newsroom, "Kiel")
    publication = promise(item, outlet)
    page = address(newsroom, "item_page", gen=item.pk)
    assert ask(vera, encode("gen", item.pk))["Go to"] == [(encode("gen", item.pk), page)]
    assert ask(vera, f" {encode('pub', publication.pk)} ")["Go to"] == [(encode("pub", publication.pk), page)]
    assert ask(vera, encode("src", source.pk))["Go to"][0][1] == address(
        newsroom, "source_page", src=source.pk
    )
    for prefix in ("gen", "pub", "src", "que", "tok"):
        assert "Go to" not in ask(alice, encode(prefix, uuid7())), "a page that isn't there"
    other = workspaces.create("Others")
    workspaces.whitelist(other, "operator@example.test")
    assert "Go to" not in ask(alice, encode("src", add_zeppelins(other, "Rome")[1].pk))
    # A key's page is its owner's.
    key = encode("tok", tokens.issue(newsroom, name="Integration", actor="test").token.pk)
    assert ("Go to" in ask(alice, key), "Go to" in ask(vera, key)) == (True, False)


def test_an_id_whose_page_is_not_shown_leads_nowhere(newsroom, alice, ask, as_person):
    item, source, outlet = add_zeppelins(newsroom, "Kiel")
    publication = promise(item, outlet)
    deleted = {"deleted_at": timezone.now()}
    persona = Persona.everywhere.create(workspace=newsroom, name="Zoe")
    digest = Series.everywhere.create(workspace=newsroom, name="Week")
    hidden = [
        ("gen", "item_page", item, "gen", deleted),
        ("gen", "item_page", item, "gen", {"test": True}),
        ("raw", "made", item.raw_item, "raw", deleted),
        ("raw", "made", item.raw_item, "raw", {"test": True}),
        ("src", "source_page", source, "src", deleted),
        ("src", "source_page", source, "src", {"test": True}),
        ("out", "outlet_page", outlet, "out", deleted),
        ("per", "persona", persona, "per", deleted),
        ("ser", "series_one", digest, "ser", deleted),
        ("ser", "series_one", digest, "ser", {"test": True}),
        ("whe", "webhook", make_endpoint(newsroom), "whe", deleted),
    ]
    for prefix, page, row, argument, change in hidden:
        rows = type(row).everywhere.filter(pk=row.pk)
        there = {name: getattr(row, name) for name in change}
        where = address(newsroom, page, **{argument: row.pk})
        assert ask(alice, encode(prefix, row.pk))["Go to"] == [(encode(prefix, row.pk), where)]
        rows.update(**change)
        assert as_person(alice).get(where).status_code == 404
        assert "Go to" not in ask(alice, encode(prefix, row.pk)), (prefix, change)
        if row is item:
            assert "Go to" not in ask(alice, encode("pub", publication.pk)), change
        rows.update(**there)


def test_the_source_of_what_is_pushed_has_no_page(newsroom, alice, ask, as_person):
    push = Source.everywhere.get(workspace=newsroom, is_push=True, test=False)
    assert as_person(alice).get(address(newsroom, "source_page", src=push.pk)).status_code == 404
    assert "Go to" not in ask(alice, encode("src", push.pk))
    assert "Sources" not in ask(alice, push.name)


def test_commands_and_pages_are_those_of_the_role(newsroom, alice, bob, vera, ask):
    invite, pause = (
        ("Invite a member", address(newsroom, "member_invite")),
        ("Pause publishing", address(newsroom, "queues_hold")),
    )
    assert [ask(user, "invite").get("Commands", []) for user in (alice, bob, vera)] == [[invite], [], []]
    assert [ask(user, "PAUSE pub").get("Commands", []) for user in (alice, bob, vera)] == [
        [pause],
        [pause],
        [],
    ]
    assert [bool(ask(user, "api keys")) for user in (alice, bob, vera)] == [True, False, False]


def test_there_are_eight_of_a_kind_at_most(newsroom, alice, ask):
    for number in range(10):
        Source.everywhere.create(workspace=newsroom, name=f"Feed {number}", type="rss")
        Outlet.everywhere.create(
            workspace=newsroom, name=f"Feed {number}", platform="simulated", is_simulated=True
        )
    assert {kind: len(rows) for kind, rows in ask(alice, "feed").items()} == {"Sources": 8, "Outlets": 8}
    assert all(len(rows) <= 8 for rows in ask(alice, "").values())


@pytest.mark.parametrize("text", ["no such word", "?!", "'", "a" * 3000, "%", "\x00"])
def test_what_is_not_found_says_what_to_do(newsroom, alice, as_person, text):
    answer = as_person(alice).get(address(newsroom, "everything"), {"q": f"zz{text}"})
    assert "Try one word of the title" in answer.content.decode()


def test_it_asks_as_much_for_many_as_for_one(newsroom, alice, as_person):
    client = as_person(alice)

    def count():
        with CaptureQueriesContext(connection) as asked:
            client.get(address(newsroom, "everything"), {"q": "zeppelin"})
        return len(asked)

    add_zeppelins(newsroom, "Kiel")
    count()
    one = count()
    for place in ("Bonn", "Ulm"):
        add_zeppelins(newsroom, place)
    assert count() == one


def test_results_are_cut_around_the_words_that_were_found(newsroom, vera, as_person):
    long = "The council met for nine hours on Monday and at last agreed to buy a seventh crane for the zeppelin harbour"
    item = make_items(newsroom, title="Budget", url="https://news.example/budget")[0]
    body = f"{long} of <Kiel>. " + "More of it. " * 30
    GeneratedItem.everywhere.filter(pk=item.pk).update(
        title="A budget for Kiel", body=body, excerpt=body[:300]
    )
    client = as_person(vera)
    dialog = client.get(address(newsroom, "everything"), {"q": "zeppelin"}, headers={"X-Part": "1"})
    content = client.get(address(newsroom, "items_page"), {"q": "zeppelin"})
    for html in (dialog.content.decode(), content.content.decode()):
        assert "A budget for Kiel" in html
        assert "for the <mark>zeppelin</mark> harbour of &lt;Kiel&gt;." in html
    titled = client.get(address(newsroom, "everything"), {"q": "budget"}, headers={"X-Part": "1"})
    assert "A <mark>budget</mark> for Kiel" in titled.content.decode()
