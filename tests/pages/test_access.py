"""Access by page: the request and its intended use, where it stands, and what each page of a workspace says of it."""

from __future__ import annotations

import pytest
from django.core import mail
from django.urls import reverse

from accounts import whitelist_requests
from accounts.models import Workspace


@pytest.fixture
def sandbox(newsroom):
    Workspace.everywhere.filter(pk=newsroom.pk).update(whitelisted_at=None)
    return Workspace.everywhere.get(pk=newsroom.pk)


def at(workspace, name, **ids):
    return reverse(name, kwargs={"ws": workspace.pk, **ids})


def request_of(workspace):
    return whitelist_requests.last_request(workspace)


# --- The request -----------------------------------------------------------------------------------------------------


def test_the_intended_use_is_given_and_changed_after_one_click_on_home(owner, sandbox):
    page = owner.post(at(sandbox, "access"), follow=True)
    assert request_of(sandbox).message == ""
    assert page.context["form"]["message"].value() == ""
    for message in ("Ferry news", "Ferry and tram news"):
        page = owner.post(at(sandbox, "access"), {"change": "1", "message": message}, follow=True)
        assert request_of(sandbox).message == message
        assert page.context["form"]["message"].value() == message
    assert "Saved. The operator sees it with the request." in page.content.decode()


def test_a_second_click_on_home_leaves_the_intended_use(owner, sandbox):
    owner.post(at(sandbox, "access"), {"message": "Ferry news"})
    owner.post(at(sandbox, "access"))
    assert request_of(sandbox).message == "Ferry news"


def test_the_intended_use_of_a_decided_request_stays(owner, sandbox):
    owner.post(at(sandbox, "access"), {"message": "Ferry news"})
    whitelist_requests.refuse(request_of(sandbox), "Not yet.", "operator")
    page = owner.post(at(sandbox, "access"), {"change": "1", "message": "Trams"})
    assert page.context["form"].non_field_errors() == ["The request was decided meanwhile."]
    assert (request_of(sandbox).message, len(mail.outbox)) == ("Ferry news", 0)


def test_only_an_owner_changes_it(editor, sandbox, owner):
    owner.post(at(sandbox, "access"), {"message": "Ferry news"})
    assert editor.post(at(sandbox, "access"), {"change": "1", "message": "Trams"}).status_code == 403
    assert request_of(sandbox).message == "Ferry news"
