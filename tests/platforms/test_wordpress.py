"""WordPress beyond the contract: its limits, its errors, what a site may answer, what a draft holds."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, CannotTell, Found
from pipeline.platforms.wordpress import PLUGIN
from pipeline.platforms.wordpress.calls import clean_address, raise_for_response, read_json
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, Refused, TryLater
from tests.platforms.servers import wordpress
from tests.platforms.servers.base import Answer, picture
from tests.platforms.support import answer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "pub_01m80wxp87eh3rnr6xcszcrb9t"
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))


@pytest.fixture
def case(server):
    return wordpress.case(server)


def adapted(case, **changes):
    return PLUGIN.adapt(case.account, dataclasses.replace(case.payloads["blog"], **changes))


def prepared(case, post, state=None):
    state = dict(state or {})
    for _ in range(40):
        there = PLUGIN.prepare(case.account, post, state, http=HTTP, key=KEY, now=NOW)
        state = dict(there.state)
        if there.is_done:
            return state
    pytest.fail("It is never prepared.")


def commit(case, post, state):
    return PLUGIN.commit(case.account, post, state, http=HTTP, key=KEY, now=NOW)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://blog.example.com", "https://blog.example.com"),
        (" blog.example.com/ ", "https://blog.example.com"),
        ("https://example.com/blog/wp-admin/post.php?post=1", "https://example.com/blog"),
        ("https://example.com/wp-login.php", "https://example.com"),
        ("https://example.com/wp-json/wp/v2/posts#x", "https://example.com"),
        ("https://example.com/wp-admins-friends", "https://example.com/wp-admins-friends"),
    ],
)
def test_any_page_of_the_site_is_its_address(given, kept):
    assert clean_address(given) == kept


def test_a_user_name_with_a_colon_is_refused():
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_config({"site": "https://example.com", "username": "a:b"})
    assert [(one.field, one.code) for one in invalid.value.problems] == [("config.username", "invalid")]


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"id": 1}', {"id": 1}),
        (b'\xef\xbb\xbf{"id": 1}', {"id": 1}),
        (
            b'<br />\n<b>Notice</b>: Undefined [index] in {closure} on line <b>3</b><br />\n{"id": 1}',
            {"id": 1},
        ),
        (b'<br />[{"id": 1}]', [{"id": 1}]),
        (b'{"id": 1}\n<!-- cached -->', {"id": 1}),
        (b'{"data": {"id": 5}', None),
        (b'{"id": [1]', None),
        (b'{"id": 1} and more', None),
        (b"<html>{}</html>", None),
        (b'<html><script>\n{"id": 1}\n</script></html>', None),
        (b'{"id": 1}\n</script>', None),
        (b"", None),
        (b"[" * 100_000, None),
        (b"<br />" + b"\n{" * 5_000, None),
    ],
)
def test_answers_are_read_behind_notices(body, value):
    assert read_json(answer(200, body)) == value


ERRORS = {
    "wrong password": (401, "incorrect_password", NeedsReconnect, "needs_reconnect"),
    "wrong user": (401, "invalid_username", NeedsReconnect, "needs_reconnect"),
    "stranger": (401, "rest_not_logged_in", NeedsReconnect, "needs_reconnect"),
    "stranger who writes": (401, "rest_cannot_create", NeedsReconnect, "needs_reconnect"),
    "passwords off": (401, "application_passwords_disabled", NeedsReconnect, "application_passwords_off"),
    "may not publish": (403, "rest_cannot_publish", NeedsReconnect, "missing_right"),
    "may not upload": (400, "rest_cannot_create", NeedsReconnect, "missing_right"),
    "security plugin": (403, "rest_disabled_by_plugin", NeedsReconnect, "needs_reconnect"),
    "parameter": (400, "rest_invalid_param", Refused, "refused"),
    "file": (500, "rest_upload_unknown_error", Refused, "file_not_taken"),
    "quota": (400, "rest_upload_user_quota_exceeded", Refused, "file_not_taken"),
    "body too large": (413, "", Refused, "file_not_taken"),
    "no API": (404, "rest_no_route", NeedsReconnect, "no_rest_api"),
    "gone": (404, "rest_post_invalid_id", TryLater, "draft_gone"),
    "busy": (429, "", TryLater, "rate_limited"),
}


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize(("status", "code", "raised", "told"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(status, code, raised, told, is_commit):
    body = {"code": code, "message": "<strong>Error:</strong> Not &#8220;so&#8221;."}
    with pytest.raises(raised) as failure:
        raise_for_response(answer(status, body), now=NOW, is_commit=is_commit)

    assert (failure.value.code, failure.value.platform_status) == (told, status)
    assert failure.value.platform_message == "Error: Not “so”"
    assert failure.value.message.endswith(".")
    assert not failure.value.message.endswith("..")


@pytest.mark.parametrize(
    ("status", "before", "at_commit"),
    [
        (500, TryLater, OutcomeUnknown),
        (503, TryLater, OutcomeUnknown),
        (301, NeedsReconnect, OutcomeUnknown),
        (302, TryLater, OutcomeUnknown),
    ],
)
def test_what_proves_nothing(status, before, at_commit):
    page = answer(
        status, b"<html><h1>Maintenance</h1></html>", {"location": "https://www.example.com/x?secret=1"}
    )
    with pytest.raises(before) as failure:
        raise_for_response(page, now=NOW)
    assert "secret" not in failure.value.message
    with pytest.raises(at_commit):
        raise_for_response(page, now=NOW, is_commit=True)


def test_a_firewalls_page_is_waited_out():
    with pytest.raises(TryLater) as failure:
        raise_for_response(
            answer(403, b"<html><title>Attention Required! | Cloudflare</title></html>"), now=NOW
        )

    assert (failure.value.code, failure.value.after, failure.value.is_of_account) == (
        "firewall",
        timedelta(minutes=15),
        True,
    )


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ({"assets": tuple(picture(f"{n}.png") for n in range(50))}, []),
        ({"assets": tuple(picture(f"{n}.png") for n in range(51))}, [("assets", "too_many_files")]),
        ({"assets": (dataclasses.replace(picture(), bytes=64 * 2**20),)}, []),
        (
            {"assets": (dataclasses.replace(picture(), bytes=64 * 2**20 + 1),)},
            [("assets[0]", "file_too_large")],
        ),
        (
            {"assets": (dataclasses.replace(picture(), mime_type="image/tiff"),)},
            [("assets[0]", "type_not_taken")],
        ),
        ({"body": "👩‍👩‍👧 e\u0301 @ada https://example.com/ " * 5_000, "body_format": "text"}, []),
        ({"body": "", "body_format": "text"}, [("body", "empty")]),
        ({"body": "<p> </p><hr>", "body_format": "html"}, [("body", "empty")]),
        ({"title": ""}, []),
    ],
)
def test_limits(case, given, codes):
    problems = PLUGIN.validate(case.account, adapted(case, **given))

    assert [(one.field, one.code) for one in problems] == codes


def test_the_draft_holds_everything(server, case):
    post = adapted(case, title="Rails & <wires>")
    state = prepared(case, post)

    (draft,) = server.articles.values()
    # Both files are the same picture, so the second is met by what is in it.
    (shown,) = server.media.values()
    assert {
        name: draft[name] for name in ("status", "slug", "title", "excerpt", "featured_media", "categories")
    } == {
        "status": "draft",
        "slug": KEY,
        "title": "Rails &amp; &lt;wires&gt;",
        "excerpt": "Fourteen to nine.",
        "featured_media": shown["id"],
        "categories": [1],
    }
    assert [server.terms["tags"][number] for number in draft["tags"]] == ["Trams", "R&amp;D"]
    assert (state["post"], shown["alt_text"]) == (draft["id"], "A red square.")
    assert f'src="{shown["source_url"]}"' in draft["content"]


def test_two_files_of_one_content_are_uploaded_once(server, case):
    prepared(case, adapted(case))
    prepared(case, adapted(case))

    assert len(server.media) == 1
    assert len(server.articles) == 1


def test_terms_that_are_there_are_used(server, case):
    server.terms["tags"][55] = "r&amp;d"
    prepared(case, adapted(case, content={"tags": ["R&D"]}))

    (draft,) = server.articles.values()
    assert (draft["tags"], draft["categories"]) == ([55], [1])


def test_words_of_a_person_that_name_the_key_are_not_ours(server, case):
    server.articles[9] = {"id": 9, "status": "publish", "slug": "about", "content": f'Of {KEY}, "name": x'}
    post = adapted(case)
    state = prepared(case, post)

    assert state["post"] != 9
    assert PLUGIN.reconcile(case.account, post, {}, http=HTTP, key=KEY, now=NOW) == Absent()


def test_ids_of_a_former_site_are_forgotten(server, case):
    post = adapted(case)
    foreign = {"root": "https://old.example.com/wp-json/", "post": 5, "media": {}, "terms": {"tags:Trams": 5}}
    case.account = dataclasses.replace(
        case.account, config={**case.account.config, "rest_root": f"{server.url}/wp-json/"}
    )
    state = prepared(case, post, foreign)

    assert (state["root"], state["post"] in server.articles) == (f"{server.url}/wp-json/", True)
    assert state["terms"]["tags:Trams"] in server.terms["tags"]


def test_a_draft_that_a_plugin_holds_back_is_told(server, case, monkeypatch):
    post = adapted(case)
    state = prepared(case, post)
    kept = server._update
    monkeypatch.setattr(server, "_update", lambda one, values: kept(one, {**values, "status": "draft"}))

    with pytest.raises(Refused) as told:
        commit(case, post, state)
    assert told.value.code == "kept_as_draft"


def test_the_trash_proves_nothing(server, case):
    post = adapted(case)
    state = prepared(case, post)
    sent = commit(case, post, state)
    PLUGIN.remove(case.account, sent, http=HTTP, now=NOW)

    assert type(PLUGIN.reconcile(case.account, post, state, http=HTTP, key=KEY, now=NOW)) is CannotTell


def test_a_site_without_a_trash_deletes_for_good(server, case, monkeypatch):
    post = adapted(case)
    sent = commit(case, post, prepared(case, post))
    handled = server.handle

    def without_trash(request):
        if request.method == "DELETE" and "force" not in request.query:
            return wordpress.error(501, "rest_trash_not_supported")
        return handled(request)

    monkeypatch.setattr(server, "handle", without_trash)
    PLUGIN.remove(case.account, sent, http=HTTP, now=NOW)
    assert server.posts == []


def test_comments_of_a_post_that_is_gone_are_not_none(server, case):
    post = adapted(case)
    sent = commit(case, post, prepared(case, post))

    def comments():
        (samples,) = PLUGIN.metrics(case.account, [(sent, NOW)], http=HTTP, now=NOW)
        return next((one.value, one.availability) for one in samples if one.metric == "comments")

    assert comments() == (3, "ok")
    server.comments = 0
    assert comments() == (0, "ok")
    server.articles.clear()
    assert comments() == (None, "unavailable")


def test_the_account_is_what_the_site_says(server, case):
    info = PLUGIN.check_account(case.account, http=HTTP, now=NOW)

    root = f"{server.url}/wp-json/"
    assert dataclasses.asdict(info) == {
        "external_id": f"{root}#7",
        "handle": "ada",
        "name": "Ada",
        "url": server.url,
        "scopes": ("author",),
        "expires_at": None,
        "limits": {},
        "credentials": {},
        "config": {"rest_root": root},
        "notes": (
            "The user may not add categories: the category has to be there already.",
            "The site answers without https: the password is sent in clear.",
        ),
    }


def test_an_address_without_wordpress_is_refused(server, case, monkeypatch):
    monkeypatch.setattr(server, "handle", lambda request: Answer(200, "<html>Hello</html>"))
    with pytest.raises(Refused) as told:
        PLUGIN.check_account(case.account, http=HTTP, now=NOW)
    assert (told.value.code, told.value.field) == ("no_rest_api", "config.site")


def test_application_passwords_that_are_off_are_named(server, case):
    server.offers_passwords = False
    wrong = dataclasses.replace(case.account, credentials={"application_password": "wrong"})
    with pytest.raises(NeedsReconnect) as told:
        PLUGIN.check_account(wrong, http=HTTP, now=NOW)
    assert told.value.code == "application_passwords_off"


@pytest.mark.parametrize(
    ("may", "wanted", "code"),
    [
        ({"edit_posts": True}, "publish", "missing_right"),
        ({"edit_posts": True}, "pending", None),
        ({}, "draft", "missing_right"),
    ],
)
def test_rights_are_checked_when_connecting(server, case, monkeypatch, may, wanted, code):
    monkeypatch.setattr(server, "capabilities", may)
    account = dataclasses.replace(case.account, config={**case.account.config, "status": wanted})
    if code is None:
        notes = PLUGIN.check_account(account, http=HTTP, now=NOW).notes
        assert notes[0] == "The user may not upload files: articles with images will be refused."
        return
    with pytest.raises(NeedsReconnect) as told:
        PLUGIN.check_account(account, http=HTTP, now=NOW)
    assert told.value.code == code


@pytest.mark.parametrize("status", ["draft", "pending"])
def test_what_waits_for_an_editor_is_found_again(server, case, status):
    case.account = dataclasses.replace(case.account, config={**case.account.config, "status": status})
    post = adapted(case)
    state = prepared(case, post)
    assert PLUGIN.reconcile(case.account, post, state, http=HTTP, key=KEY, now=NOW) == Absent()
    sent = commit(case, post, state)

    assert PLUGIN.reconcile(case.account, post, state, http=HTTP, key=KEY, now=NOW) == Found(sent)
    assert [(one["status"], one["slug"]) for one in server.articles.values()] == [(status, "tram-approved")]
    assert server.posts == []
