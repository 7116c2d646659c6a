"""Access by page: the request and its intended use, where it stands, and what each page of a workspace says of it."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import whitelist_requests
from accounts.models import Workspace
from config.core.clock import utc_now
from config.templatetags.banners import standing_banners
from tests.pipeline.steps import make_items

NOT_YET = "Not approved yet."


@pytest.fixture
def sandbox(newsroom):
    Workspace.everywhere.filter(pk=newsroom.pk).update(whitelisted_at=None)
    return Workspace.everywhere.get(pk=newsroom.pk)


def at(workspace, name, **ids):
    return reverse(name, kwargs={"ws": workspace.pk, **ids})


def request_of(workspace):
    return whitelist_requests.last_request(workspace)


def banners(client, workspace, name, **ids):
    """What stands above a page of the workspace, title and text in one."""
    answer = client.get(at(workspace, name, **ids))
    assert answer.status_code == 200
    place, view_name = answer.wsgi_request.place, answer.resolver_match.view_name
    return [f"{one.title} {one.text}".strip() for one in standing_banners(place, view_name)]


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
    whitelist_requests.refuse_request(request_of(sandbox), "Not yet.", "operator")
    page = owner.post(at(sandbox, "access"), {"change": "1", "message": "Trams"})
    assert page.context["form"].non_field_errors() == ["The request has already been decided."]
    assert (request_of(sandbox).message, len(mail.outbox)) == ("Ferry news", 0)


def test_only_an_owner_changes_it(editor, sandbox, owner):
    owner.post(at(sandbox, "access"), {"message": "Ferry news"})
    assert editor.post(at(sandbox, "access"), {"change": "1", "message": "Trams"}).status_code == 403
    assert request_of(sandbox).message == "Ferry news"


# --- What the pages say ----------------------------------------------------------------------------------------------


def test_before_the_request_pages_name_what_opens_on_approval(owner, sandbox):
    (line,) = banners(owner, sandbox, "calendar")
    assert line.startswith(f"{NOT_YET} Create, review, and publish to the workspace feed")
    # Home has it among its first steps.
    assert banners(owner, sandbox, "home") == []


def test_after_the_request_one_line_says_when_it_was_sent(owner, editor, sandbox):
    whitelist_requests.request_whitelisting(sandbox, "", "alice@example.test")
    day = request_of(sandbox).created_at.strftime("%-d %b")
    for client in (owner, editor):
        assert banners(client, sandbox, "calendar") == [f"Access requested on {day}; an operator decides."]
    assert NOT_YET not in owner.get(at(sandbox, "calendar")).content.decode()
    assert "Requested on" in owner.get(at(sandbox, "home")).content.decode()


def test_no_item_repeats_it(owner, sandbox):
    item = make_items(sandbox, title="Tram line", url="https://news.example/1")[0]
    for name, ids in (("item_page", {"gen": item.pk}), ("item_publish", {"gen": item.pk}), ("review", {})):
        assert banners(owner, sandbox, name, **ids) == []


def test_revoked_access_is_said_on_every_page(owner, newsroom):
    whitelist_requests.revoke(newsroom, "operator")
    day = f"{newsroom.delisted_at.astimezone(ZoneInfo(newsroom.timezone)):%-d %b}"
    for name in ("home", "calendar", "review"):
        assert banners(owner, newsroom, name) == [
            f"Access revoked on {day}. Sources, publishing and the API are paused."
        ]
    whitelist_requests.request_whitelisting(newsroom, "", "alice@example.test")
    (line,) = banners(owner, newsroom, "home")
    assert line.startswith("Access revoked. Access requested on ")


def test_a_refusal_is_said_with_its_reason_until_the_next_request(owner, editor, sandbox):
    request = whitelist_requests.request_whitelisting(sandbox, "", "alice@example.test")
    whitelist_requests.refuse_request(request, "Say which site it is for.", "operator")
    for client, name in ((owner, "home"), (editor, "calendar")):
        (line,) = banners(client, sandbox, name)
        assert line.startswith("Access refused on ")
        assert line.endswith(". Say which site it is for.")
    whitelist_requests.request_whitelisting(sandbox, "My own", "alice@example.test")
    assert banners(owner, sandbox, "home") == []


def test_an_approval_is_said_on_home_for_a_week(owner, editor, sandbox):
    created_at = utc_now() - timedelta(hours=1)
    Workspace.everywhere.filter(pk=sandbox.pk).update(created_at=created_at)
    whitelist_requests.grant(sandbox, "operator")
    for client in (owner, editor):
        (line,) = banners(client, sandbox, "home")
        assert line.startswith("Access approved on ")
        assert line.endswith(". Sources, your own outlets, AI and API keys work now.")
        assert banners(client, sandbox, "calendar") == []
    old = utc_now() - timedelta(days=8)
    Workspace.everywhere.filter(pk=sandbox.pk).update(
        created_at=created_at - timedelta(days=9), whitelisted_at=old
    )
    assert banners(owner, sandbox, "home") == []


def test_who_never_waited_is_told_of_no_approval(owner, newsroom):
    assert banners(owner, newsroom, "home") == []


def test_a_workspace_with_access_is_asked_for_no_request(owner, newsroom):
    place = owner.get(at(newsroom, "calendar")).wsgi_request.place
    with CaptureQueriesContext(connection) as queries:
        standing_banners(place, "calendar")
    assert [one for one in queries if "whitelist_request" in one["sql"]] == []
