"""Somebody who has only the specification: each request is done, or the error's message leads to the one that is."""

from __future__ import annotations

import json
import re

import pytest

VIDEO = "https://www.tiktok.com/@harbour/video/7106594312292453675"
YOUTUBE = "https://www.youtube.com/@harbourline"
BODY = "The harbour of Brackwater gets a ferry line in spring, the council said on Tuesday evening."
# What they send first, what of the answer leads on, and what they send then; no words where it is done at once.
ROWS = {
    "rss by type": ("/sources", {"type": "rss"}, "config.url", {"url": "https://example.test/feed"}),
    "scraper by type": ("/sources", {"type": "scraper"}, "config.url", {"url": "https://example.test/news"}),
    "youtube by type": ("/sources", {"type": "youtube"}, "handle", {"handle": "@harbourline"}),
    "tiktok by type": (
        "/sources",
        {"type": "tiktok"},
        "links",
        {"links": ["https://www.tiktok.com/@a/video/7106594312292453675"]},
    ),
    "webhook by type": ("/sources", {"type": "webhook"}, "", {}),
    "brand by type": (
        "/sources",
        {"type": "brand"},
        "topics",
        {"topics": [{"title": "Cranes", "notes": BODY}]},
    ),
    "youtube address": ("/sources", {"type": "youtube", "url": YOUTUBE}, "config", {"url": YOUTUBE}),
    "youtube address in config": ("/sources", {"type": "youtube", "config": {"url": YOUTUBE}}, "", {}),
    "raw content": ("/raw", {"content": BODY}, "body", {"body": BODY}),
    "raw text": ("/raw", {"text": BODY}, "body", {"body": BODY}),
    "raw title and text": (
        "/raw",
        {"title": "A ferry", "text": BODY},
        "body",
        {"title": "A ferry", "body": BODY},
    ),
    "raw body": ("/raw", {"body": BODY}, "", {}),
    "raw title": ("/raw", {"title": BODY}, "", {}),
}


def cases():
    return [pytest.param(*row, id=name) for name, row in ROWS.items()]


@pytest.mark.parametrize(("path", "sent", "leads", "then"), cases())
def test_at_most_one_request_is_corrected(api, path, sent, leads, then):
    answer = api.post(path, sent)
    if answer.status_code >= 300:
        # 409: it can't work here as it is.
        assert answer.status_code in {400, 409}, answer.json()
        assert leads, answer.json()
        told = " ".join(f"{one['field']} {one['message']}" for one in answer.json()["detail"])
        assert leads in told
        answer = api.post(path, {"type": sent["type"], "config": then} if path == "/sources" else then)
    assert answer.status_code in {201, 202}, answer.json()


# What somebody sends who guesses, and what of the one refusal is sent then.
GUESSED = {
    "a channel beside config": ({"type": "youtube", "channel": "@harbourline"}, {"handle": "@harbourline"}),
    "a handle as the channel": (
        {"type": "youtube", "config": {"channel": "@harbourline"}},
        {"handle": "@harbourline"},
    ),
    "an address as the channel": (
        {"type": "youtube", "config": {"channel": YOUTUBE, "batch_hours": 2}},
        {"url": YOUTUBE, "batch_hours": 2},
    ),
    "a handle as the address": ({"type": "youtube", "url": "@harbourline"}, {"handle": "@harbourline"}),
    "another service's word": (
        {"type": "rss", "feed_url": "https://example.test/feed"},
        {"url": "https://example.test/feed"},
    ),
    "several of them": (
        {"type": "scraper", "link": "https://example.test/news", "selector": "article a"},
        {"url": "https://example.test/news", "item_selector": "article a"},
    ),
    "a video": ({"type": "tiktok", "config": {"url": VIDEO}}, {"links": [VIDEO]}),
    "a video beside config": ({"type": "tiktok", "url": VIDEO}, {"links": [VIDEO]}),
}


@pytest.mark.parametrize(("sent", "config"), GUESSED.values(), ids=GUESSED)
def test_a_refusal_shows_the_whole_form_with_what_was_sent(api, sent, config):
    answer = api.post("/sources", sent)
    assert answer.status_code == 400
    (form,) = {form for one in answer.json()["detail"] for form in re.findall(r"(\{.*\})\.$", one["message"])}
    assert json.loads(form) == {"type": sent["type"], "config": config}
    assert api.post("/sources", json.loads(form)).status_code == 201


def details(answer):
    assert answer.status_code == 400, answer.json()
    return {(one["field"], one["code"]) for one in answer.json()["detail"]}


def test_all_that_is_wrong_is_told_at_once_what_cant_work_here_too(api):
    sent = {
        "type": "brand",
        "topics": ["Cranes"],
        "cadence": "daily",
        "persona": "A dry reporter",
        "engine": "x",
    }
    answer = api.post("/sources", sent)
    assert details(answer) == {
        ("topics", "unknown_field"),
        ("cadence", "unknown_field"),
        ("engine", "unknown_field"),
        ("persona", "invalid_id"),
        ("config.topics", "source_unavailable"),
    }
    messages = " ".join(one["message"] for one in answer.json()["detail"])
    assert '"config": {"topics": ["Cranes"], "cadence": {"every_hours": 24}}' in messages
    assert '"config": {"topics": [{"title": "Cranes", "notes": "What may be said about it."}]}' in messages
    assert "/v1/personas" in messages


@pytest.mark.parametrize("path", ["/sources", "/sources/preview"])
def test_a_list_that_nobody_can_have_is_told_with_the_place_of_its_name(api, path):
    assert details(api.post(path, {"type": "tiktok", "username": "nasa"})) == {
        ("username", "unknown_field"),
        ("config.username", "source_unavailable"),
    }


def test_faults_of_config_and_of_the_rest_are_told_together(api):
    sent = {"type": "rss", "config": {"url": "example.test"}, "persona": "per_" + "0" * 26}
    assert details(api.post("/sources", sent)) == {
        ("config.url", "invalid"),
        ("persona", "unknown_persona"),
    }


def test_no_secret_and_nothing_long_is_shown_back(api):
    secret = {"type": "hmac_sha256", "secret": "not-to-be-shown"}
    answer = api.post("/sources", {"type": "webhook", "verification": secret})
    assert "not-to-be-shown" not in answer.text
    answer = api.post("/sources", {"type": "rss", "url": "https://example.test/" + "x" * 2000})
    assert "xxx" not in answer.text


def test_neither_is_a_question_for_what_was_made(api):
    assert api.post("/raw", {"body": BODY}).status_code == 202
    for query in ("", "?bucket=text", "?status=ready", "?from=2026-01-01&to=2027-01-01"):
        assert api.get(f"/generated{query}").status_code == 200
