"""What a platform's answer, or its silence, allows to be done about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from traceback import format_exception
from typing import TYPE_CHECKING, NoReturn

import pytest

from config.core.http_client import ConnectFailed, TimedOut
from pipeline.platforms.http_calls import (
    ask,
    ask_once,
    platform_message_of,
    raise_by_status,
    wait_until_reset,
)
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from collections.abc import Callable

    from config.core.http_client import Response

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=90)


@pytest.mark.parametrize("may_have_reached", [True, False])
def test_a_repeatable_call_is_tried_later(*, may_have_reached: bool) -> None:
    http, _ = client(TimedOut("No answer.", may_have_reached=may_have_reached))
    with pytest.raises(TryLater, match=r"^Example couldn't be reached: No answer\.$") as failed:
        ask(http, "GET", "https://e.example/", service="Example")
    assert failed.value.code == "unreachable"


def test_the_commit_is_unknown_once_it_may_have_reached() -> None:
    http, _ = client(
        TimedOut("No answer.", may_have_reached=True), ConnectFailed("Nobody.", may_have_reached=False)
    )
    with pytest.raises(OutcomeUnknown):
        ask_once(http, "POST", "https://e.example/", service="Example")
    with pytest.raises(TryLater):
        ask_once(http, "POST", "https://e.example/", service="Example")


class Strict:
    """Refuses what no request can hold, as the real client does, before anything is sent."""

    def request(self, method: str, url: str, **options: object) -> NoReturn:
        del method, url
        message = f"The header {options!r} can't be sent."
        raise ValueError(message)


@pytest.mark.parametrize("call", [ask, ask_once])
def test_what_can_not_be_sent_is_refused_without_a_word_of_it(call: Callable[..., Response]) -> None:
    with pytest.raises(Refused) as failed:
        call(
            Strict(),
            "POST",
            "https://e.example/",
            service="Example",
            headers={"Authorization": "s3cret\u200b"},
        )

    assert failed.value.code == "cannot_be_sent"
    assert failed.value.message == (
        "An address, a header or the content of the call to Example can't be sent as it is."
    )
    assert "s3cret" not in "".join(format_exception(failed.value))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "90"}, 90),
        ({"retry-after": format_datetime(SOON, usegmt=True)}, 90),
        ({"X-RateLimit-Reset": str(int(SOON.timestamp()))}, 90),
        ({"x-ratelimit-reset": SOON.isoformat()}, 90),
        ({"X-RateLimit-Reset": "2026-11-20T12:01:30Z"}, 90),
        ({"X-RateLimit-Reset": str(int(NOW.timestamp()) - 5)}, 1),
        ({"X-RateLimit-Reset": (NOW - timedelta(seconds=5)).isoformat()}, 1),
        ({"X-RateLimit-Reset": "90"}, 90),
        ({"X-RateLimit-Reset": "0"}, 1),
        ({"X-RateLimit-Reset": "99999999999999999999"}, None),
        ({"X-RateLimit-Reset": "nan"}, None),
        ({"X-RateLimit-Reset": "soon"}, None),
        ({}, None),
    ],
)
def test_wait_that_a_header_names(headers: dict[str, str], seconds: int | None) -> None:
    waited = wait_until_reset(headers, "X-RateLimit-Reset", now=NOW)

    assert waited == (None if seconds is None else timedelta(seconds=seconds))


def test_wait_given_as_seconds_from_now() -> None:
    assert wait_until_reset(
        {"X-RateLimit-Reset-After": "1.5"}, "X-RateLimit-Reset-After", now=NOW, is_relative=True
    ) == timedelta(seconds=1.5)


@pytest.mark.parametrize(
    ("status", "before", "at_the_commit"),
    [
        (400, Refused, Refused),
        (401, NeedsReconnect, NeedsReconnect),
        (403, NeedsReconnect, NeedsReconnect),
        (408, TryLater, OutcomeUnknown),
        (409, Refused, OutcomeUnknown),
        (422, Refused, Refused),
        (425, TryLater, OutcomeUnknown),
        (429, TryLater, TryLater),
        (500, TryLater, OutcomeUnknown),
        (503, TryLater, OutcomeUnknown),
        (302, TryLater, OutcomeUnknown),
        (200, TryLater, OutcomeUnknown),
    ],
)
def test_what_a_status_means(
    status: int, before: type[PluginError], at_the_commit: type[PluginError]
) -> None:
    for kind, is_commit in ((before, False), (at_the_commit, True)):
        with pytest.raises(PluginError) as failed:
            raise_by_status(
                answer(status, {"error": "Because."}),
                service="Example",
                platform_message="Because.",
                now=NOW,
                is_commit=is_commit,
            )
        assert type(failed.value) is kind
        assert (failed.value.platform_status, failed.value.platform_message) == (status, "Because.")


def test_a_busy_platform_lets_the_whole_account_rest() -> None:
    with pytest.raises(TryLater) as failed:
        raise_by_status(
            answer(429, {}, {"Retry-After": "7"}),
            service="Example",
            platform_message="",
            now=NOW,
            is_commit=True,
        )
    assert (failed.value.after, failed.value.is_of_account) == (timedelta(seconds=7), True)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": " Too long. "}, "title": "No"}, "Too long."),
        ({"title": "No"}, "No"),
        ({"error": "flat"}, ""),
        (b"<html>Blocked</html>", ""),
        ([], ""),
        ({"title": "x" * 900}, "x" * 900),
        ({"title": "x" * 5000}, "x" * 2000),
        # A word at the edge is left out whole: it may be a secret.
        ({"title": f"{'x' * 1990} token-4711-abcdef"}, "x" * 1990),
        ({"title": f"{'x' * 1990} token-47"}, f"{'x' * 1990} token-47"),
    ],
)
def test_words_of_a_failure(body: object, said: str) -> None:
    assert platform_message_of(answer(400, body), "error.message", "title") == said
