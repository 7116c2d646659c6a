"""The sample feed: there in development only, and polled politely."""

from __future__ import annotations

import feedparser
import pytest

from config.demo import views as demo_views


@pytest.fixture(autouse=True)
def development(settings):
    settings.IS_DEVELOPMENT = True


def test_it_is_a_feed_of_six_entries_long_enough_to_be_worth_a_post(client):
    response = client.get(demo_views.PATH)
    assert response.status_code == 200
    feed = feedparser.parse(response.content)
    assert feed.bozo is False
    assert len(feed.entries) == len({entry.id for entry in feed.entries}) == 6
    assert all(len(entry.summary.split()) > 120 for entry in feed.entries)


def test_it_is_not_sent_twice_to_who_has_it(client):
    first = client.get(demo_views.PATH)
    again = client.get(demo_views.PATH, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_production_does_not_have_it(client, settings):
    settings.IS_DEVELOPMENT = False
    assert client.get(demo_views.PATH).status_code == 404
