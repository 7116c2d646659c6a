"""The package of a post that a person publishes by hand."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urljoin
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import Membership
from config.core import task_runner
from config.core.ids import encode
from pipeline import publish
from pipeline.models import Asset, Outlet, Publication
from pipeline.pages import manual_publish
from tests.pages.answers import said
from tests.pipeline.steps import make_items, make_stage, promise


@pytest.fixture
def desk(newsroom):
    return Outlet.everywhere.create(
        workspace=newsroom,
        platform="handoff",
        name="Our Substack",
        config={
            "place": "Substack",
            "address": "https://council.substack.com/publish",
            "instructions": "Choose the section.\n\nAdd <tags>.",
        },
    )


@pytest.fixture
def item(newsroom):
    return make_items(newsroom)[0]


@pytest.fixture
def handed(item, desk):
    words = {encode("out", desk.pk): {"title": "Tram <approved>", "body": "One & two."}}
    row = publish.request(
        item, publish.PublishWish(outlets=[encode("out", desk.pk)], overrides=words), by="alice"
    )[1][0]
    task_runner.work_all_due("publish.send_publication")
    row.refresh_from_db()
    assert row.is_handed_over
    return row


def at(row):
    return reverse("package", kwargs={"ws": row.workspace_id, "pub": row.pk})


def test_the_first_page_leads_there_and_calls_nothing_late(as_person, bob, handed, newsroom):
    home = reverse("home", kwargs={"ws": newsroom.pk})
    hour = timedelta(hours=1)
    Publication.everywhere.filter(pk=handed.pk).update(due_at=timezone.now() - hour)
    answer = as_person(bob).get(home)
    assert (answer.context["seen"].late.number, list(answer.context["banners"])) == (0, [])
    (row,) = answer.context["seen"].by_hand
    assert f'href="{row.link}"' in answer.content.decode()
    assert urljoin(home, row.link) == at(handed)


def test_the_page_has_everything_to_copy(as_person, bob, handed, item):
    file = Asset.everywhere.create(
        workspace_id=handed.workspace_id,
        item=item,
        kind="image",
        role="image",
        position=99,
        name="tram.png",
        path="x/tram.png",
        mime_type="image/png",
        bytes=2048,
        sha256="0" * 64,
        alt_text="A tram & its stop.",
    )

    html = as_person(bob).get(at(handed)).content.decode()

    assert '<code id="copy-title">Tram &lt;approved&gt;</code>' in html
    assert '<code id="copy-body">One &amp; two.</code>' in html
    assert '<code id="copy-alt-3">A tram &amp; its stop.</code>' in html
    assert f'<a href="/media/{file.secret}/tram.png" download="tram.png">' in html
    assert 'href="https://council.substack.com/publish"' in html
    assert html.count('type="checkbox" autocomplete="off"') == 2
    assert "Add &lt;tags&gt;." in html
    assert 'value="not_posted"' in html


def test_posted_is_published_with_its_address(as_person, bob, handed):
    answer = as_person(bob).post(
        at(handed), {"outcome": "posted", "url": "https://council.substack.com/p/tram"}
    )

    assert (answer.status_code, answer["Location"], said(answer)) == (
        302,
        at(handed),
        ["Marked as published."],
    )
    row = Publication.everywhere.get(pk=handed.pk)
    assert (row.status, row.url) == ("published", "https://council.substack.com/p/tram")
    html = as_person(bob).get(at(handed)).content.decode()
    assert 'href="https://council.substack.com/p/tram"' in html
    assert 'value="not_posted"' not in html


def test_not_posted_has_failed_and_keeps_no_address(as_person, bob, handed):
    answer = as_person(bob).post(
        at(handed), {"outcome": "not_posted", "url": "https://council.substack.com/p/tram"}
    )

    row = Publication.everywhere.get(pk=handed.pk)
    assert (said(answer), row.status, row.url, row.error["code"]) == (
        ["Marked as not posted."],
        "failed",
        "",
        "not_posted",
    )
    assert "marked as not posted" in as_person(bob).get(at(handed)).content.decode()


def test_a_second_click_settles_nothing_twice(as_person, bob, handed):
    browser = as_person(bob)
    browser.post(at(handed), {"outcome": "posted"})

    answer = browser.post(at(handed), {"outcome": "not_posted"})

    assert (answer.status_code, Publication.everywhere.get(pk=handed.pk).status) == (302, "published")
    assert "only an unknown outcome can be settled" in said(answer)[-1]


def test_an_address_that_is_none_is_asked_for_again(as_person, bob, handed):
    answer = as_person(bob).post(at(handed), {"outcome": "posted", "url": "javascript:alert(1)"})

    assert (answer.status_code, list(answer.context["form"].errors)) == (200, ["url"])
    assert Publication.everywhere.get(pk=handed.pk).is_handed_over


def test_only_what_is_posted_by_hand_has_a_package(as_person, alice, item, newsroom, handed):
    sent = promise(make_items(newsroom)[0], make_stage(newsroom))
    elsewhere = reverse("package", kwargs={"ws": newsroom.pk, "pub": uuid4()})

    assert [as_person(alice).get(address).status_code for address in (at(sent), elsewhere)] == [404, 404]


def test_what_is_due_is_listed_and_counted_until_it_is_settled(as_person, alice, bob, handed, newsroom):
    there = reverse("manual_posts", kwargs={"ws": newsroom.pk})
    answer = as_person(bob).get(there)
    assert [row.pk for row in answer.context["rows"]] == [handed.pk]
    page = answer.content.decode()
    assert at(handed) in page
    assert 'Manual posts <span class="count">1</span>' in page
    as_person(bob).post(at(handed), {"outcome": "posted", "url": ""})
    answer = as_person(bob).get(there)
    assert answer.context["rows"] == []
    assert "Nothing to post manually" in answer.content.decode()


def test_who_only_looks_is_led_to_the_item(as_person, charlie, alice, handed, newsroom):
    Membership.everywhere.create(workspace=newsroom, user=charlie, role="viewer")
    page = as_person(charlie).get(reverse("manual_posts", kwargs={"ws": newsroom.pk})).content.decode()
    assert at(handed) not in page
    assert reverse("item_page", kwargs={"ws": newsroom.pk, "gen": handed.item_id}) in page


def test_a_long_list_says_that_there_are_more(as_person, bob, handed, desk, newsroom, monkeypatch):
    (another,) = make_items(newsroom, external_id="another")[:1]
    promise(another, desk)
    task_runner.work_all_due("publish.send_publication")
    monkeypatch.setattr(manual_publish.limits, "PAGE_ROWS", 1)
    answer = as_person(bob).get(reverse("manual_posts", kwargs={"ws": newsroom.pk}))
    assert [row.pk for row in answer.context["rows"]] == [handed.pk]
    assert "Post these to see more" in answer.content.decode()
