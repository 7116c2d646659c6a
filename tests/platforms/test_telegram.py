from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import AccountInfo, Sent
from pipeline.platforms.payload_types import Adapted, Payload, PayloadAsset
from pipeline.platforms.telegram import PLUGIN
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.telegram import CHANNEL, TOKEN, Server, case, refusal
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.base import Account

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
FAMILY = "👩‍👩‍👧‍👦"
"""One sign to people, 11 units of UTF-16."""


def send(server: Server, payload: Payload, account: Account | None = None) -> Sent:
    account = account or case(server).account
    post = PLUGIN.adapt(account, payload)
    assert PLUGIN.validate(account, post) == ()
    return PLUGIN.commit(account, post, {}, http=HTTP, key="pub_1", now=NOW)


def problems(account: Account, payload: Payload) -> list[tuple[str | None, str]]:
    found = PLUGIN.validate(account, PLUGIN.adapt(account, payload))
    return [(problem.field, problem.code) for problem in found]


def with_config(account: Account, **config: Any) -> Account:
    return replace(account, config={**account.config, **config})


@pytest.mark.parametrize(
    ("bucket", "body"),
    [
        ("text", FAMILY * 372 + "abcd"),
        ("text", "e\u0301" * 2048),
        ("text", "x" * 4096),
        ("image", FAMILY * 93 + "x"),
        ("video", "ü" * 1024),
    ],
)
def test_the_limit_is_counted_in_units_of_utf_16(server: Server, bucket: Any, body: str) -> None:
    there = case(server)
    payload = replace(there.payloads[bucket], body=body)

    assert PLUGIN.length(there.account, PLUGIN.adapt(there.account, payload)).count in {1024, 4096}
    send(server, payload)
    assert server.posts[0]["text"] == body
    assert problems(there.account, replace(payload, body=body + "x")) == [("body", "too_long")]


def test_the_title_counts_too_and_is_bold_by_its_place(server: Server) -> None:
    there = case(server)
    account = with_config(there.account, show_title=True)
    payload = replace(there.payloads["text"], title="A <b>tram</b> 🚊", body="x" * (4096 - 18))

    assert problems(account, replace(payload, body=payload.body + "x")) == [("body", "too_long")]
    send(server, payload, account)
    assert server.posts[0]["text"] == "A <b>tram</b> 🚊\n\n" + "x" * (4096 - 18)
    assert json.loads(server.posts[0]["fields"]["entities"]) == [{"type": "bold", "offset": 0, "length": 16}]
    assert "parse_mode" not in server.posts[0]["fields"]


def test_a_long_text_is_shortened_at_a_sentence_where_the_outlet_says_so(server: Server) -> None:
    there = case(server)
    account = with_config(there.account, too_long="shorten", link="end")
    body = "The council met. " * 100
    payload = replace(there.payloads["image"], body=body, link="https://example.com/news")
    post = PLUGIN.adapt(account, payload)

    assert [step.code for step in post.steps] == ["link_added", "shortened"]
    assert PLUGIN.validate(account, post) == ()
    assert post.payload.body.endswith("The council met.\n\nhttps://example.com/news")


def test_settings_are_sent(server: Server) -> None:
    there = case(server)
    account = with_config(there.account, is_silent=True, link_preview=False, topic=7)

    sent = send(server, there.payloads["text"], account)

    assert server.posts[0]["fields"] == {
        "chat_id": "@council_news",
        "disable_notification": "true",
        "message_thread_id": "7",
        "text": "The council voted 14 to 9. 🚊",
        "link_preview_options": '{"is_disabled": true}',
    }
    assert sent == Sent(
        "100", "https://t.me/council_news/100", {"chat_id": str(CHANNEL), "message_ids": [100]}
    )


def test_one_picture_goes_as_a_photo(server: Server) -> None:
    payload = case(server).payloads["image"]

    send(server, replace(payload, assets=payload.assets[:1]))

    assert server.requests[-1].path == f"/bot{TOKEN}/sendPhoto"
    assert server.posts[0]["files"] == ["picture.png"]
    assert server.posts[0]["fields"]["caption"] == payload.body


def test_several_files_go_as_a_group_whose_first_has_the_words(server: Server) -> None:
    there = case(server)
    payload = there.payloads["image"]
    both = replace(payload, assets=(*payload.assets, *there.payloads["video"].assets))

    sent = send(server, both)

    media = json.loads(server.posts[0]["fields"]["media"])
    assert media == [
        {"type": "photo", "media": "attach://file0", "caption": payload.body},
        {"type": "photo", "media": "attach://file1"},
        {"type": "video", "media": "attach://file2"},
    ]
    assert server.posts[0]["files"] == ["picture.png", "second.png", "clip.mp4"]
    assert sent.details["message_ids"] == [100, 101, 102]
    PLUGIN.remove(there.account, sent, http=HTTP, now=NOW)
    assert server.posts == []


def a_picture(**changes: Any) -> PayloadAsset:
    return PayloadAsset(
        **{"url": "https://m.example.com/a", "mime_type": "image/png", "bytes": 10, **changes}
    )


@pytest.mark.parametrize(
    ("assets", "expected"),
    [
        ((a_picture(),) * 10, []),
        ((a_picture(),) * 11, [("assets", "too_many_files"), ("assets", "too_many_files")]),
        (
            (*((a_picture(),) * 10), a_picture(mime_type="video/mp4")),
            [("assets", "too_many_files")],
        ),
        ((a_picture(bytes=10_000_000),), []),
        ((a_picture(bytes=10_000_001),), [("assets[0]", "file_too_large")]),
        ((a_picture(width=9_000, height=1_000),), []),
        ((a_picture(width=9_000, height=1_001),), [("assets[0]", "too_large")]),
        ((a_picture(width=2_000, height=100),), []),
        ((a_picture(width=2_001, height=100),), [("assets[0]", "wrong_ratio")]),
        ((a_picture(mime_type="image/gif"),), [("assets[0]", "type_not_taken")]),
        ((), [("assets", "no_image")]),
        ((a_picture(), a_picture(mime_type="image/gif", role="thumbnail")), []),
    ],
)
def test_files_are_judged(server: Server, assets: Any, expected: Any) -> None:
    there = case(server)

    assert problems(there.account, replace(there.payloads["image"], assets=assets)) == expected


@pytest.mark.parametrize(
    ("reply", "means", "code"),
    [
        (refusal(401, "Unauthorized"), NeedsReconnect, "token_refused"),
        (refusal(404, "Not Found"), NeedsReconnect, "token_refused"),
        (refusal(403, "Forbidden: bot was kicked from the channel chat"), NeedsReconnect, "no_right_to_post"),
        (refusal(403, "Forbidden: bot is not a member of the channel"), NeedsReconnect, "no_right_to_post"),
        (refusal(400, "Bad Request: chat not found"), NeedsReconnect, "chat_not_found"),
        (refusal(400, "Bad Request: need administrator rights"), NeedsReconnect, "no_right_to_post"),
        (refusal(400, "Bad Request: not enough rights to send text"), NeedsReconnect, "no_right_to_post"),
        (refusal(400, "Bad Request: CHAT_WRITE_FORBIDDEN"), NeedsReconnect, "no_right_to_post"),
        (refusal(400, "Bad Request: message thread not found"), NeedsReconnect, "topic_closed"),
        (refusal(400, "Bad Request: message is too long"), Refused, "too_long"),
        (refusal(400, "Bad Request: PHOTO_INVALID_DIMENSIONS"), Refused, "file_refused"),
        (refusal(400, "Bad Request: something new"), Refused, "refused"),
        (refusal(413, "Request Entity Too Large"), Refused, "file_too_large"),
        (refusal(429, "Too Many Requests", retry_after=7), TryLater, "rate_limited"),
        (refusal(500, "Internal Server Error"), OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_errors_mean_what_the_table_says(
    server: Server, reply: Any, means: type[PluginError], code: str
) -> None:
    there = case(server)
    http, _ = client(answer(reply.status, reply.body))
    post = PLUGIN.adapt(there.account, there.payloads["text"])

    with pytest.raises(means) as raised:
        PLUGIN.commit(there.account, post, {}, http=http, key="pub_1", now=NOW)

    assert type(raised.value) is means
    assert (raised.value.code, raised.value.platform_status) == (code, reply.status)
    assert reply.body["description"] in raised.value.message or means is OutcomeUnknown
    if isinstance(raised.value, TryLater):
        assert (raised.value.after, raised.value.is_of_account) == (timedelta(seconds=7), True)


def test_a_firewalls_page_is_not_the_accounts(server: Server) -> None:
    there = case(server)
    http, _ = client(answer(403, b"<html>Blocked</html>"))

    with pytest.raises(TryLater) as raised:
        PLUGIN.commit(
            there.account,
            PLUGIN.adapt(there.account, there.payloads["text"]),
            {},
            http=http,
            key="pub_1",
            now=NOW,
        )

    assert (raised.value.code, raised.value.message) == (
        "firewall",
        "A firewall in front of Telegram refused the call.",
    )


def test_a_group_that_moved_is_followed(server: Server) -> None:
    there = case(server)
    server.moved_from = "-55"
    account = with_config(there.account, chat="-55")

    sent = send(server, there.payloads["text"], account)

    assert [post["fields"]["chat_id"] for post in server.posts] == [str(CHANNEL)]
    assert PLUGIN.check_account(account, http=HTTP, now=NOW).config == {"chat": str(CHANNEL)}
    PLUGIN.remove(account, replace(sent, details={"message_ids": [100]}), http=HTTP, now=NOW)
    assert server.posts == []


def test_a_private_channel_has_an_address_for_its_members(server: Server) -> None:
    http, _ = client(answer(200, {"ok": True, "result": {"message_id": 9, "chat": {"id": -100777}}}))
    there = case(server)

    sent = PLUGIN.commit(
        there.account, Adapted(there.payloads["text"], ("x",)), {}, http=http, key="pub_1", now=NOW
    )

    assert sent.url == "https://t.me/c/777/9"


def test_the_account_is_the_channel(server: Server) -> None:
    assert PLUGIN.check_account(case(server).account, http=HTTP, now=NOW) == AccountInfo(
        str(CHANNEL), "@council_news", "Council news", "https://t.me/council_news"
    )


@pytest.mark.parametrize(
    "member", [{"status": "administrator"}, {"status": "member"}, {"status": "left"}, {"status": "kicked"}]
)
def test_a_bot_without_the_right_is_told_so(server: Server, member: dict[str, Any]) -> None:
    server.member = member

    with pytest.raises(NeedsReconnect) as raised:
        PLUGIN.check_account(case(server).account, http=HTTP, now=NOW)

    assert raised.value.code == "no_right_to_post"


@pytest.mark.parametrize("chat", ["@abc d", "https://t.me/abc", "a", "@1abc"])
def test_a_chat_that_can_not_be_is_refused(chat: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_config({"chat": chat})

    assert [problem.field for problem in raised.value.problems] == ["config.chat"]


def test_a_token_that_would_be_another_address_is_refused_unquoted() -> None:
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_credentials({"token": "123456:abc/../getUpdates?aaaaaaaaaaaaa"})

    assert [(problem.field, "abc" in problem.message) for problem in raised.value.problems] == [
        ("credentials.token", False)
    ]


def test_a_deleted_message_that_may_not_be_deleted_is_told(server: Server) -> None:
    http, _ = client(answer(400, refusal(400, "Bad Request: message can't be deleted").body))

    with pytest.raises(Refused) as raised:
        PLUGIN.remove(case(server).account, Sent("1"), http=http, now=NOW)

    assert raised.value.code == "cannot_remove"
