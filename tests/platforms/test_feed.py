"""The workspace's own feed as an outlet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.core.http_client import OutboundError, TimedOut
from pipeline.platforms.base import Account, Found, Sent
from pipeline.platforms.feed import MAX_TITLE_CHARACTERS, PLUGIN, entry_id
from pipeline.platforms.payload_types import Adapted, Length, Payload
from pipeline.plugins import ConfigInvalid, TryLater
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from config.core.http_client import Client, Response

NOW = datetime(2026, 11, 20, tzinfo=UTC)
POST = Adapted(Payload("gen_1", 1, "text", "", "Hello.", "text"), ("Hello.",))


def _post(title: str, body: str) -> Adapted:
    return Adapted(Payload("gen_1", 1, "text", title, body, "text"), (body,))


def test_entry_id_never_changes() -> None:
    assert entry_id("pub_1") == "urn:uuid:fc627bc1-e249-5b82-940b-3d0fd4003528"


@given(st.text(), st.text())
def test_entry_id_follows_from_the_key(one: str, other: str) -> None:
    assert (entry_id(one) == entry_id(other)) is (one == other)


@pytest.mark.parametrize("config", [{}, {"feed_url": ""}])
def test_feed_without_an_address_still_takes_everything(config: dict[str, str]) -> None:
    http, recorder = client()

    sent = PLUGIN.commit(Account("out_1", config), POST, {}, http=http, key="pub_1", now=NOW)

    assert sent == Sent(entry_id("pub_1"), "")
    assert PLUGIN.reconcile(Account("out_1", config), POST, {}, http=http, key="pub_1", now=NOW) == Found(
        sent
    )
    assert recorder.asked == []


@pytest.mark.parametrize(
    ("config", "clean"),
    [
        ({}, {}),
        ({"title": "  News "}, {"title": "News"}),
        ({"title": " "}, {}),
        ({"title": "x" * MAX_TITLE_CHARACTERS}, {"title": "x" * MAX_TITLE_CHARACTERS}),
    ],
)
def test_title_is_trimmed(config: dict[str, object], clean: dict[str, object]) -> None:
    assert PLUGIN.clean_config(config) == clean


@pytest.mark.parametrize(
    ("config", "problems"),
    [
        ({"title": 1}, [("config.title", "invalid")]),
        ({"title": "x" * (MAX_TITLE_CHARACTERS + 1)}, [("config.title", "too_long")]),
        ({"feed_url": "https://a.com/"}, [("config.feed_url", "unknown_field")]),
    ],
)
def test_wrong_settings_are_named(config: dict[str, object], problems: list[tuple[str, str]]) -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config(config)

    assert [(problem.field, problem.code) for problem in invalid.value.problems] == problems


def test_only_nothing_is_refused() -> None:
    empty = PLUGIN.validate(Account("out_1"), _post(" ", "\n"))

    assert [(problem.field, problem.code) for problem in empty] == [("body", "empty")]
    assert PLUGIN.validate(Account("out_1"), _post("Title", "")) == ()
    assert PLUGIN.validate(Account("out_1"), POST) == ()


def test_length_has_no_limit() -> None:
    assert PLUGIN.length(Account("out_1"), POST) == Length(6, None, "characters")


HUBS = ("https://hub.example.com/", "https://other.example.com/hub")
WITH_HUBS = Account(
    "out_1",
    config={"feed_urls": ["https://a.example.com/1.atom", "https://a.example.com/1.rss"], "hubs": HUBS},
)


class Hubs:
    """Keeps what it is told, and answers one word after the other."""

    def __init__(self, *answers: Response | OutboundError) -> None:
        self.left = list(answers)
        self.told: list[tuple[str, str, bytes]] = []

    def request(
        self, method: str, url: str, *, body: bytes, headers: dict[str, str], timeout: float
    ) -> Response:
        assert headers == {"Content-Type": "application/x-www-form-urlencoded"}
        assert timeout == 8.0
        self.told.append((method, url, body))
        following = self.left.pop(0)
        if isinstance(following, OutboundError):
            raise following
        return following


FORM = b"hub.mode=publish&hub.url=https%3A%2F%2Fa.example.com%2F1.atom&hub.url=https%3A%2F%2Fa.example.com%2F1.rss"
TOLD = [("POST", hub, FORM) for hub in HUBS]


def test_each_hub_is_told_of_each_form() -> None:
    hubs = Hubs(answer(204, b""), answer(202, b""))

    assert PLUGIN.wants_finish(WITH_HUBS) is True
    assert PLUGIN.finish(WITH_HUBS, POST, Sent("1"), http=cast("Client", hubs), now=NOW) is None
    assert hubs.told == TOLD


@pytest.mark.parametrize(
    "failure", [answer(500, b""), answer(404, b""), TimedOut("No answer came.", may_have_reached=True)]
)
def test_a_hub_that_fails_keeps_no_other_from_being_told(failure: Response | OutboundError) -> None:
    hubs = Hubs(failure, answer(204, b""))

    with pytest.raises(TryLater) as raised:
        PLUGIN.finish(WITH_HUBS, POST, Sent("1"), http=cast("Client", hubs), now=NOW)

    assert (raised.value.code, hubs.told) == ("hub_failed", TOLD)


def test_what_was_removed_is_told_and_a_hub_cannot_hinder_it() -> None:
    hubs = Hubs(answer(500, b""), TimedOut("No answer came.", may_have_reached=True))

    PLUGIN.remove(WITH_HUBS, Sent("1"), http=cast("Client", hubs), now=NOW)

    assert hubs.told == TOLD


def test_without_hubs_nothing_follows() -> None:
    http, recorder = client()

    assert PLUGIN.wants_finish(Account("out_1")) is False
    assert PLUGIN.finish(Account("out_1"), POST, Sent("1"), http=http, now=NOW) is None
    PLUGIN.remove(Account("out_1"), Sent("1"), http=http, now=NOW)
    assert recorder.asked == []
