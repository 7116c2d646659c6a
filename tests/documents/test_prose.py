"""Numbers and names in the running text of the docs are those of the code."""

from __future__ import annotations

import re

import pytest

from accounts import limits as accounts_limits
from accounts.access import tokens
from analytics import limits as analytics_limits
from config.core import limits as core_limits
from pipeline import limits as pipeline_limits
from pipeline import states
from pipeline.platforms.simulated import MAX_SCRIPT_WORDS, SCRIPT_WORDS
from pipeline.text import bucket_traits
from tests.documents.tables import said
from tests.documents.text import read, rows, section
from webhooks import limits

SENTENCES = [
    ("api/README.md", f"A workspace may send {accounts_limits.RATE_BURST} requests at once"),
    (
        "api/README.md",
        f'RateLimit-Policy: "workspace";q={accounts_limits.RATE_BURST};w={accounts_limits.RATE_BURST * 60 // accounts_limits.RATE_PER_MINUTE}',
    ),
    ("api/README.md", f"nesting deeper than {core_limits.JSON_DEPTH} levels"),
    ("api/README.md", f"A body has at most {core_limits.BODY_BYTES // 2**20} MiB"),
    ("api/README.md", f"`POST /v1/estimate` {core_limits.RAW_BODY_BYTES // 2**20} MiB"),
    (
        "api/README.md",
        f"`Idempotency-Key`: 1 to {accounts_limits.IDEMPOTENCY_KEY_CHARACTERS} printable ASCII",
    ),
    ("api/README.md", f"kept {accounts_limits.IDEMPOTENCY_KEPT.days * 24} hours and replayed"),
    ("api/README.md", f"`limit`: 1 to {core_limits.PAGE_ROWS}, default {core_limits.PAGE_ROWS_DEFAULT}."),
    ("api/raw-items.md", f"with 1 to {pipeline_limits.BATCH_ITEMS} bodies"),
    ("api/raw-items.md", f"an object of up to {pipeline_limits.METADATA_BYTES // 1024} KiB as JSON"),
    ("api/sources.md", f"the newest {pipeline_limits.FIRST_POLL_NEWEST} entries of its first poll"),
    ("api/sources.md", f"at most {pipeline_limits.MAX_BURST_DEFAULT} new ones of each further poll"),
    ("api/publishing.md", f"a moment up to {pipeline_limits.PUBLISH_AHEAD.days} days ahead"),
    ("api/analytics.md", f"at most {analytics_limits.ANALYTICS_DAYS} days."),
    ("api/sources.md", f"failing for {pipeline_limits.POLL_DEAD_AFTER.days} days"),
    ("api/events.md", f"Events are kept {limits.EVENT_PAYLOADS_KEPT.days} days."),
    ("api/publishing.md", f"a list of up to {MAX_SCRIPT_WORDS} words"),
    (
        "api/inbound-deliveries.md",
        f"At most {pipeline_limits.INBOUND_CALLS.removesuffix('/m')} calls a minute to one source's address",
    ),
    ("api/README.md", tokens.PATTERN),
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
    ("webhooks.md", f"at most {pipeline_limits.EVENT_BYTES:,} bytes".replace(",", " ")),
    ("webhooks.md", f"an overlap of 0 to {accounts_limits.TOKEN_OVERLAP_MOST.days} days"),
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


def test_ten_attempts():
    assert len(limits.WEBHOOK_SCHEDULE) == 10
    assert "Ten attempts." in read("webhooks.md")


def test_words_of_the_simulated_platform_are_documented():
    listed = [
        cells[0].strip("`") for cells in rows(section(read("api/publishing.md"), "## The test channel"))
    ]
    assert listed[-len(SCRIPT_WORDS) :] == list(SCRIPT_WORDS)


def test_content_of_each_bucket_is_documented():
    table = {cells[0].strip("`"): cells[1] for cells in rows(read("api/generated-items.md"))}
    for bucket, traits in bucket_traits.TRAITS.items():
        assert re.findall(r"`(\w+)`", table[bucket]) == list(traits.content)


@pytest.mark.parametrize(
    ("page", "statuses"),
    [
        ("sources", states.SOURCE),
        ("raw-items", states.RAW_ITEM),
        ("generated-items", states.GENERATED_ITEM),
        ("publishing", states.PUBLICATION),
        ("outlets", states.OUTLET),
    ],
)
def test_every_status_is_documented(page, statuses):
    text = read(f"api/{page}.md")
    assert [status for status in statuses if f"`{status}`" not in text] == []


def test_every_scope_and_preset_is_documented():
    text = read("api/README.md")
    assert [scope for scope in (*tokens.SCOPES, *tokens.PRESETS) if f"`{scope}`" not in text] == []
