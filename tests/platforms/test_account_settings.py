"""What a person fills in to connect an account: cleaned, named where it is wrong, described as a schema."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline import plugins
from pipeline.platforms.base import Platform, Setting
from pipeline.platforms.settings import clean_settings, is_web_address, refusal_of_secret, schema_of
from pipeline.plugins import ConfigInvalid

SETTINGS = (
    Setting("site", "Site", kind="url"),
    Setting("key", "API key", is_secret=True, kind="password"),
    Setting("lang", "Language", kind="choice", choices=(("en", "English"), ("de", "German")), default="en"),
    Setting("quiet", "Quietly", kind="flag", is_required=False),
    Setting("thread", "Thread", kind="number", is_required=False),
    Setting("note", "Note", is_required=False, max_length=5),
    Setting("reply", "Replies go to", kind="email", is_required=False),
    Setting("mail", "Mail password", is_secret=True, is_required=False, allows_unicode=True),
)


def refused(given: dict[str, Any]) -> list[tuple[str | None, str]]:
    with pytest.raises(ConfigInvalid) as invalid:
        clean_settings("Example", SETTINGS, given)
    return [(one.field, one.code) for one in invalid.value.problems]


def test_cleaned_with_defaults_and_without_what_was_left_out() -> None:
    assert clean_settings(
        "Example", SETTINGS, {"site": " https://a.example/ ", "quiet": True, "note": ""}
    ) == {
        "site": "https://a.example/",
        "lang": "en",
        "quiet": True,
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [("config.site", "required")]),
        ({"site": "a.example"}, [("config.site", "invalid")]),
        ({"site": "https://u:p@a.example"}, [("config.site", "invalid")]),
        ({"site": "https://a.example", "lang": "fr"}, [("config.lang", "invalid")]),
        ({"site": "https://a.example", "quiet": "yes"}, [("config.quiet", "invalid")]),
        ({"site": "https://a.example", "thread": True}, [("config.thread", "invalid")]),
        ({"site": "https://a.example", "thread": -1}, [("config.thread", "invalid")]),
        ({"site": "https://a.example", "note": "123456"}, [("config.note", "invalid")]),
        # A secret is no setting.
        ({"site": "https://a.example", "key": "k"}, [("config.key", "unknown_field")]),
        ({"site": ["https://a.example"]}, [("config.site", "invalid")]),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert refused(given) == expected


def test_schema_leaves_secrets_out() -> None:
    schema = schema_of(SETTINGS)

    assert list(schema["properties"]) == ["site", "lang", "quiet", "thread", "note", "reply"]
    assert schema["required"] == ["site"]
    assert schema["properties"]["lang"] == {
        "type": "string",
        "title": "Language",
        "enum": ["en", "de"],
        "default": "en",
    }


class Kept(Platform):
    kind = "kept"
    label = "Kept"
    buckets = ("text",)
    settings = SETTINGS

    commit = reconcile = None  # type: ignore[assignment]


def test_credentials_are_cleaned_and_never_quoted() -> None:
    platform = Kept()

    assert platform.clean_credentials({"key": " abc "}) == {"key": "abc"}
    for given in ({"key": "s3cret" * 200}, {"key": 5}, {"key": ""}, {"other": "s3cret"}):
        with pytest.raises(ConfigInvalid) as invalid:
            platform.clean_credentials(given)
        assert "s3cret" not in str(invalid.value)


@pytest.mark.parametrize(
    ("field", "secret"),
    [
        ("key", "abc\u200bdef"),
        ("key", "abc\x00def"),
        ("key", "abc\ndef"),
        ("key", "\ufeffabcdef"),
        ("key", "abc\ud800def"),
        ("key", "abc\u00a0def"),
        ("key", "abcäöü"),
        ("mail", "abc\u202edef"),
        ("mail", "abc\tdef"),
    ],
)
def test_a_secret_that_no_request_can_hold_is_refused(field: str, secret: str) -> None:
    given = {"key": "k", field: secret}
    with pytest.raises(ConfigInvalid) as invalid:
        Kept().clean_credentials(given)

    (problem,) = invalid.value.problems
    label = {"key": "API key", "mail": "Mail password"}[field]
    assert (problem.field, problem.code) == (f"credentials.{field}", "invalid")
    assert problem.message.startswith(f"{label} holds ")
    assert secret[:3] not in problem.message


def test_a_secret_may_hold_other_letters_where_they_can_be_sent() -> None:
    assert Kept().clean_credentials({"key": "k", "mail": "pässword 密"}) == {
        "key": "k",
        "mail": "pässword 密",
    }


@pytest.mark.parametrize(
    ("address", "is_taken"),
    [
        ("https://a.example", True),
        ("http://a.example", False),
        ("http://10.0.0.5", False),
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000", True),
        ("http://localhost.a.example", False),
        ("http://127.0.0.1.a.example", False),
    ],
)
def test_what_leaves_the_machine_goes_by_https(address: str, *, is_taken: bool) -> None:
    if is_taken:
        assert clean_settings("Example", SETTINGS, {"site": address})["site"] == address
    else:
        assert refused({"site": address}) == [("config.site", "invalid")]


@pytest.mark.parametrize(
    ("address", "is_taken"),
    [
        ("a@b.example", True),
        ("first.last+tag@mail.b-c.example", True),
        ("a", False),
        ("a@b", False),
        ("a@@b.example", False),
        ("a b@c.example", False),
        ("A <a@b.example>", False),
        ("a@b.example, c@d.example", False),
        ("a\n@b.example", False),
        ("a@b.example" + "x" * 250, False),
    ],
)
def test_shape_of_an_email_address(address: str, *, is_taken: bool) -> None:
    given = {"site": "https://a.example", "reply": address}
    if is_taken:
        assert clean_settings("Example", SETTINGS, given)["reply"] == address
    else:
        assert refused(given) == [("config.reply", "invalid")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://a.example", True),
        ("http://127.0.0.1:8000/x?y=1", True),
        ("ftp://a.example", False),
        ("https://", False),
        ("https://a.example:0", False),
        ("https://a.example:99999", False),
        ("https://a.example/#x", False),
        ("https://a example", False),
        ("https://[::1", False),
    ],
)
def test_web_address(text: str, *, expected: bool) -> None:
    assert is_web_address(text) is expected


def test_every_platform_that_can_be_connected_says_what_it_is() -> None:
    for platform in plugins.every("platforms", Platform):
        if platform.is_connectable and platform.kind != "feed":
            assert platform.summary.endswith("."), platform.kind
            assert platform.settings or platform.oauth, platform.kind


def test_secrets_of_lines_and_of_other_scripts_are_taken_where_they_may_be() -> None:
    key = "-----BEGIN KEY-----\r\nabc\n-----END KEY-----"
    kept = Setting("key", "Key", is_secret=True, has_lines=True, max_length=100)
    password = Setting("password", "Password", is_secret=True, allows_unicode=True)

    assert (refusal_of_secret(kept, key), refusal_of_secret(password, "Straße")) == ("", "")
    assert refusal_of_secret(Setting("key", "Key", is_secret=True), key).startswith("Key holds")
    assert refusal_of_secret(kept, "abc\u200b").startswith("Key holds")
    assert refusal_of_secret(Setting("key", "Key", is_secret=True), "Straße").startswith("Key holds")
