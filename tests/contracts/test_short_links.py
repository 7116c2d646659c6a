"""`/l/<code>`: leads only where its post linked, counts people, sets nothing."""

from __future__ import annotations

import pytest
from django.test import Client

from config.core.ids import encode
from pipeline.models import HitCount, ShortLink
from pipeline.outlets import hit_counts
from tests.analytics.factories import make_outlet, make_published, make_workspace

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36"}
TARGET = "https://news.example/tram?line=4&stop=ä"


@pytest.fixture
def link(db):
    publication = make_published(make_outlet(make_workspace()))
    return ShortLink.everywhere.create(
        workspace=publication.workspace, publication=publication, code="0123456789ab", target=TARGET
    )


def follow(path="/l/0123456789ab", method="get", **headers):
    return getattr(Client(), method)(path, headers={**BROWSER, **headers})


def clicks():
    hit_counts.flush()
    return sum(HitCount.everywhere.values_list("count", flat=True))


def test_it_leads_on_and_counts(link):
    answer = follow()
    assert (answer.status_code, answer["Location"]) == (302, "https://news.example/tram?line=4&stop=%C3%A4")
    assert answer["Cache-Control"] == "private, no-store"
    assert not answer.cookies
    assert "Set-Cookie" not in answer.headers
    follow()
    assert clicks() == 2


def test_looking_is_not_clicking(link):
    assert follow(method="head").status_code == 302
    assert follow(**{"User-Agent": "Twitterbot/1.0"}).status_code == 302
    assert follow(**{"Sec-Purpose": "prefetch"}).status_code == 302
    assert clicks() == 0
    assert follow(method="post").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/l/000000000000",
        "/l/0123456789aB",
        "/l/0123456789abc",
        "/l/0123456789a",
        "/l/https://evil.example",
        "/l/000000000000?url=https://evil.example",
        "/l/",
    ],
)
def test_there_is_no_open_way(link, path):
    answer = follow(path)
    assert answer.status_code == 404
    assert "Location" not in answer.headers


def test_what_is_asked_beside_changes_nothing(link):
    assert "evil" not in follow("/l/0123456789ab?next=https://evil.example&url=//evil.example")["Location"]


def test_fetches_of_a_feed_are_counted(link):
    feed = make_outlet(link.workspace, platform="feed", name="Own feed", is_simulated=False)
    path = f"/feeds/{feed.secret}.json"
    first = follow(path, **{"User-Agent": "NetNewsWire/6.1"})
    # One that has it already asked all the same.
    assert (
        follow(path, **{"User-Agent": "NetNewsWire/6.1", "If-None-Match": first["ETag"]}).status_code == 304
    )
    follow(path, **{"User-Agent": "Googlebot/2.1"})
    follow(path, method="head", **{"User-Agent": "NetNewsWire/6.1"})
    follow("/feeds/AAAAAAAAAAAAAAAAAAAAAA.json")
    assert clicks() == 2
    assert encode("out", feed.pk)
