"""Members: who sees and changes what, invitations in all their ways, and the owner that must remain."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
import time_machine
from django.contrib.messages import get_messages
from django.core import mail
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import limits, members, workspaces
from accounts.models import AuditEntry, Invitation, Membership, NoticeChoice, User
from config.core.errors import AppError, Conflict
from tests.factories import MembershipFactory, UserFactory
from tests.pages.answers import at

PASSWORD = "a long enough phrase 9"


def said(answer):
    """The newest message; those before it wait for a page too."""
    return [str(message) for message in get_messages(answer.wsgi_request)][-1:]


def roles_in(workspace):
    rows = Membership.objects.of(workspace).order_by("id")
    return list(rows.values_list("user__email", "role"))


def noted(workspace):
    rows = AuditEntry.objects.of(workspace).filter(action__startswith="member.").order_by("id")
    return list(rows.values_list("action", "actor", "subject"))


def link_of_last_mail():
    found = re.search(r"http://127.0.0.1:8000(/invitations/[A-Za-z0-9_-]{43})\n", mail.outbox[-1].body)
    assert found, mail.outbox[-1].body
    return found[1]


@pytest.fixture
def link(owner, newsroom, django_capture_on_commit_callbacks):
    """Of an invitation for Dora as editor."""
    with django_capture_on_commit_callbacks(execute=True):
        owner.post(
            at(newsroom, "member_invite"), {"email": "Dora@example.test", "role": "editor", "once": "a"}
        )
    return link_of_last_mail()


def sign_up_by(link, email="dora@example.test"):
    client = Client()
    answer = client.post(link)
    assert (answer.status_code, answer["Location"]) == (302, "/account/signup/")
    return client, client.post("/account/signup/", {"email": email, "name": "Dora", "password1": PASSWORD})


# --- Inviting --------------------------------------------------------------------------------------------------------


def test_an_invitation_is_mailed_and_its_link_stands_nowhere_else(owner, newsroom, link):
    row = Invitation.objects.of(newsroom).get()
    assert (row.email, row.role, row.invited_by.email) == (
        "dora@example.test",
        "editor",
        "alice@example.test",
    )
    assert row.expires_at - row.sent_at == timedelta(days=7)
    assert mail.outbox[-1].to == ["dora@example.test"]
    token = link.rpartition("/")[2]
    assert token not in owner.get(at(newsroom, "members")).content.decode()
    assert bytes(row.digest) != token.encode()
    assert noted(newsroom) == [("member.invited", "alice@example.test", "dora@example.test")]


def test_without_a_mail_server_the_inviter_gets_the_link_once(owner, editor, newsroom, settings, tmp_path):
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    form = owner.get(at(newsroom, "member_invite")).content.decode()
    assert "No mail is sent here." in form
    assert "Send invitation" not in form
    given = {"email": "dora@example.test", "role": "editor", "once": "a"}
    page = owner.post(at(newsroom, "member_invite"), given, follow=True)
    link = page.context["new_link"]["address"]
    assert "No mail is sent here. Give this link to dora@example.test" in page.content.decode()
    assert said(page) == []
    assert link.startswith("http://127.0.0.1:8000/invitations/")
    for client in (owner, editor):
        assert client.get(at(newsroom, "members")).context["new_link"] is None
    row = Invitation.everywhere.get()
    Invitation.everywhere.update(sent_at=row.sent_at - limits.INVITATION_RESENT_AFTER)
    page = owner.post(at(newsroom, "member_resend", invitation=row.pk), follow=True)
    newer = page.context["new_link"]["address"]
    assert newer != link
    # The link proves nothing of the address: signing up by it asks for a code, as everywhere.
    client, answer = sign_up_by(newer.removeprefix("http://127.0.0.1:8000"))
    assert answer["Location"] == "/account/confirm-email/"
    assert not Membership.everywhere.filter(user__email="dora@example.test").exists()


def test_a_workspace_s_name_makes_no_link_in_the_mail(owner, newsroom, django_capture_on_commit_callbacks):
    newsroom.name = "Win at https://evil.example now, or evil.com"
    newsroom.save(update_fields=["name"])
    with django_capture_on_commit_callbacks(execute=True):
        owner.post(at(newsroom, "member_invite"), {"email": "dora@example.test", "role": "viewer"})
    [(html, _)] = mail.outbox[-1].alternatives
    addresses = re.findall(r'href="([^"]+)"', html)
    assert [one for one in addresses if "evil" in one] == []
    assert len([one for one in addresses if "/invitations/" in one]) == 1


def test_a_second_click_sends_no_second_mail(owner, newsroom, django_capture_on_commit_callbacks):
    form = {"email": "dora@example.test", "role": "editor", "once": "x"}
    with django_capture_on_commit_callbacks(execute=True):
        answers = [owner.post(at(newsroom, "member_invite"), form) for _ in range(2)]
    assert [(one.status_code, one["Location"]) for one in answers] == [(302, at(newsroom, "members"))] * 2
    assert len(mail.outbox) == Invitation.everywhere.count() == 1


@pytest.mark.parametrize(
    ("email", "error"),
    [
        ("BOB@example.test", "This person is a member already."),
        ("dora@example.test", "This address is invited already. Send the invitation again from the list."),
        ("nobody", "Enter a valid email address."),
    ],
)
def test_what_can_t_be_invited_is_said_at_the_field(owner, newsroom, bob, link, email, error):
    answer = owner.post(at(newsroom, "member_invite"), {"email": email, "role": "viewer", "once": "b"})
    assert answer.status_code == 200
    assert answer.context["form"].errors["email"] == [error]
    assert Invitation.everywhere.count() == 1


def test_pending_invitations_and_mails_are_limited(owner, newsroom, alice, monkeypatch):
    monkeypatch.setattr(limits, "INVITATIONS_PENDING", 2)
    monkeypatch.setattr(limits, "INVITATION_MAILS_PER_DAY", 3)
    first, second = (members.invite(newsroom, f"p{n}@example.test", "viewer", by=alice) for n in (1, 2))
    answer = owner.post(at(newsroom, "member_invite"), {"email": "p3@example.test", "role": "viewer"})
    assert answer.context["form"].non_field_errors() == [
        "2 invitations wait for an answer. Withdraw some first."
    ]
    for row in (first, second):
        assert members.withdraw_invitation(row, actor=alice.email)
    members.invite(newsroom, "p4@example.test", "viewer", by=alice)
    with pytest.raises(Conflict, match="3 invitations in a day"):
        members.invite(newsroom, "p5@example.test", "viewer", by=alice)
    assert Invitation.everywhere.count() == 3


def test_mails_of_earlier_days_don_t_count(newsroom, alice, monkeypatch):
    monkeypatch.setattr(limits, "INVITATION_MAILS_PER_DAY", 3)
    moment = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    with time_machine.travel(moment, tick=False) as clock:
        row = members.invite(newsroom, "p1@example.test", "viewer", by=alice)
        for wait in (timedelta(minutes=2), timedelta(hours=25)):
            clock.shift(wait)
            members.resend_invitation(Invitation.everywhere.get(pk=row.pk), by=alice)
        # One of its three mails was sent within a day, so there is room for two more.
        assert Invitation.everywhere.get(pk=row.pk).sends == 3
        for number in (2, 3):
            members.invite(newsroom, f"p{number}@example.test", "viewer", by=alice)
        with pytest.raises(Conflict, match="3 invitations in a day"):
            members.invite(newsroom, "p4@example.test", "viewer", by=alice)
        clock.shift(timedelta(hours=24))
        members.invite(newsroom, "p4@example.test", "viewer", by=alice)


def test_sending_again_makes_another_link(owner, newsroom, link, django_capture_on_commit_callbacks):
    row = Invitation.objects.of(newsroom).get()
    address = at(newsroom, "member_resend", invitation=row.pk)
    answer = owner.post(address)
    assert said(answer) == [
        "It was sent a moment ago, or it is no longer pending. Wait a minute and look again."
    ]
    Invitation.everywhere.update(sent_at=row.sent_at - timedelta(minutes=2))
    with django_capture_on_commit_callbacks(execute=True):
        owner.post(address)
    again = link_of_last_mail()
    assert again != link
    assert [Client().get(one).status_code for one in (link, again)] == [404, 200]
    assert Invitation.objects.of(newsroom).get().sends == 2


def test_a_withdrawn_invitation_opens_nothing_until_that_is_undone(owner, newsroom, link):
    row = Invitation.objects.of(newsroom).get()
    answer = owner.post(at(newsroom, "member_withdraw", invitation=row.pk), follow=True)
    assert at(newsroom, "member_reinstate", invitation=row.pk) in answer.content.decode()
    assert Client().get(link).status_code == 404
    owner.post(at(newsroom, "member_reinstate", invitation=row.pk))
    assert Client().get(link).status_code == 200
    assert [action for action, _, _ in noted(newsroom)] == [
        "member.invited",
        "member.invitation_withdrawn",
        "member.invitation_reinstated",
    ]


def test_a_head_withdraws_nothing(owner, newsroom, link):
    row = Invitation.objects.of(newsroom).get()
    assert owner.head(at(newsroom, "member_withdraw", invitation=row.pk)).status_code == 405
    assert list(members.pending_invitations(newsroom)) == [row]
    assert Client().get(link).status_code == 200


# --- Accepting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_open", [True, False])
def test_who_has_no_account_signs_up_and_is_in(newsroom, link, settings, is_open):
    settings.SIGNUP_OPEN = is_open
    sent = len(mail.outbox)
    client, answer = sign_up_by(link)
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom, "home"))
    assert client.get(answer["Location"]).status_code == 200
    assert roles_in(newsroom) == [("alice@example.test", "owner"), ("dora@example.test", "editor")]
    # The address was proven by the link: no code was asked for.
    assert len(mail.outbox) == sent
    assert [action for action, _, _ in noted(newsroom)] == ["member.invited", "member.joined"]


def test_closed_sign_up_stays_closed_without_an_invitation(newsroom, link, settings):
    settings.SIGNUP_OPEN = False
    client = Client()
    session = client.session
    session["invitation"] = "x" * 43
    session.save()
    client.post("/account/signup/", {"email": "eve@example.test", "password1": PASSWORD})
    assert not User.objects.filter(email="eve@example.test").exists()


def test_an_invitation_vouches_for_no_other_address(newsroom, link):
    _, answer = sign_up_by(link, email="eve@example.test")
    assert answer.context["form"].errors["email"] == ["Sign up with the invited address, dora@example.test."]
    assert not User.objects.filter(email__in=["eve@example.test", "dora@example.test"]).exists()


def test_who_has_an_account_logs_in_and_joins(newsroom, link):
    dora = UserFactory(email="dora@example.test", password=PASSWORD)
    dora.mark_email_verified()
    client = Client()
    assert "Log in to join" in client.get(link).content.decode()
    answer = client.post(f"/account/login/?next={link}", {"login": "dora@example.test", "password": PASSWORD})
    assert answer["Location"] == link
    # Opening it accepts nothing.
    client.get(link)
    assert roles_in(newsroom) == [("alice@example.test", "owner")]
    assert client.post(link)["Location"] == at(newsroom, "home")
    assert roles_in(newsroom)[1:] == [("dora@example.test", "editor")]
    # Following the link once more leads on, and a stranger learns nothing.
    assert client.get(link)["Location"] == at(newsroom, "home")
    assert Client().get(link).status_code == 404


def test_another_person_s_account_can_t_accept(newsroom, link, charlie, as_person):
    client = as_person(charlie)
    text = client.get(link).content.decode()
    assert "You are logged in as charlie@example.test." in text
    assert client.post(link)["Location"] == link
    assert roles_in(newsroom) == [("alice@example.test", "owner")]
    assert Invitation.objects.of(newsroom).get().accepted_at is None


def test_an_unproven_address_can_t_accept(newsroom, link, as_person):
    """Somebody may have typed the invited address into an account of theirs."""
    client = as_person(UserFactory(email="dora@example.test"))
    client.post(link)
    assert roles_in(newsroom) == [("alice@example.test", "owner")]


@pytest.mark.parametrize(
    "change",
    [{"expires_at": datetime(2026, 1, 1, tzinfo=UTC)}, {"withdrawn_at": datetime(2026, 1, 1, tzinfo=UTC)}],
)
def test_an_old_link_says_what_to_do(newsroom, link, change):
    Invitation.everywhere.update(**change)
    answer = Client().get(link)
    assert answer.status_code == 404
    assert "Use the newest mail or ask for a new invitation." in answer.content.decode()
    assert Client().post(link).status_code == 404


def test_who_is_in_already_keeps_their_role(newsroom, link, alice):
    dora = UserFactory(email="dora@example.test")
    dora.mark_email_verified()
    MembershipFactory(workspace=newsroom, user=dora, role="owner")
    row = members.find_invitation(link.rpartition("/")[2])
    assert members.accept_invitation(row, dora).role == "owner"
    # Nobody has joined.
    assert noted(newsroom) == [("member.invited", "alice@example.test", "dora@example.test")]
    with pytest.raises(Conflict, match="no longer works"):
        members.accept_invitation(row, dora)


def proven(email="dora@example.test"):
    person = UserFactory(email=email)
    person.mark_email_verified()
    return person


def test_a_link_that_was_used_lets_nobody_in_again(newsroom, owner, link, as_person):
    """Neither who was removed since, nor by a second session, nor by the link of the same mail once more."""
    dora = proven()
    first, second = as_person(dora), as_person(dora)
    assert (
        first.post(link)["Location"]
        == second.post(link, follow=True).redirect_chain[0][0]
        == at(newsroom, "home")
    )
    members.remove_member(newsroom, dora.pk, actor="test")
    assert [client.post(link).status_code for client in (first, second)] == [404, 404]
    row = Invitation.objects.of(newsroom).get()
    assert not members.reinstate_invitation(row, actor="test")
    assert roles_in(newsroom) == [("alice@example.test", "owner")]


def test_a_sign_up_by_a_link_that_was_withdrawn_meanwhile_joins_nothing(newsroom, owner, link, settings):
    client = Client()
    client.post(link)
    members.withdraw_invitation(Invitation.objects.of(newsroom).get(), actor="test")
    form = {"email": "dora@example.test", "name": "Dora", "password1": PASSWORD}
    settings.SIGNUP_OPEN = False
    client.post("/account/signup/", form)
    assert not User.objects.filter(email="dora@example.test").exists()
    settings.SIGNUP_OPEN = True
    client.post("/account/signup/", form)
    assert roles_in(newsroom) == [("alice@example.test", "owner")]


@pytest.mark.parametrize("way", ["removed", "lowered", "left"])
def test_who_is_no_owner_any_more_lets_nobody_in(newsroom, alice, bob, way):
    """They could have invited another address of their own, and come back by it."""
    members.change_role(newsroom, bob.pk, "owner", actor=alice.email)
    hers = members.invite(newsroom, "ann@example.test", "viewer", by=alice)
    his = members.invite(newsroom, "bob@elsewhere.test", "owner", by=bob)
    if way == "removed":
        members.remove_member(newsroom, bob.pk, actor=alice.email)
    elif way == "lowered":
        members.change_role(newsroom, bob.pk, "editor", actor=alice.email)
    else:
        members.leave_workspace(newsroom, bob)
    assert list(members.pending_invitations(newsroom)) == [hers]
    with pytest.raises(Conflict, match="no longer works"):
        members.accept_invitation(his, proven("bob@elsewhere.test"))
    assert ("member.invitation_withdrawn", his.email) in [(one[0], one[2]) for one in noted(newsroom)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("other", ["accept", "withdraw", "resend"])
def test_an_invitation_is_answered_once_by_several_at_the_same_moment(other):
    alice, dora = UserFactory(email="a@example.test"), proven()
    workspace = workspaces.create("Newsroom", owner=alice)
    row = members.invite(workspace, dora.email, "editor", by=alice)
    Invitation.everywhere.update(sent_at=row.sent_at - timedelta(minutes=2))
    ways = {
        "accept": lambda: members.accept_invitation(row, dora),
        "withdraw": lambda: members.withdraw_invitation(row, actor="test"),
        "resend": lambda: members.resend_invitation(row, by=alice),
    }
    acts = [ways["accept"], ways["accept"], ways[other], ways[other]]
    start, outcomes = Barrier(len(acts)), []

    def act(number):
        start.wait()
        try:
            outcomes.append(bool(acts[number]() or other == "resend"))
        except AppError as error:
            outcomes.append(error.detail[0].code)
        finally:
            connection.close()

    threads = [Thread(target=act, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == len(acts), outcomes
    row.refresh_from_db()
    is_in = Membership.objects.of(workspace).filter(user=dora).count()
    assert is_in == (row.accepted_at is not None)
    assert (row.accepted_at is None) != (row.withdrawn_at is None)
    assert [one[0] for one in noted(workspace)].count("member.joined") == is_in


# --- Roles, removing, leaving ----------------------------------------------------------------------------------------


def test_a_role_is_changed(owner, newsroom, bob):
    address = at(newsroom, "member_role", user=bob.pk)
    assert owner.get(address).context["form"].initial == {"role": "editor"}
    answer = owner.post(address, {"role": "owner"})
    assert answer["Location"] == at(newsroom, "members")
    assert roles_in(newsroom) == [("alice@example.test", "owner"), ("bob@example.test", "owner")]
    entry = AuditEntry.objects.of(newsroom).get(action="member.role_changed")
    assert (entry.actor, entry.details) == ("alice@example.test", {"role": ["editor", "owner"]})


def test_a_removed_member_is_out_and_can_be_put_back(owner, newsroom, bob, as_person):
    address = at(newsroom, "member_remove", user=bob.pk)
    assert owner.post(address).status_code == 200
    assert len(roles_in(newsroom)) == 2
    answer = owner.post(address, {"sure": "True"}, follow=True)
    assert roles_in(newsroom) == [("alice@example.test", "owner")]
    assert as_person(bob).get(at(newsroom, "home")).status_code == 404
    removed = re.search(r'name="removed" value="([^"]+)"', answer.content.decode())[1]
    assert said(owner.post(at(newsroom, "member_restore"), {"removed": removed})) == ["Member restored."]
    assert roles_in(newsroom) == [("alice@example.test", "owner"), ("bob@example.test", "editor")]
    # A double click changes nothing more, and neither does what nobody signed.
    for text in (removed, "x", ""):
        assert said(owner.post(at(newsroom, "member_restore"), {"removed": text})) == [
            "Can't be undone any more. Invite them again."
        ]
    assert len(roles_in(newsroom)) == 2


def test_an_undo_holds_for_its_own_workspace(newsroom, bob, charlie, as_person):
    removed = members.remove_member(newsroom, bob.pk, actor="test")
    elsewhere = workspaces.memberships_of(charlie)[0].workspace
    as_person(charlie).post(at(elsewhere, "member_restore"), {"removed": removed})
    assert roles_in(elsewhere) == [("charlie@example.test", "owner")]


def test_the_last_owner_stays(owner, newsroom, alice, bob, vera):
    words = "A workspace needs an owner, and this is its last one. Make another member an owner first."
    demoted = owner.post(at(newsroom, "member_role", user=alice.pk), {"role": "viewer"})
    removed = owner.post(at(newsroom, "member_remove", user=alice.pk), {"sure": "True"})
    left = owner.post(at(newsroom, "member_leave"), {"sure": "True"})
    for answer in (demoted, removed, left):
        assert answer.status_code == 200
        assert answer.context["form"].non_field_errors() == [words]
    assert "You are the last owner." in owner.get(at(newsroom, "member_leave")).content.decode()
    assert len(roles_in(newsroom)) == 3


def test_an_owner_who_can_t_log_in_is_no_owner_to_remain(newsroom, alice, bob):
    members.change_role(newsroom, bob.pk, "owner", actor="test")
    User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(Conflict, match="last one"):
        members.leave_workspace(newsroom, alice)


def test_a_viewer_leaves(newsroom, vera, as_person):
    client = as_person(vera)
    assert client.post(at(newsroom, "member_leave")).status_code == 200
    assert client.post(at(newsroom, "member_leave"), {"sure": "True"})["Location"] == "/"
    assert roles_in(newsroom) == [("alice@example.test", "owner")]
    assert noted(newsroom)[-1][:2] == ("member.left", "vera@example.test")


def test_who_goes_takes_their_notices_addresses_along(owner, newsroom, bob, vera, charlie):
    elsewhere = Membership.everywhere.get(user=charlie).workspace
    for workspace, user in ((newsroom, bob), (newsroom, vera), (elsewhere, charlie)):
        NoticeChoice.everywhere.create(workspace=workspace, user=user, slack_url="https://hooks.example/x")
    members.remove_member(newsroom, bob.pk, actor="alice@example.test")
    members.leave_workspace(newsroom, vera)
    assert list(NoticeChoice.everywhere.values_list("user__email", flat=True)) == ["charlie@example.test"]


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_leave_one():
    alice, bob = UserFactory(email="a@example.test"), UserFactory(email="b@example.test")
    workspace = workspaces.create("Newsroom", owner=alice)
    MembershipFactory(workspace=workspace, user=bob, role="owner")
    start, refused = Barrier(2), []

    def leave(user):
        start.wait()
        try:
            members.leave_workspace(workspace, user)
        except AppError as error:
            refused.append(error.detail[0].code)
        finally:
            connection.close()

    threads = [Thread(target=leave, args=(user,)) for user in (alice, bob)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == ["last_owner"]
    assert [role for _, role in roles_in(workspace)] == ["owner"]


# --- What is seen ----------------------------------------------------------------------------------------------------


def test_everybody_sees_the_list_and_owners_alone_its_buttons(owner, newsroom, bob, vera, link, as_person):
    theirs = as_person(vera).get(at(newsroom, "members")).content.decode()
    mine = owner.get(at(newsroom, "members")).content.decode()
    for text in (theirs, mine):
        assert [one in text for one in ("alice@example.test", "bob@example.test", "dora@example.test")] == [
            True
        ] * 3
    for button in ("Change role", "Remove", "Withdraw", "Invite"):
        assert (button in mine, button in theirs) == (True, False), button


def test_another_workspace_s_people_and_invitations_can_t_be_named(
    newsroom, alice, bob, link, charlie, as_person
):
    elsewhere = workspaces.memberships_of(charlie)[0].workspace
    client = as_person(charlie)
    row = Invitation.objects.of(newsroom).get()
    for name in ("member_resend", "member_withdraw", "member_reinstate"):
        assert client.post(at(elsewhere, name, invitation=row.pk)).status_code == 404
    for name in ("member_role", "member_remove"):
        assert (
            client.post(at(elsewhere, name, user=bob.pk), {"sure": "True", "role": "owner"}).status_code
            == 404
        )
    assert roles_in(newsroom)[1] == ("bob@example.test", "editor")
    assert "bob@example.test" not in client.get(at(elsewhere, "members")).content.decode()


def test_the_list_asks_as_much_for_many_as_for_one(owner, newsroom, alice):
    address = at(newsroom, "members")
    owner.get(address)
    with CaptureQueriesContext(
        connection,
    ) as one:
        owner.get(address)
    for number in range(5):
        MembershipFactory(workspace=newsroom, user__email=f"m{number}@example.test")
        members.invite(newsroom, f"i{number}@example.test", "viewer", by=alice)
    with CaptureQueriesContext(connection) as many:
        owner.get(address)
    assert len(many) == len(one)


def test_what_was_typed_outlives_the_session(left_alone, newsroom, alice):
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    client, address = left_alone(alice), at(newsroom, "member_invite")
    answer = client.post(address, {"email": "dora@example.test", "role": "viewer"})
    client.post(answer["Location"], {"login": alice.email, "password": PASSWORD})
    assert client.get(address).context["form"].initial == {"email": "dora@example.test", "role": "viewer"}
    assert Invitation.everywhere.count() == 0


def test_every_page_of_an_owner_leads_to_the_invitation(as_person, alice, bob, newsroom):
    links = [
        at(newsroom, "member_invite") in as_person(user).get(at(newsroom, "home")).content.decode()
        for user in (alice, bob)
    ]
    assert links == [True, False]
