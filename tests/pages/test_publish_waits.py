"""Publishing from a page while the workspace, or one of its outlets, can't publish: the page says so, before and after."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from accounts import workspaces
from accounts.models import Workspace
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline.models import GeneratedItem, Outlet, Publication
from pipeline.publish import workspace_hold
from tests.pipeline.steps import make_items, promise, reread

REVOKED = (
    "Nothing is sent to {outlet} yet: the post waits. The people who run this service have revoked the workspace's "
    "access. An owner can request it again under Settings, Access."
)


@pytest.fixture
def item(newsroom, stage):
    return made(newsroom, stage, "Tram line approved")


@pytest.fixture
def revoked(item):
    workspaces.delist(Workspace.everywhere.get(pk=item.workspace_id), "operator")
    return item


def made(newsroom, outlet, title):
    (found,) = make_items(newsroom, title=title, url=f"https://news.example/{title.replace(' ', '-')}")
    GeneratedItem.everywhere.filter(pk=found.pk).update(outlets=[encode("out", outlet.pk)])
    return reread(found)


def at(item, name, **ids):
    return reverse(name, kwargs={"ws": item.workspace_id, **ids})


def told(answer):
    return [str(message) for message in answer.context["messages"]]


def publish(client, item, *outlets, **given):
    address = at(item, "item_publish", gen=item.pk)
    given = {"outlets": [encode("out", one.pk) for one in outlets], "when": "now", **given}
    return client.post(address, {"version": item.version, **given}, follow=True)


def decide(client, *items, when="now"):
    token = ",".join(f"{encode('gen', one.pk)}:{one.version}" for one in items)
    return client.post(
        at(items[0], "review_decide"),
        {"items": token, "act": "publish", "when": when},
        headers={"X-Part": "1"},
    ).json()


def test_the_publish_page_says_before_that_nothing_is_sent(editor, revoked, stage):
    page = editor.get(at(revoked, "item_publish", gen=revoked.pk))
    (wait,) = page.context["waits"]
    assert stage.name in wait.outlets
    assert "have revoked the workspace" in page.content.decode()
    # An editor can't request access.
    assert wait.action is None


def test_an_owner_is_led_to_the_request(owner, revoked):
    page = owner.get(at(revoked, "item_publish", gen=revoked.pk))
    assert [one.action.label for one in page.context["waits"]] == ["Request access"]


def test_it_says_afterwards_that_nothing_was_sent(editor, revoked, stage):
    assert told(publish(editor, revoked, stage)) == [REVOKED.format(outlet=stage.name)]
    assert reread(revoked).status == "scheduled"
    page = editor.get(at(revoked, "item_page", gen=revoked.pk))
    assert "Publishing to" not in page.content.decode()
    assert page.context["outlook"].blockers[0].message.startswith("The people who run")


def test_the_preview_says_that_it_waits(editor, revoked, stage):
    page = publish(editor, revoked, stage, check="1")
    assert 'class="badge warn"' in page.content.decode()


def test_who_may_publish_is_told_that_it_is_under_way(editor, item, stage):
    assert told(publish(editor, item, stage)) == [f"Publishing to {stage.name}."]
    assert list(editor.get(at(item, "item_publish", gen=item.pk)).context["waits"]) == []


def test_before_approval_the_own_channels_alone_are_published_to(owner, newsroom, stage):
    item = made(newsroom, stage, "Quay opens")
    other = Outlet.everywhere.create(workspace=newsroom, platform="handoff", name="By hand")
    Workspace.everywhere.filter(pk=newsroom.pk).update(whitelisted_at=None)
    lines = told(publish(owner, item, stage, other))
    assert lines[0].startswith(
        "Nothing is sent to By hand yet: the post waits. The workspace isn't approved yet"
    )
    assert lines[1:] == [f"Publishing to {stage.name}."]


def test_review_says_it_by_click_and_by_key(editor, revoked, stage):
    card = editor.get(at(revoked, "review_card", gen=revoked.pk))
    assert [one.outlets for one in card.context["card"]["waits"]] == [stage.name]
    answer = decide(editor, revoked)
    assert REVOKED.format(outlet=stage.name).replace("'", "&#x27;") in answer["toast"]
    assert "Publishing" not in answer["toast"]
    assert "toast error" in answer["toast"]
    # It can be taken back.
    assert answer["undo"]


def test_review_says_it_in_bulk(editor, revoked, newsroom, stage):
    other = made(newsroom, stage, "Quay opens")
    page = editor.get(at(revoked, "review"))
    assert "have revoked" in page.content.decode().partition('id="bulk"')[2].partition("</form>")[0]
    answer = decide(editor, revoked, other)
    assert answer["toast"].count("Nothing is sent to") == 1
    assert "Publishing" not in answer["toast"]
    assert len(answer["decided"]) == 2


def test_a_schedule_says_that_it_waits_too(editor, revoked, stage):
    toast = decide(editor, revoked, when="next")["toast"]
    assert "Scheduled for" in toast
    assert "the post waits" in toast


def test_a_hold_of_the_workspace_is_said_too(editor, item, newsroom, stage):
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by="alice@example.test")
    (line,) = told(publish(editor, item, stage))
    assert line.endswith("All publishing of the workspace is on hold: A storm.")


def test_a_free_slot_of_the_calendar_says_that_it_waits(editor, revoked, stage):
    moment = (utc_now() + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    query = urlencode({"outlet": encode("out", stage.pk), "at": format_utc(moment)})
    given = {"item": encode("gen", revoked.pk), "version": revoked.version}
    lines = told(editor.post(f"{at(revoked, 'calendar_slot')}?{query}", given, follow=True))
    assert lines[0] == REVOKED.format(outlet=stage.name)


def test_a_retry_says_that_it_waits(editor, revoked, stage):
    row = promise(revoked, stage)
    Publication.everywhere.filter(pk=row.pk).update(status="failed", wake_at=None)
    address = at(revoked, "publication_retry", pub=row.pk)
    assert told(editor.post(address, follow=True)) == [REVOKED.format(outlet=stage.name)]
    Publication.everywhere.filter(pk=row.pk).update(status="failed", wake_at=None)
    given = {"one": f"retry:{encode('pub', row.pk)}:{reread(row).version}"}
    answer = editor.post(at(revoked, "failures_clear"), given, follow=True)
    assert "Nothing is sent to" in told(answer)[0]
