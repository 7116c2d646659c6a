from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, AccountInfo, CannotTell, Found, Sent
from pipeline.platforms.payload_types import Payload
from pipeline.platforms.slack import PLUGIN
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.slack import CHANNEL, HOOK, TOKEN, Server, case
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.base import Account

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
KEY = "pub_1"


@pytest.fixture
def account(server: Server) -> Account:
    return case(server).account


@pytest.fixture
def hook(server: Server) -> Account:
    return replace(case(server).account, config={}, credentials={"token": f"{server.url}{HOOK}"})


def send(account: Account, payload: Payload, key: str = KEY) -> Sent:
    post = PLUGIN.adapt(account, payload)
    assert PLUGIN.validate(account, post) == ()
    return PLUGIN.commit(account, post, {}, http=HTTP, key=key, now=NOW)


def look(account: Account, payload: Payload, **state: Any) -> Found | Absent | CannotTell:
    post = PLUGIN.adapt(account, payload)
    return PLUGIN.reconcile(account, post, state, http=HTTP, key=KEY, now=NOW)


def problems(account: Account, payload: Payload) -> list[tuple[str | None, str]]:
    return [(one.field, one.code) for one in PLUGIN.validate(account, PLUGIN.adapt(account, payload))]


@pytest.mark.parametrize(
    ("bucket", "body"),
    [
        ("text", "x" * 4000),
        ("text", "🚊" * 2000),
        ("text", "e\u0301" * 2000),
        ("text", "&" * 800),
        ("text", "<" * 1000),
        ("image", "x" * 3000),
        ("image", "&" * 600),
    ],
)
def test_the_limit_is_of_what_is_sent(server: Server, account: Account, bucket: Any, body: str) -> None:
    payload = replace(case(server).payloads[bucket], body=body)

    assert PLUGIN.length(account, PLUGIN.adapt(account, payload)).count == (
        4000 if bucket == "text" else 3000
    )
    send(account, payload)
    assert len(server.posts) == 1
    assert problems(account, replace(payload, body=body + "x")) == [("body", "too_long")]


def test_words_call_nobody_and_their_signs_stay_signs(server: Server, account: Account) -> None:
    send(
        account,
        replace(case(server).payloads["text"], body="<!channel> *A* & B > C https://example.com/?a=1&b=2"),
    )

    assert server.posts[0]["text"] == ("&lt;!channel&gt; *A* &amp; B &gt; C https://example.com/?a=1&amp;b=2")
    assert server.posts[0]["mrkdwn"] is False


def test_pictures_are_blocks(server: Server, account: Account) -> None:
    payload = case(server).payloads["image"]
    without_alt = replace(payload.assets[1], alt_text="")

    send(
        replace(account, config={**account.config, "link_preview": False}),
        replace(payload, assets=(payload.assets[0], without_alt)),
    )

    assert server.posts[0]["blocks"] == [
        {"type": "section", "text": {"type": "mrkdwn", "text": payload.body, "verbatim": True}},
        {"type": "image", "image_url": "https://media.example.com/picture.png", "alt_text": "A red square."},
        {"type": "image", "image_url": "https://media.example.com/second.png", "alt_text": "Tram approved"},
    ]
    assert (server.posts[0]["unfurl_links"], server.posts[0]["unfurl_media"]) == (False, False)


def test_pictures_are_judged(server: Server, account: Account) -> None:
    payload = case(server).payloads["image"]
    one = payload.assets[0]

    assert problems(account, replace(payload, assets=(one,) * 49)) == []
    assert problems(account, replace(payload, assets=(one,) * 50)) == [("assets", "too_many_files")]
    assert problems(account, replace(payload, assets=(replace(one, url="http://localhost/a.png"),))) == [
        ("assets[0]", "no_public_address")
    ]
    assert problems(account, replace(payload, assets=(replace(one, alt_text="x" * 2001),))) == [
        ("assets[0]", "alt_text_too_long")
    ]
    assert problems(account, replace(payload, assets=())) == [("assets", "no_image")]


def test_a_webhook_answers_ok_and_nothing_else(server: Server, hook: Account) -> None:
    payload = case(server).payloads["text"]

    assert send(hook, payload) == Sent("")
    assert server.posts == [
        {"text": payload.body, "mrkdwn": False, "unfurl_links": True, "unfurl_media": True}
    ]
    assert type(look(hook, payload)) is CannotTell
    assert PLUGIN.finish(hook, PLUGIN.adapt(hook, payload), Sent(""), http=HTTP, now=NOW) is None
    with pytest.raises(Refused) as raised:
        PLUGIN.remove(hook, Sent(""), http=HTTP, now=NOW)
    assert raised.value.code == "cannot_remove"


def commit(account: Account, reply: Any) -> PluginError:
    http, _ = client(reply)
    payload = Payload("gen_1", 1, "text", "", "Words.", "text")
    with pytest.raises(PluginError) as raised:
        PLUGIN.commit(account, PLUGIN.adapt(account, payload), {}, http=http, key=KEY, now=NOW)
    return raised.value


@pytest.mark.parametrize(
    ("error", "means", "code"),
    [
        ("invalid_auth", NeedsReconnect, "token_refused"),
        ("token_revoked", NeedsReconnect, "token_refused"),
        ("account_inactive", NeedsReconnect, "token_refused"),
        ("missing_scope", NeedsReconnect, "scope_missing"),
        ("not_in_channel", NeedsReconnect, "not_in_channel"),
        ("channel_not_found", NeedsReconnect, "channel_not_found"),
        ("is_archived", NeedsReconnect, "channel_archived"),
        ("restricted_action", NeedsReconnect, "no_right_to_post"),
        ("msg_too_long", Refused, "too_long"),
        ("no_text", Refused, "empty"),
        ("invalid_blocks", Refused, "invalid"),
        ("some_new_error", Refused, "refused"),
        ("ratelimited", TryLater, "rate_limited"),
        ("internal_error", OutcomeUnknown, "outcome_unknown"),
        ("fatal_error", OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_errors_of_the_api_mean_what_the_table_says(
    account: Account, error: str, means: type[PluginError], code: str
) -> None:
    raised = commit(account, answer(200, {"ok": False, "error": error}))

    assert (type(raised), raised.code, raised.platform_message) == (means, code, error)
    assert error in raised.message


@pytest.mark.parametrize(
    ("status", "body", "means", "code"),
    [
        (400, b"invalid_payload", Refused, "invalid"),
        (400, b"no_text", Refused, "empty"),
        (403, b"action_prohibited", NeedsReconnect, "no_right_to_post"),
        (403, b"invalid_token", NeedsReconnect, "token_refused"),
        (403, b"<html>Blocked</html>", TryLater, "firewall"),
        (404, b"channel_not_found", NeedsReconnect, "channel_not_found"),
        (404, b"no_service", NeedsReconnect, "token_refused"),
        (404, b"<html></html>", NeedsReconnect, "token_refused"),
        (410, b"channel_is_archived", NeedsReconnect, "channel_archived"),
        (410, b"", NeedsReconnect, "token_refused"),
        (429, b"rate_limited", TryLater, "rate_limited"),
        (500, b"rollup_error", OutcomeUnknown, "outcome_unknown"),
        (200, b"maybe", OutcomeUnknown, "outcome_unknown"),
        (200, b"", OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_errors_of_a_webhook_mean_what_the_table_says(
    hook: Account, status: int, body: bytes, means: type[PluginError], code: str
) -> None:
    raised = commit(hook, answer(status, body, {"Retry-After": "7"}))

    assert (type(raised), raised.code, raised.platform_status) == (means, code, status)
    assert HOOK not in f"{raised.message} {raised.action} {raised.platform_message}"
    if isinstance(raised, TryLater) and raised.code == "rate_limited":
        assert (raised.after, raised.is_of_account) == (timedelta(seconds=7), True)


def test_a_bot_without_a_channel_is_told_before_the_call(account: Account) -> None:
    bare = replace(account, config={})
    http, recorder = client()
    payload = Payload("gen_1", 1, "text", "", "Words.", "text")

    with pytest.raises(NeedsReconnect) as raised:
        PLUGIN.commit(bare, PLUGIN.adapt(bare, payload), {}, http=http, key=KEY, now=NOW)

    assert (raised.value.code, recorder.asked) == ("channel_missing", [])


def test_a_look_up_reads_page_by_page_from_when_it_began(server: Server, account: Account) -> None:
    payload = case(server).payloads["text"]
    state = PLUGIN.prepare(
        account,
        PLUGIN.adapt(account, payload),
        {},
        http=HTTP,
        key=KEY,
        now=datetime.fromtimestamp(server.next, UTC),
    ).state
    assert state == {"began": server.next - 600}
    assert look(account, payload, **state) == Absent()
    sent = send(account, payload)
    send(account, payload, key="pub_2")
    server.others = [{"ts": f"{server.next + n}.0", "user": "U9", "text": "Hello"} for n in range(3)]
    server.page = 2

    assert look(account, payload, **state) == Found(sent)
    assert [one.query["oldest"] for one in server.requests if one.path.endswith("history")] == [
        [str(server.next - 2 - 600)]
    ] * 4


def test_absence_is_no_proof_where_slack_hides_whose_a_message_is(server: Server, account: Account) -> None:
    payload = case(server).payloads["text"]
    send(account, payload)
    server.hides_metadata = True

    assert type(look(account, payload)) is CannotTell


def test_a_channel_that_is_too_full_can_not_tell(server: Server, account: Account) -> None:
    server.others = [{"ts": f"{server.next + n}.0", "user": "U9", "text": "Hello"} for n in range(6)]
    server.page = 1

    assert look(account, case(server).payloads["text"]) == CannotTell(
        "The channel has more than 1000 messages since."
    )


def test_without_the_scope_nothing_is_known(server: Server, account: Account) -> None:
    server.scopes = "chat:write"

    assert look(account, case(server).payloads["text"]) == CannotTell(
        "The Slack app lacks a scope: missing_scope."
    )


def test_the_link_is_asked_for_afterwards(server: Server, account: Account) -> None:
    bare = replace(account, profile={})
    payload = case(server).payloads["text"]
    sent = send(bare, payload)

    assert sent.url == ""
    assert PLUGIN.finish(bare, PLUGIN.adapt(bare, payload), sent, http=HTTP, now=NOW) == {
        "url": send(account, payload).url.replace("2000100", "1000100")
    }


def test_the_account_is_the_channel_of_the_workspace(server: Server, account: Account) -> None:
    info = AccountInfo(
        f"T0AAAAAAA/{CHANNEL}",
        handle="news",
        name="Council",
        url="https://council.slack.com/",
        scopes=("chat:write", "channels:history"),
        limits={"bot_id": "B1", "user_id": "U1", "url": "https://council.slack.com/"},
    )

    assert PLUGIN.check_account(account, http=HTTP, now=NOW) == info
    server.scopes = "chat:write"
    assert PLUGIN.check_account(account, http=HTTP, now=NOW) == replace(
        info,
        scopes=("chat:write",),
        notes=("With the scope channels:history a post whose answer was lost is found automatically.",),
    )
    server.scopes = "users:read"
    with pytest.raises(NeedsReconnect) as raised:
        PLUGIN.check_account(account, http=HTTP, now=NOW)
    assert raised.value.code == "scope_missing"


def test_a_webhook_is_not_called_to_be_checked(server: Server, hook: Account) -> None:
    info = PLUGIN.check_account(hook, http=HTTP, now=NOW)

    assert (info.external_id, len(info.notes), server.requests) == ("T0AAAAAAA/B0BBBBBBB", 1, [])


@pytest.mark.parametrize(
    ("token", "is_taken"),
    [
        (TOKEN, True),
        (f"https://hooks.slack.com{HOOK}", True),
        (f"https://hooks.slack.com.evil.example{HOOK}", False),
        (f"http://hooks.slack.com{HOOK}", False),
        ("xoxp-1111111111-2222222222", False),
    ],
)
def test_only_a_token_or_a_webhooks_address_is_taken(token: str, *, is_taken: bool) -> None:
    if is_taken:
        assert PLUGIN.clean_credentials({"token": token}) == {"token": token}
        return
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_credentials({"token": token})
    assert [(one.field, token in one.message) for one in raised.value.problems] == [
        ("credentials.token", False)
    ]


@pytest.mark.parametrize("channel", ["#general", "general", "U0123456789"])
def test_a_channel_is_its_number(channel: str) -> None:
    with pytest.raises(ConfigInvalid):
        PLUGIN.clean_config({"channel": channel})
