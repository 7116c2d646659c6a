"""LinkedIn's escaping and counting, its table of errors, its uploads and its counts."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Account, Pending, Ready, Sent
from pipeline.platforms.linkedin import PLUGIN, little_text
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers import linkedin as server_of
from tests.platforms.servers.base import picture
from tests.platforms.support import answer, client

if TYPE_CHECKING:
    from pipeline.platforms.payload_types import Payload

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
ACCOUNT = Account(
    outlet="out_1",
    config=PLUGIN.clean_config({}),
    credentials={"access_token": "t" * 20},
    profile={"external_id": "782bbtaQ"},
    base_url="https://api.linkedin.com",
    api_version="202610",
)


def text(body: str, **changes: Any) -> Payload:
    return dataclasses.replace(server_of.payload("text", body), **changes)


def codes(payload: Payload) -> list[tuple[str | None, str]]:
    problems = PLUGIN.validate(ACCOUNT, PLUGIN.adapt(ACCOUNT, payload))
    return [(problem.field, problem.code) for problem in problems]


@pytest.mark.parametrize(
    ("plain", "escaped"),
    [
        (r"\ | { } [ ] ( ) < > @ * _ ~", r"\\ \| \{ \} \[ \] \( \) \< \> \@ \* \_ \~"),
        ("#tram and #Köln_2 now", r"{hashtag|\#|tram} and {hashtag|\#|Köln\_2} now"),
        ("No. # 1, #1, C#, a#b", r"No. \# 1, \#1, C\#, a\#b"),
        ("See https://example.com/a_b~c?d=@e#f (it)", r"See https://example.com/a_b~c?d=@e#f \(it\)"),
        ("https://example.com/a_(b)", "https://example.com/a_%28b%29"),
        ("me@example.com, example.com/a_b", r"me\@example.com, example.com/a\_b"),
    ],
)
def test_every_sign_that_could_be_markup_is_escaped(plain: str, escaped: str) -> None:
    assert little_text(plain) == escaped


@pytest.mark.parametrize(
    "plain", [r"\ | {a} [b] (c) <d> @e #f *g* _h_ ~i~", "#tram (a) https://example.com/a_b end"]
)
def test_people_see_the_whole_text(server: server_of.Server, plain: str) -> None:
    account = server_of.account(server)
    PLUGIN.commit(account, PLUGIN.adapt(account, text(plain)), {}, http=HTTP, key="k", now=NOW)

    assert [one["text"] for one in server.posts] == [plain]


@pytest.mark.parametrize(
    "most", ["a" * 3000, "(" * 1500, "漢" * 3000, "👍" * 3000, "e\u0301" * 1500, f"#{'a' * 2987}"]
)
def test_exactly_the_limit_passes_and_one_more_does_not(most: str) -> None:
    assert codes(text(most)) == []
    assert codes(text(f"{most}a")) == [("body", "too_long")]


def test_files_that_linkedin_does_not_take_are_named() -> None:
    film = server_of.film()
    large = dataclasses.replace(picture(), width=10_000, height=4_000)

    assert codes(text("", bucket="image", assets=(picture(),) * 20)) == []
    assert codes(text("", bucket="image", assets=(picture(),) * 21)) == [("assets", "too_many_files")]
    assert codes(text("", bucket="image", assets=(large,))) == [("assets[0]", "too_many_pixels")]
    assert codes(text("", bucket="video", assets=(film, picture()))) == [("assets", "mixed_media")]
    assert codes(text("", bucket="video", assets=(server_of.film(76_799),))) == [("assets", "file_too_small")]
    assert codes(text("", bucket="video", assets=(server_of.film(76_800),))) == []


@pytest.mark.parametrize(
    ("link", "assets", "content"),
    [
        ("none", (), None),
        ("card", (), {"article": {"source": "https://example.com/a", "title": "The tram"}}),
        ("card", (picture(),), {"media": {"id": "urn:li:image:1", "altText": "A red square."}}),
    ],
)
def test_a_link_becomes_a_card_where_nothing_else_is_shown(link: str, assets: Any, content: Any) -> None:
    account = dataclasses.replace(ACCOUNT, config=PLUGIN.clean_config({"link": link}))
    http, recorder = client(answer(201, b"", {"x-restli-id": "urn:li:ugcPost:5"}))
    post = PLUGIN.adapt(account, text("A.", link="https://example.com/a", assets=assets))
    state = {"files": [{"urn": "urn:li:image:1"} for _ in assets]}
    sent = PLUGIN.commit(account, post, state, http=http, key="k", now=NOW)

    assert recorder.asked[0][2].get("content") == content
    assert sent == Sent("urn:li:ugcPost:5", "https://www.linkedin.com/feed/update/urn:li:ugcPost:5")


def failure(status: int, code: str, message: str = "Something.") -> Any:
    return answer(status, {"status": status, "code": code, "message": message})


ERRORS: list[tuple[Any, type[PluginError], str]] = [
    (failure(400, "ILLEGAL_ARGUMENT"), Refused, "refused"),
    (failure(401, "REVOKED_ACCESS_TOKEN"), NeedsReconnect, "needs_reconnect"),
    (failure(403, "ACCESS_DENIED"), NeedsReconnect, "missing_right"),
    (answer(403, b"<html>Blocked</html>"), TryLater, "blocked"),
    (failure(409, "DUPLICATE_POST", "Content is a duplicate."), OutcomeUnknown, "duplicate_content"),
    (failure(422, "FIELD_LENGTH_TOO_LONG"), Refused, "refused"),
    (failure(422, "X", "Unable to obtain activity for the share."), OutcomeUnknown, "outcome_unknown"),
    (failure(426, "NONEXISTENT_VERSION"), Refused, "version_retired"),
    (failure(429, "TOO_MANY_REQUESTS"), TryLater, "rate_limited"),
    (failure(500, "INTERNAL_SERVER_ERROR"), OutcomeUnknown, "outcome_unknown"),
    (answer(201, b"", {"x-restli-id": "5"}), OutcomeUnknown, "outcome_unknown"),
]


@pytest.mark.parametrize(("given", "kind", "code"), ERRORS)
def test_each_failure_says_what_may_be_done(given: Any, kind: type[PluginError], code: str) -> None:
    http, _ = client(given)
    with pytest.raises(PluginError) as raised:
        PLUGIN.commit(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), {}, http=http, key="k", now=NOW)

    assert (type(raised.value), raised.value.code) == (kind, code)
    assert raised.value.platform_status == given.status
    assert raised.value.message.endswith(".")


@pytest.mark.parametrize(
    ("now", "after"), [(NOW, timedelta(hours=1)), (NOW.replace(hour=23, minute=30), timedelta(minutes=30))]
)
def test_a_days_limit_ends_at_midnight(now: datetime, after: timedelta) -> None:
    http, _ = client(failure(429, "TOO_MANY_REQUESTS"))
    with pytest.raises(TryLater) as raised:
        PLUGIN.commit(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), {}, http=http, key="k", now=now)

    assert (raised.value.after, raised.value.is_of_account) == (after, True)


def test_a_retired_version_tells_the_operator_what_to_set(server: server_of.Server) -> None:
    account = dataclasses.replace(server_of.account(server), api_version="202507")
    with pytest.raises(Refused) as raised:
        PLUGIN.commit(account, PLUGIN.adapt(account, text("A.")), {}, http=HTTP, key="k", now=NOW)

    assert raised.value.message == "LinkedIn has ended version 202507 of its interface."
    assert "PLATFORM_VERSIONS" in raised.value.action


def test_a_duplicate_is_the_post_that_it_names(server: server_of.Server) -> None:
    account = server_of.account(server)
    post = PLUGIN.adapt(account, text("A."))
    first = PLUGIN.commit(account, post, {}, http=HTTP, key="k", now=NOW)
    second = PLUGIN.commit(account, post, {}, http=HTTP, key="k", now=NOW)

    assert second == dataclasses.replace(first, details={"was_there_before": True})
    assert len(server.posts) == 1


def prepared(server: server_of.Server, payload: Payload) -> dict[str, Any]:
    account = server_of.account(server)
    state: dict[str, Any] = {}
    for _ in range(20):
        one = PLUGIN.prepare(account, PLUGIN.adapt(account, payload), state, http=HTTP, key="k", now=NOW)
        state = dict(one.state)
        if one.is_done:
            return state
    pytest.fail("It is never prepared.")


def test_a_video_goes_up_in_its_parts_and_is_waited_for(server: server_of.Server) -> None:
    account, film = server_of.account(server), server_of.film()
    payload = server_of.payload("video", "It moves.", film)
    state = prepared(server, payload)
    post = PLUGIN.adapt(account, payload)

    assert [(one.method, one.path.split("/")[1]) for one in server.requests] == [
        ("POST", "rest"),
        ("PUT", "dms-uploads"),
        ("PUT", "dms-uploads"),
        ("POST", "rest"),
    ]
    (media,) = server.media.values()
    assert media["content"] == film.read()
    assert [PLUGIN.poll(account, post, state, http=HTTP, now=NOW) for _ in range(2)] == [
        Pending(timedelta(seconds=5)),
        Ready(),
    ]


def test_a_video_whose_progress_may_not_be_read_gets_a_grace(server: server_of.Server) -> None:
    state = {"files": [{"urn": "urn:li:video:1", "finalized": NOW.isoformat()}]}
    post = PLUGIN.adapt(ACCOUNT, text("A."))

    def polled(later: int) -> object:
        http, _ = client(failure(403, "ACCESS_DENIED"))
        return PLUGIN.poll(ACCOUNT, post, state, http=http, now=NOW + timedelta(seconds=later))

    assert polled(59) == Pending(timedelta(seconds=1))
    assert polled(60) == Ready()


def test_a_video_that_fails_is_refused() -> None:
    http, _ = client(answer(200, {"status": "PROCESSING_FAILED"}))
    state = {"files": [{"urn": "urn:li:video:1", "finalized": NOW.isoformat()}]}
    with pytest.raises(Refused) as raised:
        PLUGIN.poll(ACCOUNT, PLUGIN.adapt(ACCOUNT, text("A.")), state, http=http, now=NOW)

    assert raised.value.code == "media_refused"


@pytest.mark.parametrize("url", ["https://evil.example.com/up", "https://linkedin.com.example.com/up"])
def test_the_token_goes_to_linkedin_alone(url: str) -> None:
    http, recorder = client(answer(200, {"value": {"uploadUrl": url, "image": "urn:li:image:1"}}))
    post = PLUGIN.adapt(ACCOUNT, text("", bucket="image", assets=(picture(),)))
    with pytest.raises(TryLater):
        PLUGIN.prepare(ACCOUNT, post, {}, http=http, key="k", now=NOW)

    assert [method for method, _, _ in recorder.asked] == ["POST"]


@pytest.mark.parametrize("ends", [(0, 98), (0, 100), (1, 99)])
def test_parts_that_are_not_the_file_are_not_sent(ends: tuple[int, int]) -> None:
    part = {"uploadUrl": "https://www.linkedin.com/up", "firstByte": ends[0], "lastByte": ends[1]}
    http, _ = client(answer(200, {"value": {"video": "urn:li:video:1", "uploadInstructions": [part]}}))
    post = PLUGIN.adapt(ACCOUNT, text("", bucket="video", assets=(server_of.film(100),)))
    with pytest.raises(TryLater, match="couldn't be read"):
        PLUGIN.prepare(ACCOUNT, post, {}, http=http, key="k", now=NOW)


def test_counts_are_asked_for_one_by_one_and_a_refused_one_is_dropped_alone() -> None:
    may_read = {**ACCOUNT.credentials, "scope": "openid,w_member_social,r_member_postAnalytics"}
    account = dataclasses.replace(ACCOUNT, credentials=may_read)
    http, recorder = client(
        answer(200, {"elements": [{"count": 900}]}),
        answer(200, {"elements": [{"count": 0}]}),
        answer(200, {"elements": []}),
        answer(200, {"elements": [{"count": 3}]}),
        failure(400, "ILLEGAL_ARGUMENT"),
    )
    sent = Sent("urn:li:ugcPost:5")
    (samples,) = PLUGIN.metrics(account, [(sent, NOW)], http=http, now=NOW)

    assert {one.metric: one.value for one in samples if one.availability == "ok"} == {
        "impressions": 900,
        "likes": 0,
        "shares": 3,
    }
    assert {one.metric: one.availability for one in samples if one.value is None} == {
        "views": "unsupported",
        "comments": "delayed",
        "clicks": "unavailable",
    }
    assert recorder.asked[0][1].endswith(
        "/rest/memberCreatorPostAnalytics?q=entity&entity=(ugc:urn%3Ali%3AugcPost%3A5)"
        "&queryType=IMPRESSION&aggregation=TOTAL"
    )


def test_the_account_ends_in_sixty_days_and_is_not_renewed(server: server_of.Server) -> None:
    ends = NOW + timedelta(days=60)
    account = server_of.account(server, scope="openid,profile", expires_at=ends.isoformat())
    info = PLUGIN.check_account(account, http=HTTP, now=NOW)

    assert (info.external_id, info.name, info.expires_at) == (server_of.PERSON, "Ada Paper", ends)
    assert info.notes == ("The right to post wasn't granted; reconnect it.",)
    assert PLUGIN.renew(account, http=HTTP, now=NOW) is None
