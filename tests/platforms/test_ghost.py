"""Ghost beyond the contract: newsletters that go out once, collisions, limits, versions, errors."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from config.core.http_client import Client, Policy
from pipeline.platforms.base import Absent, CannotTell, Found, Sent
from pipeline.platforms.ghost import PLUGIN
from pipeline.platforms.ghost.site import clean_address, raise_for_response
from pipeline.plugins import ConfigInvalid, NeedsReconnect, OutcomeUnknown, Refused, TryLater
from tests.platforms.servers import ghost
from tests.platforms.servers.base import Answer, picture
from tests.platforms.support import answer

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "pub_01m80wxp87eh3rnr6xcszcrb9t"
HTTP = Client(Policy(allow_loopback=True, user_agent="tests"))


@pytest.fixture
def case(server):
    return ghost.case(server)


def configured(case, **config):
    case.account = dataclasses.replace(case.account, config={**case.account.config, **config})


def adapted(case, bucket="blog", **changes):
    return PLUGIN.adapt(case.account, dataclasses.replace(case.payloads[bucket], **changes))


def prepared(case, post, state=None, key=KEY):
    state = dict(state or {})
    for _ in range(40):
        there = PLUGIN.prepare(case.account, post, state, http=HTTP, key=key, now=NOW)
        state = dict(there.state)
        if there.is_done:
            return state
    pytest.fail("It is never prepared.")


def commit(case, post, state, key=KEY):
    return PLUGIN.commit(case.account, post, state, http=HTTP, key=key, now=NOW)


def reconcile(case, post, state, key=KEY):
    return PLUGIN.reconcile(case.account, post, state, http=HTTP, key=key, now=NOW)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("https://blog.example.com/", "https://blog.example.com"),
        ("blog.example.com/ghost/#/settings/integrations", "https://blog.example.com"),
        ("https://example.com/blog/ghost/api/admin/", "https://example.com/blog"),
        ("https://example.com/ghosts", "https://example.com/ghosts"),
    ],
)
def test_any_page_of_the_site_is_its_address(given, kept):
    assert clean_address(given) == kept


@pytest.mark.parametrize(
    "given", ["abc", "5f9f1b3c2a7d8e6f4b0c1d2e:xyz", f"5f9f1b3c2a7d8e6f4b0c1d2e:{'a' * 33}"]
)
def test_a_key_that_is_none_is_refused_without_quoting_it(given):
    with pytest.raises(ConfigInvalid) as invalid:
        PLUGIN.clean_credentials({"admin_key": given})
    assert [(one.field, one.code) for one in invalid.value.problems] == [("credentials.admin_key", "invalid")]
    assert given not in str(invalid.value)


@pytest.mark.parametrize(
    ("bucket", "changes", "codes"),
    [
        ("blog", {"title": "🚋" * 255}, []),
        ("blog", {"title": "🚋" * 256}, [("title", "too_long")]),
        ("blog", {"title": " "}, [("title", "required")]),
        ("blog", {"content": {"meta_description": "é" * 300}}, []),
        ("blog", {"content": {"meta_description": "é" * 301}}, [("content.meta_description", "too_long")]),
        ("blog", {"body": "👩‍👩‍👧 @ada https://example.com/ " * 5_000, "body_format": "text"}, []),
        ("blog", {"body": "<p></p>", "body_format": "html"}, [("body", "empty")]),
        ("blog", {"assets": tuple(picture(f"{n}.png") for n in range(50))}, []),
        ("blog", {"assets": tuple(picture(f"{n}.png") for n in range(51))}, [("assets", "too_many_files")]),
        ("newsletter", {}, []),
        ("newsletter", {"content": {}}, [("title", "required")]),
        ("newsletter", {"title": "T", "content": {"subject": "s" * 300, "preheader": "p" * 300}}, []),
        ("newsletter", {"title": "T", "content": {"subject": "s" * 301}}, [("content.subject", "too_long")]),
        (
            "newsletter",
            {"title": "T", "content": {"preheader": "p" * 301}},
            [("content.preheader", "too_long")],
        ),
    ],
)
def test_limits(case, bucket, changes, codes):
    problems = PLUGIN.validate(case.account, adapted(case, bucket, **changes))

    assert [(one.field, one.code) for one in problems] == codes


def test_a_newsletter_without_a_name_is_refused_before_the_network(case):
    configured(case, newsletter=None)
    problems = PLUGIN.validate(case.account, adapted(case, "newsletter"))

    assert [(one.field, one.code) for one in problems] == [(None, "no_newsletter")]
    assert PLUGIN.validate(case.account, adapted(case, "blog")) == ()


def test_the_draft_holds_everything(server, case):
    post = adapted(case, body=f"{case.payloads['blog'].body}\n\n| a |\n|---|\n| b |\n")
    state = prepared(case, post)

    (draft,) = server.articles.values()
    lead, rails = (f"{server.url}/content/images/{n}" for n in ("1-lead.png", "2-rails.png"))
    assert {
        name: draft[name] for name in ("status", "slug", "title", "tags", "feature_image", "custom_excerpt")
    } == {
        "status": "draft",
        "slug": "pub-01m80wxp87eh3rnr6xcszcrb9t",
        "title": "It's a tram",
        "tags": [{"name": "Trams"}, {"name": "R&D"}],
        "feature_image": lead,
        "custom_excerpt": "Fourteen to nine.",
    }
    assert f'<p><img src="{rails}" alt="Rails"></p>' in draft["html"]
    assert "<!--kg-card-begin: html-->\n<table>" in draft["html"]
    assert (state["post"], state["is_public"], server.images) == (
        draft["id"],
        False,
        ["pub-01m80wxp87eh3rnr6xcszcrb9t-0", "pub-01m80wxp87eh3rnr6xcszcrb9t-1"],
    )


def test_an_article_sends_no_e_mail(server, case):
    post = adapted(case)
    sent = commit(case, post, prepared(case, post))

    (public,) = server.posts
    assert (public["slug"], public["status"], server.emails) == ("tram-approved", "published", [])
    assert sent.url == f"{server.url}/tram-approved/"


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Für Élise, 2. Teil", "fur-elise-2-teil"),
        ("トラム", "pub-01m80wxp87eh3rnr6xcszcrb9t"),
        ("x" * 250, "x" * 185),
    ],
)
def test_without_a_slug_it_is_made_of_the_title(server, case, title, slug):
    post = adapted(case, title=title, content={})
    commit(case, post, prepared(case, post))

    assert server.posts[0]["slug"] == slug


@pytest.mark.parametrize(("email_only", "status"), [(False, "published"), (True, "sent")])
def test_a_newsletter_goes_out_once(server, case, email_only, status):
    configured(case, email_only=email_only)
    post = adapted(case, "newsletter")
    state = prepared(case, post)
    server.faults = ["drops_after"]
    with pytest.raises(OutcomeUnknown):
        commit(case, post, state)
    found = reconcile(case, post, state)
    again = commit(case, post, state)
    from_nothing = prepared(case, post)
    later = commit(case, post, from_nothing)

    assert found == Found(again)
    assert later == again
    assert reconcile(case, post, {}) == found
    assert (from_nothing["is_public"], again.details["status"], again.details["email_status"]) == (
        True,
        status,
        "pending",
    )
    (public,) = server.posts
    assert server.emails == [public["id"]]
    assert (
        public["email"]["segment"],
        public["email_subject"],
        public["title"],
        public["custom_excerpt"],
    ) == (
        "status:free",
        "The tram comes",
        "The tram comes",
        "Fourteen to nine.",
    )


def test_a_newsletter_that_the_site_lacks_is_refused(server, case):
    configured(case, newsletter="old")
    post = adapted(case, "newsletter")
    with pytest.raises(Refused) as told:
        commit(case, post, prepared(case, post))

    assert told.value.message == "The Ghost site refused it (status 422): Newsletter not found."
    assert (server.posts, server.emails) == ([], [])


def test_a_draft_that_a_person_changed_is_read_again(server, case):
    post = adapted(case)
    state = prepared(case, post)
    server._write(server.articles[state["post"]], {"title": "Better words"})
    with pytest.raises(TryLater) as told:
        commit(case, post, state)
    assert (told.value.code, server.posts) == ("draft_changed", [])

    commit(case, post, prepared(case, post, state))

    assert [one["title"] for one in server.posts] == ["Better words"]


def test_what_a_person_published_is_not_published_again(server, case):
    post = adapted(case, "newsletter")
    state = prepared(case, post)
    one = server.articles[state["post"]]
    server._write(one, {"status": "published"})
    server.posts.append(one)

    sent = commit(case, post, state)

    assert (sent.external_id, server.emails, len(server.posts)) == (one["id"], [], 1)


def test_a_collision_that_can_not_be_judged_is_unknown(server, case, monkeypatch):
    post = adapted(case)
    state = prepared(case, post)
    server._write(server.articles[state["post"]], {"title": "Better words"})
    handled = server.handle
    monkeypatch.setattr(
        server, "handle", lambda request: Answer(502, b"") if request.method == "GET" else handled(request)
    )
    with pytest.raises(OutcomeUnknown):
        commit(case, post, state)


def test_a_draft_that_was_thrown_away_is_made_anew(server, case):
    post = adapted(case)
    state = prepared(case, post)
    server.articles.clear()
    with pytest.raises(TryLater) as told:
        commit(case, post, state)
    assert told.value.code == "draft_gone"
    assert reconcile(case, post, state) == Absent()

    commit(case, post, prepared(case, post, state))

    assert (len(server.posts), len(server.images)) == (1, 2)


def test_a_sent_post_that_is_a_draft_again_is_a_persons_to_tell(server, case):
    post = adapted(case, "newsletter")
    state = prepared(case, post)
    commit(case, post, state)
    server.articles[state["post"]]["status"] = "draft"

    assert type(reconcile(case, post, state)) is CannotTell


def test_words_of_another_under_the_same_title_are_not_ours(server, case):
    post = adapted(case)
    other = adapted(case)
    other_key = f"{KEY[:-1]}z"
    commit(case, other, prepared(case, other, key=other_key), other_key)

    assert reconcile(case, post, {}) == Absent()
    sent = commit(case, post, prepared(case, post))
    assert [one["slug"] for one in server.posts] == ["tram-approved", "tram-approved-2"]
    assert reconcile(case, post, {}) == Found(sent)


def test_taking_back_makes_a_draft_of_it(server, case):
    post = adapted(case)
    state = prepared(case, post)
    sent = commit(case, post, state)
    PLUGIN.remove(case.account, sent, http=HTTP, now=NOW)

    assert (server.posts, server.articles[state["post"]]["status"]) == ([], "draft")


def test_an_e_mail_can_not_be_taken_back(server, case):
    configured(case, email_only=True)
    post = adapted(case, "newsletter")
    sent = commit(case, post, prepared(case, post))
    with pytest.raises(Refused) as told:
        PLUGIN.remove(case.account, sent, http=HTTP, now=NOW)
    assert told.value.code == "cannot_be_taken_back"


def test_what_became_of_the_e_mail_is_kept(server, case):
    post = adapted(case, "newsletter")
    state = prepared(case, post)
    sent = commit(case, post, state)

    def finish():
        return PLUGIN.finish(case.account, post, sent, http=HTTP, now=NOW)

    with pytest.raises(TryLater) as waits:
        finish()
    assert waits.value.code == "email_under_way"
    email = server.articles[state["post"]]["email"]
    email["status"] = "submitted"
    assert finish() == {"email_status": "submitted", "email_error": ""}
    email.update(status="failed", error="Mailgun is away")
    assert finish() == {"email_status": "failed", "email_error": "Mailgun is away"}
    assert PLUGIN.finish(case.account, adapted(case), sent, http=HTTP, now=NOW) is None


def test_clicks_are_those_in_the_e_mail(server, case):
    sent = {
        bucket: commit(case, post, prepared(case, post, key=key), key)
        for bucket, key in (("blog", KEY), ("newsletter", f"{KEY[:-1]}z"))
        for post in [adapted(case, bucket)]
    }
    gone = Sent(external_id="f" * 24, details={"root": f"{server.url}/ghost/api/admin/"})
    given = [(one, NOW) for one in (sent["newsletter"], sent["blog"], gone)]
    rows = PLUGIN.metrics(case.account, given, http=HTTP, now=NOW)

    clicks = [next(one for one in row if one.metric == "clicks") for row in rows]
    assert [(one.value, one.availability) for one in clicks] == [
        (5, "ok"),
        (None, "unavailable"),
        (None, "unavailable"),
    ]
    assert {one.availability for row in rows for one in row if one.metric != "clicks"} == {"unsupported"}


@pytest.mark.parametrize(("version", "accepted"), [("6.3", "v6.0"), ("5.130", "v5.0"), ("7.0", "v6.0")])
def test_a_site_is_asked_in_its_own_version(server, case, version, accepted):
    server.version = version
    info = PLUGIN.check_account(case.account, http=HTTP, now=NOW)

    root = f"{server.url}/ghost/api/admin/"
    assert info.config == {"admin_root": root, "accept_version": accepted}
    assert (info.external_id, info.name, info.limits, info.notes) == (
        f"{server.url}/",
        "Tram news",
        {"newsletters": ["weekly"]},
        (),
    )


@pytest.mark.parametrize(
    ("newsletter", "note"),
    [
        ("old", "The site has no active newsletter “old”; there is weekly."),
        (None, "No newsletter is set, so only articles can be published; the site has weekly."),
    ],
)
def test_a_newsletter_that_is_missing_is_noted(case, newsletter, note):
    configured(case, newsletter=newsletter)

    assert PLUGIN.check_account(case.account, http=HTTP, now=NOW).notes == (note,)


def test_an_address_without_ghost_is_refused(server, case, monkeypatch):
    monkeypatch.setattr(server, "handle", lambda request: Answer(200, "<html>Hello</html>"))
    with pytest.raises(Refused) as told:
        PLUGIN.check_account(case.account, http=HTTP, now=NOW)
    assert (told.value.code, told.value.field) == ("no_admin_api", "config.site")


def test_a_wrong_key_is_the_accounts(case):
    wrong = dataclasses.replace(case.account, credentials={"admin_key": f"{ghost.KEY_ID}:{'ab' * 32}"})
    with pytest.raises(NeedsReconnect) as told:
        PLUGIN.check_account(wrong, http=HTTP, now=NOW)
    assert (
        told.value.message == "The site doesn't take the token: Invalid token: Signature verification failed."
    )
    assert "clocks" in told.value.action


ERRORS = {
    "unknown key": (401, "UnauthorizedError", "UNKNOWN_ADMIN_API_KEY", NeedsReconnect, "needs_reconnect"),
    "token": (401, "UnauthorizedError", "INVALID_JWT", NeedsReconnect, "needs_reconnect"),
    "right": (403, "NoPermissionError", "", NeedsReconnect, "missing_right"),
    "plan": (403, "HostLimitError", "", Refused, "plan_limit"),
    "gone": (404, "NotFoundError", "", TryLater, "draft_gone"),
    "version": (406, "RequestNotAcceptableError", "UPDATE_GHOST", NeedsReconnect, "version_not_spoken"),
    "collision": (409, "UpdateCollisionError", "UPDATE_COLLISION", TryLater, "draft_changed"),
    "file size": (413, "RequestEntityTooLargeError", "", Refused, "file_not_taken"),
    "file type": (415, "UnsupportedMediaTypeError", "", Refused, "file_not_taken"),
    "content": (422, "ValidationError", "", Refused, "refused"),
    "busy": (429, "TooManyRequestsError", "", TryLater, "rate_limited"),
}


@pytest.mark.parametrize("is_commit", [False, True])
@pytest.mark.parametrize(("status", "kind", "code", "raised", "told"), ERRORS.values(), ids=ERRORS.keys())
def test_errors(status, kind, code, raised, told, is_commit):
    body = {"errors": [{"message": "Not so.", "context": "It is so.", "type": kind, "code": code}]}
    with pytest.raises(raised) as failure:
        raise_for_response(answer(status, body), now=NOW, is_commit=is_commit)

    assert (failure.value.code, failure.value.platform_status) == (told, status)
    assert failure.value.message.endswith(".")
    assert not failure.value.message.endswith("..")


@pytest.mark.parametrize(
    ("status", "before", "at_commit"),
    [(500, TryLater, OutcomeUnknown), (503, TryLater, OutcomeUnknown), (301, NeedsReconnect, OutcomeUnknown)],
)
def test_what_proves_nothing(status, before, at_commit):
    with pytest.raises(before):
        raise_for_response(answer(status, b"<html></html>"), now=NOW)
    with pytest.raises(at_commit):
        raise_for_response(answer(status, b"<html></html>"), now=NOW, is_commit=True)


def test_a_firewalls_page_is_waited_out():
    with pytest.raises(TryLater) as failure:
        raise_for_response(answer(403, b"<html>Attention Required!</html>"), now=NOW)
    assert (failure.value.code, failure.value.after) == ("firewall", timedelta(minutes=15))
