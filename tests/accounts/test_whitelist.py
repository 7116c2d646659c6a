"""The queue of workspaces that wish to be let in: who is told, what changes, and the operator's page."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.core import mail
from django.urls import reverse

from accounts import whitelist_requests
from accounts.models import AuditEntry, WhitelistRequest, Workspace
from config.core.errors import Conflict, Invalid
from tests.factories import MembershipFactory, UserFactory, WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls_admin")]

LIST = "admin:accounts_whitelistrequest_changelist"


@pytest.fixture
def outside(db, alice):
    workspace = WorkspaceFactory(name="Alice's\nnewsroom", whitelisted_at=None)
    MembershipFactory(workspace=workspace, user=alice)
    MembershipFactory(workspace=workspace, user=UserFactory(email="bob@example.test"), role="editor")
    # Nobody of another workspace is told.
    MembershipFactory(user=UserFactory(email="charlie@example.test"))
    return workspace


@pytest.fixture
def request_(outside):
    return whitelist_requests.request_whitelisting(outside, " We write about trams. ", "alice@example.test")


def is_in(workspace):
    return Workspace.everywhere.get(pk=workspace.pk).is_whitelisted


def sent():
    return [(message.to, message.subject) for message in mail.outbox]


def actions():
    return list(AuditEntry.everywhere.order_by("id").values_list("action", "actor"))


def test_asking_tells_the_operator(outside, settings, django_capture_on_commit_callbacks):
    settings.OPERATOR_CONTACT = "op@example.test"
    with django_capture_on_commit_callbacks(execute=True):
        made = whitelist_requests.request_whitelisting(
            outside, " We write about trams. ", "alice@example.test"
        )
    assert (made.status, made.message, made.asked_by) == (
        "pending",
        "We write about trams.",
        "alice@example.test",
    )
    assert sent() == [(["op@example.test"], "Alice's newsroom requests access")]
    assert "We write about trams." in mail.outbox[0].body
    page = reverse("admin:accounts_whitelistrequest_decide", args=[made.pk])
    assert f"{settings.PUBLIC_URL}{page}" in mail.outbox[0].body.split("\n\n")
    assert not is_in(outside)


def test_one_request_waits_at_a_time(request_, outside):
    with pytest.raises(Conflict):
        whitelist_requests.request_whitelisting(outside, "Again", "alice@example.test")
    whitelist_requests.refuse_request(request_, "Not yet", "op")
    assert whitelist_requests.request_whitelisting(outside, "Again", "alice@example.test").status == "pending"


def test_who_is_in_need_not_ask(workspace):
    with pytest.raises(Conflict):
        whitelist_requests.request_whitelisting(workspace, "", "alice@example.test")
    assert not WhitelistRequest.everywhere.exists()


def test_approving_lets_in_and_tells_the_owners(request_, outside, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        whitelist_requests.approve_request(request_, "op")
    assert is_in(outside)
    assert sent() == [(["alice@example.test"], "Access for Alice's newsroom was approved")]
    kept = WhitelistRequest.everywhere.get()
    assert (kept.status, kept.decided_by, kept.decided_at is not None) == ("approved", "op", True)
    assert actions() == [
        ("whitelisting.asked", "alice@example.test"),
        ("workspace.whitelisted", "op"),
        ("whitelisting.approved", "op"),
    ]


def test_refusing_tells_the_reason(request_, outside, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        whitelist_requests.refuse_request(request_, "Spam, sadly.", "op")
    assert not is_in(outside)
    assert sent() == [(["alice@example.test"], "Access for Alice's newsroom was refused")]
    assert "Spam, sadly." in mail.outbox[0].body


def test_access_granted_or_revoked_elsewhere_is_mailed_and_decides_the_request(
    request_, outside, django_capture_on_commit_callbacks
):
    """On the page of a workspace, in its list, by a command."""
    for act in (whitelist_requests.grant, whitelist_requests.grant, whitelist_requests.revoke):
        with django_capture_on_commit_callbacks(execute=True):
            act(outside, "op")
    assert sent() == [
        (["alice@example.test"], "Access for Alice's newsroom was approved"),
        (["alice@example.test"], "Access for Alice's newsroom was revoked"),
    ]
    assert WhitelistRequest.everywhere.get().status == "approved"
    assert (is_in(outside), whitelist_requests.revoke(outside, "op")) == (False, False)
    assert whitelist_requests.grant(outside, "op") is True


def test_each_mail_says_first_what_happened_and_what_holds_now(
    request_, outside, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        whitelist_requests.refuse_request(request_, "Spam, sadly.", "op")
        whitelist_requests.grant(outside, "op")
        whitelist_requests.revoke(outside, "op")
    refused, approved, revoked = [message.body for message in mail.outbox]
    assert refused.startswith("An operator of Content pipeline refused access for Alice's newsroom.")
    assert "publish to the workspace feed and the test channel" in refused
    assert "Sources, your own outlets, AI and API keys work now." in approved.split("\n\n")[0]
    assert "Sources, publishing and the API are paused." in revoked.split("\n\n")[0]


def test_a_request_after_a_revocation_is_refused_without_a_sandbox(
    outside, django_capture_on_commit_callbacks
):
    whitelist_requests.grant(outside, "op")
    whitelist_requests.revoke(outside, "op")
    with django_capture_on_commit_callbacks(execute=True):
        request = whitelist_requests.request_whitelisting(outside, "", "alice@example.test")
    assert "Its access was revoked" in mail.outbox[-1].body
    with django_capture_on_commit_callbacks(execute=True):
        whitelist_requests.refuse_request(request, "No.", "op")
    assert "workspace feed" not in mail.outbox[-1].body


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
def test_a_refusal_needs_a_reason(request_, reason):
    with pytest.raises(Invalid):
        whitelist_requests.refuse_request(request_, reason, "op")
    assert WhitelistRequest.everywhere.get().status == "pending"


def test_what_was_decided_stays(request_, outside):
    stale = WhitelistRequest.everywhere.select_related("workspace").get()
    whitelist_requests.refuse_request(request_, "No", "op")
    with pytest.raises(Conflict):
        whitelist_requests.approve_request(stale, "other")
    assert not is_in(outside)


def test_a_relay_that_is_away_changes_nothing(
    request_, outside, settings, django_capture_on_commit_callbacks
):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    # Nothing listens there.
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    with django_capture_on_commit_callbacks(execute=True):
        whitelist_requests.approve_request(request_, "op")
    assert is_in(outside)


def test_the_operator_approves_in_the_queue(browser, request_, outside):
    given = {"action": "approve", "_selected_action": [request_.pk]}
    answer = browser.post(reverse(LIST), given, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["1 request was decided."]
    assert is_in(outside)


def test_the_operator_is_asked_for_the_reason_of_a_refusal(browser, request_, outside):
    given = {"action": "refuse", "_selected_action": [request_.pk]}
    answer = browser.post(reverse(LIST), given)
    assert answer.status_code == 200
    assert 'name="reason"' in answer.content.decode()
    assert WhitelistRequest.everywhere.get().status == "pending"
    answer = browser.post(reverse(LIST), {**given, "reason": "No trams."}, follow=True)
    assert [str(message) for message in answer.context["messages"]] == ["1 request was decided."]
    assert WhitelistRequest.everywhere.get().reason == "No trams."


# --- The page of one request -----------------------------------------------------------------------------------------


def page_of(request):
    return reverse("admin:accounts_whitelistrequest_decide", args=[request.pk])


def said(answer):
    return [str(message) for message in answer.context["messages"]]


def test_its_page_says_what_approval_opens_and_one_click_approves(browser, request_, outside):
    page = browser.get(page_of(request_)).content.decode()
    assert "We write about trams." in page
    assert "posts are sent to its accounts at platforms" in page
    assert not is_in(outside)
    answer = browser.post(page_of(request_), {"approve": "Approve access"}, follow=True)
    assert said(answer) == ["Access for Alice's\nnewsroom approved. Its owners get a mail."]
    assert is_in(outside)
    # It is decided: nothing is left to click, and a second click says so.
    assert "Approve access" not in answer.content.decode()
    (line,) = said(browser.post(page_of(request_), {"approve": "Approve access"}))
    assert "approved" in line


def test_its_page_refuses_with_a_reason(browser, request_, outside):
    answer = browser.post(page_of(request_), {"refuse": "Refuse access", "reason": " "})
    assert "Give a reason" in said(answer)[0]
    assert WhitelistRequest.everywhere.get().status == "pending"
    answer = browser.post(page_of(request_), {"refuse": "Refuse access", "reason": "No trams."}, follow=True)
    assert said(answer) == ["Access for Alice's\nnewsroom refused. Its owners get your reason by mail."]
    assert "No trams." in answer.content.decode()
    assert not is_in(outside)


@pytest.mark.parametrize("name", ["changelist", "change"])
def test_list_and_record_lead_to_the_page(browser, request_, name):
    address = reverse(
        f"admin:accounts_whitelistrequest_{name}", args=[request_.pk] if name == "change" else []
    )
    assert f'href="{page_of(request_)}"' in browser.get(address).content.decode()


def test_seeing_a_request_is_not_deciding(client, request_, outside):
    person = UserFactory(email="looks@example.test", is_staff=True)
    client.force_login(person)
    assert client.get(page_of(request_)).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="view_whitelistrequest"))
    page = client.get(page_of(request_))
    assert (page.status_code, "Approve access" in page.content.decode()) == (200, False)
    assert client.post(page_of(request_), {"approve": "1"}).status_code == 403
    assert not is_in(outside)
