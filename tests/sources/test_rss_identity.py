"""Which entry is which from poll to poll."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pipeline.sources.rss import PLUGIN

from .fake_http import FakeHttp, answer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://feed.example/feed.xml"


def item(guid, link, title="t"):
    named = f"<guid isPermaLink='false'>{guid}</guid>" if guid else ""
    place = f"<link>https://x.example/{link}</link>" if link else ""
    return f"<item>{named}{place}<title>{title}</title></item>"


def polls(*documents):
    """What each poll in turn says of its entries: titles' identities, in the document's order."""
    state = {}
    told = []
    for items in documents:
        document = f"<rss version='2.0'><channel><title>x</title>{''.join(items)}</channel></rss>".encode()
        found = PLUGIN.fetch({"url": URL}, state, http=FakeHttp(answer(document)), now=NOW, environment={})
        state = found.state
        told.append([(entry.external_id, entry.url.rpartition("/")[2]) for entry in found.entries])
    return told


def test_a_guid_is_the_identity_whatever_becomes_of_the_address():
    first, second = polls([item("a", "1"), item("b", "2")], [item("a", "1-renamed"), item("b", "2")])
    assert first == [("a", "1"), ("b", "2")]
    assert second == [("a", "1-renamed"), ("b", "2")]


def test_guids_that_change_at_each_poll_mean_nothing():
    first, second, third = polls(
        [item("s1-a", "1"), item("s1-b", "2")],
        [item("s2-n", "3"), item("s2-a", "1"), item("s2-b", "2")],
        [item("s3-m", "4"), item("s3-n", "3"), item("s3-a", "1")],
    )
    assert first == [("s1-a", "1"), ("s1-b", "2")]
    new = "https://x.example/"
    assert second == [(f"{new}3", "3"), ("s1-a", "1"), ("s1-b", "2")]
    assert third == [(f"{new}4", "4"), (f"{new}3", "3"), ("s1-a", "1")]


def test_guids_that_were_all_rewritten_once_repeat_nothing():
    told = polls(
        [item("http-a", "1"), item("http-b", "2")],
        [item("https-a", "1"), item("https-b", "2")],
        [item("https-c", "3"), item("https-a", "1"), item("https-b", "2")],
    )
    assert told[1] == told[0]
    # They are as they were at the poll before, so a new one counts again.
    assert told[2] == [("https-c", "3"), *told[0]]


def test_one_new_guid_under_an_old_address_is_a_new_entry():
    first, second = polls([item("mon", "today"), item("x", "9")], [item("tue", "today"), item("x", "9")])
    assert first == [("mon", "today"), ("x", "9")]
    assert second == [("tue", "today"), ("x", "9")]


def test_a_feed_of_one_entry_proves_nothing_about_its_guids():
    assert polls([item("mon", "today")], [item("tue", "today")]) == [[("mon", "today")], [("tue", "today")]]


def test_addresses_that_all_entries_share_identify_none():
    told = polls([item("a", "home"), item("b", "home")], [item("c", "home"), item("d", "home")])
    assert told == [[("a", "home"), ("b", "home")], [("c", "home"), ("d", "home")]]


def test_a_guid_that_stood_for_several_is_never_one_entry_s_own_again():
    first, second, third = polls(
        [item("news", "1"), item("news", "2")],
        [item("news", "2")],
        [item("news", "3"), item("news", "2")],
    )
    assert first == [("news|https://x.example/1", "1"), ("news|https://x.example/2", "2")]
    assert second == [("news|https://x.example/2", "2")]
    assert third == [("news|https://x.example/3", "3"), ("news|https://x.example/2", "2")]


def test_a_guid_that_begins_to_repeat_leaves_its_first_bearer_as_it_was():
    first, second = polls([item("news", "1")], [item("news", "2"), item("news", "1")])
    assert first == [("news", "1")]
    assert second == [("news|https://x.example/2", "2"), ("news", "1")]


def test_entries_without_guids_are_known_by_their_address_unless_they_share_it():
    ((first, second, third),) = polls([item("", "1"), item("", "log", "A"), item("", "log", "B")])
    assert first == (None, "1")
    assert second == ("https://x.example/log|https://x.example/log|A", "log")
    assert third == ("https://x.example/log|https://x.example/log|B", "log")


@pytest.mark.parametrize(
    "known", [None, [], {"places": [], "shared": {}}, {"places": {"a": ["b"], "c": [1, 2]}, "shared": [3]}]
)
def test_a_memory_that_makes_no_sense_is_forgotten(known):
    document = f"<rss version='2.0'><channel><title>x</title>{item('a', '1')}</channel></rss>".encode()
    state = {"url": URL, "known": known}
    found = PLUGIN.fetch({"url": URL}, state, http=FakeHttp(answer(document)), now=NOW, environment={})
    assert [entry.external_id for entry in found.entries] == ["a"]
