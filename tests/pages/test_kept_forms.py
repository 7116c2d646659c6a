"""Forms that lose nothing."""

from __future__ import annotations

import pytest
from django.http import QueryDict
from django.urls import reverse

from accounts.limits import TYPED_KEPT_BYTES
from accounts.models import WhitelistRequest, Workspace

PASSWORD = "a long enough phrase 9"


@pytest.fixture
def member(alice):
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    return alice


@pytest.fixture
def ended(left_alone, member):
    return left_alone(member)


def test_what_was_typed_outlives_the_session(ended, member):
    client = ended
    answer = client.post("/new", {"name": "Ferry news", "timezone": "Europe/Berlin"})
    assert (answer.status_code, answer["Location"]) == (302, "/account/login/?next=/new")
    client.post(answer["Location"], {"login": member.email, "password": PASSWORD})
    assert client.get("/new").context["form"].initial == {"name": "Ferry news", "timezone": "Europe/Berlin"}
    assert Workspace.everywhere.count() == 0


def test_a_workspace_s_form_comes_back_after_the_log_in(ended, member, newsroom):
    client = ended
    Workspace.everywhere.filter(pk=newsroom.pk).update(whitelisted_at=None)
    address = reverse("access", kwargs={"ws": newsroom.pk})
    answer = client.post(address, {"message": "Ferry news", "password": "not kept"})
    assert (answer.status_code, answer["Location"]) == (302, f"/account/login/?next={address}")
    assert "not kept" not in str(dict(client.session))
    answer = client.post(answer["Location"], {"login": member.email, "password": PASSWORD})
    assert answer["Location"] == address
    shown = client.get(address)
    assert shown.context["form"].initial == {"message": "Ferry news"}
    assert "You were logged out. Your changes are kept: send again." in shown.content.decode()
    # Once: the next opening is fresh.
    assert client.get(address).context["form"].initial == {}
    assert WhitelistRequest.everywhere.count() == 0


@pytest.mark.parametrize("sign", ["q", "話", "🚋"])
def test_a_long_body_in_any_script_is_kept(ended, newsroom, sign):
    address = reverse("access", kwargs={"ws": newsroom.pk})
    body = sign * ((TYPED_KEPT_BYTES - 100) // len(sign.encode()))
    ended.post(address, {"message": body})
    assert QueryDict(ended.session["typed"]["form"])["message"] == body


def test_a_part_of_a_page_that_could_not_be_kept_leaves_the_page_open(ended, newsroom):
    address = reverse("access", kwargs={"ws": newsroom.pk})
    part = {"HX-Request": "true"}
    answer = ended.post(address, {"message": "q" * TYPED_KEPT_BYTES}, headers=part)
    assert (answer.status_code, answer.headers.get("HX-Refresh"), "typed" in ended.session) == (
        401,
        None,
        False,
    )
    assert ended.post(address, {"message": "Short"}, headers=part)["HX-Refresh"] == "true"


def test_what_could_not_be_kept_is_said_before_the_log_in(ended, newsroom):
    answer = ended.post(
        reverse("access", kwargs={"ws": newsroom.pk}), {"message": "q" * TYPED_KEPT_BYTES}, follow=True
    )
    assert "Your changes can&#x27;t be kept. Go back and copy them" in answer.content.decode()


def test_what_one_person_typed_is_not_shown_to_the_next(ended, bob):
    ended.post("/new", {"name": "Ferry news", "timezone": "Europe/Berlin"})
    bob.set_password(PASSWORD)
    bob.save(update_fields=["password"])
    bob.mark_email_verified()
    ended.post("/account/login/", {"login": bob.email, "password": PASSWORD})
    assert ended.get("/new").context["form"].initial == {}


def test_a_second_click_makes_no_second_workspace(client, alice):
    client.force_login(alice)
    form = {"name": "Ferry news", "timezone": "UTC", "once": "abc"}
    assert client.post("/new", form).status_code == 302
    assert client.post("/new", form).status_code == 302
    assert Workspace.everywhere.count() == 1
    assert client.post("/new", {**form, "once": "def"}).status_code == 302
    assert Workspace.everywhere.count() == 2


def test_a_form_that_was_refused_may_be_sent_again(client, alice):
    client.force_login(alice)
    assert client.post("/new", {"name": "   ", "timezone": "UTC", "once": "abc"}).status_code == 200
    assert client.post("/new", {"name": "Ferry news", "timezone": "UTC", "once": "abc"}).status_code == 302
    assert Workspace.everywhere.count() == 1


def test_a_form_without_the_token_of_its_page_is_told_in_words(alice):
    from django.test import Client

    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)
    answer = client.post("/new", {"name": "Ferry news", "timezone": "UTC"})
    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()


@pytest.mark.parametrize(
    "given", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:x"]
)
def test_the_theme_s_form_leads_to_no_other_site(client, given):
    answer = client.post("/theme", {"theme": "dark", "next": given})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.cookies["theme"].value == "dark"
