"""Connecting by a platform's own log-in: from the page to the platform and back, once, by the same person."""

from __future__ import annotations

import html
import importlib
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.sites import site
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, Membership
from config.core.http_client import shared
from config.core.ids import encode
from pipeline.models import OAuthApp, OAuthAttempt, Outlet
from pipeline.outlets import oauth_connect, renewal
from pipeline.outlets.outlet_client import account_of
from tests.pages.answers import at
from tests.platforms.servers.tokens import CLIENT_ID, CLIENT_SECRET

KINDS = ("linkedin", "x", "youtube")


@pytest.fixture
def open_way(settings, loopback):
    settings.PUBLIC_URL = "https://app.example.test"


def started(kind, settings):
    server = importlib.import_module(f"tests.platforms.servers.{kind}").Server()
    server.__enter__()
    settings.PLATFORM_ADDRESSES = {kind: f"{server.url}/2" if kind == "x" else server.url}
    return server


@pytest.fixture(params=KINDS)
def server(request, settings, open_way):
    there = started(request.param, settings)
    there.kind = request.param
    yield there
    there.__exit__()


@pytest.fixture
def x(settings, open_way):
    there = started("x", settings)
    there.kind = "x"
    yield there
    there.__exit__()


def registered(kind):
    return oauth_connect.register(
        OAuthApp(platform=kind, client_id=CLIENT_ID),
        secret=CLIENT_SECRET,
        by="operator@example.test",
        now=timezone.now(),
    )


def begun(browser, workspace, kind, **data):
    """The platform's address that the page leads to."""
    start = reverse("outlet_oauth_start", kwargs={"ws": workspace.pk, "kind": kind})
    answer = browser.post(start, data)
    assert answer.status_code == 200
    link = html.unescape(re.search(r'rel="noreferrer" href="([^"]+)"', answer.content.decode())[1])
    assert answer["Refresh"] == f"0; url={link}"
    assert answer["Cache-Control"] == "no-store"
    return link


def way_back(address):
    """What the platform answers the person's browser with: the address here, with a code."""
    answer = shared.client().get(address)
    assert answer.status == 302, answer.body
    there = urlsplit(answer.headers["Location"])
    assert f"{there.scheme}://{there.netloc}" == "https://app.example.test"
    return f"{there.path}?{there.query}"


def credentials(outlet):
    return Outlet.everywhere.get(pk=outlet.pk).credentials.open_object()


def test_a_person_connects_by_the_platforms_own_log_in(owner, newsroom, server):
    registered(server.kind)
    answer = owner.get(way_back(begun(owner, newsroom, server.kind)))

    outlet = Outlet.objects.of(newsroom).get(platform=server.kind)
    assert (answer.status_code, answer["Location"]) == (
        302,
        reverse("outlet_page", kwargs={"ws": newsroom.pk, "out": outlet.pk}),
    )
    kept = credentials(outlet)
    assert kept["access_token"] in server.oauth.access_tokens
    assert set(kept) - {"access_token", "refresh_token", "scope", "expires_at"} == set()
    assert outlet.profile["external_id"]
    lives = timedelta(seconds=server.oauth.lives_for)
    assert timedelta(0) <= timezone.now() + lives - outlet.expires_at < timedelta(minutes=1)
    assert outlet.connected_by == "alice@example.test"
    assert OAuthAttempt.everywhere.count() == 0
    # The account is asked at once, and its scopes are those that posting needs.
    wanted = set(importlib.import_module(f"pipeline.platforms.{server.kind}").PLUGIN.oauth.scopes)
    assert set(server.oauth.scope_asked.split()) == wanted


def test_the_proof_of_pkce_goes_to_the_token_address_alone(owner, newsroom, x):
    registered("x")
    address = begun(owner, newsroom, "x")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    owner.get(way_back(address))

    proof = x.oauth.asked[0]["code_verifier"]
    assert 43 <= len(proof) <= 128
    assert proof not in address
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == "https://app.example.test/outlets/connect/x/callback"


def test_a_wrong_proof_is_refused_by_the_platform(owner, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))
    OAuthAttempt.everywhere.update(verifier="a" * 96)
    answer = owner.get(back)

    assert answer.status_code == 409
    assert "The code is no good" in answer.content.decode()
    assert not Outlet.objects.of(newsroom).filter(platform="x").exists()


def test_a_way_back_is_good_once(owner, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))
    assert owner.get(back).status_code == 302
    again = owner.get(back)

    assert again.status_code == 400
    assert "was used already" in again.content.decode()
    assert Outlet.objects.of(newsroom).filter(platform="x").count() == 1
    assert len(x.oauth.asked) == 1


def test_a_way_back_is_the_persons_own(owner, newsroom, charlie, as_person, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))

    assert as_person(charlie).get(back).status_code == 400
    assert as_person(None).get(back)["Location"].startswith("/account/login/")
    assert x.oauth.asked == []
    # Neither used it up.
    assert owner.get(back).status_code == 302


def test_a_way_back_ends(owner, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))
    OAuthAttempt.everywhere.update(expires_at=timezone.now())

    assert owner.get(back).status_code == 400
    assert (x.oauth.asked, OAuthAttempt.everywhere.count()) == ([], 0)


@pytest.mark.parametrize("state", ["", "made-up", "a" * 3000, "\udcff"])
def test_a_made_up_state_is_refused(owner, newsroom, open_way, state):
    registered("x")
    answer = owner.get(
        reverse("outlet_oauth_callback", kwargs={"kind": "x"}),
        {"code": "c", "state": state.encode("utf-8", "replace")},
    )

    assert answer.status_code == 400


def test_a_state_of_one_platform_is_none_of_another(owner, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))

    assert owner.get(back.replace("/x/", "/youtube/")).status_code == 400


def test_a_person_who_says_no_is_told_that_nothing_changed(owner, newsroom, server):
    registered(server.kind)
    server.oauth.is_refused = True
    answer = owner.get(way_back(begun(owner, newsroom, server.kind)))

    assert answer.status_code == 409
    text = html.unescape(answer.content.decode())
    assert "Nothing was changed." in text
    assert reverse("outlet_connect", kwargs={"ws": newsroom.pk, "kind": server.kind}) in text
    assert server.oauth.asked == []


def returned(browser, address, **answer):
    """The page that a person lands on whom the platform sent back with this answer."""
    state = parse_qs(urlsplit(address).query)["state"][0]
    return browser.get(reverse("outlet_oauth_callback", kwargs={"kind": "x"}), {"state": state, **answer})


@pytest.mark.parametrize(
    ("error", "message", "advice", "code", "is_for_operator"),
    [
        (
            "access_denied",
            "You didn't allow access at X. Nothing was changed.",
            "Try again and allow all permissions at X.",
            "",
            False,
        ),
        (
            "invalid_scope",
            "X denies the permissions needed.",
            "Contact the people who run this service: they must apply for access there.",
            "invalid_scope",
            True,
        ),
        (
            "temporarily_unavailable",
            "X is unavailable.",
            "Try again in a few minutes.",
            "temporarily_unavailable",
            False,
        ),
        (
            "odd",
            "X didn't grant permission.",
            "Try again. If it fails again, contact the people who run this service.",
            "odd",
            True,
        ),
        # What is no code isn't repeated: whoever makes an address must not put words into our mouth.
        (
            "Call 0900 now",
            "X didn't grant permission.",
            "Try again. If it fails again, contact the people who run this service.",
            "",
            True,
        ),
    ],
)
def test_a_failure_says_what_happened_and_what_to_do(
    owner, newsroom, settings, x, error, message, advice, code, is_for_operator
):
    settings.OPERATOR_CONTACT = "help@operator.example"
    registered("x")
    answer = returned(owner, begun(owner, newsroom, "x"), error=error, error_description="Call 0900 now")
    failure, page = answer.context["failure"], html.unescape(answer.content.decode())

    assert answer.status_code == 409
    assert (failure.message, failure.advice, failure.code) == (message, advice, code)
    assert [part in page for part in (message, advice, "Call 0900 now")] == [True, True, False]
    assert ("Contact: help@operator.example" in page) is is_for_operator
    assert (at(newsroom, "outlet_connect", kind="x") in page) is (error != "invalid_scope")
    assert f'href="{at(newsroom, "outlets_page")}"' in page


def test_an_outlet_that_is_not_connected_again_stays_as_it_was(owner, newsroom, x):
    registered("x")
    owner.get(way_back(begun(owner, newsroom, "x")))
    outlet = Outlet.objects.of(newsroom).get(platform="x")
    former = credentials(outlet)
    again = begun(owner, newsroom, "x", outlet=str(outlet.pk))
    answer = returned(owner, again, error="access_denied")
    page = html.unescape(answer.content.decode())

    assert [part in page for part in ("The Paper was not reconnected", "The outlet is unchanged.")] == [
        True,
        True,
    ]
    assert at(newsroom, "outlet_reconnect", out=outlet.pk) in page
    assert credentials(outlet) == former
    # One that was disconnected meanwhile isn't offered.
    again = begun(owner, newsroom, "x", outlet=str(outlet.pk))
    Outlet.everywhere.filter(pk=outlet.pk).update(deleted_at=timezone.now())
    answer = returned(owner, again, error="access_denied")
    assert (answer.context["outlet"], answer.context["again"]) == (
        None,
        at(newsroom, "outlet_connect", kind="x"),
    )


def test_another_account_than_the_outlets_own_is_told_whose_it_has_to_be(owner, newsroom, x):
    registered("x")
    owner.get(way_back(begun(owner, newsroom, "x")))
    outlet = Outlet.objects.of(newsroom).get(platform="x")
    second = owner.get(way_back(begun(owner, newsroom, "x")))
    assert second.context["failure"].advice == ("To use another account, log in to it at X first.")
    Outlet.everywhere.filter(pk=outlet.pk).update(profile={**outlet.profile, "external_id": "another"})
    answer = owner.get(way_back(begun(owner, newsroom, "x", outlet=str(outlet.pk))))
    assert answer.context["failure"].advice == ("Log in at X with the account of The Paper, then try again.")


def test_an_application_that_is_not_taken_is_the_operators(owner, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))
    OAuthApp.everywhere.filter(platform="x").update(client_secret="wrong")
    failure = owner.get(back).context["failure"]
    assert (failure.advice, failure.is_for_operator) == (
        "Contact the people who run this service.",
        True,
    )


def test_who_lost_the_role_meanwhile_connects_nothing(owner, alice, newsroom, x):
    registered("x")
    back = way_back(begun(owner, newsroom, "x"))
    Membership.objects.of(newsroom).filter(user=alice).update(role=Membership.Role.VIEWER)

    assert owner.get(back).status_code == 403
    assert x.oauth.asked == []


def test_an_outlet_is_connected_again_by_the_same_account(owner, newsroom, x):
    registered("x")
    owner.get(way_back(begun(owner, newsroom, "x")))
    outlet = Outlet.objects.of(newsroom).get(platform="x")
    former = credentials(outlet)
    answer = owner.get(way_back(begun(owner, newsroom, "x", outlet=str(outlet.pk))))

    assert answer["Location"] == reverse("outlet_page", kwargs={"ws": newsroom.pk, "out": outlet.pk})
    assert credentials(outlet)["access_token"] != former["access_token"]
    # A second time as a new one is refused, and says which it is.
    second = owner.get(way_back(begun(owner, newsroom, "x")))
    assert second.status_code == 409
    assert "This account is connected already" in second.content.decode()


def test_an_outlet_of_another_platform_or_workspace_is_none(owner, newsroom, charlie, open_way):
    registered("x")
    start = reverse("outlet_oauth_start", kwargs={"ws": newsroom.pk, "kind": "x"})
    feed = Outlet.objects.of(newsroom).get(platform="feed")
    theirs = Outlet.everywhere.exclude(workspace=newsroom).first()

    assert owner.post(start, {"outlet": str(feed.pk)}).status_code == 409
    assert owner.post(start, {"outlet": str(theirs.pk)}).status_code == 404
    assert owner.post(start, {"outlet": "none"}).status_code == 404
    assert OAuthAttempt.everywhere.count() == 0


def test_without_an_application_the_page_says_whose_turn_it_is(owner, newsroom, open_way):
    page = reverse("outlet_connect", kwargs={"ws": newsroom.pk, "kind": "x"})
    start = reverse("outlet_oauth_start", kwargs={"ws": newsroom.pk, "kind": "x"})
    without = html.unescape(owner.get(page).content.decode())
    answer = owner.post(start)
    registered("x")
    with_one = html.unescape(owner.get(page).content.decode())

    assert "X isn't available yet" in without
    assert start not in without
    assert answer.status_code == 409
    assert "register an application" in html.unescape(answer.content.decode())
    assert start in with_one


@pytest.mark.parametrize("kind", ["feed", "nothing"])
def test_other_platforms_have_no_log_in(owner, newsroom, open_way, kind):
    assert (
        owner.post(reverse("outlet_oauth_start", kwargs={"ws": newsroom.pk, "kind": kind})).status_code == 404
    )
    assert owner.get(reverse("outlet_oauth_callback", kwargs={"kind": kind})).status_code == 404


def test_a_token_is_renewed_with_the_operators_client(owner, newsroom, x):
    registered("x")
    owner.get(way_back(begun(owner, newsroom, "x")))
    outlet = Outlet.objects.of(newsroom).get(platform="x")
    former = credentials(outlet)
    Outlet.everywhere.filter(pk=outlet.pk).update(expires_at=timezone.now())
    renewed = renewal.fresh_credentials(Outlet.everywhere.get(pk=outlet.pk))

    assert credentials(outlet)["refresh_token"] in x.oauth.refresh_tokens
    assert former["refresh_token"] not in x.oauth.refresh_tokens
    assert set(credentials(outlet)) == {"access_token", "refresh_token", "scope", "expires_at"}
    assert account_of(renewed, is_open=True).credentials["client_secret"] == CLIENT_SECRET
    assert "client_secret" not in account_of(renewed).credentials


def test_old_ways_are_forgotten(owner, newsroom, open_way):
    registered("x")
    begun(owner, newsroom, "x")
    begun(owner, newsroom, "x")
    OAuthAttempt.everywhere.filter(pk=OAuthAttempt.everywhere.first().pk).update(
        expires_at=timezone.now() - timedelta(seconds=1)
    )

    assert [oauth_connect.forget(timezone.now()) for _ in range(2)] == [1, 0]
    assert OAuthAttempt.everywhere.count() == 1


def test_the_database_holds_neither_state_nor_secrets_in_the_open(
    owner, newsroom, open_way, django_db_blocker
):
    from django.db import connection

    registered("x")
    address = begun(owner, newsroom, "x")
    state = parse_qs(urlsplit(address).query)["state"][0]
    with connection.cursor() as cursor:
        cursor.execute("SELECT state_hash, verifier FROM oauth_attempt")
        attempt = cursor.fetchone()
        cursor.execute("SELECT client_secret FROM oauth_app")
        (sealed,) = cursor.fetchone()

    assert state not in attempt[0]
    assert attempt[1].partition(":")[2]
    assert CLIENT_SECRET not in sealed


# --- The operator's side ---------------------------------------------------------------------------------------------


def test_the_admin_shows_the_address_to_register_and_never_the_secret(browser, open_way):
    add = reverse("admin:pipeline_oauthapp_add")
    shown = browser.get(add).content.decode()
    for kind in KINDS:
        assert f"https://app.example.test/outlets/connect/{kind}/callback" in shown
    answer = browser.post(
        add,
        {
            "platform": "x",
            "client_id": " id ",
            "secret": CLIENT_SECRET,
            "scopes": "",
            "review": "approved",
            "note": "",
        },
    )
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    app = OAuthApp.everywhere.get(platform="x")
    change = reverse("admin:pipeline_oauthapp_change", args=[app.pk])
    pages = [
        browser.get(one).content.decode() for one in (change, reverse("admin:pipeline_oauthapp_changelist"))
    ]

    assert (app.client_id, app.client_secret.open(), app.review) == ("id", CLIENT_SECRET, "approved")
    assert [CLIENT_SECRET in html.unescape(page) for page in pages] == [False, False]
    assert "https://app.example.test/outlets/connect/x/callback" in pages[0]
    assert "developer.x.com" in pages[0]


def test_an_empty_secret_leaves_the_former_one(browser, open_way):
    app = registered("x")
    change = reverse("admin:pipeline_oauthapp_change", args=[app.pk])
    browser.post(
        change, {"client_id": "another", "secret": "", "scopes": "", "review": "limited", "note": "n"}
    )
    app.refresh_from_db()

    assert (app.client_id, app.client_secret.open(), app.review) == ("another", CLIENT_SECRET, "limited")
    assert list(AuditEntry.everywhere.order_by("id").values_list("action", "subject")) == [
        ("oauth_app.saved", "x"),
        ("oauth_app.saved", "x"),
    ]


def test_an_application_that_is_deleted_is_told_in_the_log(browser, open_way):
    app = registered("x")
    browser.post(reverse("admin:pipeline_oauthapp_delete", args=[app.pk]), {"post": "yes"})

    assert not OAuthApp.everywhere.exists()
    assert AuditEntry.everywhere.order_by("-id").first().action == "oauth_app.deleted"
    assert site.is_registered(OAuthApp)


def test_further_scopes_are_asked_for(owner, newsroom, open_way):
    app = registered("linkedin")
    OAuthApp.everywhere.filter(pk=app.pk).update(scopes="r_member_postAnalytics openid")
    asked = parse_qs(urlsplit(begun(owner, newsroom, "linkedin")).query)["scope"][0]

    assert asked == "openid profile w_member_social r_member_postAnalytics"


def test_public_ids_name_the_outlet_after_connecting(owner, newsroom, x):
    registered("x")
    answer = owner.get(way_back(begun(owner, newsroom, "x")), follow=True)
    outlet = Outlet.objects.of(newsroom).get(platform="x")

    assert answer.redirect_chain[-1][0].endswith(encode("out", outlet.pk))
    assert outlet.name == "The Paper"
