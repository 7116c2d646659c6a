"""The workspace's own feed as an outlet."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.platforms.base import Account, Found, Length, Payload, Sent
from pipeline.platforms.feed import MAX_TITLE, PLUGIN, entry_id
from pipeline.plugins import ConfigInvalid
from tests.platforms.support import client

NOW = datetime(2026, 11, 20, tzinfo=UTC)
POST = Payload("gen_1", 1, "text", "", "Hello.", "text")


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
        ({"title": "x" * MAX_TITLE}, {"title": "x" * MAX_TITLE}),
    ],
)
def test_title_is_trimmed(config: dict[str, object], clean: dict[str, object]) -> None:
    assert PLUGIN.clean_config(config) == clean


@pytest.mark.parametrize(
    ("config", "problems"),
    [
        ({"title": 1}, [("config.title", "invalid")]),
        ({"title": "x" * (MAX_TITLE + 1)}, [("config.title", "too_long")]),
        ({"feed_url": "https://a.com/"}, [("config.feed_url", "unknown_field")]),
    ],
)
def test_wrong_settings_are_named(config: dict[str, object], problems: list[tuple[str, str]]) -> None:
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config(config)

    assert [(problem.field, problem.code) for problem in invalid.value.problems] == problems


def test_only_nothing_is_refused() -> None:
    empty = PLUGIN.validate(Account("out_1"), Payload("gen_1", 1, "text", " ", "\n", "text"))

    assert [(problem.field, problem.code) for problem in empty] == [("body", "empty")]
    assert PLUGIN.validate(Account("out_1"), Payload("gen_1", 1, "text", "Title", "", "text")) == ()
    assert PLUGIN.validate(Account("out_1"), POST) == ()


def test_length_has_no_limit() -> None:
    assert PLUGIN.length(POST) == Length(6, None, "characters")
