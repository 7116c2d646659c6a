"""The deliveries of a webhook source: the list, one of them, trying a mapping, replaying, the secret."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import receive as taking
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.models import InboundDelivery, RawItem, Source
from tests.pages.answers import said


@pytest.fixture
def bridge(newsroom):
    given = collect.SourceSettings(
        type="webhook",
        name="CMS",
        config={"mapping": {"title": "headline"}, "verification": {"type": "bearer"}},
    )
    registered = secrets.register(newsroom, given)
    registered.source.told = registered.secret
    return registered.source


def receive(bridge, payload, secret=None):
    headers = {"authorization": f"Bearer {secret or bridge.told}", "content-type": "application/json"}
    incoming = taking.IncomingDelivery(json.dumps(payload).encode(), headers)
    try:
        return taking.receive(bridge, incoming, now=timezone.now()).delivery
    except taking.NotVerified:
        return InboundDelivery.everywhere.get(status="refused")


def at(bridge, name, **more):
    return reverse(name, kwargs={"ws": bridge.workspace_id, "src": bridge.pk, **more})


def test_list_shows_what_came_and_what_became_of_it(as_person, alice, bridge):
    receive(bridge, {"headline": "The ferry leaves earlier"})
    receive(bridge, {"strange": "words"})
    receive(bridge, {"headline": "Forged"}, secret="wrong-secret")
    html = as_person(alice).get(at(bridge, "source_deliveries")).content.decode()

    assert "The ferry leaves earlier" in html
    assert "Accepted" in html
    assert "No content" in html
    assert "Not verified" in html
    assert "Forged" not in html
    assert bridge.inbound_token in html


def test_source_waits_for_data_until_some_has_come(as_person, alice, bridge):
    page = at(bridge, "source_page")
    assert "Waiting for data" in as_person(alice).get(page).content.decode()
    receive(bridge, {"headline": "The ferry leaves earlier"})
    html = as_person(alice).get(page).content.decode()
    assert ["Waiting for data" in html, "Active" in html, "Last item" in html] == [False, True, True]


def test_list_updates_itself_without_a_form_in_it(as_person, alice, bridge):
    client = as_person(alice)
    part = client.get(at(bridge, "source_deliveries"), headers={"HX-Target": "deliveries"}).content.decode()

    assert "No deliveries yet" in part
    assert "<form" not in part
    again = client.get(at(bridge, "source_deliveries"), headers={"HX-Target": "deliveries"})
    assert again.content.decode() == part


def test_address_is_not_for_those_who_only_look(as_person, vera, bridge):
    html = as_person(vera).get(at(bridge, "source_deliveries")).content.decode()

    assert bridge.inbound_token not in html
    assert "Rotate secret" not in html


def test_one_delivery_is_shown_with_its_body_and_its_problems(as_person, alice, bridge):
    row = receive(bridge, {"headline": "The ferry <b>leaves</b>", "secret": "a & b"})
    html = as_person(alice).get(at(bridge, "source_delivery", ind=row.pk)).content.decode()

    assert "The ferry &lt;b&gt;leaves&lt;/b&gt;" in html
    assert "a &amp; b" in html
    assert encode("ind", row.pk) in html
    assert "Replay" in html


def test_refused_delivery_has_nothing_to_replay(as_person, alice, bridge):
    row = receive(bridge, {"headline": "Forged"}, secret="wrong-secret")
    client = as_person(alice)
    html = client.get(at(bridge, "source_delivery", ind=row.pk)).content.decode()
    answer = client.post(at(bridge, "source_delivery_replay", ind=row.pk))

    assert "Forged" not in html
    assert "Replay" not in html
    assert said(answer) == ["It failed the verification, so nothing of it was kept."]


def test_mapping_is_tried_saved_and_the_delivery_replayed(as_person, alice, bridge):
    row = receive(bridge, {"name": "The ferry leaves earlier"})
    client = as_person(alice)
    path, delivery = at(bridge, "source_dry_run"), encode("ind", row.pk)
    assert b'value="headline"' in client.get(f"{path}?delivery={delivery}").content

    tried = client.post(path, {"delivery": delivery, "title": "name"}).content.decode()
    assert "The ferry leaves earlier" in tried
    assert "Cost:" in tried
    assert RawItem.everywhere.count() == 0
    saved = client.post(path, {"delivery": delivery, "title": "name", "save": "1"})
    assert saved.status_code == 302
    kept = Source.everywhere.get(pk=bridge.pk).config
    assert kept == {"mapping": {"title": "name"}, "verification": {"type": "bearer"}}
    replayed = client.post(at(bridge, "source_delivery_replay", ind=row.pk))
    assert said(replayed)[-1] == "Accepted again."
    assert RawItem.everywhere.get().title == "The ferry leaves earlier"
    # The secret is still the sender's.
    bridge.refresh_from_db()
    assert receive(bridge, {"name": "Another"}).status == "taken"


def test_payload_that_is_typed_is_tried_without_any_mapping(as_person, alice, bridge):
    path = at(bridge, "source_dry_run")
    html = as_person(alice).post(path, {"payload": '{"title": "Typed", "language": 5}'}).content.decode()

    assert "Accepted" in html
    assert "Typed" in html
    assert "language is left out" in html


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"payload": "{"}, "The body is not JSON that can be read"),
        ({"payload": "[1]"}, "Enter a JSON object."),
        ({"payload": "{}", "title": "a..b"}, "from character 3 on"),
        ({"payload": "{}"}, "It gives none of title, body, url and media"),
    ],
)
def test_what_cant_be_tried_is_said(as_person, alice, bridge, form, told):
    answer = as_person(alice).post(at(bridge, "source_dry_run"), form)

    assert answer.status_code == 200
    assert told in answer.content.decode()
    assert Source.everywhere.get(pk=bridge.pk).config["mapping"] == {"title": "headline"}


def test_replay_that_makes_nothing_again_says_so(as_person, alice, bridge):
    row = receive(bridge, {"strange": 1})
    answer = as_person(alice).post(at(bridge, "source_delivery_replay", ind=row.pk))

    assert said(answer) == ["No content again."]


def test_new_secret_is_shown_once(as_person, alice, bridge):
    client = as_person(alice)
    first = client.post(at(bridge, "source_secret_rotate"), {"stops_now": "on"})
    assert first["Location"] == at(bridge, "source_secret")
    shown = client.get(first["Location"])
    secret = shown.content.decode().partition('<code id="secret">')[2].partition("<")[0]

    assert shown["Cache-Control"] == "no-store"
    assert secret
    assert receive(bridge, {"headline": "New"}, secret=secret).status == "taken"
    assert receive(bridge, {"headline": "Old"}).status == "refused"
    assert secret not in client.get(first["Location"]).content.decode()


def test_secret_of_the_senders_making_is_given(as_person, alice, bridge):
    client = as_person(alice)
    refused = client.post(at(bridge, "source_secret_rotate"), {"secret": "short"})
    assert "8 to 200" in refused.content.decode()
    given = client.post(at(bridge, "source_secret_rotate"), {"secret": "my-own-secret"})

    assert given["Location"] == at(bridge, "source_deliveries")
    assert receive(bridge, {"headline": "New"}, secret="my-own-secret").status == "taken"


@pytest.mark.parametrize(
    "name", ["source_deliveries", "source_dry_run", "source_secret", "source_secret_rotate"]
)
def test_pages_of_other_sources_are_not_there(as_person, alice, newsroom, bridge, name):
    client = as_person(alice)
    push = Source.everywhere.filter(workspace=newsroom, is_push=True).first()
    feed = collect.register(
        newsroom, collect.SourceSettings(type="rss", config={"url": "https://example.test/f"})
    )
    for other in (push, feed):
        assert client.get(at(other, name)).status_code == 404


def test_delivery_of_another_source_is_not_there(as_person, alice, newsroom, bridge):
    row = receive(bridge, {"headline": "x"})
    other = collect.register(newsroom, collect.SourceSettings(type="webhook"))
    client = as_person(alice)

    assert client.get(at(other, "source_delivery", ind=row.pk)).status_code == 404
    assert client.get(at(other, "source_dry_run") + f"?delivery={encode('ind', row.pk)}").status_code == 404
    assert client.get(at(other, "source_dry_run") + "?delivery=nonsense").status_code == 404
