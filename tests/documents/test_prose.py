"""Numbers and names in the running text of the docs are those of the code."""

from __future__ import annotations

import re

import pytest

from accounts.access import tokens
from config.core import limits
from pipeline import states
from pipeline.platforms.simulated import MAX_SCRIPT, SCRIPT_WORDS
from pipeline.text import content
from tests.documents.tables import said
from tests.documents.text import read, rows, section

SENTENCES = [
    ("api.md", f"A workspace may send {limits.RATE_BURST} requests at once"),
    (
        "api.md",
        f'RateLimit-Policy: "workspace";q={limits.RATE_BURST};w={limits.RATE_BURST * 60 // limits.RATE_PER_MINUTE}',
    ),
    ("api.md", f"nesting deeper than {limits.JSON_DEPTH} levels"),
    ("api.md", f"A body has at most {limits.BODY_BYTES // 2**20} MiB"),
    ("api.md", f"`POST /v1/estimate` {limits.RAW_BODY_BYTES // 2**20} MiB"),
    ("api.md", f"`Idempotency-Key`: 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} printable ASCII"),
    ("api.md", f"kept {limits.IDEMPOTENCY_KEPT.days * 24} hours and replayed"),
    ("api.md", f"`limit`: 1 to {limits.PAGE_ROWS}, default {limits.PAGE_ROWS_DEFAULT}."),
    ("api.md", f"with 1 to {limits.BATCH_ITEMS} bodies"),
    ("api.md", f"`external_id` | your own id of it, up to {limits.EXTERNAL_ID_CHARACTERS} characters"),
    ("api.md", f"up to {limits.URL_CHARACTERS:,} characters".replace(",", " ")),
    ("api.md", f"`title` | up to {limits.TITLE_CHARACTERS} characters"),
    ("api.md", f"`media` | up to {limits.MEDIA_PER_ITEM} of"),
    ("api.md", f"an `author` and a `licence`, up to {limits.CREDIT_CHARACTERS} characters each"),
    ("api.md", f"an object of up to {limits.METADATA_BYTES // 1024} KiB as JSON"),
    ("api.md", f"`variants` | 1 to {limits.VARIANTS}, default 1"),
    ("api.md", f"null: the newest {limits.FIRST_POLL_NEWEST} |"),
    ("api.md", f"null: {limits.MAX_BURST_DEFAULT}; the rest"),
    ("api.md", f"a moment up to {limits.PUBLISH_AHEAD.days} days ahead"),
    ("api.md", f"at most {limits.ANALYTICS_DAYS} days |"),
    ("api.md", f"failing for {limits.POLL_DEAD_AFTER.days} days"),
    ("api.md", "tried again after 1 min, 5 min, 30 min and 2 h"),
    ("api.md", f"Events are kept {limits.EVENT_PAYLOADS_KEPT.days} days."),
    ("api.md", f"a list of up to {MAX_SCRIPT} words"),
    ("api.md", f"At most {limits.INBOUND_CALLS.removesuffix('/m')} calls a minute to one source's address"),
    ("api.md", tokens.PATTERN),
    ("webhooks.md", f"Answer 2xx within {limits.WEBHOOK_TIMEOUT_SECONDS} seconds"),
    ("webhooks.md", f"first {limits.WEBHOOK_ANSWER_BYTES // 1024} KiB of an answer are read"),
    ("webhooks.md", f"first {limits.WEBHOOK_ANSWER_KEPT // 1024} KiB kept"),
    ("webhooks.md", f"grows by up to {limits.WEBHOOK_JITTER:.0%}".replace("%", " %")),
    ("webhooks.md", f"at most {limits.WEBHOOK_SLOTS} requests under way"),
    ("webhooks.md", f"honoured up to {said(limits.WEBHOOK_RETRY_AFTER_MOST)}"),
    ("webhooks.md", f"the wait is at least {limits.WEBHOOK_THROTTLED_WAIT.seconds} s"),
    ("webhooks.md", f"{limits.WEBHOOK_DEGRADED_FAILURES} failures in a row"),
    (
        "webhooks.md",
        f"at least {limits.WEBHOOK_DISABLED_FAILURES} failures in a row and {limits.WEBHOOK_DISABLED_AFTER.days}",
    ),
    (
        "webhooks.md",
        f"Events are kept {limits.EVENT_PAYLOADS_KEPT.days} days, the log of attempts {limits.DELIVERY_ATTEMPTS_KEPT.days} days",
    ),
    ("webhooks.md", f"at most {limits.EVENT_BYTES:,} bytes".replace(",", " ")),
    ("webhooks.md", f"an overlap of 0 to {limits.TOKEN_OVERLAP_MOST.days} days"),
    (
        "running.md",
        f"content of events (the row stays for the counts) | {limits.EVENT_PAYLOADS_KEPT.days} days",
    ),
    ("running.md", f"attempts of webhook deliveries | {limits.DELIVERY_ATTEMPTS_KEPT.days} days"),
]


@pytest.mark.parametrize(
    ("document", "sentence"), SENTENCES, ids=[sentence[:40] for _, sentence in SENTENCES]
)
def test_sentence_says_what_the_code_does(document, sentence):
    assert sentence in read(document)


def test_waits_between_publish_tries_are_those_of_the_limits():
    spans = [said(span) for span in limits.PUBLISH_RETRIES]
    assert f"after {', '.join(spans[:-1])} and {spans[-1]}" in read("api.md")


def test_ten_attempts():
    assert len(limits.WEBHOOK_SCHEDULE) == 10
    assert "Ten attempts." in read("webhooks.md")


def test_words_of_the_simulated_platform_are_documented():
    listed = [cells[0].strip("`") for cells in rows(section(read("api.md"), "## Publishing"))]
    assert listed[-len(SCRIPT_WORDS) :] == list(SCRIPT_WORDS)


def test_content_of_each_bucket_is_documented():
    table = {cells[0].strip("`"): cells[1] for cells in rows(section(read("api.md"), "## Generated items"))}
    for bucket, fields in content.FIELDS.items():
        assert re.findall(r"`(\w+)`", table[bucket]) == list(fields)


@pytest.mark.parametrize(
    ("heading", "statuses"),
    [
        ("## Sources", states.SOURCE),
        ("## Raw items", states.RAW_ITEM),
        ("## Generated items", states.GENERATED_ITEM),
        ("## Publications", states.PUBLICATION),
        ("## Outlets and personas", states.OUTLET),
    ],
)
def test_every_status_is_documented(heading, statuses):
    text = section(read("api.md"), heading)
    assert [status for status in statuses if f"`{status}`" not in text] == []


def test_every_scope_and_preset_is_documented():
    text = read("api.md")
    assert [scope for scope in (*tokens.SCOPES, *tokens.PRESETS) if f"`{scope}`" not in text] == []
