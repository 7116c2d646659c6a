from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from standardwebhooks import Webhook

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, CannotTell, Found, Sent
from pipeline.platforms.payload_types import Payload
from pipeline.platforms.signed_webhook import PLUGIN
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.signed_webhook import SECRET, Server, case
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.base import Account

HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
KEY = "pub_1"


@pytest.fixture
def account(server: Server) -> Account:
    return case(server).account


def send(account: Account, payload: Payload) -> Sent:
    post = PLUGIN.adapt(account, payload)
    assert PLUGIN.validate(account, post) == ()
    return PLUGIN.commit(account, post, {}, http=HTTP, key=KEY, now=datetime.now(UTC))


def test_the_post_is_signed_as_the_standards_own_library_verifies(server: Server, account: Account) -> None:
    payload = Payload(
        "gen_1",
        3,
        "blog",
        "Zürich 🚊",
        "One.\n\nTwo.",
        "markdown",
        language="de",
        link="https://example.com/news",
        content={
            "parts": ["One.", "Two."],
            "slug": "zug",
            "json_ld": {"@type": "Article", "headline": "Old"},
        },
        assets=case(server).payloads["text"].assets,
        settings={"tags": ["tram"]},
        is_ai_generated=True,
    )

    sent = send(account, payload)

    request = server.requests[0]
    posted = Webhook(SECRET).verify(request.body, dict(request.headers))
    assert posted == {
        "type": "post",
        "publication": KEY,
        "item": "gen_1",
        "revision": 3,
        "bucket": "blog",
        "title": "Zürich 🚊",
        "body": "One.\n\nTwo.",
        "body_format": "markdown",
        "parts": ["One.", "Two."],
        "language": "de",
        "link": "https://example.com/news",
        "is_ai_generated": True,
        "media": [
            {
                "url": "https://media.example.com/picture.png",
                "mime_type": "image/png",
                "role": "image",
                "alt_text": "A red square.",
                "bytes": payload.assets[0].bytes,
                "name": "picture.png",
                "width": 40,
                "height": 30,
                "duration": None,
            }
        ],
        "settings": {"tags": ["tram"]},
        "content": {
            "parts": ["One.", "Two."],
            "slug": "zug",
            "json_ld": {
                "@type": "Article",
                "headline": "Zürich 🚊",
                "image": "https://media.example.com/picture.png",
            },
        },
    }
    assert request.headers["webhook-id"] == KEY
    assert sent == Sent("1", "https://council.example.com/posts/1")


def test_every_try_has_the_same_id_and_is_one_post(server: Server, account: Account) -> None:
    payload = case(server).payloads["text"]

    first, second = send(account, payload), send(account, payload)

    assert first == second
    assert len(server.posts) == 1
    assert [one.headers["webhook-id"] for one in server.requests] == [KEY, KEY]


def test_parts_that_were_written_over_are_not_sent(account: Account) -> None:
    payload = Payload("gen_1", 1, "text", "", "Other words.", "text", content={"parts": ["One.", "Two."]})

    assert PLUGIN.adapt(account, payload).parts == ("Other words.",)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (answer(200, b""), Sent(KEY)),
        (answer(204, b""), Sent(KEY)),
        (answer(202, b"Thanks"), Sent(KEY)),
        (answer(200, {"id": 7, "url": "javascript:alert(1)"}), Sent(KEY)),
        (answer(200, {"id": "x" * 301, "url": "https://example.com/" + "x" * 2048}), Sent(KEY)),
        (answer(200, {"id": "7", "url": "https://example.com/7"}), Sent("7", "https://example.com/7")),
        (answer(409, {"id": "7", "url": "https://example.com/7"}), Sent("7", "https://example.com/7")),
    ],
)
def test_what_says_yes(account: Account, reply: Any, expected: Sent) -> None:
    http, _ = client(reply)
    post = PLUGIN.adapt(account, Payload("gen_1", 1, "text", "", "Words.", "text"))

    assert PLUGIN.commit(account, post, {}, http=http, key=KEY, now=datetime.now(UTC)) == expected


@pytest.mark.parametrize(
    ("status", "means", "code"),
    [
        (400, Refused, "refused"),
        (409, OutcomeUnknown, "outcome_unknown"),
        (422, Refused, "refused"),
        (401, NeedsReconnect, "signature_refused"),
        (403, NeedsReconnect, "needs_reconnect"),
        (404, NeedsReconnect, "receiver_not_found"),
        (410, NeedsReconnect, "receiver_gone"),
        (429, TryLater, "rate_limited"),
        (408, OutcomeUnknown, "outcome_unknown"),
        (500, OutcomeUnknown, "outcome_unknown"),
        (503, OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_what_says_no(account: Account, status: int, means: type[PluginError], code: str) -> None:
    http, _ = client(answer(status, {"error": "Not today"}, {"Retry-After": "7"}))
    post = PLUGIN.adapt(account, Payload("gen_1", 1, "text", "", "Words.", "text"))

    with pytest.raises(PluginError) as raised:
        PLUGIN.commit(account, post, {}, http=http, key=KEY, now=datetime.now(UTC))

    assert (type(raised.value), raised.value.code, raised.value.platform_status) == (means, code, status)
    assert raised.value.platform_message == "Not today"
    if isinstance(raised.value, TryLater):
        assert raised.value.after == timedelta(seconds=7)


def test_a_redirect_is_not_followed(server: Server, account: Account) -> None:
    server.faults = ["redirect"]

    with pytest.raises(OutcomeUnknown):
        send(account, case(server).payloads["text"])

    assert [one.path for one in server.requests] == ["/posts"]


@pytest.mark.parametrize(
    ("way", "expected"), [("wait", CannotTell), ("ask", Found), ("repeat", Absent), (None, CannotTell)]
)
def test_a_lost_answer_is_treated_as_its_owner_says(
    server: Server, account: Account, way: str | None, expected: type
) -> None:
    account = replace(account, config={**account.config, "lost_answer": way})
    payload = case(server).payloads["text"]
    server.faults = ["drops_after"]
    with pytest.raises(OutcomeUnknown):
        send(account, payload)

    found = PLUGIN.reconcile(
        account, PLUGIN.adapt(account, payload), {}, http=HTTP, key=KEY, now=datetime.now(UTC)
    )

    assert type(found) is expected
    assert len(server.requests) == (2 if way == "ask" else 1)
    if way == "repeat":
        send(account, payload)
    assert len(server.posts) == 1


def test_an_address_with_a_query_keeps_it(server: Server, account: Account) -> None:
    account = replace(account, config={**account.config, "address": f"{server.url}/posts?site=a"})
    post = PLUGIN.adapt(account, case(server).payloads["text"])

    assert PLUGIN.reconcile(account, post, {}, http=HTTP, key=KEY, now=datetime.now(UTC)) == Absent()
    assert server.requests[0].query == {"site": ["a"], "publication": [KEY]}


def test_only_https_where_the_operator_doesnt_allow_more(server: Server, account: Account) -> None:
    strict = replace(account, config={**account.config, "allows_http": False})

    with pytest.raises(TryLater):
        send(strict, case(server).payloads["text"])
    with pytest.raises(NeedsReconnect) as raised:
        PLUGIN.check_account(strict, http=HTTP, now=datetime.now(UTC))
    assert raised.value.code == "address_refused"
    assert server.requests == []
    assert PLUGIN.check_account(account, http=HTTP, now=datetime.now(UTC)).name == "127.0.0.1"


@pytest.mark.parametrize("secret", ["abc", "whsec_", "whsec_abc", "whsec_" + "A" * 28, "whsec_" + "A" * 92])
def test_a_weak_secret_is_refused_unquoted(secret: str) -> None:
    with pytest.raises(ConfigInvalid) as raised:
        PLUGIN.clean_credentials({"secret": secret})

    assert [one.message for one in raised.value.problems] == ["Give whsec_ and 24 to 64 bytes in base64."]


def test_a_secret_is_made_where_none_is_given() -> None:
    made = [PLUGIN.clean_credentials(given)["secret"] for given in ({}, {"secret": ""}, {"secret": " "})]
    assert len(set(made)) == 3
    for secret in made:
        assert len(base64.b64decode(secret.removeprefix("whsec_"), validate=True)) == 32
        assert PLUGIN.clean_credentials({"secret": secret}) == {"secret": secret}


def test_a_secret_of_the_standard_is_taken() -> None:
    assert PLUGIN.clean_credentials({"secret": SECRET}) == {"secret": SECRET}
    assert json.loads(json.dumps(PLUGIN.config_schema))["required"] == ["address"]
