"""Bluesky: how it counts and links, what its answers mean, its sessions, and threads that are whole."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core import ids
from config.core.http_client import Client, Policy
from pipeline import plugins
from pipeline.platforms import http_calls
from pipeline.platforms.base import Absent, Account, Found, Platform, Sent
from pipeline.platforms.bluesky.records import cid_of, facets_of, find_spans, record_key
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.base import FAULTS, NOW, picture
from tests.platforms.servers.bluesky import (
    APP_PASSWORD,
    DID,
    HANDLE,
    OTHER,
    TID,
    Server,
    account,
    payload,
    token,
)
from tests.platforms.support import answer, asked_again, client

if TYPE_CHECKING:
    from pipeline.platforms.payload_types import Adapted, Payload

BLUESKY = plugins.get("platforms", "bluesky", Platform)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
KEY = ids.encode("pub", ids.lowest_id_at(NOW - timedelta(days=3)))
PARTS = ["One 👋 https://example.com/a", "Two, with @alice.example.com", "Three #three"]
ACCESS = token("com.atproto.appPass", ends=NOW + timedelta(hours=2))
HERE = Account(
    "out_1",
    {"handle": HANDLE, "pds": "https://pds.example.com"},
    {"app_password": APP_PASSWORD, "access_token": ACCESS, "refresh_token": ACCESS},
    {"external_id": DID},
    base_url="https://bsky.social",
)
FAMILY = "👩‍👩‍👧"
COMBINED = "e\u0301"


@dataclasses.dataclass
class Publisher:
    """Publishes as the stage does; `state` is what it keeps between two calls."""

    account: Account
    payload: Payload
    state: dict[str, Any] = dataclasses.field(default_factory=dict)
    steps: int = 0
    now: Any = NOW

    @property
    def post(self) -> Adapted:
        return BLUESKY.adapt(self.account, self.payload)

    def prepare(self) -> None:
        is_done = False
        while not is_done:
            step = BLUESKY.prepare(self.account, self.post, self.state, http=HTTP, key=KEY, now=self.now)
            self.state, is_done = dict(step.state), step.is_done
            self.steps += 1

    def commit(self) -> Sent:
        return BLUESKY.commit(self.account, self.post, self.state, http=HTTP, key=KEY, now=self.now)

    def reconcile(self) -> Any:
        return BLUESKY.reconcile(self.account, self.post, self.state, http=HTTP, key=KEY, now=self.now)


def thread(parts: list[str] = PARTS, **given: Any) -> Payload:
    return payload(body="\n\n".join(parts), content={"parts": parts}, **given)


def values(server: Server) -> list[dict[str, Any]]:
    return [one["value"] for one in server.posts]


# --- counting


@pytest.mark.parametrize(
    ("sign", "most"),
    [("x", 300), (COMBINED, 300), ("日", 300), ("🇩🇪", 300), (FAMILY, 166)],
    ids=["letter", "combined", "cjk", "flag", "family"],
)
def test_the_limit_is_in_graphemes_and_in_bytes(sign: str, most: int) -> None:
    """A family of emoji has 18 bytes: 3,000 of them come before 300 graphemes."""

    def problems(count: int) -> list[tuple[str | None, str]]:
        post = BLUESKY.adapt(HERE, payload(body=sign * count))
        return [(one.field, one.code) for one in BLUESKY.validate(HERE, post)]

    assert (problems(most), problems(most + 1)) == ([], [("body", "too_long")])


def test_links_and_mentions_count_as_they_are_written() -> None:
    body = f"@alice.example.com {'x' * 250} https://example.com/abcdefg"
    post = BLUESKY.adapt(HERE, payload(body=body))

    assert BLUESKY.length(HERE, post).count == len(body) == 297


@pytest.mark.parametrize(("count", "codes"), [(1, []), (4, []), (5, ["too_many_files"]), (0, ["no_image"])])
def test_pictures_are_four_at_most(count: int, codes: list[str]) -> None:
    post = BLUESKY.adapt(HERE, payload("image", "", assets=(picture(),) * count))

    assert [one.code for one in BLUESKY.validate(HERE, post)] == codes


@pytest.mark.parametrize(("size", "codes"), [(2_000_000, []), (2_000_001, ["file_too_large"])])
def test_a_picture_has_two_megabytes_at_most(size: int, codes: list[str]) -> None:
    post = BLUESKY.adapt(HERE, payload("image", assets=(dataclasses.replace(picture(), bytes=size),)))

    assert [one.code for one in BLUESKY.validate(HERE, post)] == codes


# --- links, mentions, hashtags


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("no links", []),
        ("https://example.com/a.", [("link", "https://example.com/a", "https://example.com/a")]),
        ("(example.com)", [("link", "example.com", "https://example.com")]),
        ("@alice.example.com, hi", [("mention", "@alice.example.com", "alice.example.com")]),
        ("(@Alice.Example.com)", [("mention", "@Alice.Example.com", "alice.example.com")]),
        ("@alice hi", []),
        ("me@example.com", []),
        ("#tag #Straßenbahn.", [("tag", "#tag", "tag"), ("tag", "#Straßenbahn", "Straßenbahn")]),
        ("#a-b_c!? #日本語", [("tag", "#a-b_c", "a-b_c"), ("tag", "#日本語", "日本語")]),
        ("＃full", [("tag", "＃full", "full")]),
        ("#1 #2026 #!? a#b # #️⃣", []),
        ("#4you", [("tag", "#4you", "4you")]),
        (f"#{'x' * 64}", [("tag", f"#{'x' * 64}", "x" * 64)]),
        (f"#{'x' * 65}", []),
        (f"#{('e' + 11 * chr(0x301)) * 30}", []),
        (
            "https://example.com/#part #part",
            [
                ("link", "https://example.com/#part", "https://example.com/#part"),
                ("tag", "#part", "part"),
            ],
        ),
        (
            "https://example.com/@alice.example.com",
            [("link",) + ("https://example.com/@alice.example.com",) * 2],
        ),
    ],
)
def test_what_is_linked(text: str, spans: list[tuple[str, str, str]]) -> None:
    assert [(one.kind, text[one.start : one.end], one.value) for one in find_spans(text)] == spans


@pytest.mark.parametrize("before", ["", "x ", "ü ", "日本 ", "👋 ", f"{FAMILY} ", f"{COMBINED} ", "\n\n"])
def test_places_are_counted_in_bytes(before: str) -> None:
    text = f"{before}@alice.example.com ü https://example.com/ä 👋 #ö!"
    facets = facets_of(text, {"alice.example.com": OTHER})
    raw = text.encode()

    assert [
        (raw[one["index"]["byteStart"] : one["index"]["byteEnd"]].decode(), one["features"]) for one in facets
    ] == [
        ("@alice.example.com", [{"$type": "app.bsky.richtext.facet#mention", "did": OTHER}]),
        (
            "https://example.com/ä",
            [{"$type": "app.bsky.richtext.facet#link", "uri": "https://example.com/ä"}],
        ),
        ("#ö", [{"$type": "app.bsky.richtext.facet#tag", "tag": "ö"}]),
    ]


def test_a_long_run_of_signs_is_read_in_time() -> None:
    """A search that began anew at each sign would take minutes."""
    text = "#" + "!" * 20_000 + " @" + "a-" * 10_000

    assert find_spans(text) == ()


def test_whom_nobody_knows_stays_plain_words(server: Server) -> None:
    one = Publisher(
        account(server), payload(body="@alice.example.com @nobody.example.com @third.example.com")
    )
    one.prepare()
    sent = one.commit()

    assert [len(post["facets"]) for post in values(server)] == [1]
    assert sent.details["mentions_not_linked"] == ["nobody.example.com", "third.example.com"]
    # Two handles are looked up in one step.
    assert one.steps == 3


def test_a_source_is_shown_as_a_card_where_there_is_no_picture(server: Server) -> None:
    there = account(server)
    there = dataclasses.replace(there, config={**there.config, "link": "end"})
    for number, (given, kind) in enumerate(
        [
            ({"link": "https://example.com/news"}, "app.bsky.embed.external"),
            ({"link": "https://example.com/news", "assets": (picture(),)}, "app.bsky.embed.images"),
            ({}, None),
        ],
        start=1,
    ):
        one = Publisher(there, payload(body=f"Words {number}", **given))
        one.prepare()
        key = ids.encode("pub", ids.lowest_id_at(NOW - timedelta(days=number)))
        BLUESKY.commit(there, one.post, one.state, http=HTTP, key=key, now=NOW)
        embed = values(server)[-1].get("embed")
        assert (embed or {}).get("$type") == kind
    assert values(server)[0]["embed"]["external"] == {
        "uri": "https://example.com/news",
        "title": "Tram approved",
        "description": "",
    }


# --- records


def test_a_key_is_a_moment_and_always_the_same() -> None:
    keys = [record_key(KEY, part) for part in range(200)]
    other = record_key(ids.encode("pub", ids.lowest_id_at(NOW)), 0)

    assert all(TID.fullmatch(key) for key in keys)
    assert sorted(set(keys)) == keys == [record_key(KEY, part) for part in range(200)]
    assert other > keys[-1]
    # What isn't ours by form has a key as well.
    assert TID.fullmatch(record_key("pub_x", 0))


def test_two_publications_of_one_millisecond_have_two_keys() -> None:
    moment = int(NOW.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62
    keys = {record_key(ids.encode("pub", type(ids.uuid7())(int=moment | number)), 0) for number in range(200)}

    assert len(keys) == 200


def test_content_ids_are_those_of_the_format() -> None:
    """That of the empty map is known from elsewhere; a real server's are compared in tests/real."""
    assert cid_of({}) == "bafyreigbtj4x7ip5legnfznufuopl4sg4knzc2cof6duas4b3q2fy6swua"
    assert cid_of({"b": 1, "a": 2, "aa": [True, None, -1, 300]}) == cid_of(
        {"aa": [True, None, -1, 300], "a": 2, "b": 1}
    )
    with pytest.raises(TypeError):
        cid_of({"a": 1.5})


# --- what an answer means


@pytest.mark.parametrize(
    ("status", "error", "message", "expected", "code"),
    [
        (400, "InvalidRequest", "Invalid app.bsky.feed.post record", Refused, "refused"),
        (400, "InvalidRequest", "Could not find blob: bafk", TryLater, "upload_gone"),
        (400, "BlobNotFound", "Could not find blob", TryLater, "upload_gone"),
        (400, "BlobTooLarge", "This file is too large", Refused, "file_refused"),
        (400, "InvalidRequest", "blob too big (maximum 1000000, got 1500000)", Refused, "file_refused"),
        (400, "InvalidMimeType", "Wrong type", Refused, "file_refused"),
        (413, "PayloadTooLarge", "request entity too large", Refused, "file_refused"),
        (400, "InvalidSwap", "Commit was at bafy", TryLater, "busy"),
        (401, "AuthMissing", "Authentication Required", NeedsReconnect, "needs_reconnect"),
        (401, "AccountTakedown", "Account has been taken down", NeedsReconnect, "account_suspended"),
        (400, "AccountDeactivated", "Account is deactivated", NeedsReconnect, "account_suspended"),
        (403, "Forbidden", "No", NeedsReconnect, "needs_reconnect"),
        (403, "", "", TryLater, "blocked"),
        (404, "", "", TryLater, "blocked"),
        (429, "RateLimitExceeded", "Rate Limit Exceeded", TryLater, "rate_limited"),
        (500, "InternalServerError", "Internal Server Error", OutcomeUnknown, "outcome_unknown"),
        (502, "UpstreamFailure", "Upstream", OutcomeUnknown, "outcome_unknown"),
        (503, "", "", OutcomeUnknown, "outcome_unknown"),
    ],
)
def test_each_answer_to_a_post_is_classified(
    status: int, error: str, message: str, expected: type[PluginError], code: str
) -> None:
    body: object = {"error": error, "message": message} if error else b"<html>Forbidden</html>"
    http, _ = client(answer(status, body))
    with pytest.raises(PluginError) as raised:
        BLUESKY.commit(HERE, BLUESKY.adapt(HERE, payload()), {}, http=http, key=KEY, now=NOW)

    assert (type(raised.value), raised.value.code) == (expected, code)
    assert raised.value.platform_status == status


def test_a_wait_is_read_from_the_servers_clock() -> None:
    reset = str(int((NOW + timedelta(minutes=4)).timestamp()))
    http, _ = client(answer(429, {"error": "RateLimitExceeded"}, {"RateLimit-Reset": reset}))
    with pytest.raises(TryLater) as asked:
        BLUESKY.metrics(HERE, [(Sent("at://x"), NOW)], http=http, now=NOW)

    assert (asked.value.after, asked.value.is_of_account) == (timedelta(minutes=4), True)


@pytest.mark.parametrize(
    ("status", "error", "expected", "code"),
    [
        (401, "AuthenticationRequired", NeedsReconnect, "needs_reconnect"),
        (400, "InvalidRequest", NeedsReconnect, "needs_reconnect"),
        (401, "AuthFactorTokenRequired", NeedsReconnect, "app_password_needed"),
        (401, "AccountTakedown", NeedsReconnect, "account_suspended"),
        (429, "RateLimitExceeded", TryLater, "rate_limited"),
        (404, "", Refused, "no_such_server"),
        (500, "InternalServerError", TryLater, "temporary"),
        (200, "", TryLater, "temporary"),
    ],
)
def test_each_answer_to_signing_in_is_classified(
    status: int, error: str, expected: type[PluginError], code: str
) -> None:
    there = dataclasses.replace(HERE, credentials={"app_password": APP_PASSWORD})
    http, recorder = client(answer(status, {"error": error} if error else b"<html></html>"))
    with pytest.raises(PluginError) as raised:
        BLUESKY.check_account(there, http=http, now=NOW)

    assert (type(raised.value), raised.value.code) == (expected, code)
    assert [url for _, url, _ in recorder.asked] == [
        "https://bsky.social/xrpc/com.atproto.server.createSession"
    ]
    assert APP_PASSWORD not in f"{raised.value.message}{raised.value.action}{raised.value.platform_message}"


# --- sessions


def test_a_kept_session_signs_in_no_more(server: Server) -> None:
    """The platform takes 300 sign-ins a day."""
    there = account(server)
    began = server.sessions
    one = Publisher(there, payload("image", assets=(picture(), picture("b.png"))))
    one.prepare()
    one.commit()
    BLUESKY.check_account(there, http=HTTP, now=NOW)

    assert server.sessions == began


@pytest.mark.parametrize("hours", [3, 0])
def test_a_session_that_ended_is_opened_by_the_app_password(server: Server, hours: int) -> None:
    """By our clock, or by the server's alone."""
    there = account(server)
    began = server.sessions
    server.now = NOW + timedelta(hours=3)
    one = Publisher(there, payload(), now=NOW + timedelta(hours=hours))
    one.prepare()
    one.commit()

    assert (len(server.posts), server.sessions) == (1, began + 1)


def test_renewing_goes_on_with_the_session(server: Server) -> None:
    there = account(server)
    renewed = BLUESKY.renew(there, http=HTTP, now=NOW)

    assert renewed is not None
    assert renewed.expires_at == NOW + timedelta(hours=2)
    assert renewed.credentials.keys() == {"app_password", "access_token", "refresh_token"}
    assert renewed.credentials["refresh_token"] != there.credentials["refresh_token"]
    assert [one.path.rsplit(".", maxsplit=1)[1] for one in server.requests] == ["refreshSession"]


@pytest.mark.parametrize(
    "refresh", ["", "not-a-token", token("com.atproto.refresh", ends=NOW + timedelta(days=1))]
)
def test_renewing_begins_anew_where_the_session_is_gone(server: Server, refresh: str) -> None:
    renewed = BLUESKY.renew(account(server, refresh_token=refresh), http=HTTP, now=NOW)

    assert renewed is not None
    assert renewed.credentials["access_token"] in server.live
    assert server.requests[-1].json() == {"identifier": HANDLE, "password": APP_PASSWORD}


def test_a_revoked_app_password_is_the_accounts(server: Server) -> None:
    there = account(server, refresh_token="", app_password="revoked-revoked")
    with pytest.raises(NeedsReconnect) as ended:
        BLUESKY.renew(there, http=HTTP, now=NOW)

    assert ended.value.message == (
        "Bluesky doesn't take this handle with this app password: Invalid identifier or password."
    )


def test_an_account_tells_where_its_posts_are_kept(server: Server) -> None:
    there = account(server)
    fresh = dataclasses.replace(
        there,
        config={"handle": f"@{HANDLE}", "server": f"{server.url}/"},
        credentials={"app_password": APP_PASSWORD},
    )
    info = BLUESKY.check_account(fresh, http=HTTP, now=NOW)

    assert (info.external_id, info.handle, info.config) == (DID, HANDLE, {"pds": server.url})
    assert (info.url, info.expires_at) == (f"https://bsky.app/profile/{HANDLE}", NOW + timedelta(hours=2))


def test_a_token_isnt_sent_over_a_worse_line() -> None:
    """A server that is asked over https may name another one, but not over http."""
    there = dataclasses.replace(
        HERE, config={"handle": HANDLE}, credentials={"app_password": APP_PASSWORD}, profile={}
    )
    for endpoint, pds in (("http://pds.example.com", "https://bsky.social"), ("https://p.example.com/",) * 2):
        session = {
            "did": DID,
            "accessJwt": ACCESS,
            "refreshJwt": ACCESS,
            "didDoc": {"service": [{"id": "#atproto_pds", "serviceEndpoint": endpoint}]},
        }
        http, recorder = client(answer(200, session), answer(200, {"did": DID, "handle": HANDLE}))
        BLUESKY.check_account(there, http=http, now=NOW)
        assert recorder.asked[1][1] == f"{pds.rstrip('/')}/xrpc/com.atproto.server.getSession"


# --- threads, pictures, lost answers


@pytest.mark.parametrize("fault", FAULTS)
def test_a_thread_is_whole_or_not_there(server: Server, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if fault == "never_answers":
        monkeypatch.setattr(http_calls, "TIMEOUT_SECONDS", 0.8)
    one = Publisher(account(server), thread())
    server.faults = [fault]
    sent = None
    for _ in range(3):
        one.prepare()
        try:
            sent = one.commit()
            break
        except OutcomeUnknown:
            there = asked_again(one.reconcile)
            if isinstance(there, Found):
                sent = there.sent
                break
            assert there == Absent()
        except (TryLater, NeedsReconnect):
            assert server.posts == []
        assert server.posts == []

    assert sent is not None
    assert [post["text"] for post in values(server)] == PARTS
    assert sent.details["uris"] == [post["uri"] for post in server.posts]
    references = [{"uri": post["uri"], "cid": cid_of(post["value"])} for post in server.posts]
    assert [post.get("reply") for post in values(server)] == [
        None,
        {"root": references[0], "parent": references[0]},
        {"root": references[0], "parent": references[1]},
    ]
    assert [post["createdAt"] for post in values(server)] == [
        "2026-11-20T12:00:00.000Z",
        "2026-11-20T12:00:00.001Z",
        "2026-11-20T12:00:00.002Z",
    ]


def test_a_second_call_with_other_words_changes_nothing(server: Server) -> None:
    one = Publisher(account(server), payload(body="First"))
    one.prepare()
    one.commit()
    one.payload = payload(body="Second")
    one.now = NOW + timedelta(hours=1)
    with pytest.raises(OutcomeUnknown):
        one.commit()

    assert [post["text"] for post in values(server)] == ["First"]
    assert isinstance(one.reconcile(), Found)


def test_a_post_is_found_without_what_was_prepared_and_without_a_session(server: Server) -> None:
    there = account(server)
    one = Publisher(there, payload())
    one.prepare()
    sent = one.commit()
    began = server.sessions
    locked_out = dataclasses.replace(there, credentials={})
    found = BLUESKY.reconcile(locked_out, one.post, {}, http=HTTP, key=KEY, now=NOW)

    assert (found, server.sessions) == (Found(sent), began)


def test_pictures_come_one_by_one_with_their_words(server: Server) -> None:
    one = Publisher(account(server), payload("image", "", assets=(picture(), picture("b.png", alt_text=""))))
    one.prepare()
    one.commit()

    assert one.steps == 2
    assert [(image["alt"], image["aspectRatio"]) for image in values(server)[0]["embed"]["images"]] == [
        ("A red square.", {"width": 40, "height": 30}),
        ("", {"width": 40, "height": 30}),
    ]


def test_pictures_that_are_long_uploaded_are_uploaded_anew(server: Server) -> None:
    one = Publisher(account(server), payload("image", assets=(picture(),)))
    one.prepare()
    server.blobs.clear()
    with pytest.raises(TryLater) as gone:
        one.commit()
    one.now = NOW + (gone.value.after or timedelta())
    one.prepare()
    one.commit()

    assert len(server.posts) == 1


def test_a_thread_is_removed_whole(server: Server) -> None:
    one = Publisher(account(server), thread())
    one.prepare()
    sent = one.commit()
    BLUESKY.remove(one.account, sent, http=HTTP, now=NOW)

    assert server.posts == []


def test_what_has_no_address_here_is_not_removed() -> None:
    http, recorder = client()
    with pytest.raises(Refused) as refused:
        BLUESKY.remove(HERE, Sent("", "https://bsky.app/profile/x/post/y"), http=http, now=NOW)

    assert (refused.value.code, recorder.asked) == ("post_not_known", [])


def test_counts_are_of_each_post(server: Server) -> None:
    one = Publisher(account(server), payload())
    one.prepare()
    sent = one.commit()
    server.counts[sent.external_id] = {"likeCount": 5, "repostCount": 2, "quoteCount": 1, "replyCount": 7}
    gone = Sent(sent.external_id + "x")
    samples = BLUESKY.metrics(one.account, [(gone, NOW), (sent, NOW)], http=HTTP, now=NOW)
    told = [{one.metric: (one.value, one.availability) for one in of_post} for of_post in samples]

    assert [one["likes"] for one in told] == [(None, "unavailable"), (5, "ok")]
    assert [one["shares"] for one in told] == [(None, "unavailable"), (3, "ok")]
    assert [one["comments"] for one in told] == [(None, "unavailable"), (7, "ok")]
    assert [one["views"] for one in told] == [(None, "unsupported")] * 2
