"""Somebody who has only the specification: each request is done, or the error's message leads to the one that is."""

from __future__ import annotations

import pytest

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


def test_neither_is_a_question_for_what_was_made(api):
    assert api.post("/raw", {"body": BODY}).status_code == 202
    for query in ("", "?bucket=text", "?status=ready", "?from=2026-01-01&to=2027-01-01"):
        assert api.get(f"/generated{query}").status_code == 200
