"""Posted by hand: handed over once when it is due, open until a person says what became of it."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from accounts.models import AuditEntry, Notice
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline import publish, resources
from pipeline.dashboard import counts, overview
from pipeline.models import Attempt, GeneratedItem, Outlet, Publication, Revision, ShortLink
from pipeline.publish import send as sending
from pipeline.publish import steps as publish_steps
from tests.pipeline.steps import (
    NOON,
    attempts,
    claimed,
    facts,
    make_items,
    make_stage,
    promise,
    reread,
    send,
    state,
)

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(days=1)
HANDED_OVER = {
    "status": "publishing",
    "step": "by_hand",
    "wake_at": None,
    "next_attempt_at": None,
    "error": None,
    "attempt_count": 1,
}


@pytest.fixture
def item(workspace):
    return make_items(workspace)[0]


@pytest.fixture
def desk(workspace):
    return Outlet.everywhere.create(
        workspace=workspace, platform="handoff", name="Our Substack", config={"place": "Substack"}
    )


@pytest.fixture
def handed(item, desk):
    return send(promise(item, desk))


def notices(workspace):
    rows = Notice.everywhere.filter(workspace=workspace, kind="post_handed_over")
    return [(row.title, row.path) for row in rows]


def test_when_it_is_due_its_people_are_told_and_it_waits_for_them(item, handed, workspace):
    assert state(handed, *HANDED_OVER) == HANDED_OVER
    assert handed.is_handed_over
    assert reread(item).status == "publishing"
    key = encode("pub", handed.pk)
    assert notices(workspace) == [
        (f"Post “{item.title or item.excerpt}” on Substack", f"publications/{key}/package")
    ]
    assert attempts(handed) == [(1, 1, "started")]
    assert Attempt.everywhere.get().receipt["body"] == item.body
    assert [one for one in facts(workspace) if one.startswith("published.")] == []


def test_what_was_handed_over_is_late_no_more(item, handed, workspace):
    """Its promise was kept; how long its person takes is theirs. What a platform is late with counts on."""
    now = NOON + timedelta(hours=5)

    def seen():
        shown = resources.GeneratedItem.serialize(
            reread(item),
            publications=Publication.everywhere.filter(item=item).values(*resources.Publication.columns()),
            requires_approval=False,
            now=now,
        )
        # No order is promised: what was handed over first.
        others_last = sorted(shown["publications"], key=lambda one: one["id"] != encode("pub", handed.pk))
        lates = [one["overdue_seconds"] for one in others_last]
        return shown["publish_at"], shown["overdue_seconds"], lates

    assert seen() == (None, 0, [0])
    assert counts.publishing_blockers(workspace.pk, now=now) == (None, None)
    found = overview.read_overview(workspace, since=NOON, now=now)
    assert (found.late.number, found.promised.number, found.late_ones) == (0, 0, [])
    assert [(row.title, row.link) for row in found.by_hand] == [
        (item.title or item.excerpt, f"publications/{encode('pub', handed.pk)}/package")
    ]
    promise(item, make_stage(workspace), publish_at=NOON)
    assert seen() == ("2027-03-01T12:00:00.000Z", 5 * 3600, [0, 5 * 3600])
    assert counts.publishing_blockers(workspace.pk, now=now) == (None, counts.Overdue(1, 300))


def test_before_it_is_due_nobody_is_told(item, desk, workspace):
    row = send(promise(item, desk, publish_at=LATER))

    assert (row.status, row.wake_at, notices(workspace)) == ("scheduled", LATER, [])


@pytest.mark.parametrize("act", [publish_steps.advance_publication, publish_steps.give_up])
def test_no_hand_makes_a_doubt_of_it(handed, workspace, act):
    Publication.everywhere.filter(pk=handed.pk).update(wake_at=NOON)

    act(claimed(handed))

    assert state(reread(handed), *HANDED_OVER) == HANDED_OVER
    assert len(notices(workspace)) == 1


def test_a_restore_leaves_it_to_its_person(item, handed, workspace):
    other = Outlet.everywhere.create(
        workspace=workspace, platform="handoff", name="Our Medium", config={"place": "Medium"}
    )
    promised = promise(item, other, publish_at=LATER)

    assert publish.mark_unsent_unknown(now=NOON) == 0
    assert [reread(row).status for row in (handed, promised)] == ["publishing", "scheduled"]


def test_posted_is_published_with_its_address(item, handed, workspace):
    settled = publish.settle_publication(
        handed, was_sent=True, url="https://council.substack.com/p/tram", by="alice", now=LATER
    )

    assert state(settled, "status", "url", "published_at", "error", "step") == {
        "status": "published",
        "url": "https://council.substack.com/p/tram",
        "published_at": LATER,
        "error": None,
        "step": "done",
    }
    assert attempts(settled) == [(1, 1, "succeeded")]
    assert reread(item).status == "published"
    assert facts(workspace)[-1] == "published.success"
    entry = AuditEntry.everywhere.get(action="publication.settled")
    assert (entry.actor, entry.details) == ("alice", {"was_sent": True, "url": settled.url})


def test_not_posted_has_failed_and_can_be_handed_over_again(item, handed, workspace):
    settled = publish.settle_publication(handed, was_sent=False, by="alice", now=LATER)

    assert (settled.status, settled.error["code"], settled.error["class"], settled.error["retryable"]) == (
        "failed",
        "not_posted",
        "content",
        False,
    )
    assert attempts(settled) == [(1, 1, "failed")]
    assert reread(item).status == "publish_failed"
    again = send(publish.retry(settled, by="alice", now=NOON))
    assert state(again, *HANDED_OVER) == HANDED_OVER
    assert len(notices(workspace)) == 2


def test_it_is_settled_once(handed):
    publish.settle_publication(handed, was_sent=True, by="alice", now=LATER)

    with pytest.raises(Conflict) as raised:
        publish.settle_publication(handed, was_sent=False, by="bob", now=LATER)

    assert [(one.field, one.code) for one in raised.value.detail] == [("status", "not_unknown")]
    assert reread(handed).status == "published"


def test_what_a_platform_is_sending_is_not_a_persons_to_settle(item, workspace):
    row = promise(item, make_stage(workspace))
    Publication.everywhere.filter(pk=row.pk).update(status="publishing", step="commit")

    with pytest.raises(Conflict):
        publish.settle_publication(row, was_sent=True, by="alice", now=NOON)


def test_held_meanwhile_it_is_given_back(item, desk, workspace, monkeypatch):
    row = promise(item, desk)

    def held_at_the_last_moment(given, connection):
        type(item).everywhere.filter(pk=item.pk).update(held="approval_stale")
        return original(given, connection)

    original = sending.post_for
    monkeypatch.setattr(sending, "post_for", held_at_the_last_moment)

    assert (send(row).status, notices(workspace)) == ("scheduled", [])


# --- Where its outlet counts clicks ---------------------------------------------------------------------------------


def short_ones(settings, post):
    """Codes of the short addresses in all that the page shows."""
    shown = " ".join([post.payload.body, post.payload.link, *post.parts])
    return set(re.findall(re.escape(settings.PUBLIC_URL) + "/l/([0-9a-z]+)", shown))


@pytest.fixture
def linked(item):
    for model, given in ((GeneratedItem, {"pk": item.pk}), (Revision, {"item": item})):
        model.everywhere.filter(**given).update(
            body="Read https://news.example/tram now.", body_format="text"
        )
    return reread(item)


def count_clicks(desk, since):
    Outlet.everywhere.filter(pk=desk.pk).update(clicks_since=since)
    return reread(desk)


def test_every_short_link_of_a_package_leads_somewhere(linked, desk, settings, client):
    row = promise(linked, count_clicks(desk, NOON), publish_at=LATER)
    before = publish.package_of(reread(row))
    # Who copies it before its time has addresses that lead there too.
    assert (before.payload.body, short_ones(settings, before)) == (
        "Read https://news.example/tram now.",
        set(),
    )
    Publication.everywhere.filter(pk=row.pk).update(due_at=NOON, next_attempt_at=NOON, wake_at=NOON)
    handed = send(reread(row))
    assert handed.is_handed_over
    package = publish.package_of(reread(handed))
    codes = short_ones(settings, package)
    assert codes == short_ones(settings, replace(package, parts=())) != set()
    assert "news.example" not in package.payload.body
    assert package.payload.link.startswith(f"{settings.PUBLIC_URL}/l/")
    for code in codes:
        assert client.get(f"/l/{code}").status_code == 302


@pytest.mark.parametrize(("at_first", "later"), [(NOON, None), (None, NOON)])
def test_a_package_stays_as_it_was_handed_over(linked, desk, settings, at_first, later):
    handed = send(promise(linked, count_clicks(desk, at_first)))
    was = publish.package_of(reread(handed)).payload
    count_clicks(desk, later)
    package = publish.package_of(reread(handed))
    assert (package.payload.body, package.payload.link) == (was.body, was.link)
    kept = set(ShortLink.everywhere.values_list("code", flat=True))
    assert short_ones(settings, package) <= kept
    assert bool(kept) is (at_first is not None)
