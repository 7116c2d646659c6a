"""Feeds: what is asked, what is read, and how each failure is told."""

from __future__ import annotations

import hashlib
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from config.core.http_client import (
    AddressRefused,
    BadResponse,
    Client,
    ConnectFailed,
    Policy,
    ResponseTooLarge,
    TimedOut,
    TooManyRedirects,
)
from pipeline.plugins import Refused, TryLater
from pipeline.sources.base import Entry, EntryMedia, Fetch
from pipeline.sources.feeds import parser_pool
from pipeline.sources.rss import ACCEPT, PLUGIN

from .fake_http import FakeHttp, answer

SAMPLES = Path(__file__).parent / "samples" / "rss"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://feed.example/feed.xml"
ONE = b"<rss version='2.0'><channel><title>One</title><item><guid>%s</guid><title>First</title></item></channel></rss>"
TINY = ONE % b"https://feed.example/1"


def sample(name):
    return (SAMPLES / name).read_bytes()


def fetch(*answers, state=None, url=URL):
    return PLUGIN.fetch({"url": url}, state or {}, http=FakeHttp(*answers), now=NOW, environment={})


def refusal(*answers):
    with pytest.raises(Refused) as caught:
        fetch(*answers)
    return caught.value


def delay(*answers):
    with pytest.raises(TryLater) as caught:
        fetch(*answers)
    return caught.value


def at(year, month, day, hour=0, minute=0):
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def test_rss_2_is_read():
    found = fetch(answer(sample("rss20.xml"), url="https://bakery.example/feed"))
    assert found.title == "Rye & Wheat"
    assert found.malformed == 1
    assert found.wait_at_least == timedelta(minutes=90)
    assert found.entries == (
        Entry(
            external_id="note-2",
            url="https://bakery.example/notes/scoring?a=1&b=2",
            title="Newer: scoring a loaf",
            body='<p>Hold the blade <a href="https://bakery.example/glossary#angle">flat</a>.</p>',
            body_format="html",
            author="Ada Baker",
            language="en-gb",
            published_at=at(2026, 11, 3, 9),
            media=(
                EntryMedia("https://bakery.example/audio/scoring.mp3", "audio/mpeg"),
                EntryMedia("https://bakery.example/img/loaf.jpg", "image/jpeg"),
            ),
        ),
        Entry(
            external_id="note-1",
            url="https://bakery.example/notes/starter",
            title="Older: feeding a starter",
            body="Flour and water,\ntwice a day.",
            body_format="text",
            language="en-gb",
            published_at=at(2026, 11, 2, 7, 30),
        ),
    )


def test_atom_is_read_and_future_dates_become_now():
    found = fetch(answer(sample("atom.xml")))
    assert found.title == "Gartentagebuch"
    assert found.entries == (
        Entry(
            external_id="tag:garden.example,2026:zukunft",
            url="https://garden.example/zukunft",
            title="Später",
            body="Nur 3 < 4.",
            body_format="text",
            language="de",
            published_at=NOW,
        ),
        Entry(
            external_id="tag:garden.example,2026:kohl",
            url="https://garden.example/blog/kohl",
            title="Kohl & Lauch",
            body="<p>Lang und <em>gut</em>.</p>",
            body_format="html",
            author="Uli",
            language="de",
            published_at=at(2026, 11, 2, 9),
            media=(EntryMedia("https://garden.example/blog/kohl.jpg", "image/jpeg"),),
        ),
    )


def test_rdf_is_read():
    assert fetch(answer(sample("rdf.xml"))).entries == (
        Entry(
            external_id="https://tides.example/1",
            url="https://tides.example/1",
            title="Spring tide",
            body="High water at noon.",
            published_at=at(2026, 11, 1, 12),
        ),
    )


def test_json_feed_is_read():
    found = fetch(answer(sample("json_feed.json")))
    assert found.title == "Field notes"
    assert found.malformed == 1
    assert found.entries == (
        Entry(
            external_id="7",
            url="https://feed.example/notes/7",
            title="Seven",
            body="<p>Seven geese.</p>",
            body_format="html",
            author="Mo",
            language="en",
            published_at=at(2026, 11, 1, 7),
            media=(EntryMedia("https://feed.example/geese.mp3", "audio/mpeg"),),
        ),
        Entry(external_id="8", body="Eight\ngeese.", language="en"),
    )


def test_json_that_is_no_feed_is_refused():
    assert refusal(answer(b'{"items": []}')).code == "not_a_feed"
    assert refusal(answer(b'{"version": ' + b"[" * 500_000)).code == "feed_unreadable"


def test_lone_surrogates_and_nul_never_come_through():
    document = rb'{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "a\ud800\u0000b", "content_text": "\udfffx"}]}'
    assert fetch(answer(document)).entries == (Entry(external_id="ab", body="x"),)


def test_repeated_guids_are_told_apart_whatever_their_order():
    document = sample("repeated_guid.xml")
    expected = {
        "A": "news|https://shop.example/a",
        "B": "news|https://shop.example/b|B",
        "B again": "news|https://shop.example/b|B again",
        "C": "single",
    }
    found = fetch(answer(document))
    assert [(entry.title, entry.external_id) for entry in found.entries] == list(expected.items())
    head, *items = document.split(b"<item>")
    items[-1], tail = items[-1].split(b"</channel>")
    turned = b"<item>".join([head, *reversed(items)]) + b"</channel>" + tail
    assert {entry.title: entry.external_id for entry in fetch(answer(turned)).entries} == expected


def test_entries_without_dates_keep_their_order():
    found = fetch(answer(sample("no_dates.xml")))
    assert [(entry.title, entry.published_at, entry.external_id) for entry in found.entries] == [
        ("First", None, None),
        ("Second", None, None),
        ("Third", None, None),
    ]


def test_broken_xml_is_read_as_far_as_it_goes():
    found = fetch(answer(sample("broken.xml")))
    assert found.title == "Broken & still read"
    assert [(entry.external_id, entry.url) for entry in found.entries] == [
        ("1", "https://broken.example/1"),
        ("2", "https://broken.example/2"),
    ]


@pytest.mark.parametrize(
    ("document", "content_type"),
    [
        # Valid UTF-8 under a wrong label, in the document and in the header.
        (b'<?xml version="1.0" encoding="iso-8859-1"?>{}', "text/xml"),
        (b"{}", "text/xml; charset=windows-1251"),
        (b"\xef\xbb\xbf{}", "text/xml; charset=iso-8859-1"),
    ],
)
def test_valid_utf_8_is_trusted_over_labels(document, content_type):
    feed = "<rss version='2.0'><channel><title>Café – Łódź</title><item><title>Žluť</title></item></channel></rss>"
    found = fetch(answer(document.replace(b"{}", feed.encode()), Content_Type=content_type))
    assert (found.title, found.entries[0].title) == ("Café – Łódź", "Žluť")


@pytest.mark.parametrize(
    ("encoding", "declared", "content_type"),
    [
        ("windows-1252", "iso-8859-1", ""),
        ("windows-1252", "utf-8", ""),
        ("windows-1252", "no-such-charset", ""),
        ("iso-8859-2", "iso-8859-2", ""),
        ("iso-8859-2", "utf-8", "application/xml; charset=iso-8859-2"),
        ("utf-16", "utf-16", ""),
        ("utf-16-le", "utf-16", ""),
        ("utf-16-be", "utf-8", ""),
    ],
)
def test_other_encodings_are_read_by_mark_label_or_fallback(encoding, declared, content_type):
    feed = f"<?xml version='1.0' encoding='{declared}'?><rss version='2.0'><channel><title>Größe</title></channel></rss>"
    assert fetch(answer(feed.encode(encoding), Content_Type=content_type)).title == "Größe"


def test_a_nul_that_went_astray_is_not_utf_16():
    assert fetch(answer(b"\0" + TINY)).title == "One"


def test_what_only_looks_like_a_tag_without_its_control_character_stays_text():
    document = TINY.replace(
        b"First</title>", b"First <\x0fscript> more</title><description>&#x110000;b</description>"
    )
    (entry,) = fetch(answer(document)).entries
    assert (entry.external_id, entry.body) == ("https://feed.example/1", "\ufffdb")


def test_one_stray_byte_leaves_the_rest_of_a_utf_8_feed_intact():
    feed = "<rss version='2.0'><channel><title>Größe, Übung, Äpfel, Öl, süß, Käse, für, über</title></channel></rss>"
    broken = feed.encode().replace(b"</channel>", b"<description>\xff</description></channel>")
    assert fetch(answer(broken)).title == "Größe, Übung, Äpfel, Öl, süß, Käse, für, über"


@pytest.mark.parametrize(
    "document", [b"", b" \n", b"hello", b"\x00\x01\x02", b"<urlset><url/></urlset>", b"%PDF-1.7"]
)
def test_what_is_no_feed_is_refused(document):
    assert refusal(answer(document)).code == "not_a_feed"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entity_declarations_are_refused(encoding):
    error = refusal(answer(sample("bomb.xml").decode().encode(encoding)))
    assert (error.code, error.field) == ("feed_unsafe", "config.url")


def test_an_article_about_entities_is_read():
    document = TINY.replace(b"First", b"<![CDATA[How <!ENTITY works]]>")
    assert fetch(answer(document)).malformed == 0


def test_external_entities_and_files_are_never_opened(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("very secret")
    document = b"<!DOCTYPE rss SYSTEM '" + secret.as_uri().encode() + b"'>" + TINY
    found = fetch(answer(document))
    assert [entry.title for entry in found.entries] == ["First"]
    assert refusal(answer(str(secret).encode())).code == "not_a_feed"


def seconds_of_children():
    """Of the processor, not of the clock: how busy the machine is must not decide."""
    # A helper's time is counted when it has ended.
    parser_pool.close()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        pytest.param(
            b"<rss version='2.0'><channel><title>x</title><item><description>" + b"<!--" * 100_000,
            id="comments",
        ),
        pytest.param(b"<rss version='2.0'><channel>" + b"<a>" * 1_000_000, id="nesting"),
        pytest.param(
            b"<rss version='2.0' " + b" ".join(b"a%d='1'" % n for n in range(200_000)) + b">", id="attributes"
        ),
    ],
)
def test_a_feed_that_explodes_ends_in_a_sentence_within_seconds(document, monkeypatch):
    # The limit of the processor is what is tested; on a busy machine the clock's would come first.
    monkeypatch.setattr("pipeline.sources.feeds.read_feed.WALL_SECONDS", 110)
    before = seconds_of_children()
    error = refusal(answer(document))
    assert seconds_of_children() - before < 12
    assert error.code in {"feed_too_complex", "feed_unreadable"}
    assert str(error).endswith(".")


def test_a_flood_of_empty_items_is_counted_up_to_a_bound():
    document = b'{"version": "https://jsonfeed.org/version/1", "items": [' + b"{}," * 1_000_000 + b"{}]}"
    found = fetch(answer(document))
    assert (found.entries, found.malformed) == ((), 5000)


@pytest.mark.parametrize("body", [b"&lt;!--" * 50_000, b"&lt;a " * 50_000, b"&#" + b"9" * 10_000 + b";"])
def test_a_hostile_body_leaves_the_feed_readable(body):
    document = TINY.replace(b"<title>First", b"<description>" + body + b"</description><title>First")
    before = seconds_of_children()
    assert [entry.title for entry in fetch(answer(document)).entries] == ["First"]
    assert seconds_of_children() - before < 8


def test_only_the_newest_200_entries_are_kept():
    start = at(2026, 1, 1)
    items = b"".join(
        f"<item><guid>https://x.example/{n}</guid><pubDate>{(start + timedelta(hours=n)):%a, %d %b %Y %H:%M:%S} GMT"
        "</pubDate></item>".encode()
        for n in range(250)
    )
    found = fetch(answer(b"<rss version='2.0'><channel><title>x</title>" + items + b"</channel></rss>"))
    assert [entry.external_id for entry in found.entries] == [
        f"https://x.example/{n}" for n in range(249, 49, -1)
    ]


def test_long_guids_become_a_hash_of_fixed_length():
    long = b"urn:" + b"x" * 2000
    assert [entry.external_id for entry in fetch(answer(ONE % long)).entries] == [
        f"sha256:{hashlib.sha256(long).hexdigest()}"
    ]


def test_request_is_unconditional_at_first_and_bounded():
    http = FakeHttp(answer(TINY))
    PLUGIN.fetch({"url": URL}, {}, http=http, now=NOW, environment={})
    assert http.asked == [
        (
            URL,
            {"headers": {"Accept": ACCEPT}, "timeout": 20, "max_bytes": 5 * 1024 * 1024, "max_redirects": 5},
        )
    ]


def test_validators_come_back_as_they_were_sent():
    first = fetch(answer(TINY, ETag='W/"a b"', Last_Modified="Someday, 31 Feb"))
    assert first.state == {
        "url": URL,
        "feed_url": "",
        "etag": 'W/"a b"',
        "last_modified": "Someday, 31 Feb",
        "body_sha256": hashlib.sha256(TINY).hexdigest(),
        "wait_seconds": 0,
        "skip_hours": [],
        "skip_days": [],
        "hubs": [],
        "topic": "",
        "known": first.state["known"],
    }
    http = FakeHttp(answer(status=304, ETag='"new"'))
    second = PLUGIN.fetch({"url": URL}, first.state, http=http, now=NOW, environment={})
    assert http.asked[0][1]["headers"] == {
        "Accept": ACCEPT,
        "If-None-Match": 'W/"a b"',
        "If-Modified-Since": "Someday, 31 Feb",
    }
    assert second == Fetch(entries=(), state={**first.state, "etag": '"new"'}, not_modified=True)


def test_the_same_body_under_a_fresh_etag_is_not_modified():
    first = fetch(answer(TINY, ETag='"1"'))
    second = fetch(answer(TINY, ETag='"2"'), state=first.state)
    assert second == Fetch(entries=(), state={**first.state, "etag": '"2"'}, not_modified=True)


def test_validators_of_another_address_are_not_sent():
    state = fetch(answer(TINY, ETag='"1"')).state
    http = FakeHttp(answer(TINY))
    found = PLUGIN.fetch({"url": "https://feed.example/other"}, state, http=http, now=NOW, environment={})
    assert http.asked[0][1]["headers"] == {"Accept": ACCEPT}
    assert found.not_modified is False


@pytest.mark.parametrize("state", [{"url": URL, "etag": 5, "body_sha256": None}, {"url": []}, {"x": "y"}])
def test_a_state_that_makes_no_sense_is_forgotten(state):
    assert len(fetch(answer(TINY), state=state).entries) == 1


def test_not_modified_without_a_condition_is_a_fault_of_the_server():
    assert delay(answer(status=304)).code == "unexpected_status"


def test_a_validator_that_no_server_would_take_back_is_dropped():
    assert fetch(answer(TINY, ETag='"' + "x" * 2000 + '"')).state["etag"] == ""


@pytest.mark.parametrize(
    ("document", "headers", "wait"),
    [
        (b"", {}, None),
        (b"<ttl>30</ttl>", {}, timedelta(minutes=30)),
        (b"<ttl>soon</ttl>", {}, None),
        (b"<ttl>99999</ttl>", {}, timedelta(hours=24)),
        (b"", {"Cache_Control": "public, MAX-AGE=600"}, timedelta(minutes=10)),
        (b"", {"Cache_Control": "s-max-age=600"}, None),
        (b"<ttl>30</ttl>", {"Cache_Control": "max-age=600"}, timedelta(minutes=30)),
        (b"", {"Expires": "Fri, 20 Nov 2026 12:20:00 GMT"}, timedelta(minutes=20)),
        # By the server's own clock, where it tells it.
        (
            b"",
            {"Expires": "Fri, 20 Nov 2026 13:20:00 GMT", "Date": "Fri, 20 Nov 2026 13:15:00 GMT"},
            timedelta(minutes=5),
        ),
        (
            b"",
            {"Expires": "Fri, 20 Nov 2026 13:20:00 GMT", "Cache_Control": "max-age=60"},
            timedelta(minutes=1),
        ),
        (b"", {"Expires": "0"}, None),
        (b"", {"Expires": "Fri, 20 Nov 2020 12:20:00 GMT"}, None),
    ],
)
def test_the_longest_wish_for_quiet_counts(document, headers, wait):
    body = TINY.replace(b"<item>", document + b"<item>", 1)
    first = fetch(answer(body, **headers))
    assert first.wait_at_least == wait
    assert fetch(answer(body, **headers), state=first.state).wait_at_least == wait


def test_update_period_is_read():
    body = (
        b"<rss version='2.0' xmlns:sy='http://purl.org/rss/1.0/modules/syndication/'><channel><title>x</title>"
        b"<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency></channel></rss>"
    )
    assert fetch(answer(body)).wait_at_least == timedelta(hours=6)


def test_gone_is_told_and_nothing_else():
    assert fetch(answer(sample("page.html"), status=410)) == Fetch(entries=(), state={}, gone=True)


@pytest.mark.parametrize(
    ("status", "headers", "code", "after"),
    [
        (404, {}, "not_found", None),
        (500, {}, "server_error", None),
        (503, {"Retry_After": "120"}, "server_error", timedelta(minutes=2)),
        (503, {"Retry_After": "999999"}, "server_error", timedelta(hours=24)),
        (503, {"cf_mitigated": "challenge"}, "forbidden", timedelta(hours=1)),
        (429, {"Retry_After": "Fri, 20 Nov 2026 13:00:00 GMT"}, "rate_limited", timedelta(hours=1)),
        (429, {"Retry_After": "Fri, 20 Nov 2026 13:00:00 -0000"}, "rate_limited", timedelta(hours=1)),
        (429, {"Retry_After": "Thu, 19 Nov 2026 13:00:00 GMT"}, "rate_limited", None),
        (429, {"Retry_After": "a while"}, "rate_limited", None),
        (403, {}, "forbidden", timedelta(hours=1)),
        (302, {}, "unexpected_status", None),
        (204, {}, "unexpected_status", None),
        (451, {}, "unexpected_status", None),
    ],
)
def test_a_status_that_may_pass_is_tried_later(status, headers, code, after):
    error = delay(answer(b"<html>", status=status, **headers))
    assert (error.code, error.after, error.platform_status) == (code, after, status)
    assert f"status {status}" in str(error)
    assert str(error).endswith(".")


def test_a_feed_behind_a_login_is_refused():
    error = refusal(answer(status=401))
    assert (error.code, error.field, error.platform_status) == ("login_required", "config.url", 401)


@pytest.mark.parametrize("kind", [TimedOut, ConnectFailed, BadResponse, TooManyRedirects])
def test_a_failed_call_is_tried_later(kind):
    error = delay(kind("feed.example did not answer."))
    assert error.code == kind.code
    assert str(error) == "The feed could not be fetched: feed.example did not answer."


@pytest.mark.parametrize(
    ("kind", "code"), [(AddressRefused, "address_refused"), (ResponseTooLarge, "feed_too_large")]
)
def test_an_address_that_can_never_work_is_refused(kind, code):
    error = refusal(kind("The address is private."))
    assert (error.code, error.field) == (code, "config.url")


def test_a_feed_is_fetched_over_a_real_connection(httpserver):
    httpserver.expect_ordered_request("/old").respond_with_data(status=301, headers={"Location": "/feed"})
    httpserver.expect_ordered_request("/feed").respond_with_data(
        sample("rss20.xml"), headers={"ETag": '"v1"'}
    )
    httpserver.expect_ordered_request("/old").respond_with_data(status=301, headers={"Location": "/feed"})
    httpserver.expect_ordered_request("/feed", headers={"If-None-Match": '"v1"'}).respond_with_data(
        status=304
    )
    http = Client(Policy(allow_loopback=True, user_agent="content-pipeline-test"))
    config = {"url": httpserver.url_for("/old")}
    first = PLUGIN.fetch(config, {}, http=http, now=NOW, environment={})
    assert [entry.external_id for entry in first.entries] == ["note-2", "note-1"]
    assert first.entries[1].url == httpserver.url_for("/notes/starter")
    second = PLUGIN.fetch(config, first.state, http=http, now=NOW, environment={})
    assert second.not_modified is True
    httpserver.check()


def test_loopback_is_refused_by_default(httpserver):
    httpserver.expect_request("/feed").respond_with_data(TINY)
    http = Client(Policy(user_agent="content-pipeline-test"))
    with pytest.raises(Refused) as caught:
        PLUGIN.fetch({"url": httpserver.url_for("/feed")}, {}, http=http, now=NOW, environment={})
    assert caught.value.code == "address_refused"
    assert httpserver.log == []
