"""The simulated outlet: its answers, its script, its made-up counts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.core.http_client import ConnectFailed, TimedOut
from pipeline.platforms.base import METRICS, Account, CannotTell, Found, Sample, Sent
from pipeline.platforms.payload_types import Adapted, Length, Payload
from pipeline.platforms.simulated import (
    IDS_PER_METRICS_CALL,
    MAX_SCRIPT_WORDS,
    MAX_TEXT_CHARACTERS,
    PLUGIN,
    SCRIPT_WORDS,
    made_up_metrics,
)
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.support import answer, client

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ACCOUNT = Account("out_1", {"script": ["429", "ok"]})


def post(body: str = "Hello.", **settings: object) -> Adapted:
    payload = Payload("gen_1", 3, "text", "Title", body, "text", settings=settings)
    return PLUGIN.adapt(ACCOUNT, payload)


def commit(*answers: Any, sent: Adapted | None = None) -> tuple[Sent, list[tuple[str, str, Any]]]:
    http, recorder = client(*answers)
    result = PLUGIN.commit(ACCOUNT, sent or post(), {}, http=http, key="pub_1", now=NOW)
    return result, recorder.asked


def failure(*answers: Any) -> PluginError:
    with pytest.raises(PluginError) as raised:
        commit(*answers)
    return raised.value


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("header", "after"),
    [
        ({"Retry-After": "7"}, timedelta(seconds=7)),
        ({"retry-after": " 0 "}, timedelta(0)),
        ({"Retry-After": "Fri, 20 Nov 2026 12:01:30 GMT"}, timedelta(seconds=90)),
        ({"Retry-After": "Fri, 20 Nov 2026 12:01:30 -0000"}, timedelta(seconds=90)),
        ({"Retry-After": "Fri, 20 Nov 2026 11:00:00 GMT"}, timedelta(0)),
        ({"Retry-After": "99999999"}, timedelta(hours=24)),
        ({"Retry-After": "9" * 5000}, timedelta(hours=24)),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
    ],
)
def test_busy_platform_is_left_alone_for_as_long_as_it_says(
    status: int, header: dict[str, str], after: timedelta | None
) -> None:
    error = failure(answer(status, {"error": "Too many."}, header))

    assert type(error) is TryLater
    assert (error.after, error.code, error.platform_status) == (after, "rate_limited", status)
    assert error.message == "The platform asks to wait: Too many."


@pytest.mark.parametrize(
    ("status", "body", "field", "message"),
    [
        (422, {"error": "Too long.", "field": "body"}, "body", "The platform refused the post: Too long."),
        (400, {"error": "Bad."}, None, "The platform refused the post: Bad."),
        (422, {"error": 1, "field": 2}, None, "The platform refused the post: no reason given"),
    ],
)
def test_refusal_names_the_field(status: int, body: object, field: str | None, message: str) -> None:
    error = failure(answer(status, body))

    assert type(error) is Refused
    assert (error.field, error.platform_status, error.message) == (field, status, message)


@pytest.mark.parametrize("status", [401, 403])
def test_expired_account_has_to_be_connected_again(status: int) -> None:
    error = failure(answer(status, {"error": "Expired."}))

    assert (type(error), error.platform_status) == (NeedsReconnect, status)


@pytest.mark.parametrize("status", [202, 204, 301, 404, 408, 409, 418, 500, 502, 504])
def test_status_outside_the_protocol_leaves_the_outcome_unknown(status: int) -> None:
    error = failure(answer(status, {"id": "p1", "url": "https://simulated.invalid/p1"}))

    assert (type(error), error.platform_status) == (OutcomeUnknown, status)


@pytest.mark.parametrize(
    "body",
    [{"id": "", "url": "u"}, {"id": 5, "url": "u"}, {"id": "p1"}, {"id": "p1", "url": None}, "p1", None],
)
def test_acceptance_without_an_id_leaves_the_outcome_unknown(body: object) -> None:
    assert type(failure(answer(201, body))) is OutcomeUnknown


def test_transport_faults_follow_from_what_may_have_reached() -> None:
    assert type(failure(TimedOut("Slow.", may_have_reached=True))) is OutcomeUnknown
    assert type(failure(TimedOut("Slow.", may_have_reached=False))) is TryLater
    assert type(failure(ConnectFailed("Down."))) is TryLater


@pytest.mark.parametrize(
    ("settings", "script"),
    [
        ({}, ["429", "ok"]),
        ({"script": "reject"}, ["reject"]),
        ({"script": ["error", "ok"]}, ["error", "ok"]),
        ({"script": []}, []),
    ],
)
def test_script_of_the_payload_goes_before_the_outlets(settings: dict[str, Any], script: list[str]) -> None:
    _, asked = commit(answer(201, {"id": "p1", "url": ""}), sent=post(**settings))

    assert [(method, url, post["script"]) for method, url, post in asked] == [
        ("POST", "https://simulated.invalid/posts", script)
    ]


def test_every_script_word_is_allowed() -> None:
    assert PLUGIN.clean_config({}) == {"script": []}
    assert PLUGIN.clean_config({"script": list(SCRIPT_WORDS)}) == {"script": list(SCRIPT_WORDS)}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("ok", "invalid"),
        (["no"], "invalid"),
        ([1], "invalid"),
        ([["ok"]], "invalid"),
        (None, "invalid"),
        (["ok"] * (MAX_SCRIPT_WORDS + 1), "too_long"),
    ],
)
def test_wrong_script_is_named(script: object, code: str) -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config({"script": script})

    assert [(problem.field, problem.code) for problem in invalid.value.problems] == [("config.script", code)]


def test_wrong_script_of_a_payload_is_named() -> None:
    problems = PLUGIN.validate(ACCOUNT, post(script="explode"))

    assert [(problem.field, problem.code) for problem in problems] == [("settings.script", "invalid")]
    assert PLUGIN.validate(ACCOUNT, post(script="ok")) == ()


def test_text_is_counted_in_code_points() -> None:
    assert PLUGIN.length(ACCOUNT, post("é😀")) == Length(2, MAX_TEXT_CHARACTERS, "characters")
    assert PLUGIN.validate(ACCOUNT, post("😀" * MAX_TEXT_CHARACTERS)) == ()
    assert [
        problem.message for problem in PLUGIN.validate(ACCOUNT, post("😀" * (MAX_TEXT_CHARACTERS + 1)))
    ] == ["The text has 5001 characters; the maximum is 5000."]


def test_reconcile_asks_for_the_key_and_takes_the_oldest() -> None:
    http, recorder = client(answer(200, {"data": [{"id": "p1", "url": "u1"}, {"id": "p2", "url": "u2"}]}))

    found = PLUGIN.reconcile(ACCOUNT, post(), {}, http=http, key="pub/1&x", now=NOW)

    assert found == Found(Sent("p1", "u1"))
    assert recorder.asked == [("GET", "https://simulated.invalid/posts?ref=pub%2F1%26x", None)]


@pytest.mark.parametrize(
    "body", [{"data": None}, {"data": {}}, {}, {"data": ["p1"]}, {"data": [{"id": "p1"}]}]
)
def test_reconcile_takes_no_unreadable_list_for_a_proof(body: object) -> None:
    http, _ = client(answer(200, body))

    assert PLUGIN.reconcile(ACCOUNT, post(), {}, http=http, key="k", now=NOW) == CannotTell(
        "The platform's list of posts couldn't be read."
    )


def test_metrics_are_asked_in_pages_and_keep_their_order() -> None:
    sent = [(Sent(f"p{place}"), NOW) for place in range(IDS_PER_METRICS_CALL + 1)]
    first = {f"p{place}": dict.fromkeys(METRICS, place) for place in range(IDS_PER_METRICS_CALL)}
    last = {f"p{IDS_PER_METRICS_CALL}": dict.fromkeys(METRICS, IDS_PER_METRICS_CALL)}
    http, recorder = client(answer(200, {"data": first}), answer(200, {"data": last}))

    samples = PLUGIN.metrics(ACCOUNT, sent, http=http, now=NOW)

    assert samples == tuple(
        tuple(Sample(metric, place) for metric in METRICS) for place in range(IDS_PER_METRICS_CALL + 1)
    )
    assert recorder.asked[1] == (
        "GET",
        f"https://simulated.invalid/metrics?ids=p{IDS_PER_METRICS_CALL}",
        None,
    )
    assert len(recorder.asked) == 2


def test_missing_counts_are_unavailable_and_never_nought() -> None:
    http, _ = client(
        answer(200, {"data": {"p1": {"impressions": 0, "views": True, "likes": -1, "shares": "5"}}})
    )

    samples = PLUGIN.metrics(ACCOUNT, [(Sent("p1"), NOW), (Sent("gone"), NOW)], http=http, now=NOW)

    missing = tuple(Sample(metric, None, "unavailable") for metric in METRICS)
    assert samples == ((Sample("impressions", 0), *missing[1:]), missing)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer(401, {}), NeedsReconnect),
        (answer(429, {}, {"Retry-After": "5"}), TryLater),
        (answer(500, {}), TryLater),
        (answer(200, b"<html>"), TryLater),
        (answer(200, {"data": []}), TryLater),
        (TimedOut("Slow.", may_have_reached=True), TryLater),
    ],
)
def test_failed_metrics_are_read_again_later(reply: Any, error: type[PluginError]) -> None:
    http, _ = client(reply)

    with pytest.raises(error):
        PLUGIN.metrics(ACCOUNT, [(Sent("p1"), NOW)], http=http, now=NOW)


hours = st.floats(min_value=0, max_value=24 * 400).map(lambda number: timedelta(hours=number))


@given(st.text(), hours, hours)
def test_made_up_metrics_never_fall(post_id: str, one: timedelta, other: timedelta) -> None:
    earlier, later = sorted((one, other))
    before, after = (made_up_metrics(post_id, NOW, NOW + age) for age in (earlier, later))

    assert before == made_up_metrics(post_id, NOW, NOW + earlier)
    assert list(before) == list(METRICS)
    assert [metric for metric in METRICS if before[metric] > after[metric]] == []
    assert after["impressions"] >= after["views"] >= max(after["likes"], after["clicks"])
    assert after["likes"] >= max(after["comments"], after["shares"])


def test_made_up_metrics_begin_at_nought_and_differ_by_post() -> None:
    assert made_up_metrics("p1", NOW, NOW - timedelta(hours=1)) == dict.fromkeys(METRICS, 0)
    assert made_up_metrics("p1", NOW, NOW) == dict.fromkeys(METRICS, 0)
    assert made_up_metrics("p1", NOW, NOW + timedelta(days=1)) != made_up_metrics(
        "p2", NOW, NOW + timedelta(days=1)
    )
