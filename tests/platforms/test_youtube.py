"""YouTube's limits, its table of errors, and uploads that stop and go on anywhere."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, Account, CannotTell, Found, Sent
from pipeline.platforms.youtube import PLUGIN, SCOPE, thumbnail_in
from pipeline.platforms.youtube import upload as youtube_upload
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers import youtube as server_of
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
    base_url="https://www.googleapis.com",
)
STATE = {"session": "https://www.googleapis.com/upload/youtube/v3/videos?upload_id=a", "sent": 0}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(youtube_upload, "CHUNK_BYTES", server_of.GRANULE)


def codes(payload: Payload, **profile: Any) -> list[tuple[str | None, str]]:
    account = dataclasses.replace(ACCOUNT, profile=profile)
    problems = PLUGIN.validate(account, PLUGIN.adapt(account, payload))
    return [(problem.field, problem.code) for problem in problems]


@pytest.mark.parametrize(
    "most", ["a" * 5000, "é" * 2500, "e\u0301" * 1666 + "aa", "👍" * 1250, "‹" * 1666 + "aa"]
)
def test_exactly_the_limit_passes_and_one_more_does_not(most: str) -> None:
    assert codes(server_of.payload(most)) == []
    assert codes(server_of.payload(f"{most}a")) == [("body", "too_long")]


def test_titles_and_tags_have_their_limits() -> None:
    most = [f"{number}{'a' * 98}" for number in range(5)]

    assert codes(server_of.payload(title="é" * 100)) == []
    assert codes(server_of.payload(title="é" * 101)) == [("title", "too_long")]
    assert codes(server_of.payload(title="")) == [("title", "required")]
    assert codes(server_of.payload(content={"tags": [*most[:4], "b" * 100]})) == []
    assert codes(server_of.payload(content={"tags": [*most[:4], "b" * 101]})) == [
        ("content.tags", "too_long")
    ]
    # The quotes that a tag with a space gets count too.
    assert codes(server_of.payload(content={"tags": [*most[:4], f"b {'b' * 96}"]})) == []
    assert codes(server_of.payload(content={"tags": [*most[:4], f"b {'b' * 97}"]})) == [
        ("content.tags", "too_long")
    ]


def test_files_that_youtube_does_not_take_are_named() -> None:
    film = server_of.film()
    long = dataclasses.replace(film, duration=901.0)

    assert codes(server_of.payload("A.", picture())) == [("assets", "no_video")]
    assert codes(server_of.payload("A.", film, film)) == [("assets", "too_many_files")]
    assert codes(server_of.payload("A.", long)) == []
    assert codes(server_of.payload("A.", long), limits={"max_seconds": 900}) == [("assets[0]", "too_long")]


def test_angle_brackets_are_replaced_and_named() -> None:
    post = PLUGIN.adapt(ACCOUNT, server_of.payload("a < b", title="<Tram>"))

    assert (post.payload.title, post.payload.body) == ("‹Tram›", "a ‹ b")
    assert [step.code for step in post.steps] == ["brackets"]


def test_markdown_becomes_plain_words() -> None:
    post = PLUGIN.adapt(ACCOUNT, server_of.payload("**A** tram.", body_format="markdown"))

    assert post.payload.body == "A tram."
    assert [step.code for step in post.steps] == ["plain_text"]


def upload(
    server: server_of.Server, payload: Payload, state: dict[str, Any] | None = None, **config: Any
) -> tuple[Sent, dict[str, Any]]:
    account = dataclasses.replace(server_of.account(server), config=PLUGIN.clean_config(config))
    post, kept = PLUGIN.adapt(account, payload), dict(state or {})
    for _ in range(30):
        one = PLUGIN.prepare(account, post, kept, http=HTTP, key="k", now=NOW)
        kept = dict(one.state)
        if one.is_done:
            break
    return PLUGIN.commit(account, post, kept, http=HTTP, key="k", now=NOW), kept


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("size", [1, server_of.GRANULE, 2 * server_of.GRANULE, 3 * server_of.GRANULE + 7])
def test_the_last_bytes_make_the_video(server: server_of.Server, size: int) -> None:
    film = server_of.film(size)
    sent, state = upload(server, server_of.payload("It moves.", film))

    assert [one["content"] == film.read() for one in server.posts] == [True]
    assert 0 < size - state["sent"] <= server_of.GRANULE
    assert sent.url == f"https://www.youtube.com/watch?v={sent.external_id}"
    assert sent.details == {"privacy": "public"}


def test_what_is_told_of_a_video(server: server_of.Server) -> None:
    payload = server_of.payload(content={"tags": ["tram", "tram", "news"]})
    upload(server, payload, privacy="unlisted", made_for_kids=True, category=25, notify=False)

    assert server.posts[0]["body"] == {
        "snippet": {
            "title": "The tram",
            "description": "It moves.",
            "categoryId": "25",
            "tags": ["tram", "news"],
            "defaultLanguage": "en",
        },
        "status": {
            "privacyStatus": "unlisted",
            "selfDeclaredMadeForKids": True,
            "containsSyntheticMedia": True,
        },
    }
    assert server.sessions["session0"]["query"]["notifySubscribers"] == "false"


@pytest.mark.usefixtures("small_chunks")
def test_an_upload_goes_on_with_what_the_session_has(server: server_of.Server) -> None:
    film = server_of.film()
    account = server_of.account(server)
    post = PLUGIN.adapt(account, server_of.payload("It moves.", film))
    opened = PLUGIN.prepare(account, post, {}, http=HTTP, key="k", now=NOW)
    # Two parts arrived of which the hand that was killed kept nothing.
    PLUGIN.prepare(account, post, opened.state, http=HTTP, key="k", now=NOW)
    stale = {**opened.state, "sent": 3 * server_of.GRANULE}
    upload(server, server_of.payload("It moves.", film), stale)

    assert len(server.sessions) == 1
    assert [one["content"] == film.read() for one in server.posts] == [True]


def test_a_session_that_is_gone_is_begun_anew(server: server_of.Server) -> None:
    session = f"{server.url}/upload/youtube/v3/videos?upload_id=gone"
    upload(server, server_of.payload(), {"session": session, "sent": 0})

    assert (len(server.posts), list(server.sessions)) == (1, ["session0"])


def test_preparing_a_finished_upload_makes_no_second_video(server: server_of.Server) -> None:
    sent, state = upload(server, server_of.payload())
    again, kept = upload(server, server_of.payload(), state)

    assert (again.external_id, kept["video"]) == (sent.external_id, sent.external_id)
    assert (len(server.posts), len(server.sessions)) == (1, 1)


@pytest.mark.parametrize(
    "location", ["", "https://evil.example.com/up", "https://googleapis.com.example.com/"]
)
def test_the_token_goes_to_google_alone(location: str) -> None:
    http, recorder = client(answer(200, b"", {"location": location}))
    post = PLUGIN.adapt(ACCOUNT, server_of.payload())
    with pytest.raises(TryLater) as raised:
        PLUGIN.prepare(ACCOUNT, post, {}, http=http, key="k", now=NOW)

    assert len(recorder.asked) == 1
    assert "evil" not in raised.value.message


@pytest.mark.parametrize("status", [404, 410, 400, 403, 500])
def test_a_session_that_is_gone_proves_nothing_afterwards(status: int) -> None:
    http, _ = client(answer(status, {}))
    post = PLUGIN.adapt(ACCOUNT, server_of.payload())

    assert type(PLUGIN.reconcile(ACCOUNT, post, STATE, http=http, key="k", now=NOW)) is CannotTell
    http, _ = client()
    assert type(PLUGIN.reconcile(ACCOUNT, post, {}, http=http, key="k", now=NOW)) is CannotTell


def test_the_session_tells_what_became_of_it() -> None:
    post = PLUGIN.adapt(ACCOUNT, server_of.payload())
    http, _ = client(answer(308, b"", {"range": "bytes=0-5"}), answer(200, {"id": "dQw4w9WgXcQ"}))

    assert PLUGIN.reconcile(ACCOUNT, post, STATE, http=http, key="k", now=NOW) == Absent()
    assert PLUGIN.reconcile(ACCOUNT, post, STATE, http=http, key="k", now=NOW) == Found(
        Sent("dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ")
    )


def failure(status: int, reason: str) -> Any:
    return answer(status, {"error": {"code": status, "message": "Words.", "errors": [{"reason": reason}]}})


ERRORS: list[tuple[Any, type[PluginError], str]] = [
    (failure(400, "invalidTitle"), Refused, "invalid_title"),
    (failure(400, "invalidDescription"), Refused, "invalid_description"),
    (failure(400, "invalidTags"), Refused, "invalid_tags"),
    (failure(400, "invalidCategoryId"), Refused, "invalid_category_id"),
    (failure(400, "mediaBodyRequired"), Refused, "media_body_required"),
    (failure(400, "somethingNew"), Refused, "refused"),
    (failure(400, "uploadLimitExceeded"), TryLater, "upload_limit"),
    (failure(401, "authError"), NeedsReconnect, "needs_reconnect"),
    (failure(401, "youtubeSignupRequired"), NeedsReconnect, "no_channel"),
    (failure(403, "quotaExceeded"), TryLater, "quota_exceeded"),
    (failure(403, "userRateLimitExceeded"), TryLater, "rate_limited"),
    (failure(403, "forbidden"), NeedsReconnect, "missing_right"),
    (failure(403, "accessNotConfigured"), NeedsReconnect, "app_refused"),
    (failure(403, "accountSuspended"), NeedsReconnect, "account_closed"),
    (answer(403, b"<html>Blocked</html>"), TryLater, "blocked"),
    (answer(308, b"", {"range": "bytes=0-1"}), TryLater, "upload_unfinished"),
    (failure(404, "notFound"), TryLater, "upload_lost"),
    (failure(429, "rateLimitExceeded"), TryLater, "rate_limited"),
    (failure(503, "backendError"), OutcomeUnknown, "outcome_unknown"),
]


@pytest.mark.parametrize(("given", "kind", "code"), ERRORS)
def test_each_failure_says_what_may_be_done(given: Any, kind: type[PluginError], code: str) -> None:
    http, _ = client(given)
    post = PLUGIN.adapt(ACCOUNT, server_of.payload())
    with pytest.raises(PluginError) as raised:
        PLUGIN.commit(ACCOUNT, post, STATE, http=http, key="k", now=NOW)

    assert (type(raised.value), raised.value.code) == (kind, code)
    assert raised.value.platform_status == given.status
    assert "upload_id" not in raised.value.message
    assert raised.value.message.endswith(".")


@pytest.mark.parametrize(
    ("now", "after"),
    [
        (datetime(2026, 11, 20, 7, 59, tzinfo=UTC), timedelta(minutes=1)),
        (datetime(2026, 11, 20, 8, 0, tzinfo=UTC), timedelta(hours=24)),
        # The night on which the clocks go back has an hour more.
        (datetime(2026, 11, 1, 7, 0, tzinfo=UTC), timedelta(hours=25)),
        (datetime(2026, 7, 1, 6, 0, tzinfo=UTC), timedelta(hours=1)),
    ],
)
def test_the_quota_begins_anew_at_midnight_pacific_time(now: datetime, after: timedelta) -> None:
    http, _ = client(failure(403, "quotaExceeded"))
    with pytest.raises(TryLater) as raised:
        PLUGIN.prepare(ACCOUNT, PLUGIN.adapt(ACCOUNT, server_of.payload()), {}, http=http, key="k", now=now)

    assert (raised.value.after, raised.value.is_of_account) == (after, True)


def test_the_thumbnail_follows_and_only_one_that_youtube_takes(server: server_of.Server) -> None:
    account, thumbnail = server_of.account(server), server_of.thumbnail()
    sent = Sent("dQw4w9WgXcQ")

    def finished(*assets: Any) -> object:
        post = PLUGIN.adapt(account, server_of.payload("A.", server_of.film(), *assets))
        return PLUGIN.finish(account, post, sent, http=HTTP, now=NOW)

    large = dataclasses.replace(thumbnail, bytes=2 * 1024 * 1024 + 1)
    assert (finished(), finished(large), server.thumbnails) == (None, None, {})
    assert finished(thumbnail) == {"thumbnail": True}
    assert server.thumbnails == {"dQw4w9WgXcQ": thumbnail.read()}


def test_of_several_thumbnails_the_widest_is_taken(server: server_of.Server) -> None:
    account, one = server_of.account(server), server_of.thumbnail()
    upright = dataclasses.replace(one, width=1080, height=1920)
    wide = dataclasses.replace(one, width=1280, height=720)
    too_large = dataclasses.replace(wide, height=400, bytes=2 * 1024 * 1024 + 1)
    unknown = dataclasses.replace(one, width=None, height=None)
    post = PLUGIN.adapt(account, server_of.payload("A.", server_of.film(), upright, too_large, wide, unknown))
    assert thumbnail_in(post) == wide


def test_the_channel_is_named_with_its_limits(server: server_of.Server) -> None:
    account = server_of.account(server, scope=SCOPE)
    info = PLUGIN.check_account(account, http=HTTP, now=NOW)
    server.channel = {**server_of.CHANNEL, "status": {"longUploadsStatus": "eligible"}}
    short = PLUGIN.check_account(account, http=HTTP, now=NOW)

    assert (info.external_id, info.handle, info.name) == (server_of.CHANNEL["id"], "thepaper", "The Paper")
    assert (info.limits, info.notes) == ({}, ())
    assert (short.limits, len(short.notes)) == ({"max_seconds": 900}, 1)


def test_an_account_without_a_channel_says_so(server: server_of.Server) -> None:
    server.channel = None
    with pytest.raises(NeedsReconnect) as raised:
        PLUGIN.check_account(server_of.account(server), http=HTTP, now=NOW)

    assert raised.value.code == "no_channel"


def test_a_refresh_token_stays_where_google_gives_no_other(server: server_of.Server) -> None:
    server.oauth.refresh_tokens.add("lasting")
    account = server_of.account(
        server,
        refresh_token="lasting",
        client_id="client-of-the-operator",
        client_secret="secret/of+the operator",
    )
    renewed = PLUGIN.renew(account, http=HTTP, now=NOW)
    server.oauth.refresh_tokens.clear()

    assert renewed is not None
    assert renewed.credentials["refresh_token"] == "lasting"
    assert renewed.credentials["access_token"] in server.oauth.access_tokens
    assert renewed.expires_at == NOW + timedelta(seconds=3599)
    with pytest.raises(NeedsReconnect):
        PLUGIN.renew(account, http=HTTP, now=NOW)


def test_counts_that_an_owner_hides_are_missing_and_not_none() -> None:
    http, _ = client(answer(200, {"items": [{"id": "a1b2c3d4", "statistics": {"viewCount": "0"}}]}))
    (samples,) = PLUGIN.metrics(ACCOUNT, [(Sent("a1b2c3d4"), NOW)], http=http, now=NOW)

    assert {one.metric: (one.value, one.availability) for one in samples[1:4]} == {
        "views": (0, "ok"),
        "likes": (None, "unavailable"),
        "comments": (None, "unavailable"),
    }
