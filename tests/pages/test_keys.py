"""Settings › API keys: each act as an owner does it, and what must not come of it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
import time_machine
from django.core.cache import caches
from django.test import Client
from django.urls import reverse

from accounts import workspaces
from accounts.access import tokens
from accounts.models import ApiToken, AuditEntry, Workspace
from tests.factories import MembershipFactory, TokenFactory

PASSWORD = "a long enough phrase 9"
FORM = {"name": "Website", "rights": "push-only", "kind": "live", "expires": "never"}


@pytest.fixture(autouse=True)
def cheap_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def log_in(user):
    """As a person does, so that the log-in is fresh."""
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    user.mark_email_verified()
    client = Client()
    answer = client.post("/account/login/", {"login": user.email, "password": PASSWORD})
    assert answer.status_code == 302
    return client


@pytest.fixture
def owner(alice, newsroom):
    return log_in(alice)


@pytest.fixture
def at(newsroom):
    def address(name, token=None):
        more = {} if token is None else {"token_id": token.pk}
        return reverse(name, kwargs={"ws": newsroom.pk, **more})

    return address


@pytest.fixture
def token(newsroom, alice):
    return TokenFactory(workspace=newsroom, name="Import", created_by=alice)


@pytest.fixture
def elsewhere(charlie):
    return TokenFactory(workspace=Workspace.everywhere.get(name="Elsewhere"), name="Charlie's secret key")


def make(client, at, **fields):
    answer = client.post(at("key_create"), {**FORM, **fields})
    assert answer.status_code == 302, answer.context["form"].errors
    return ApiToken.everywhere.latest("created_at"), answer["Location"]


def secret_on(answer):
    found = re.search(r'id="secret">(cpk_[^<]+)<', answer.content.decode())
    return found and found[1]


def call(secret, path="/v1/workspace"):
    return Client().get(path, headers={"Authorization": f"Bearer {secret}"})


# --- Making ----------------------------------------------------------------------------------------------------------


def test_a_key_is_made_as_it_was_asked_for_and_works(owner, at, alice, newsroom):
    token, shown = make(owner, at)
    assert shown == at("key_secret", token)
    assert (token.workspace, token.name, token.scopes, token.is_test, token.expires_at, token.created_by) == (
        newsroom,
        "Website",
        ["raw:write"],
        False,
        None,
        alice,
    )
    secret = secret_on(owner.get(shown))
    assert secret.startswith("cpk_live_")
    assert call(secret).json()["id"] == newsroom.public_id
    entry = AuditEntry.everywhere.get(action="token.issued")
    assert (entry.actor, entry.subject) == (alice.email, tokens.public_id(token))


def test_the_text_is_shown_once_and_then_it_says_what_to_do(owner, at):
    token, shown = make(owner, at)
    owner.head(shown)
    first = owner.get(shown)
    assert "no-store" in first["Cache-Control"]
    secret = secret_on(first)
    assert secret.endswith(token.last_four)
    again = owner.get(shown)
    assert secret_on(again) is None
    assert "This key was already shown" in again.content.decode()
    assert at("key_rotate", token) in again.content.decode()
    everywhere = [at("keys"), at("key", token), at("key_requests", token), at("key_rotate", token)]
    assert [address for address in everywhere if secret in owner.get(address).content.decode()] == []
    assert secret not in str(dict(owner.session))


def test_the_lines_to_try_hold_the_key_and_only_what_it_may(owner, at, settings):
    settings.PUBLIC_URL = "https://pipeline.example"
    token, shown = make(owner, at, rights="read-only")
    page = owner.get(shown)
    secret = secret_on(page)
    [example] = page.context["examples"]
    assert (
        example.line
        == f'curl https://pipeline.example/v1/workspace \\\n  -H "Authorization: Bearer {secret}"'
    )
    _, shown = make(owner, at)
    assert [example.id for example in owner.get(shown).context["examples"]] == ["line-workspace", "line-raw"]
    assert [
        example.line.count("$API_KEY") for example in owner.get(at("key", token)).context["examples"]
    ] == [1]


@pytest.mark.parametrize(
    ("fields", "scopes"),
    [
        ({"rights": "full"}, list(tokens.SCOPES)),
        ({"rights": "read-only"}, ["sources:read", "raw:read", "generated:read", "analytics:read"]),
        ({"rights": "chosen", "scopes": ["raw:write", "raw:read"]}, ["raw:read", "raw:write"]),
    ],
)
def test_rights(owner, at, fields, scopes):
    # The least risky one is proposed.
    assert owner.get(at("key_create")).context["form"]["rights"].value() == "read-only"
    assert make(owner, at, **fields)[0].scopes == scopes


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": "   "}, {"name": ["This field is required."]}),
        ({"rights": "chosen"}, {"scopes": ["Choose at least one permission."]}),
        (
            {"rights": "full", "scopes": ["raw:read"]},
            {"rights": ["Choose “Custom” to use the permissions below."]},
        ),
        ({"expires": "date"}, {"expires_on": ["Enter the last day."]}),
        (
            {"expires": "date", "expires_on": "2020-01-01"},
            {"expires_on": ["Enter a later day."]},
        ),
        (
            {"expires": "date", "expires_on": "9999-12-31"},
            {"expires_on": ["Enter an earlier day."]},
        ),
    ],
)
def test_what_cannot_be_meant_is_said_beside_its_field(owner, at, fields, wrong):
    answer = owner.post(at("key_create"), {**FORM, **fields})
    assert answer.status_code == 200
    assert answer.context["form"].errors == wrong
    assert ApiToken.everywhere.count() == 0


def test_a_test_key_and_an_end_in_days(owner, at):
    before = datetime.now(UTC)
    token, shown = make(owner, at, kind="test", expires="30")
    assert token.is_test is True
    assert timedelta(days=30) <= token.expires_at - before <= timedelta(days=30, minutes=1)
    assert secret_on(owner.get(shown)).startswith("cpk_test_")


def test_the_last_day_is_the_workspace_s_own_and_counts_whole(owner, at):
    # Berlin goes back to winter time on that night's morning: its last day ends at 23:00 UTC.
    token, _ = make(owner, at, expires="date", expires_on="2027-10-31")
    assert token.expires_at == datetime(2027, 10, 31, 23, tzinfo=UTC)


def test_a_double_click_makes_one_key_and_both_clicks_lead_to_its_text(owner, at):
    form = {**FORM, "once": "abc"}
    first = owner.post(at("key_create"), form)
    # The browser shows the answer to the second click only, though it had asked for the first one's already.
    secret = secret_on(owner.get(first["Location"]))
    second = owner.post(at("key_create"), form)
    assert second["Location"] == first["Location"]
    assert ApiToken.everywhere.count() == 1
    assert secret_on(owner.get(second["Location"])) == secret
    assert secret_on(owner.get(second["Location"])) is None


def test_the_same_form_later_makes_nothing_and_shows_nothing(owner, at, monkeypatch):
    monkeypatch.setattr("accounts.pages.shown_once._MAX_WAIT_SECONDS", 0)
    form = {**FORM, "once": "abc"}
    first = owner.post(at("key_create"), form)
    secret_on(owner.get(first["Location"]))
    # What happens by itself after some seconds.
    assert caches["marks"].delete(f"shown_once:{owner.session['_auth_user_id']}:abc") is True
    later = owner.post(at("key_create"), form, follow=True)
    assert later.redirect_chain == [(at("keys"), 302)]
    assert "See your keys in the list." in later.content.decode()
    assert ApiToken.everywhere.count() == 1


def test_somebody_else_s_mark_shows_them_no_secret(owner, at, newsroom, monkeypatch):
    monkeypatch.setattr("accounts.pages.shown_once._MAX_WAIT_SECONDS", 0)
    owner.post(at("key_create"), {**FORM, "once": "abc"})
    second_owner = log_in(MembershipFactory(workspace=newsroom, user__email="second@example.test").user)
    answer = second_owner.post(at("key_create"), {**FORM, "name": "Another", "once": "abc"})
    # The mark is each person's own, so this is the first sending of theirs.
    made = ApiToken.everywhere.latest("created_at")
    assert (answer["Location"], made.name) == (at("key_secret", made), "Another")
    theirs = ApiToken.everywhere.earliest("created_at")
    assert secret_on(second_owner.get(at("key_secret", theirs))) is None


def test_keys_can_be_made_before_the_workspace_is_let_in(owner, at, newsroom):
    workspaces.delist(newsroom, "operator@example.test")
    _, shown = make(owner, at)
    page = owner.get(shown)
    assert "calls get 403 workspace_not_whitelisted" in page.content.decode()
    assert call(secret_on(page)).status_code == 403


# --- A fresh log-in --------------------------------------------------------------------------------------------------


def test_an_old_log_in_is_asked_for_the_password_and_the_form_is_not_lost(owner, at):
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=16)):
        asked = owner.post(
            at("key_create"), {**FORM, "rights": "chosen", "scopes": ["raw:read", "raw:write"]}
        )
        assert (asked.status_code, asked["Location"]) == (
            302,
            f"/account/reauthenticate/?next={at('key_create').replace('/', '%2F')}",
        )
        assert ApiToken.everywhere.count() == 0
        wrong = owner.post(asked["Location"], {"password": "wrong", "next": at("key_create")})
        assert wrong.status_code == 200
        assert ApiToken.everywhere.count() == 0
        answer = owner.post("/account/reauthenticate/", {"password": PASSWORD, "next": at("key_create")})
        token = ApiToken.everywhere.get()
        assert (answer.status_code, answer["Location"]) == (302, at("key_secret", token))
        assert (token.name, token.scopes) == ("Website", ["raw:read", "raw:write"])
        assert secret_on(owner.get(answer["Location"])).endswith(token.last_four)


def test_what_was_typed_outlives_the_session(owner, at, alice, left_alone):
    form = {**FORM, "rights": "chosen", "scopes": ["raw:read", "raw:write"], "kind": "test"}
    stranger = left_alone(alice)
    asked = stranger.post(at("key_create"), form)
    assert asked["Location"].startswith("/account/login/?next=")
    stranger.post(asked["Location"], {"login": alice.email, "password": PASSWORD})
    page = stranger.get(at("key_create"))
    assert {name: page.context["form"].initial[name] for name in form} == form
    assert ApiToken.everywhere.count() == 0


@pytest.mark.parametrize("name", ["key_rotate", "key_unrevoke"])
def test_what_makes_a_key_work_needs_a_fresh_log_in(owner, at, token, alice, name):
    tokens.revoke(token, alice) if name == "key_unrevoke" else None
    form = {"overlap": "0"}
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=16)):
        answer = owner.post(at(name, token), form)
        assert answer["Location"].startswith("/account/reauthenticate/?next=")
        assert ApiToken.everywhere.count() == 1


def test_revoking_needs_no_password(owner, at, token):
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=16), tick=False):
        assert owner.post(at("key_revoke", token))["Location"] == at("keys")
    assert tokens.find_token(token.secret, datetime.now(UTC)) is None


# --- Rotating --------------------------------------------------------------------------------------------------------


def test_rotation_shows_the_new_key_once_and_the_list_says_until_when_the_old_one_works(owner, at, token):
    before = datetime.now(UTC)
    answer = owner.post(at("key_rotate", token), {"overlap": "3600"})
    new = ApiToken.everywhere.get(rotated_from=token)
    assert answer["Location"] == at("key_secret", new)
    page = owner.get(answer["Location"])
    assert call(secret_on(page)).status_code == 200
    assert call(token.secret).status_code == 200
    assert f"Replaces {token}" in page.content.decode()
    token.refresh_from_db()
    assert timedelta(hours=1) <= token.expires_at - before <= timedelta(hours=1, minutes=1)
    rows = {key.token.pk: (key.state, key.successor) for key in owner.get(at("keys")).context["keys"]}
    assert rows == {new.pk: ("live", None), token.pk: ("replaced", new)}


def test_rotation_at_once_ends_the_old_key(owner, at, token):
    owner.post(at("key_rotate", token), {"overlap": "0"})
    assert call(token.secret).status_code == 401
    assert owner.get(at("keys")).context["ended_count"] == 1


def test_a_double_click_rotates_once(owner, at, token):
    form = {"overlap": "86400", "once": "abc"}
    answers = [owner.post(at("key_rotate", token), form)["Location"] for _ in range(2)]
    new = ApiToken.everywhere.get(rotated_from=token)
    assert answers == [at("key_secret", new)] * 2
    assert secret_on(owner.get(answers[1])).endswith(new.last_four)


def test_a_key_with_a_successor_is_not_rotated(owner, at, token):
    owner.post(at("key_rotate", token), {"overlap": "86400"})
    answer = owner.post(at("key_rotate", token), {"overlap": "86400"})
    assert answer.context["form"].non_field_errors() == [
        "This key already has a replacement. Rotate that one, or revoke it first."
    ]
    assert "This key was already replaced by" in owner.get(at("key_rotate", token)).content.decode()
    assert ApiToken.everywhere.count() == 2


# --- Ending ----------------------------------------------------------------------------------------------------------


def test_a_revoked_key_is_refused_at_once_and_the_undo_takes_it_back(owner, at, token, alice):
    answer = owner.post(at("key_revoke", token), follow=True)
    assert call(token.secret).status_code == 401
    [message] = answer.context["messages"]
    assert message.tags == "lasting success"
    assert f'action="{at("key_unrevoke", token)}"' in str(message)
    assert [key.token.name for key in answer.context["keys"]] == []
    answer = owner.post(at("key_unrevoke", token), follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["Import works again."]
    assert call(token.secret).status_code == 200
    told = AuditEntry.everywhere.filter(subject=tokens.public_id(token)).order_by("created_at", "id")
    assert [(entry.action, entry.actor) for entry in told][1:] == [
        ("token.revoked", alice.email),
        ("token.unrevoked", alice.email),
    ]


def test_the_undo_runs_out(owner, at, token):
    owner.post(at("key_revoke", token))
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=31)):
        answer = owner.post(at("key_unrevoke", token), follow=True)
        assert "This can't be undone any more. Make a new key." in unescape(answer.content.decode())
    assert call(token.secret).status_code == 401


def test_a_name_is_text_in_the_message_of_the_undo(owner, at, newsroom):
    token = TokenFactory(workspace=newsroom, name="<script>alert(1)</script>")
    page = owner.post(at("key_revoke", token), follow=True).content.decode()
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; was revoked." in page


def test_revoking_twice_says_so(owner, at, token):
    owner.post(at("key_revoke", token))
    owner.get(at("keys"))
    answer = owner.post(at("key_revoke", token), follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["Import was already revoked."]
    assert AuditEntry.everywhere.filter(action="token.revoked").count() == 1


def test_all_keys_are_revoked_and_only_this_workspace_s(owner, at, token, newsroom, elsewhere):
    second = TokenFactory(workspace=newsroom)
    assert "Charlie" not in owner.get(at("key_revoke_all")).content.decode()
    answer = owner.post(at("key_revoke_all"), follow=True)
    assert "2 keys revoked." in answer.content.decode()
    assert [call(one.secret).status_code for one in (token, second, elsewhere)] == [401, 401, 403]
    answer = owner.post(at("key_revoke_all"), follow=True)
    assert "No keys to revoke." in answer.content.decode()


# --- Reading ---------------------------------------------------------------------------------------------------------


def test_the_list_says_what_each_key_is_and_hides_the_ended(owner, at, newsroom, alice, elsewhere):
    now = datetime.now(UTC)
    soon = TokenFactory(workspace=newsroom, name="Soon", expires_at=now + timedelta(days=6))
    later = TokenFactory(
        workspace=newsroom, name="Later", scopes=["raw:read"], expires_at=now + timedelta(days=60)
    )
    over = TokenFactory(workspace=newsroom, name="Over")
    ApiToken.everywhere.filter(pk=over.pk).update(expires_at=now - timedelta(days=1))
    gone = TokenFactory(workspace=newsroom, name="Gone")
    tokens.revoke(gone, alice)
    tokens.record_use(later, address="203.0.113.9", now=now)

    page = owner.get(at("keys"))
    assert [(key.token.name, key.state, key.preset) for key in page.context["keys"]] == [
        ("Later", "live", ""),
        ("Soon", "soon", "Full access"),
    ]
    text = page.content.decode()
    assert "from 203.0.113.9" in text
    assert "by the people who run this service" in text
    assert f"{soon.prefix}…{soon.last_four}" in text
    assert "Show 2 expired and revoked keys" in text
    assert [name for name in ("Gone", "Over", "Charlie") if name in text] == []

    page = owner.get(at("keys") + "?ended=1")
    assert [(key.token.name, key.state) for key in page.context["ended"]] == [
        ("Gone", "revoked"),
        ("Over", "expired"),
    ]
    assert "Charlie" not in page.content.decode()


def test_a_workspace_without_keys_says_what_to_do(owner, at):
    page = owner.get(at("keys")).content.decode()
    assert "No keys yet" in page
    assert f'href="{at("key_create")}"' in page


def test_the_list_asks_as_often_for_many_keys_as_for_one(
    owner, at, newsroom, alice, django_assert_num_queries
):
    def grow(number):
        for _ in range(number):
            old = TokenFactory(workspace=newsroom, created_by=alice)
            tokens.rotate(old, by=alice)
            tokens.revoke(TokenFactory(workspace=newsroom, created_by=alice), alice)

    def count():
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert owner.get(at("keys") + "?ended=1").status_code == 200
        return len(asked)

    grow(1)
    owner.get(at("keys"))
    few = count()
    grow(5)
    assert count() == few


@pytest.mark.parametrize(
    "name", ["key", "key_requests", "key_secret", "key_rotate", "key_revoke", "key_unrevoke"]
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_another_workspace_s_key_is_not_there(owner, at, elsewhere, name, method):
    answer = getattr(owner, method)(at(name, elsewhere), {"overlap": "0"})
    assert answer.status_code in {404, 405}
    assert call(elsewhere.secret).status_code == 403
    assert ApiToken.everywhere.count() == 1


# --- The last requests -----------------------------------------------------------------------------------------------


def test_a_key_s_page_shows_its_requests_and_nobody_else_s(owner, at, newsroom, elsewhere):
    token = TokenFactory(workspace=newsroom, scopes=["raw:read"])
    other = TokenFactory(workspace=newsroom)
    assert "Run the first line above" in owner.get(at("key", token)).content.decode()
    call(other.secret, "/v1/outlets")
    call(elsewhere.secret, "/v1/personas")
    answers = [call(token.secret, path) for path in ("/v1/workspace?x=secret", "/v1/sources", "/v1/nothing")]
    page = owner.get(at("key", token))
    assert [(seen.method, seen.path, seen.status) for seen in page.context["requests"]] == [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/sources", 403),
        ("GET", "/v1/workspace", 400),
    ]
    assert [seen.request_id for seen in page.context["requests"]] == [
        answer["X-Request-Id"] for answer in reversed(answers)
    ]
    assert "x=secret" not in page.content.decode()


def test_the_part_that_changes_is_sent_only_when_it_did(owner, at, token):
    seen = owner.get(at("key", token)).context["seen"]
    assert owner.get(at("key_requests", token), {"seen": seen}).status_code == 204
    call(token.secret)
    changed = owner.get(at("key_requests", token), {"seen": seen})
    assert changed.status_code == 200
    assert changed.content.decode().lstrip().startswith('<div id="requests" hx-get=')
    assert owner.get(at("key_requests", token), {"seen": changed.context["seen"]}).status_code == 204


def test_a_part_whose_session_ended_opens_its_page_anew(at, token):
    answer = Client().get(at("key_requests", token), headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"], answer.content) == (200, "true", b"")


def test_a_record_that_cannot_be_read_is_said(owner, at, token, monkeypatch):
    monkeypatch.setattr("accounts.access.recent_requests.read_recent_requests", lambda token_id: None)
    assert "Requests are unavailable" in owner.get(at("key", token)).content.decode()


def test_an_ended_key_s_page_asks_no_more(owner, at, token, alice):
    tokens.revoke(token, alice)
    page = owner.get(at("key", token)).content.decode()
    assert "hx-get" not in page
    assert "This key is no longer active." in page
