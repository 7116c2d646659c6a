"""Mastodon: how it counts, what its answers mean, and that a thread is there once, and whole."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from config.core import ids
from config.core.http_client import Client, Policy
from pipeline import plugins
from pipeline.platforms import http_calls
from pipeline.platforms.base import Absent, Account, CannotTell, Found, Pending, Platform, Ready, Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from tests.platforms.servers.base import FAULTS, NOW, picture
from tests.platforms.servers.mastodon import ACCOUNT, Server, account, film, payload
from tests.platforms.support import answer, asked_again, client

if TYPE_CHECKING:
    from pipeline.platforms.payload_types import Adapted, Payload

MASTODON = plugins.get("platforms", "mastodon", Platform)
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))
KEY = ids.encode("pub", ids.lowest_id_at(NOW - timedelta(days=3)))
PARTS = ["One 👋 https://example.com/a", "Two, with @alice@other.example", "Three"]
HERE = Account(
    "out_1",
    {"server": "https://social.example"},
    {"access_token": "very-secret-token"},
    {"external_id": ACCOUNT},
)
FAMILY = "👩‍👩‍👧"
COMBINED = "e\u0301"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_calls, "TIMEOUT_SECONDS", 0.8)
    monkeypatch.setattr(http_calls, "UPLOAD_SECONDS", 0.8)


@dataclasses.dataclass
class Publisher:
    """Publishes as the stage does; `state` is what it keeps between two calls."""

    server: Server
    payload: Payload
    account: Account
    state: dict[str, Any] = dataclasses.field(default_factory=dict)
    key: str = KEY
    now: Any = NOW

    @property
    def post(self) -> Adapted:
        return MASTODON.adapt(self.account, self.payload)

    def prepare(self) -> None:
        is_done = False
        while not is_done:
            step = MASTODON.prepare(
                self.account, self.post, self.state, http=HTTP, key=self.key, now=self.now
            )
            self.state, is_done = dict(step.state), step.is_done

    def poll(self) -> Pending | Ready:
        return MASTODON.poll(self.account, self.post, self.state, http=HTTP, now=self.now)

    def commit(self) -> Sent:
        return MASTODON.commit(self.account, self.post, self.state, http=HTTP, key=self.key, now=self.now)

    def reconcile(self) -> Found | Absent | CannotTell:
        return MASTODON.reconcile(self.account, self.post, self.state, http=HTTP, key=self.key, now=self.now)

    def publish(self, tries: int = 5) -> Sent:
        """By the stage's own rules; fails the test where the platform can't tell."""
        for _ in range(tries):
            self.prepare()
            try:
                return self.commit()
            except OutcomeUnknown:
                there = asked_again(self.reconcile)
                if isinstance(there, Found):
                    return there.sent
                assert isinstance(there, Absent)
            except (TryLater, NeedsReconnect):
                continue
        pytest.fail("It was never published.")


def thread(parts: list[str] = PARTS, **given: Any) -> Payload:
    return payload(body="\n\n".join(parts), content={"parts": parts}, **given)


def publisher(server: Server, one: Payload, *, key: str = KEY, **config: Any) -> Publisher:
    return Publisher(server, one, account(server, **config), key=key)


def assert_is_the_thread(server: Server, sent: Sent, parts: list[str] = PARTS) -> None:
    there = server.posts
    assert [one["source"] for one in there] == parts
    assert [one["in_reply_to_id"] for one in there] == [None, *[one["id"] for one in there[:-1]]]
    assert sent == Sent(there[0]["id"], there[0]["url"], {"ids": [one["id"] for one in there]})


# --- counting


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("abc", 3),
        (FAMILY, 1),
        (COMBINED, 1),
        ("🇩🇪", 1),
        ("https://example.com/" + "a" * 300, 23),
        ("http://a.de", 23),
        ("example.com/long/path", 21),
        ("see https://example.com/x.", 4 + 23 + 1),
        ("@alice@a-long-name.example.com hi", 9),
        ("@alice hi", 9),
        ("mail me@example.com", 19),
        (f"{FAMILY}{COMBINED} https://example.com/a @b@c.example", 2 + 1 + 23 + 1 + 2),
    ],
)
def test_words_are_counted_as_the_server_does(words: str, count: int) -> None:
    post = MASTODON.adapt(HERE, payload(body=words))

    assert MASTODON.length(HERE, post).count == count


@pytest.mark.parametrize("filler", ["x", FAMILY, COMBINED, "日"])
@pytest.mark.parametrize("limit", [500, 1000])
def test_the_limit_is_the_servers_own(filler: str, limit: int) -> None:
    there = dataclasses.replace(HERE, profile={"external_id": ACCOUNT, "limits": {"max_characters": limit}})
    rest = limit - 23 - 1 - 6 - 1

    def problems(count: int) -> list[tuple[str | None, str]]:
        body = f"https://example.com/{'a' * 80} @alice@other.example {filler * count}"
        post = MASTODON.adapt(there, payload(body=body))
        return [(one.field, one.code) for one in MASTODON.validate(there, post)]

    assert (problems(rest), problems(rest + 1)) == ([], [("body", "too_long")])


def test_a_content_warning_counts_with_every_post() -> None:
    there = dataclasses.replace(HERE, config={**HERE.config, "content_warning": f"News {FAMILY}"})
    fits = MASTODON.adapt(there, thread(["x" * 494, "y" * 494]))
    too_long = MASTODON.adapt(there, thread(["x" * 494, "y" * 495]))

    assert MASTODON.length(there, fits).count == 500
    assert MASTODON.validate(there, fits) == ()
    assert [(one.field, one.code) for one in MASTODON.validate(there, too_long)] == [
        ("content.parts[1]", "too_long")
    ]


def test_what_is_too_long_is_shortened_to_what_the_server_counts() -> None:
    there = dataclasses.replace(HERE, config={**HERE.config, "too_long": "shorten", "link": "end"})
    link = "https://example.com/" + "a" * 200
    post = MASTODON.adapt(there, payload(body="A sentence. " * 60, link=link))

    assert MASTODON.length(there, post).count <= 500
    assert MASTODON.length(there, post).count > 480
    assert post.parts[0].endswith(f"sentence.\n\n{link}")
    assert [step.code for step in post.steps] == ["link_added", "shortened"]


@pytest.mark.parametrize(
    ("limits", "asset", "codes"),
    [
        ({}, {"bytes": 16_777_216}, []),
        ({}, {"bytes": 16_777_217}, ["file_too_large"]),
        ({"image_size_limit": 100}, {"bytes": 101}, ["file_too_large"]),
        ({"image_matrix_limit": 1199}, {}, ["too_many_pixels"]),
        ({"supported_mime_types": ["image/jpeg", "video/mp4"]}, {}, ["type_not_taken"]),
        ({"description_limit": 5}, {"alt_text": "123456"}, ["alt_text_too_long"]),
        ({"description_limit": True, "image_size_limit": "many"}, {}, []),
    ],
)
def test_a_file_is_judged_by_the_servers_own_limits(
    limits: dict[str, Any], asset: dict[str, Any], codes: list[str]
) -> None:
    there = dataclasses.replace(HERE, profile={"limits": limits})
    one = payload("image", assets=(dataclasses.replace(picture(), **asset),))

    assert [problem.code for problem in MASTODON.validate(there, MASTODON.adapt(there, one))] == codes


def test_a_server_is_known_by_its_name() -> None:
    clean = MASTODON.clean_config({"server": " mastodon.social "})

    assert clean == {
        "server": "https://mastodon.social",
        "visibility": "public",
        "too_long": "refuse",
        "link": "none",
    }
    with pytest.raises(plugins.ConfigInvalid):
        MASTODON.clean_config({"server": "ftp://mastodon.social"})


# --- what an answer means


@pytest.mark.parametrize(
    ("status", "error", "expected", "code", "field"),
    [
        (401, "The access token is invalid", NeedsReconnect, "needs_reconnect", None),
        (403, "This action is outside the authorized scopes", NeedsReconnect, "missing_right", None),
        (403, "Your login is currently disabled", NeedsReconnect, "account_suspended", None),
        (403, "This action is not allowed", NeedsReconnect, "needs_reconnect", None),
        (403, None, TryLater, "blocked", None),
        (404, "Record not found", TryLater, "still_remembered", None),
        (410, "Gone", Refused, "refused", None),
        (404, None, TryLater, "blocked", None),
        (413, None, TryLater, "blocked", None),
        (422, "Validation failed: Text character limit of 500 exceeded", Refused, "refused", "body"),
        (422, "Validation failed: Text can't be blank", Refused, "refused", "body"),
        (422, "Cannot attach files that have not finished processing. Try again in a moment!", TryLater,
         "still_processing", None),
        (422, "Cannot attach more than 4 files", Refused, "refused", "assets"),
        (422, "Validation failed: Visibility is not included in the list", Refused, "refused", None),
        (429, "Too many requests", TryLater, "rate_limited", None),
        (408, "Timeout", OutcomeUnknown, "outcome_unknown", None),
        (500, "Oops", OutcomeUnknown, "outcome_unknown", None),
        (503, "There was a temporary problem serving your request", OutcomeUnknown, "outcome_unknown", None),
    ],
)  # fmt: skip
def test_each_answer_to_a_post_is_classified(
    status: int, error: str | None, expected: type[PluginError], code: str, field: str | None
) -> None:
    body: object = b"<html>Forbidden</html>" if error is None else {"error": error}
    http, _ = client(answer(status, body))
    with pytest.raises(PluginError) as raised:
        MASTODON.commit(
            HERE,
            MASTODON.adapt(HERE, payload()),
            {"after": "", "uploads": [], "sent": []},
            http=http,
            key=KEY,
            now=NOW,
        )
    error_raised = raised.value

    assert (type(error_raised), error_raised.code) == (expected, code)
    assert getattr(error_raised, "field", None) == field
    assert error_raised.platform_status == status
    assert (
        "very-secret-token"
        not in f"{error_raised.message}{error_raised.action}{error_raised.platform_message}"
    )


def test_a_wait_is_read_from_the_servers_date() -> None:
    http, _ = client(
        answer(429, {"error": "Too many requests"}, {"X-RateLimit-Reset": "2026-11-20T12:04:00.123Z"})
    )
    with pytest.raises(TryLater) as asked:
        MASTODON.metrics(HERE, [(Sent("1"), NOW)], http=http, now=NOW)

    assert (asked.value.after, asked.value.is_of_account) == (timedelta(minutes=4, milliseconds=123), True)


# --- the account


def test_an_account_brings_its_servers_limits(server: Server) -> None:
    server.limit = 5000
    info = MASTODON.check_account(account(server), http=HTTP, now=NOW)

    assert (info.external_id, info.handle, info.name) == (ACCOUNT, "@writer@social.example", "Writer")
    assert (info.limits["max_characters"], info.limits["image_size_limit"]) == (5000, 16_777_216)
    assert (info.limits["software"], info.limits["version"]) == ("mastodon", "4.4.3")
    assert (info.scopes, info.notes, info.expires_at) == (("read", "write"), (), None)


def test_what_stands_in_the_way_is_noted(server: Server) -> None:
    server.is_bot, server.scopes, server.has_v2 = False, ["profile", "write:statuses"], False
    server.software = "0.17.3"
    server.source_url = "https://codeberg.org/superseriousbusiness/gotosocial"
    info = MASTODON.check_account(account(server), http=HTTP, now=NOW)

    assert info.limits["software"] == "gotosocial"
    assert info.notes == (
        "The access token lacks the right write:media, which is needed to upload pictures and videos.",
        "The access token lacks the right read:statuses, which is needed to see whether a post arrived.",
        "The profile isn't marked as automated (Preferences, Profile); many servers ask that of accounts like this.",
        (
            "Gotosocial isn't known to recognize repeated posts; after a lost answer the account's posts are looked "
            "through."
        ),
    )


@pytest.mark.parametrize(
    ("version", "software"),
    [
        ("2.7.2 (compatible; Pleroma 2.6.0)", ("pleroma", "2.6.0")),
        ("2.7.2 (compatible; Akkoma 3.10.4-0-g1)", ("akkoma", "3.10.4-0-g1")),
        ("4.4.3", ("mastodon", "4.4.3")),
    ],
)
def test_software_is_known_by_its_version(server: Server, version: str, software: tuple[str, str]) -> None:
    server.software = version
    limits = MASTODON.check_account(account(server), http=HTTP, now=NOW).limits

    assert (limits["software"], limits["version"]) == software


def test_a_server_that_is_none_is_named() -> None:
    http, _ = client(answer(404, b"<html>Not found</html>"))
    with pytest.raises(Refused) as refused:
        MASTODON.check_account(HERE, http=http, now=NOW)

    assert (refused.value.code, refused.value.field) == ("no_such_server", "config.server")
    assert refused.value.message == "There is no Mastodon server at social.example."


# --- files


def test_a_file_that_is_worked_on_is_waited_for(server: Server) -> None:
    server.working = 2
    one = publisher(server, payload("video", assets=(film(),)))
    one.prepare()

    assert one.poll() == Pending(timedelta(seconds=5))
    assert one.poll() == Ready()
    one.commit()
    (post,) = server.posts
    assert [(file["type"], file["description"]) for file in post["media_attachments"]] == [
        ("video", "A tram.")
    ]


def test_a_post_with_a_file_that_is_worked_on_is_tried_again(server: Server) -> None:
    server.working = 3
    one = publisher(server, payload("image", assets=(picture(),)))
    one.prepare()
    with pytest.raises(TryLater) as later:
        one.commit()

    assert (later.value.code, server.posts) == ("still_processing", [])


def test_files_that_are_long_uploaded_are_uploaded_anew(server: Server) -> None:
    one = publisher(server, payload("image", assets=(picture(), picture("b.png"))))
    one.prepare()
    server.files.clear()
    one.now = NOW + timedelta(hours=20)
    one.prepare()
    one.commit()

    assert [len(post["media_attachments"]) for post in server.posts] == [2]


# --- a lost answer


@pytest.mark.parametrize(
    "body",
    [
        "Read https://example.com/a/very/long/path/that/is/cut?a=1&b=2 by @alice@other.example <now> & 'then'",
        "🚋🚋",
        "Line\nline\n\nparagraph #tag",
    ],
)
@pytest.mark.parametrize("has_state", [True, False])
def test_a_post_is_recognized_by_its_words(server: Server, body: str, has_state: bool) -> None:
    publisher(server, payload(body="Something before."), key=f"{KEY}x").publish()
    one = publisher(server, payload(body=body))
    one.prepare()
    one.state = one.state if has_state else {}
    assert one.reconcile() == Absent()
    server.faults = ["drops_after"]
    one.prepare()
    with pytest.raises(OutcomeUnknown):
        one.commit()
    publisher(server, payload(body="Something after."), key=f"{KEY}y").publish()
    # After a restore nothing is left of what was prepared.
    one.state = one.state if has_state else {}

    assert one.reconcile() == Found(
        Sent(server.posts[1]["id"], server.posts[1]["url"], {"ids": [server.posts[1]["id"]]})
    )


def test_the_same_words_from_before_are_another_post(server: Server) -> None:
    publisher(server, payload(body="Good morning!"), key=f"{KEY}x").publish()
    one = publisher(server, payload(body="Good morning!"))
    one.prepare()

    assert one.reconcile() == Absent()


@pytest.mark.parametrize(
    ("source", "has_source", "expected"),
    [("same", True, Found), ("other", True, Absent), ("same", False, CannotTell)],
)
def test_nearly_the_same_words_are_looked_at_closely(
    server: Server, source: str, has_source: bool, expected: type
) -> None:
    """A server that reads words as Markdown, or expands them, shows them otherwise."""
    words = "The council voted 14 to 9 for the new tram line through the old town."
    one = publisher(server, payload(body=words))
    one.prepare()
    server.faults = ["drops_after"]
    with pytest.raises(OutcomeUnknown):
        one.commit()
    server.has_source = has_source
    server.posts[0]["content"] = f"<p>{words} (de)</p>"
    if source == "other":
        server.posts[0]["source"] = f"{words} (de)"

    assert type(one.reconcile()) is expected


def test_a_picture_without_words_is_recognized_by_its_file_alone(server: Server) -> None:
    publisher(server, payload("image", "", assets=(picture(),)), key=f"{KEY}x").publish()
    one = publisher(server, payload("image", "", assets=(picture(),)))
    one.prepare()
    assert one.reconcile() == Absent()
    server.faults = ["drops_after"]
    with pytest.raises(OutcomeUnknown):
        one.commit()

    assert one.reconcile() == Found(
        Sent(server.posts[1]["id"], server.posts[1]["url"], {"ids": [server.posts[1]["id"]]})
    )
    one.state = {}
    assert one.reconcile() == CannotTell("Without words it isn't recognized among the account's posts.")


def test_too_many_newer_posts_prove_nothing(server: Server) -> None:
    one = publisher(server, payload())
    one.prepare()
    first = {**server.made({"status": "x"}, []), "content": "<p>x</p>"}
    server.posts = [{**first, "id": str(int(first["id"]) + number)} for number in range(40)]
    one.state["after"] = str(int(first["id"]) - 1)

    assert one.reconcile() == CannotTell(
        "The account has posted so much since then that it can't be looked through."
    )


# --- threads


def test_a_thread_is_one_chain(server: Server) -> None:
    sent = publisher(server, thread(), content_warning="News").publish()

    assert_is_the_thread(server, sent)
    assert [(one["spoiler_text"], one["sensitive"]) for one in server.posts] == [("News", True)] * 3
    keys = [one.headers["idempotency-key"] for one in server.requests if server.is_commit(one)]
    assert [key.rsplit("-", maxsplit=1)[0] for key in keys] == [f"{KEY}-0", f"{KEY}-1", f"{KEY}-2"]


@pytest.mark.parametrize("honours_keys", [True, False])
@pytest.mark.parametrize("part", [0, 1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_part_doubles_and_loses_nothing(
    server: Server, fault: str, part: int, honours_keys: bool
) -> None:
    server.honours_keys = honours_keys
    server.faults = ["ok"] * part + [fault]
    sent = publisher(server, thread()).publish()

    assert_is_the_thread(server, sent)


@pytest.mark.parametrize("part", [1, 2])
def test_a_thread_with_a_picture_goes_on_after_it(server: Server, part: int) -> None:
    server.honours_keys = False
    server.faults = ["ok"] * part + ["drops_after"]
    sent = publisher(server, thread(assets=(picture(),))).publish()

    assert_is_the_thread(server, sent)
    assert [len(one["media_attachments"]) for one in server.posts] == [1, 0, 0]


def test_half_a_thread_is_told(server: Server) -> None:
    server.faults = ["ok", "429"]
    one = publisher(server, thread())
    one.prepare()
    with pytest.raises(OutcomeUnknown) as unknown:
        one.commit()

    assert unknown.value.code == "thread_unfinished"
    assert unknown.value.message == (
        "1 of 3 posts of the thread are public. The rest follow. The Mastodon server asks to wait: Too "
        "many requests."
    )


@pytest.mark.parametrize("part", [1, 2])
def test_a_part_that_is_refused_takes_the_others_back(server: Server, part: int) -> None:
    server.ways = ["ok"] * part + ["422"]
    one = publisher(server, thread())
    one.prepare()
    with pytest.raises(Refused) as refused:
        one.commit()

    assert (refused.value.field, server.posts) == ("body", [])


def test_what_was_taken_back_is_posted_again_when_the_server_has_forgotten_it(server: Server) -> None:
    server.ways = ["ok", "422"]
    one = publisher(server, thread())
    one.prepare()
    with pytest.raises(Refused):
        one.commit()
    with pytest.raises(TryLater) as later:
        one.commit()
    assert (later.value.code, later.value.after) == ("still_remembered", timedelta(hours=1))
    # Other words are another post, and go out at once.
    one.payload = thread(["Other words", *PARTS[1:]])
    one.state = {}

    assert_is_the_thread(server, one.publish(), ["Other words", *PARTS[1:]])


def test_what_can_not_be_taken_back_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.ways = ["ok", "422"]
    one = publisher(server, thread())
    one.prepare()
    taken = server.status

    def stays(method: str, number: str, *rest: str) -> Any:
        return server.too_many() if method == "DELETE" else taken(method, number, *rest)

    monkeypatch.setattr(server, "status", stays)
    with pytest.raises(OutcomeUnknown) as unknown:
        one.commit()

    assert unknown.value.code == "thread_unfinished"
    assert "1 post of the thread is public and couldn't be deleted." in unknown.value.message
    assert len(server.posts) == 1


def test_a_locked_account_finishes_its_thread_later(server: Server) -> None:
    server.ways = ["ok", "ok", "403"]
    sent = publisher(server, thread()).publish()

    assert_is_the_thread(server, sent)


@pytest.mark.parametrize("assets", [(), (picture(),)])
def test_a_person_who_retries_half_a_thread_gets_the_rest(server: Server, assets: Any) -> None:
    """A retry begins without what was prepared, and a server without keys would take the first part again."""
    server.honours_keys = False
    one = publisher(server, thread(assets=assets))
    one.prepare()
    server.faults = ["ok", "500_before"]
    with pytest.raises(OutcomeUnknown):
        one.commit()
    one.state = {}
    sent = one.publish()

    assert_is_the_thread(server, sent)


def test_another_thread_that_began_by_the_same_words_is_left_alone(server: Server) -> None:
    publisher(server, thread(["The news of the day 🧵", "Rain"]), key=f"{KEY}x").publish()
    today = publisher(server, thread(["The news of the day 🧵", "Sun", "Wind"]))
    sent = today.publish()

    assert [one["source"] for one in server.posts] == ["The news of the day 🧵", "Rain", *today.post.parts]
    assert sent.details["ids"] == [one["id"] for one in server.posts[2:]]


def test_half_a_thread_without_a_trace_of_what_was_prepared_is_a_persons(server: Server) -> None:
    one = publisher(server, thread())
    one.prepare()
    server.faults = ["ok", "500_before"]
    with pytest.raises(OutcomeUnknown):
        one.commit()
    one.state = {}

    assert one.reconcile() == CannotTell("1 of 3 posts of this thread are there.")


def test_a_slow_server_gets_the_rest_with_the_next_try(server: Server) -> None:
    """A hand holds a publication for a while only: it must not post when another may have taken it up."""
    server.faults = ["slow"] * 12
    parts = [f"Part {number}" for number in range(8)]
    one = publisher(server, thread(parts))
    one.prepare()
    with pytest.raises(OutcomeUnknown) as unknown:
        one.commit()
    before = len(server.posts)
    sent = one.publish()

    assert unknown.value.code == "thread_unfinished"
    assert 2 <= before < 8
    assert_is_the_thread(server, sent, parts)


def test_a_thread_is_removed_whole(server: Server) -> None:
    one = publisher(server, thread())
    sent = one.publish()
    MASTODON.remove(one.account, sent, http=HTTP, now=NOW)

    assert server.posts == []


PAGE = b"<html><h1>404</h1>This page isn't here.</html>"


@pytest.mark.parametrize("page", [None, PAGE], ids=["json", "html"])
def test_a_thread_whose_end_is_gone_is_removed_whole(server: Server, page: bytes | None) -> None:
    """The answer to the last part's removal was lost; Takahe answers the next try with a page."""
    one = publisher(server, thread())
    sent = one.publish()
    server.posts.pop()
    server.missing_page = page
    MASTODON.remove(one.account, sent, http=HTTP, now=NOW)

    assert server.posts == []


def test_a_wall_before_the_server_is_not_taken_for_a_removed_post(server: Server) -> None:
    one = publisher(server, thread())
    sent = one.publish()
    server.missing_page, server.is_walled = PAGE, True
    with pytest.raises(TryLater) as blocked:
        MASTODON.remove(one.account, sent, http=HTTP, now=NOW)
    with pytest.raises(TryLater):
        MASTODON.metrics(one.account, [(sent, NOW)], http=HTTP, now=NOW)

    assert (blocked.value.code, len(server.posts)) == ("blocked", 3)


@pytest.mark.parametrize("page", [None, PAGE], ids=["json", "html"])
def test_a_post_that_is_gone_has_no_numbers(server: Server, page: bytes | None) -> None:
    one = publisher(server, thread())
    sent = one.publish()
    server.posts.clear()
    server.missing_page = page

    [samples] = MASTODON.metrics(one.account, [(sent, NOW)], http=HTTP, now=NOW)
    assert {sample.availability for sample in samples} <= {"unavailable", "unsupported"}


def test_what_is_public_of_a_thread_is_told(server: Server) -> None:
    one = publisher(server, thread())
    one.prepare()
    server.faults = ["ok", "ok", "500_before"]
    with pytest.raises(OutcomeUnknown):
        one.commit()

    assert one.reconcile() == Absent(2, 3)
