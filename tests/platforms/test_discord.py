from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import AccountInfo, Sent
from pipeline.platforms.discord import PLUGIN, escape
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.discord import CHANNEL, GUILD, IDENTITY, THREAD, TOKEN, Server, case
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.base import Account

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
FAMILY = "👩‍👩‍👧‍👦"


def send(server: Server, payload: Payload, **config: Any) -> Sent:
    account = replace(case(server).account, config=config)
    post = PLUGIN.adapt(account, payload)
    assert PLUGIN.validate(account, post) == ()
    return PLUGIN.commit(account, post, {}, http=HTTP, key="pub_1", now=NOW)


def problems(account: Account, payload: Payload) -> list[tuple[str | None, str]]:
    return [(one.field, one.code) for one in PLUGIN.validate(account, PLUGIN.adapt(account, payload))]


@pytest.mark.parametrize(
    "body",
    [
        "x" * 2000,
        FAMILY * 181 + "x" * 9,
        "e\u0301" * 1000,
        # A sign that is escaped is sent as two.
        "*" * 1000,
        "https://example.com/a_b " + "x" * 1976,
    ],
)
def test_the_limit_is_of_what_is_sent(server: Server, body: str) -> None:
    there = case(server)
    payload = replace(there.payloads["text"], body=body)

    assert PLUGIN.length(there.account, PLUGIN.adapt(there.account, payload)).count == 2000
    send(server, payload)
    assert problems(there.account, replace(payload, body=body + "x")) == [("body", "too_long")]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("2 * 3 * 4 and snake_case", r"2 \* 3 \* 4 and snake\_case"),
        ("See https://example.com/a_b_c, _now_", r"See https://example.com/a_b_c, \_now\_"),
        (
            "# No heading\n> no quotation\n- no list\n1. no list",
            "\\# No heading\n\\> no quotation\n\\- no list\n1\\. no list",
        ),
        (
            "<@123> and [text](url) `x` ||y|| ~~z~~ \\",
            r"\<@123> and \[text](url) \`x\` \|\|y\|\| \~\~z\~\~ \\",
        ),
        ("-# small", r"-\# small"),
        ("Plain words. 3.5 of 4 – fine!", "Plain words. 3.5 of 4 – fine!"),
    ],
)
def test_signs_of_the_text_stay_signs(text: str, sent: str) -> None:
    assert escape(text) == sent


def test_nobody_is_ever_called(server: Server) -> None:
    send(server, replace(case(server).payloads["text"], body="@everyone <@&1>"))

    assert server.posts[0]["allowed_mentions"] == {"parse": []}


def test_settings_are_sent(server: Server) -> None:
    sent = send(
        server,
        case(server).payloads["text"],
        thread_id=THREAD,
        username="Council",
        avatar_url="https://example.com/a.png",
        link_preview=False,
        is_silent=True,
    )

    assert server.posts == [
        {
            "id": sent.external_id,
            "thread": THREAD,
            "allowed_mentions": {"parse": []},
            "content": "The council voted 14 to 9. 🚊",
            "username": "Council",
            "avatar_url": "https://example.com/a.png",
            "flags": 4 | 4096,
            "files": [],
        }
    ]
    assert sent.url == f"https://discord.com/channels/{GUILD}/{THREAD}/{sent.external_id}"
    # The thread that it stands in is remembered, whatever the outlet's is then.
    PLUGIN.remove(case(server).account, sent, http=HTTP, now=NOW)
    assert server.posts == []


def test_files_go_along_with_their_alt_texts(server: Server) -> None:
    payload = case(server).payloads["image"]
    first = replace(payload.assets[0], name="a picture.png")

    send(server, replace(payload, assets=(first, payload.assets[1])))

    assert server.posts[0]["files"] == ["a_picture.png", "second.png"]
    assert server.posts[0]["attachments"] == [
        {"id": 0, "filename": "a_picture.png", "description": "A red square."},
        {"id": 1, "filename": "second.png", "description": "A red square."},
    ]


def test_an_article_is_a_card(server: Server) -> None:
    send(server, case(server).payloads["blog"], link_preview=False)

    assert server.posts[0]["embeds"] == [
        {
            "title": "Tram approved",
            "description": "The council voted 14 to 9. 🚊",
            "url": "https://example.com/news",
            "image": {"url": "attachment://picture.png"},
        }
    ]
    assert "flags" not in server.posts[0]


@pytest.mark.parametrize(
    ("title", "body", "expected"),
    [
        ("x" * 256, "x" * 4096, []),
        ("x" * 257, "x", [("title", "too_long")]),
        ("x", "x" * 4097, [("body", "too_long")]),
        ("", "x", [("title", "required")]),
    ],
)
def test_a_cards_limits(server: Server, title: str, body: str, expected: Any) -> None:
    there = case(server)

    assert problems(there.account, replace(there.payloads["blog"], title=title, body=body)) == expected


def a_picture(**changes: Any) -> PayloadAsset:
    return PayloadAsset(
        **{"url": "https://m.example.com/a", "mime_type": "image/png", "bytes": 10, **changes}
    )


@pytest.mark.parametrize(
    ("assets", "expected"),
    [
        ((a_picture(),) * 10, []),
        ((*((a_picture(),) * 10), a_picture(mime_type="video/mp4")), [("assets", "too_many_files")]),
        ((a_picture(bytes=10 * 1024 * 1024),), []),
        ((a_picture(bytes=10 * 1024 * 1024 + 1),), [("assets[0]", "file_too_large")]),
        ((a_picture(alt_text="x" * 1025),), [("assets[0]", "alt_text_too_long")]),
        ((a_picture(mime_type="image/tiff"),), [("assets[0]", "type_not_taken")]),
        ((), [("assets", "no_image")]),
    ],
)
def test_files_are_judged(server: Server, assets: Any, expected: Any) -> None:
    there = case(server)

    assert problems(there.account, replace(there.payloads["image"], assets=assets)) == expected


@pytest.mark.parametrize(
    ("status", "number", "means", "code"),
    [
        (404, 10015, NeedsReconnect, "webhook_gone"),
        (404, 0, NeedsReconnect, "webhook_gone"),
        (404, 10003, NeedsReconnect, "thread_not_found"),
        (400, 50083, NeedsReconnect, "thread_closed"),
        (400, 220001, NeedsReconnect, "thread_needed"),
        (400, 220003, NeedsReconnect, "thread_needed"),
        (401, 50027, NeedsReconnect, "webhook_refused"),
        (401, 0, NeedsReconnect, "webhook_refused"),
        (403, 50013, NeedsReconnect, "no_right_to_post"),
        (400, 200000, Refused, "blocked_words"),
        (400, 240000, Refused, "harmful_link"),
        (400, 50006, Refused, "empty"),
        (413, 40005, Refused, "file_too_large"),
        (400, 50035, Refused, "invalid"),
        (400, 1, Refused, "refused"),
        (403, 40333, TryLater, "firewall"),
        (429, 0, TryLater, "rate_limited"),
        (500, 0, OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_errors_mean_what_the_table_says(
    server: Server, status: int, number: int, means: type[PluginError], code: str
) -> None:
    there = case(server)
    body = {"code": number, "message": "Words of Discord.", "retry_after": 1.5}
    http, _ = client(answer(status, body))
    post = PLUGIN.adapt(there.account, there.payloads["text"])

    with pytest.raises(means) as raised:
        PLUGIN.commit(there.account, post, {}, http=http, key="pub_1", now=NOW)

    assert type(raised.value) is means
    assert (raised.value.code, raised.value.platform_status) == (code, status)
    if isinstance(raised.value, TryLater):
        assert raised.value.after == timedelta(seconds=1.5)


def test_without_a_server_there_is_no_link(server: Server) -> None:
    account = replace(case(server).account, profile={})

    sent = PLUGIN.commit(
        account, PLUGIN.adapt(account, case(server).payloads["text"]), {}, http=HTTP, key="k", now=NOW
    )

    assert sent.url == ""


def test_the_account_is_the_webhook(server: Server) -> None:
    assert PLUGIN.check_account(case(server).account, http=HTTP, now=NOW) == AccountInfo(
        IDENTITY,
        name="News",
        url=f"https://discord.com/channels/{GUILD}/{CHANNEL}",
        limits={"guild_id": GUILD, "channel_id": CHANNEL},
    )


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        (f"https://discord.com/api/webhooks/{IDENTITY}/{TOKEN}", True),
        (f"https://discordapp.com/api/v10/webhooks/{IDENTITY}/{TOKEN}", True),
        (f"https://discord.com.evil.example/api/webhooks/{IDENTITY}/{TOKEN}", False),
        (f"http://discord.com/api/webhooks/{IDENTITY}/{TOKEN}", False),
        (f"https://discord.com/api/webhooks/{IDENTITY}/{TOKEN}/../x", False),
    ],
)
def test_only_a_webhooks_address_is_taken(url: str, *, is_taken: bool) -> None:
    if is_taken:
        assert PLUGIN.clean_credentials({"webhook_url": url}) == {"webhook_url": url}
        return
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_credentials({"webhook_url": url})
    assert [(one.field, TOKEN in one.message) for one in raised.value.problems] == [
        ("credentials.webhook_url", False)
    ]


@pytest.mark.parametrize(
    "config", [{"thread_id": "general"}, {"username": "My Discord bot"}, {"username": "Clyde"}]
)
def test_settings_that_discord_would_refuse_are_refused(config: dict[str, str]) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_config(config)

    assert [one.field for one in raised.value.problems] == [f"config.{next(iter(config))}"]
