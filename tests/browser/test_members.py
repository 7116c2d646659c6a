"""Members in a browser: invite, sign up by the invitation, change a role, remove, undo, leave; by keyboard too."""

from __future__ import annotations

import pytest
from django.core import mail

from accounts import members
from accounts.models import Membership
from tests.browser.people import PASSWORD, follow, link_of_last_mail, log_in, look_over, person
from tests.factories import MembershipFactory
from tests.pages.answers import at

pytestmark = pytest.mark.django_db(transaction=True)


def roles(workspace):
    return dict(Membership.objects.of(workspace).values_list("user__email", "role"))


def test_from_the_invitation_to_the_first_page(open_window, newsroom, settings):
    settings.SIGNUP_OPEN = False
    owner = open_window()
    log_in(owner, newsroom.alice, at(newsroom, "members"))
    owner.get_by_text("No pending invitations").wait_for()
    look_over(owner, "members-empty")
    owner.get_by_role("link", name="Invite").click()
    dialog = owner.get_by_role("dialog")
    dialog.get_by_label("Email address").fill("dora@example.test")
    look_over(owner, "member-invite-dialog")
    dialog.get_by_text("Viewer").click()
    dialog.get_by_role("button", name="Send invitation").click()
    owner.get_by_text("Invitation sent to dora@example.test.").wait_for()
    look_over(owner, "members-invited")

    dora = open_window(phone=True)
    dora.goto(link_of_last_mail())
    look_over(dora, "invitation-new")
    dora.get_by_role("button", name="Create an account and join").click()
    assert dora.get_by_label("Email").input_value() == "dora@example.test"
    look_over(dora, "invitation-sign-up")
    dora.get_by_label("Your name").fill("Dora Example")
    dora.get_by_label("Password").fill(PASSWORD)
    dora.get_by_role("button", name="Create the account").click()
    dora.get_by_text("Welcome to Newsroom. Your role: Viewer.").wait_for()
    assert dora.url.endswith(at(newsroom, "home"))
    assert roles(newsroom) == {"alice@example.test": "owner", "dora@example.test": "viewer"}
    assert [one.to for one in mail.outbox] == [["dora@example.test"]]


def test_somebody_with_an_account_joins_and_another_can_t(open_window, newsroom):
    dora, eve = person("dora@example.test"), person("eve@example.test")
    members.invite(newsroom, dora.email, "editor", by=newsroom.alice)
    link = link_of_last_mail()
    other = open_window()
    log_in(other, eve, link)
    other.get_by_text("You are logged in as eve@example.test.").wait_for()
    look_over(other, "invitation-other-address")
    other.get_by_role("button", name="Log out and continue").click()
    other.get_by_role("link", name="Log in to join").click()
    other.get_by_label("Email").fill(dora.email)
    other.get_by_label("Password").fill(PASSWORD)
    follow(other, other.get_by_role("button", name="Log in", exact=True))
    look_over(other, "invitation-join")
    other.get_by_role("button", name="Join").click()
    other.get_by_text("Welcome to Newsroom. Your role: Editor.").wait_for()
    assert roles(newsroom) == {"alice@example.test": "owner", "dora@example.test": "editor"}


def test_an_old_link_says_what_to_do(page, newsroom, complaints):
    complaints.expect("404")
    page.goto(f"/invitations/{'x' * 43}")
    page.get_by_text("This invitation has expired").first.wait_for()
    look_over(page, "invitation-over")


def test_role_removal_and_undo(page, newsroom):
    MembershipFactory(
        workspace=newsroom, user=person("bob@example.test", "Bob Example"), role=Membership.Role.EDITOR
    )
    MembershipFactory(workspace=newsroom, user=person("vera@example.test"), role=Membership.Role.VIEWER)
    log_in(page, newsroom.alice, at(newsroom, "members"))
    page.get_by_role("link", name="Change role bob@example.test").click()
    page.get_by_role("dialog").get_by_text("Owner", exact=True).click()
    look_over(page, "member-role-dialog")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_text("bob@example.test is now Owner.").wait_for()
    page.get_by_role("link", name="Remove bob@example.test").click()
    page.get_by_role("dialog").wait_for()
    look_over(page, "member-remove-dialog")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_text("bob@example.test was removed.").wait_for()
    look_over(page, "members-removed")
    assert roles(newsroom) == {"alice@example.test": "owner", "vera@example.test": "viewer"}
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Member restored.").wait_for()
    assert roles(newsroom)["bob@example.test"] == "owner"


def test_the_last_owner_is_told_why_they_stay(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom, "members"))
    page.get_by_role("link", name="Leave").click()
    page.get_by_text("You are the last owner.").wait_for()
    look_over(page, "member-leave-last")


def test_by_keyboard_and_without_scripts(open_window, newsroom):
    page = open_window()
    log_in(page, newsroom.alice, at(newsroom, "members"))
    page.get_by_role("link", name="Invite").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.textContent.trim()") == "Invite"
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Email address").focus()
    page.keyboard.type("dora@example.test")
    page.keyboard.press("Enter")
    page.get_by_text("Invitation sent to dora@example.test.").wait_for()

    plain = open_window(scripts=False)
    log_in(plain, newsroom.alice, at(newsroom, "members"))
    plain.get_by_role("link", name="Invite").click()
    plain.get_by_label("Email address").fill("eve@example.test")
    plain.get_by_role("button", name="Send invitation").click()
    plain.get_by_text("Invitation sent to eve@example.test.").wait_for()
    assert sorted(members.pending_invitations(newsroom).values_list("email", flat=True)) == [
        "dora@example.test",
        "eve@example.test",
    ]
