"""The operators' page of what failed and is late: over a stretch of time, on a platform, by workspace; who may see it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import workspaces
from config.admin_site import failures as admin_failing
from config.core.ids import uuid7
from config.operations import failures as failing
from config.operations import queue_stats as rows
from pipeline.models import GeneratedItem, Publication
from tests.factories import UserFactory
from tests.operations.test_dead_letters import dead_publication, dead_source
from tests.pipeline.steps import make_items, make_stage, promise, reread

pytestmark = pytest.mark.django_db
NOW = datetime(2027, 3, 24, 12, 0, tzinfo=UTC)
PAGE = "admin_failing"


@pytest.fixture(autouse=True)
def still_clock():
    with time_machine.travel(NOW, tick=False):
        yield


def newsroom(name):
    made = workspaces.create(name)
    workspaces.whitelist(made, "operator")
    workspaces.lift_limits(made, "operator")
    return made


@pytest.fixture
def alice(db):
    return newsroom("Alice's newsroom")


@pytest.fixture
def charlie(db):
    return newsroom("Charlie's newsroom")


def late_publication(workspace, **changes):
    row = promise(make_items(workspace)[0], make_stage(workspace), publish_at=NOW + timedelta(days=1))
    Publication.everywhere.filter(pk=row.pk).update(**{"due_at": NOW - timedelta(hours=2), **changes})
    return reread(row)


def seen(browser, **query):
    """The counts of each workspace by kind, and the causes as platform, status, code, count and workspaces."""
    answer = browser.get(reverse(PAGE), query)
    assert answer.status_code == 200
    affected = {one.workspace.name: one.counts for one, _ in answer.context["affected"]}
    causes = [
        (one.platform, one.status, one.code, one.count, one.workspaces) for one, _ in answer.context["causes"]
    ]
    return affected, sorted(causes)


def test_it_says_what_failed_why_and_whom_it_touches(browser, alice, charlie):
    refused = dead_publication(alice, "reject")
    theirs = dead_publication(charlie, "reject")
    late_publication(charlie)
    dead_source(alice)
    code = refused.error["code"]
    assert theirs.error["code"] == code
    # A source that never said since when has no moment in the stretch.
    source = dead_source(charlie, "failing")
    type(source).everywhere.filter(pk=source.pk).update(failing_since=NOW)
    assert seen(browser) == (
        {
            "Charlie's newsroom": {"publications": 1, "late": 1, "sources": 1},
            "Alice's newsroom": {"publications": 1},
        },
        [("simulated", "failed", code, 2, 2), ("simulated", "late", "", 1, 1)],
    )
    html = browser.get(reverse(PAGE)).content.decode()
    assert f"{reverse('admin_dead_rows')}?workspace={charlie.public_id}" in html
    assert reverse("workspace_overview", args=[charlie.public_id]) in html
    assert "2027-03-24 10:00" in html


def test_a_stretch_of_time_and_a_platform_narrow_it(browser, alice):
    old, new = dead_publication(alice, "reject"), late_publication(alice)
    Publication.everywhere.filter(pk=old.pk).update(updated_at=NOW - timedelta(days=20))
    assert seen(browser)[0] == {"Alice's newsroom": {"late": 1}}
    then = {"since": "2027-03-01", "until": "2027-03-04"}
    assert seen(browser, **then)[0] == {"Alice's newsroom": {"publications": 1}}
    # Both of its days count whole.
    assert seen(browser, since="2027-03-04", until="2027-03-04")[0] == {
        "Alice's newsroom": {"publications": 1}
    }
    assert seen(browser, since="2027-03-05", until="2027-03-05")[0] == {}
    Publication.everywhere.filter(pk=new.pk).update(platform="mastodon")
    today = {"since": "2027-03-24", "until": "2027-03-24"}
    assert seen(browser, **today, platform="mastodon")[0] == {"Alice's newsroom": {"late": 1}}
    assert seen(browser, **today, platform="x") == ({}, [])


@pytest.mark.parametrize(
    "query",
    [
        {"since": "2027-03-05", "until": "2027-03-04"},
        {"since": "2020-01-01", "until": "2027-03-04"},
        {"since": "soon", "until": "2027-03-04"},
        {"since": "9999-12-01", "until": "9999-12-31"},
        {"since": "2027-03-04"},
        {"since": "2027-03-04", "until": "2027-03-04", "platform": "nothing"},
    ],
)
def test_what_is_no_stretch_says_so(browser, alice, query):
    dead_publication(alice, "reject")
    answer = browser.get(reverse(PAGE), query)
    assert (answer.status_code, answer.context["is_understood"]) == (200, False)
    assert "chip bad" in answer.content.decode()


def test_what_is_of_a_test_or_waits_for_a_person_is_left_out(browser, alice):
    late_publication(alice, test=True)
    late_publication(alice, status="publishing", step=Publication.BY_HAND)
    late_publication(alice, due_at=NOW - timedelta(seconds=30))
    GeneratedItem.everywhere.filter(workspace=alice).update(status="failed", test=True)
    assert seen(browser) == ({}, [])


def test_each_kind_of_dead_row_has_its_moment_and_its_column():
    assert set(failing.FAILED_AT_FIELDS) == set(rows.DEAD)
    assert set(rows.DEAD) | {failing.LATE} == set(admin_failing._COLUMN_HEADINGS)
    for name, when in failing.FAILED_AT_FIELDS.items():
        assert rows.DEAD[name].model._meta.get_field(when)


def test_its_statements_do_not_grow_with_what_failed(browser, alice, charlie):
    row = dead_publication(alice, "reject")
    late_publication(charlie)

    def cost():
        with CaptureQueriesContext(connection) as asked:
            browser.get(reverse(PAGE))
        return len(asked)

    cost()
    before = cost()
    for _number in range(30):
        item = reread(row.item)
        item.pk, item.variant_group, item._state.adding = uuid7(), uuid7(), True
        item.save(force_insert=True)
        again = reread(row)
        again.pk, again.item_id, again._state.adding = uuid7(), item.pk, True
        again.save(force_insert=True)
    assert cost() == before


def test_dead_rows_are_requeued_over_the_same_stretch(browser, alice):
    old, new = dead_publication(alice, "reject"), dead_publication(alice, "reject")
    Publication.everywhere.filter(pk=old.pk).update(updated_at=NOW - timedelta(days=20))
    query = {"since": "2027-03-24", "until": "2027-03-24", "platform": "simulated"}
    page = browser.get(reverse("admin_dead_rows"), {**query, "workspace": alice.public_id})
    counts = {one["name"]: [row["row"].pk for row in one["rows"]] for one in page.context["sections"]}
    assert counts["publications"] == [new.pk]
    assert "from 2027-03-24, before 2027-03-25" in page.content.decode()


def test_who_may_not_see_publications_does_not_see_it(client, alice):
    dead_source(alice)
    person = UserFactory(email="looks@example.test", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_source"))
    client.force_login(person)
    assert client.get(reverse(PAGE)).status_code == 403
    person.user_permissions.add(Permission.objects.get(codename="view_publication"))
    client.force_login(type(person).objects.get(pk=person.pk))
    dead_publication(alice, "reject")
    html = client.get(reverse(PAGE)).content.decode()
    assert "Alice&#x27;s newsroom" in html
    assert "Raw items" not in html
    client.logout()
    assert client.get(reverse(PAGE))["Location"].startswith("/admin/login/")
