"""X's counting, its table of errors, its uploads, and how a lost post is found again."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, Account, CannotTell, Found, Pending, Ready, Sent
from pipeline.platforms.x import PLUGIN, timeline_search
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers import x as server_of_x
from tests.platforms.servers.base import picture
from tests.platforms.servers.tokens import CLIENT_ID, CLIENT_SECRET
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.payload_types import Payload

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
ACCOUNT = Account(
    outlet="out_1",
    config=PLUGIN.clean_config({}),
    credentials={"access_token": "t" * 20},
    profile={"external_id": "22", "handle": "thepaper"},
    base_url="https://api.x.com/2",
)
STATE = {"since": "2026-11-20T11:00:00+00:00", "tried": "2026-11-20T11:59:00+00:00", "files": []}


def text(body: str, **changes: Any) -> Payload:
    return dataclasses.replace(server_of_x.payload("text", body), **changes)


def codes(payload: Payload, config: dict[str, Any] | None = None) -> list[tuple[str | None, str]]:
    account = dataclasses.replace(ACCOUNT, config=PLUGIN.clean_config(config or {}))
    problems = PLUGIN.validate(account, PLUGIN.adapt(account, payload))
    return [(problem.field, problem.code) for problem in problems]


@pytest.mark.parametrize(
    "most",
    [
        "a" * 280,
        "é" * 280,
        "e\u0301" * 280,
        "漢" * 140,
        "👨‍👩‍👧‍👦" * 140,
        "👍🏽" * 140,
        "a" * 256 + " https://example.com/" + "long" * 100,
        "@someone " + "a" * 271,
    ],
)
def test_exactly_the_limit_passes_and_one_more_does_not(most: str) -> None:
    assert codes(text(most)) == []
    assert codes(text(f"b{most}")) == [("body", "too_long")]


def test_a_premium_account_has_its_own_limit() -> None:
    assert codes(text("a" * 25_000), {"premium": True}) == []
    assert codes(text("a" * 25_001), {"premium": True}) == [("body", "too_long")]


def test_a_long_text_is_shortened_where_that_was_chosen() -> None:
    account = dataclasses.replace(ACCOUNT, config=PLUGIN.clean_config({"too_long": "shorten", "link": "end"}))
    post = PLUGIN.adapt(account, text("A tram. " * 60, link="https://example.com/tram"))

    assert post.payload.body == f"{'A tram. ' * 31}A tram.\n\nhttps://example.com/tram"
    assert [step.code for step in post.steps] == ["link_added", "shortened", "priced_link"]
    assert PLUGIN.validate(account, post) == ()


@pytest.mark.parametrize(("body", "is_priced"), [("No link.", False), ("See example.com now.", True)])
def test_a_link_tells_its_price(body: str, is_priced: bool) -> None:
    steps = PLUGIN.adapt(ACCOUNT, text(body)).steps

    assert [step.message for step in steps] == (
        ["It holds a link: X charges $0.20 for it instead of $0.015."] if is_priced else []
    )


def test_parts_of_a_thread_become_one_post() -> None:
    post = PLUGIN.adapt(ACCOUNT, text("One.\n\nTwo.", content={"parts": ["One.", "Two."]}))

    assert post.parts == ("One.\n\nTwo.",)
    assert [step.code for step in post.steps] == ["joined"]


def test_files_that_x_does_not_take_are_named() -> None:
    gif = dataclasses.replace(picture("a.gif"), mime_type="image/gif")
    many = (picture(),) * 5
    film = dataclasses.replace(server_of_x.film(), duration=140.5)

    assert codes(text("", bucket="image", assets=many)) == [("assets", "too_many_files")]
    assert codes(text("", bucket="image", assets=())) == [("assets", "no_image")]
    assert codes(text("", bucket="video", assets=(film,))) == [("assets[0]", "too_long")]
    assert codes(text("", bucket="video", assets=(server_of_x.film(), picture()))) == [
        ("assets", "mixed_media")
    ]
    assert codes(text("", bucket="image", assets=(gif,))) == []
    assert codes(text("", bucket="image", assets=(gif, picture()))) == [
        ("assets", "too_many_files"),
        ("assets[1]", "type_not_taken"),
    ]


def problem(kind: str, detail: str) -> dict[str, Any]:
    return {"type": f"https://api.x.com/2/problems/{kind}", "title": "T", "detail": detail, "status": 403}


ERRORS: list[tuple[Any, type[PluginError], str]] = [
    (answer(400, problem("invalid-request", "Bad media.")), Refused, "refused"),
    (answer(401, {"title": "Unauthorized"}), NeedsReconnect, "needs_reconnect"),
    (answer(402, problem("usage-capped", "No credits.")), NeedsReconnect, "credits_used_up"),
    (answer(403, problem("usage-capped", "Cap reached.")), NeedsReconnect, "credits_used_up"),
    (answer(403, {"detail": "Your account has no credits."}), NeedsReconnect, "credits_used_up"),
    (answer(403, problem("client-forbidden", "Not enrolled.")), NeedsReconnect, "app_refused"),
    (answer(403, problem("not-authorized-for-resource", "No.")), NeedsReconnect, "missing_right"),
    (answer(403, {"detail": "Your account is temporarily locked."}), NeedsReconnect, "account_locked"),
    (answer(403, {"detail": "You are not permitted to perform this action."}), Refused, "refused"),
    (answer(403, b"<html>Blocked</html>"), TryLater, "blocked"),
    (answer(404, problem("resource-not-found", "Gone.")), Refused, "refused"),
    (answer(429, {"errors": [{"code": 88, "message": "Rate limit exceeded"}]}), TryLater, "rate_limited"),
    (answer(500, {}), OutcomeUnknown, "outcome_unknown"),
    (answer(200, {"errors": [{"detail": "Partly."}]}), OutcomeUnknown, "outcome_unknown"),
]


@pytest.mark.parametrize(("given", "kind", "code"), ERRORS)
def test_each_failure_says_what_may_be_done(given: Any, kind: type[PluginError], code: str) -> None:
    http, _ = client(given)
    with pytest.raises(PluginError) as raised:
        PLUGIN.commit(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), STATE, http=http, key="k", now=NOW)

    assert (type(raised.value), raised.value.code) == (kind, code)
    assert raised.value.platform_status == given.status
    assert raised.value.message[0].isupper()
    assert raised.value.message.endswith(".")


def test_the_days_limit_is_waited_for() -> None:
    resets = {
        "x-rate-limit-reset": str(int(NOW.timestamp()) + 60),
        "x-user-limit-24hour-remaining": "0",
        "x-user-limit-24hour-reset": str(int(NOW.timestamp()) + 7200),
    }
    http, _ = client(answer(429, {}, resets))
    with pytest.raises(TryLater) as raised:
        PLUGIN.commit(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), STATE, http=http, key="k", now=NOW)

    assert (raised.value.after, raised.value.is_of_account) == (timedelta(hours=2), True)


def listed(body: str, at: str = "2026-11-20T11:59:01.000Z", **more: Any) -> dict[str, Any]:
    return {"id": "77", "text": body, "created_at": at, **more}


DUPLICATE = answer(403, {"detail": "You are not allowed to create a Tweet with duplicate content."})


def test_a_duplicate_is_looked_up_and_never_taken_for_success_blindly() -> None:
    post = PLUGIN.adapt(ACCOUNT, text("A."))
    meta = {"result_count": 1}

    http, _ = client(DUPLICATE, answer(200, {"data": [listed("A.")], "meta": meta}))
    assert PLUGIN.commit(ACCOUNT, post, STATE, http=http, key="k", now=NOW) == Sent(
        "77", "https://x.com/thepaper/status/77"
    )
    http, _ = client(DUPLICATE, answer(200, {"data": [listed("A.", "2026-11-01T00:00:00Z")], "meta": meta}))
    with pytest.raises(Refused) as refused:
        PLUGIN.commit(ACCOUNT, post, STATE, http=http, key="k", now=NOW)
    http, _ = client(DUPLICATE, answer(503, {}))
    with pytest.raises(OutcomeUnknown) as unknown:
        PLUGIN.commit(ACCOUNT, post, STATE, http=http, key="k", now=NOW)

    assert (refused.value.code, unknown.value.code) == ("duplicate_content", "duplicate_content")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("A & B < C", listed("A &amp; B &lt; C")),
        ("Café", listed("Cafe\u0301")),
        (
            "See example.com/a and https://Example.com/b/",
            listed(
                "See https://t.co/1 and https://t.co/2",
                entities={
                    "urls": [
                        {"url": "https://t.co/1", "expanded_url": "http://example.com/a"},
                        {"url": "https://t.co/2", "expanded_url": "https://example.com/b/"},
                    ]
                },
            ),
        ),
        (
            "A picture.",
            listed(
                "A picture. https://t.co/p",
                entities={
                    "urls": [{"url": "https://t.co/p", "expanded_url": "https://x.com/p/status/77/photo/1"}]
                },
            ),
        ),
        ("A" * 400, listed("A" * 279 + "…", note_tweet={"text": "A" * 400})),
        ("A" * 400, listed("A" * 279 + "…", note_post={"text": "A" * 400})),
    ],
)
def test_words_are_known_again_as_x_gives_them_back(ours: str, theirs: dict[str, Any]) -> None:
    http, _ = client(answer(200, {"data": [theirs], "meta": {"result_count": 1}}))
    found = PLUGIN.reconcile(ACCOUNT, PLUGIN.adapt(ACCOUNT, text(ours)), STATE, http=http, key="k", now=NOW)

    assert found == Found(Sent("77", "https://x.com/thepaper/status/77"))


OLD = listed("A.", "2026-11-20T10:00:00Z")
OTHER = listed("Another.")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"meta": {"result_count": 0}}, Absent),
        ({"data": [OTHER], "meta": {"result_count": 1}}, Absent),
        ({"data": [OTHER, OLD], "meta": {"result_count": 2, "next_token": "n"}}, Absent),
        ({"data": [OTHER] * 10, "meta": {"result_count": 10, "next_token": "n"}}, CannotTell),
        ({"data": [listed("B.", "yesterday")], "meta": {"result_count": 1}}, CannotTell),
        ({"data": [], "meta": {"result_count": 0}, "errors": [{"detail": "Partly."}]}, CannotTell),
        ({"data": "none", "meta": {"result_count": 0}}, CannotTell),
    ],
)
def test_absence_needs_a_whole_list(given: dict[str, Any], expected: type) -> None:
    http, _ = client(answer(200, given))

    post = PLUGIN.adapt(ACCOUNT, text("A."))
    assert type(PLUGIN.reconcile(ACCOUNT, post, STATE, http=http, key="k", now=NOW)) is expected


def test_absence_waits_until_the_list_has_settled() -> None:
    post = PLUGIN.adapt(ACCOUNT, text("A."))
    tried = NOW - timeline_search.SETTLE_TIME
    nothing = answer(200, {"meta": {"result_count": 0}})

    def looked(**state: Any) -> object:
        http, _ = client(nothing)
        return type(PLUGIN.reconcile(ACCOUNT, post, {**STATE, **state}, http=http, key="k", now=NOW))

    processed = [{"id": "1", "is_processed_later": True}]
    assert looked(tried=tried.isoformat()) is Absent
    assert looked(tried=(tried + timedelta(seconds=1)).isoformat()) is CannotTell
    assert looked(tried=tried.isoformat(), files=processed) is CannotTell


def test_posts_without_words_are_never_guessed() -> None:
    post = PLUGIN.adapt(ACCOUNT, text("", bucket="image", assets=(picture(),)))
    http, _ = client(answer(200, {"data": [OTHER], "meta": {"result_count": 1}}))

    assert type(PLUGIN.reconcile(ACCOUNT, post, STATE, http=http, key="k", now=NOW)) is CannotTell


def prepared(server: server_of_x.Server, payload: Payload) -> dict[str, Any]:
    account = server_of_x.account(server)
    state: dict[str, Any] = {}
    for _ in range(20):
        one = PLUGIN.prepare(account, PLUGIN.adapt(account, payload), state, http=HTTP, key="k", now=NOW)
        state = dict(one.state)
        if one.is_done:
            return state
    pytest.fail("It is never prepared.")


def test_a_video_goes_up_in_parts_and_is_waited_for(server: server_of_x.Server) -> None:
    account, film = server_of_x.account(server), server_of_x.film()
    payload = server_of_x.payload("video", "It moves.", dataclasses.replace(film, alt_text="A tram."))
    state = prepared(server, payload)
    post = PLUGIN.adapt(account, payload)

    assert [(one.method, one.path.rpartition("/")[2]) for one in server.requests] == [
        ("POST", "initialize"),
        ("POST", "append"),
        ("POST", "append"),
        ("POST", "finalize"),
        ("POST", "metadata"),
    ]
    (media,) = server.media.values()
    assert (media["content"] == film.read(), media["alt"]) == (True, "A tram.")
    polls = [PLUGIN.poll(account, post, state, http=HTTP, now=NOW) for _ in range(2)]
    assert polls == [Pending(timedelta(seconds=1)), Ready()]
    PLUGIN.commit(account, post, state, http=HTTP, key="k", now=NOW)
    assert server.posts[0]["body"] == {
        "text": "It moves.",
        "media": {"media_ids": [media["id"]]},
        "made_with_ai": True,
    }


def test_an_upload_goes_on_where_it_stopped(server: server_of_x.Server) -> None:
    account = server_of_x.account(server)
    payload = server_of_x.payload("image", "Two.", picture(), picture("b.png"))
    post = PLUGIN.adapt(account, payload)
    first = PLUGIN.prepare(account, post, {}, http=HTTP, key="k", now=NOW)
    state = dict(first.state)
    while not (one := PLUGIN.prepare(account, post, state, http=HTTP, key="k", now=NOW)).is_done:
        state = dict(one.state)

    assert (first.is_done, len(server.media)) == (False, 2)
    assert [one["alt"] for one in server.media.values()] == ["A red square."] * 2


def test_files_that_have_ended_are_uploaded_anew(server: server_of_x.Server) -> None:
    account = server_of_x.account(server)
    payload = server_of_x.payload("image", "One.", picture(alt_text=""))
    state = prepared(server, payload)
    later = NOW + timedelta(days=1)
    one = PLUGIN.prepare(account, PLUGIN.adapt(account, payload), state, http=HTTP, key="k", now=later)

    assert len(server.media) == 2
    assert one.state["since"] == state["since"]


def test_a_file_that_x_can_not_use_is_refused() -> None:
    info = {"state": "failed", "error": {"message": "Unsupported codec."}}
    http, _ = client(answer(200, {"data": {"id": "1", "processing_info": info}}))
    state = {"files": [{"id": "1", "is_processed_later": True}]}
    with pytest.raises(Refused, match="Unsupported codec") as raised:
        PLUGIN.poll(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), state, http=http, now=NOW)

    assert raised.value.code == "media_refused"


def test_a_refused_group_of_counts_is_dropped_alone() -> None:
    counts = {"data": [{"id": "1", "public_metrics": {"like_count": 3}}]}
    http, recorder = client(answer(403, problem("disallowed-resource", "No.")), answer(200, counts))
    ((*samples,),) = PLUGIN.metrics(ACCOUNT, [(Sent("1"), NOW)], http=http, now=NOW)

    assert ["non_public_metrics" in url for _, url, _ in recorder.asked] == [True, False]
    assert [(one.metric, one.value) for one in samples if one.value is not None] == [("likes", 3)]


def test_old_posts_are_asked_for_public_counts_only_and_videos_have_views() -> None:
    counts = {
        "data": [{"id": "1", "public_metrics": {"like_count": 0}, "attachments": {"media_keys": ["7_1"]}}],
        "includes": {"media": [{"media_key": "7_1", "public_metrics": {"view_count": 55}}]},
    }
    http, recorder = client(answer(200, counts))
    ((*samples,),) = PLUGIN.metrics(ACCOUNT, [(Sent("1"), NOW - timedelta(days=31))], http=http, now=NOW)

    assert ["non_public_metrics" in url for _, url, _ in recorder.asked] == [False]
    assert {one.metric: one.value for one in samples if one.availability == "ok"} == {"views": 55, "likes": 0}


def test_the_account_is_named_with_what_it_lacks(server: server_of_x.Server) -> None:
    account = server_of_x.account(
        server,
        scope="tweet.read users.read media.write offline.access",
        expires_at="2026-11-20T14:00:00+00:00",
    )
    info = PLUGIN.check_account(account, http=HTTP, now=NOW)

    assert (info.external_id, info.handle, info.url) == ("2244994945", "thepaper", "https://x.com/thepaper")
    assert info.expires_at == NOW + timedelta(hours=2)
    assert info.notes == ("The right to post wasn't granted; reconnect it.",)


def test_a_refresh_token_is_good_once(server: server_of_x.Server) -> None:
    server.oauth.refresh_tokens.add("first")
    operators = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    account = server_of_x.account(server, refresh_token="first", **operators)
    renewed = PLUGIN.renew(account, http=HTTP, now=NOW)

    assert renewed is not None
    assert renewed.expires_at == NOW + timedelta(hours=2)
    assert set(renewed.credentials) == {"access_token", "refresh_token", "scope", "expires_at"}
    assert {renewed.credentials["refresh_token"]} == server.oauth.refresh_tokens
    with pytest.raises(NeedsReconnect, match=r"^X no longer accepts this connection: Token was revoked"):
        PLUGIN.renew(account, http=HTTP, now=NOW)
    again = dataclasses.replace(account, credentials={**renewed.credentials, **operators})
    assert PLUGIN.renew(again, http=HTTP, now=NOW) is not None


def test_a_wrong_client_is_the_operators(server: server_of_x.Server) -> None:
    account = server_of_x.account(server, refresh_token="r", client_id=CLIENT_ID, client_secret="wrong")
    with pytest.raises(TryLater) as raised:
        PLUGIN.renew(account, http=HTTP, now=NOW)

    assert (raised.value.code, "admin" in raised.value.action) == ("app_refused", True)


def test_nothing_is_renewed_without_a_refresh_token() -> None:
    http, recorder = client()

    assert PLUGIN.renew(ACCOUNT, http=http, now=NOW) is None
    assert recorder.asked == []


def test_credentials_are_tokens_only() -> None:
    assert PLUGIN.clean_credentials({"access_token": " t "}) == {"access_token": "t"}
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_credentials({"client_secret": "s", "access_token": 5})

    assert [(one.field, one.code) for one in invalid.value.problems] == [
        ("credentials.client_secret", "unknown_field"),
        ("credentials.access_token", "invalid"),
    ]
