"""Failed and late by page: what is listed and why, every act with its undo, versions, roles, and a bounded
cost."""

from __future__ import annotations

import re
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import workspaces
from config.core.ids import encode, lowest_id_at, uuid7
from pipeline.models import (
    GeneratedItem,
    Generation,
    InboundDelivery,
    Mailing,
    Outlet,
    PersonaDraft,
    Publication,
    PublishQueue,
    RawItem,
    Source,
    WorkspaceDefaults,
)
from pipeline.pages.failures import publication_rows
from pipeline.pages.failures import sections as failure_sections
from pipeline.publish import workspace_hold
from pipeline.review import decisions
from pipeline.schedule import queues, recovery
from tests.pages.answers import said
from tests.pipeline.steps import make_items, make_stage, promise, push_raw, reread, send

EVERY_DAY = [{"weekday": day, "time": at} for day in range(7) for at in ("09:00", "17:30")]


@pytest.fixture
def editor(editor, newsroom, posts):
    workspaces.lift_limits(newsroom, "operator@example.test")
    queues.change(PublishQueue.everywhere.get(workspace=newsroom), {"slots": EVERY_DAY}, by="alice")
    return editor


@pytest.fixture
def stage(newsroom):
    """It refuses once, then takes everything."""
    return make_stage(newsroom, "reject")


def item(workspace, title="Tram line approved"):
    body = f"{title} on Monday evening after six hours of debate in the old hall. " * 4
    return make_items(workspace, title=title, body=body, url=f"https://n.example/{title.replace(' ', '-')}")[
        0
    ]


def failed(workspace, outlet, title="Tram line approved"):
    row = send(promise(item(workspace, title), outlet))
    assert row.status == "failed"
    return row


def late(workspace, outlet, title="Rye keeps for nine days", **changes):
    """Promised for an hour ago, and held back by nothing but what is changed."""
    row = promise(item(workspace, title), outlet, publish_at=timezone.now() + timedelta(hours=2))
    due_at = timezone.now() - timedelta(hours=1)
    Publication.everywhere.filter(pk=row.pk).update(due_at=due_at, wake_at=due_at, **changes)
    return reread(row)


def token(row, prefix="pub"):
    return f"{encode(prefix, row.pk)}:{getattr(row, 'version', 0)}"


def at(workspace, name="failures"):
    return reverse(name, kwargs={"ws": workspace.pk})


def shown(client, workspace, **query):
    """The sections with the tokens, or titles, of their rows."""
    found = client.get(at(workspace), query).context["sections"]
    return {one.name: [row.token or row.title for row in one.rows] for one in found}


def clear(client, workspace, act, *tokens, **given):
    return client.post(at(workspace, "failures_clear"), {"act": act, "rows": tokens, **given})


def undo(client, workspace, answer):
    (note,) = re.findall(r'name="undo" value="([^"]+)"', " ".join(said(answer)))
    return client.post(at(workspace, "failures_undo"), {"undo": note})


# --- The list --------------------------------------------------------------------------------------------------------


def test_an_empty_list_says_what_to_do(editor, newsroom):
    html = editor.get(at(newsroom)).content.decode()
    assert "No problems" in html
    assert reverse("calendar", kwargs={"ws": newsroom.pk}) in html
    assert "Show all" in editor.get(at(newsroom), {"kind": "raw"}).content.decode()


def test_everything_that_needs_somebody_is_listed_with_its_cause(editor, newsroom, stage):
    refused = failed(newsroom, stage)
    overdue = late(newsroom, make_stage(newsroom, name="Other"))
    workspace_hold.hold_workspace(newsroom, reason="A storm.", by="alice@example.test")
    broken = item(newsroom, "Fog delays the morning boats")
    error = {"code": "x", "message": "The writer gave up."}
    GeneratedItem.everywhere.filter(pk=broken.pk).update(status="failed", error=error)
    slow = item(newsroom, "The harbour buys a seventh crane")
    old = GeneratedItem.everywhere.get(pk=slow.pk)
    old.pk, old.status = UUID(int=lowest_id_at(timezone.now() - timedelta(hours=3)).int + 1), "generating"
    old.save(force_insert=True)
    waits = {"code": "cap", "message": "The cap of the month is reached."}
    Generation.everywhere.filter(pk=old.generation_id).update(error=waits)
    raws = [
        push_raw(newsroom, title=f"Raw {status}", url=f"https://n.example/{status}").raw_item
        for status in ("failed", "waiting_quota")
    ]
    for raw, status in zip(raws, ("failed", "waiting_quota"), strict=True):
        reason = {"code": "x", "message": f"Said of {status}."}
        RawItem.everywhere.filter(pk=raw.pk).update(status=status, reason=reason)
    gone = Source.everywhere.create(
        workspace=newsroom, name="Old", type="rss", status="gone", last_error={"message": "It answered 410."},
        failing_since=timezone.now(),
    )  # fmt: skip
    lost = Outlet.everywhere.create(
        workspace=newsroom, platform="mastodon", name="Lost", status="needs_reconnect",
        last_error={"message": "The log-in was revoked."},
    )  # fmt: skip
    draft = PersonaDraft.everywhere.create(
        workspace=newsroom, status="failed", error={"message": "The site is closed."}, url="https://x.example"
    )
    found = shown(editor, newsroom)
    assert found == {
        "late": [token(overdue)],
        "outlets": [lost.name],
        "failed": [token(refused)],
        "making": [old.title],
        "items": [token(reread(broken), "gen")],
        "raw": [token(reread(raws[1]), "raw"), token(reread(raws[0]), "raw")],
        "sources": [token(gone, "src")],
        "drafts": [f"{encode('pdr', draft.pk)}:0"],
    }
    html = editor.get(at(newsroom)).content.decode()
    for why in (
        "All publishing of the workspace is on hold: A storm.",
        reread(refused).error["message"],
        "The writer gave up.",
        "The cap of the month is reached.",
        "Said of failed.",
        "Said of waiting_quota.",
        "It answered 410.",
        "The log-in was revoked.",
        "The site is closed.",
        f"retry:{token(refused)}",
        reverse("queues_release", kwargs={"ws": newsroom.pk}),
    ):
        assert why.replace("'", "&#x27;") in html, why
    # Commands are for the settings of developers.
    assert "curl" not in html


def test_stopped_mailings_and_deliveries_that_made_nothing_lead_to_where_they_go_on(editor, newsroom, stage):
    letter = Outlet.everywhere.create(workspace=newsroom, platform="email_newsletter", name="Newsletter")
    error = {"code": "no_log_in", "message": "The mail server refused the log-in."}
    stopped, done = (
        Mailing.everywhere.create(
            workspace=newsroom,
            outlet=letter,
            publication=promise(item(newsroom, subject), stage),
            subject=subject,
            status=status,
            error=error,
        )
        for subject, status in (("Fog on the river", "stopped"), ("A seventh crane", "done"))
    )
    hook = Source.everywhere.create(workspace=newsroom, name="Front desk", type="webhook")
    reason = {"code": "no_body", "message": "The delivery holds no text."}
    made_nothing, taken = (
        InboundDelivery.everywhere.create(
            workspace=newsroom,
            source=hook,
            verification="address",
            status=status,
            reason=reason,
            preset="ghost",
        )
        for status in ("failed", "taken")
    )
    assert shown(editor, newsroom) == {
        "mailings": [stopped.subject],
        "deliveries": ["Delivery to Front desk"],
    }
    assert shown(editor, newsroom, outlet=encode("out", letter.pk)) == {"mailings": [stopped.subject]}
    assert set(shown(editor, newsroom, cause="making")) == {"deliveries"}
    html = editor.get(at(newsroom)).content.decode()
    assert error["message"] in html
    assert reverse("subscribers", kwargs={"ws": newsroom.pk, "out": letter.pk}) in html
    assert reason["message"] in html
    delivery = {"ws": newsroom.pk, "src": hook.pk, "ind": made_nothing.pk}
    assert reverse("source_delivery", kwargs=delivery) in html
    assert reverse("source_delivery", kwargs={**delivery, "ind": taken.pk}) not in html
    assert done.subject not in html


@pytest.mark.parametrize(
    ("whose", "name", "role"),
    [
        ("content", "item_edit", "editor"),
        ("content", None, "viewer"),
        ("account", "outlet_page", "editor"),
        ("retry", None, "editor"),
    ],
)
def test_a_failed_one_leads_to_what_has_to_change(
    editor, vera, newsroom, stage, as_person, whose, name, role
):
    row = failed(newsroom, stage)
    Publication.everywhere.filter(pk=row.pk).update(error={**row.error, "class": whose})
    keys = {"item_edit": {"gen": row.item_id}, "outlet_page": {"out": row.outlet_id}}
    person = editor if role == "editor" else as_person(vera)
    html = person.get(at(newsroom)).content.decode()
    ways = {way: reverse(way, kwargs={"ws": newsroom.pk, **given}) for way, given in keys.items()}
    offered = [way for way, address in ways.items() if f'class="button small" href="{address}"' in html]
    assert offered == ([name] if name else [])
    if name == "item_edit":
        assert editor.get(ways[name]).status_code == 200


def test_filters_by_kind_outlet_cause_and_since(editor, newsroom, stage):
    other = make_stage(newsroom, name="Other")
    refused, overdue = failed(newsroom, stage), late(newsroom, other)
    unknown = failed(newsroom, make_stage(newsroom, "reject", name="Third"), "Fog delays the morning boats")
    Publication.everywhere.filter(pk=unknown.pk).update(status="unknown")
    account = failed(newsroom, make_stage(newsroom, "reject", name="Fourth"), "A chapter for the lighthouse")
    Publication.everywhere.filter(pk=account.pk).update(
        error={"class": "account", "message": "No."}, updated_at=timezone.now() - timedelta(days=3)
    )
    assert set(shown(editor, newsroom, kind="publications")) == {"late", "failed", "unknown"}
    assert shown(editor, newsroom, kind="items") == {}
    assert shown(editor, newsroom, outlet=encode("out", other.pk)) == {"late": [token(overdue)]}
    assert shown(editor, newsroom, cause="late") == {"late": [token(overdue)]}
    assert shown(editor, newsroom, cause="unknown") == {"unknown": [token(unknown)]}
    assert shown(editor, newsroom, cause="account") == {"failed": [token(account)]}
    assert shown(editor, newsroom, cause="content") == {"failed": [token(refused)]}
    week, day = shown(editor, newsroom, since="week"), shown(editor, newsroom, since="day")
    assert token(account) in week["failed"]
    assert token(account) not in day["failed"]
    # What nobody understands is left out, and hides nothing.
    assert set(shown(editor, newsroom, kind="nonsense", since="ever")) == {
        "late",
        "failed",
        "unknown",
    }


def test_what_a_person_has_to_post_leads_to_its_page(editor, newsroom):
    config = {"place": "Substack", "address": "https://example.com/new", "instructions": "Add the tags."}
    desk = Outlet.everywhere.create(workspace=newsroom, platform="handoff", name="Substack", config=config)
    row = send(promise(item(newsroom), desk))
    Publication.everywhere.filter(pk=row.pk).update(due_at=timezone.now() - timedelta(hours=1))
    assert list(shown(editor, newsroom, cause="by_hand")) == ["by_hand"]
    # It isn't late, here as on Home and in the calendar.
    assert list(shown(editor, newsroom)) == ["by_hand"]
    home = editor.get(at(newsroom, "home")).context["seen"]
    assert (home.late.number, len(home.by_hand)) == (0, 1)
    calendar = editor.get(at(newsroom, "calendar"), {"view": "day"})
    (card,) = [card for cell in calendar.context["board"].days for card in cell.cards]
    assert (card.label, card.is_late) == ("Post manually", False)
    html = editor.get(at(newsroom)).content.decode()
    assert reverse("package", kwargs={"ws": newsroom.pk, "pub": row.pk}) in html


def test_nothing_of_another_workspace_and_nothing_of_a_test_is_listed_or_cleared(editor, newsroom, stage):
    elsewhere = workspaces.create("Elsewhere")
    workspaces.whitelist(elsewhere, "operator@example.test")
    WorkspaceDefaults.everywhere.filter(workspace=elsewhere).update(engines=["Short Post"])
    theirs = failed(elsewhere, make_stage(elsewhere, "reject"))
    tried = failed(newsroom, stage)
    Publication.everywhere.filter(pk=tried.pk).update(test=True)
    assert shown(editor, newsroom) == {}
    answer = clear(editor, newsroom, "retry", token(theirs), token(tried))
    assert said(answer) == ["Deleted rows were skipped."]
    assert (reread(theirs).status, reread(tried).status) == ("failed", "failed")


def test_a_viewer_sees_it_and_clears_nothing(vera, editor, newsroom, stage, as_person):
    row = failed(newsroom, stage)
    viewer = as_person(vera)
    html = viewer.get(at(newsroom)).content.decode()
    assert reread(row).error["message"] in html
    assert 'name="rows"' not in html
    assert 'name="one"' not in html
    assert clear(viewer, newsroom, "retry", token(row)).status_code == 403
    assert reread(row).status == "failed"


def copies(row, count):
    """So many further publications like it, each of an item of its own."""
    found = []
    for _number in range(count):
        whole = GeneratedItem.everywhere.get(pk=row.item_id)
        whole.pk, whole.variant_group = uuid7(), uuid7()
        whole._state.adding = True
        whole.save(force_insert=True)
        again = reread(row)
        again.pk, again.item_id = uuid7(), whole.pk
        again._state.adding = True
        found.append(again)
    return Publication.everywhere.bulk_create(found)


def test_its_statements_have_a_bound(editor, newsroom, stage, monkeypatch):
    copies(failed(newsroom, stage), 20)
    copies(late(newsroom, make_stage(newsroom, name="Other")), 20)
    monkeypatch.setattr(publication_rows, "MAX_EXPLAINED", 3)

    def cost():
        with CaptureQueriesContext(connection) as asked:
            assert editor.get(at(newsroom)).status_code == 200
        return len(asked)

    cost()
    before = cost()
    copies(Publication.everywhere.filter(status="failed").first(), 60)
    copies(Publication.everywhere.filter(status="scheduled").first(), 60)
    assert cost() == before
    assert before < 50
    sections = {one.name: one for one in editor.get(at(newsroom)).context["sections"]}
    assert [len(sections[name].rows) for name in ("late", "failed")] == [
        failure_sections.ROWS,
        failure_sections.ROWS,
    ]
    assert sections["failed"].count.text == "81"
    alone = editor.get(at(newsroom), {"section": "failed"}).context["sections"]
    assert [(one.name, len(one.rows), one.is_cut) for one in alone] == [("failed", 81, False)]


def test_it_looks_again_and_says_nothing_where_nothing_changed(editor, newsroom, stage):
    row = failed(newsroom, stage)
    html = editor.get(at(newsroom)).content.decode()
    (address,) = re.findall(r'hx-get="([^"]+)"', html)
    asks = {"headers": {"HX-Request": "true", "HX-Target": "failures"}}
    assert editor.get(address.replace("&amp;", "&"), **asks).status_code == 204
    clear(editor, newsroom, "cancel", token(row))
    again = editor.get(address.replace("&amp;", "&"), **asks)
    assert again.status_code == 200
    assert "No problems" in again.content.decode()


# --- Acts ------------------------------------------------------------------------------------------------------------


def test_several_are_tried_again_and_taken_back_with_one_undo(editor, newsroom, stage):
    first = failed(newsroom, stage)
    second = failed(newsroom, make_stage(newsroom, "reject", name="Other"), "Fog delays the morning boats")
    was = {row.pk: (row.error, row.due_at, row.attempt_count) for row in (first, second)}
    answer = clear(editor, newsroom, "retry", token(first), token(second))
    assert "Retrying 2." in said(answer)[0]
    for row in (first, second):
        again = reread(row)
        assert (again.status, again.requested_by) == ("scheduled", "bob@example.test")
        # It waits some seconds, so that there is time for the undo.
        assert again.due_at > timezone.now()
    assert shown(editor, newsroom) == {}
    assert said(undo(editor, newsroom, answer))[-1] == "Undone."
    for row in (first, second):
        back = reread(row)
        assert (back.status, back.error, back.due_at, back.attempt_count) == ("failed", *was[row.pk])
        assert reread(row.item).status == "publish_failed"


def test_a_retry_goes_out_after_its_grace(editor, newsroom, stage):
    row = failed(newsroom, stage)
    clear(editor, newsroom, "retry", token(row))
    Publication.everywhere.filter(pk=row.pk).update(due_at=timezone.now(), wake_at=timezone.now())
    assert send(row).status == "published"


def test_both_outlets_of_an_item_are_cleared_and_taken_back_together(editor, newsroom, stage):
    other = make_stage(newsroom, "reject", name="Other")
    one = item(newsroom)
    first = promise(one, stage, other)
    pair = [send(row) for row in Publication.everywhere.filter(item=one).order_by("id")]
    assert [row.status for row in pair] == ["failed", "failed"]
    assert first.pk == pair[0].pk
    answer = clear(editor, newsroom, "retry", *[token(reread(row)) for row in pair])
    assert [reread(row).status for row in pair] == ["scheduled", "scheduled"]
    undo(editor, newsroom, answer)
    assert [reread(row).status for row in pair] == ["failed", "failed"]


def test_an_unknown_outcome_is_asked_for_and_not_sent(editor, newsroom, stage):
    row = failed(newsroom, stage)
    Publication.everywhere.filter(pk=row.pk).update(status="unknown", wake_at=None)
    answer = clear(editor, newsroom, "retry", token(row))
    assert said(answer) == ["Retrying."]
    again = reread(row)
    assert (again.status, again.wake_at is not None) == ("unknown", True)


def test_what_failed_gets_another_time_with_its_own_words_and_comes_back(editor, newsroom, stage):
    row = failed(newsroom, stage)
    Publication.everywhere.filter(pk=row.pk).update(overrides={"body": "Only here."}, late_policy="hold")
    answer = clear(editor, newsroom, "at", token(row), local_time="2099-01-01T10:00")
    assert "days ahead" in said(answer)[0]
    local = (timezone.now() + timedelta(days=2)).replace(hour=10, minute=0, second=0, microsecond=0)
    answer = clear(editor, newsroom, "at", token(row), local_time=f"{local:%Y-%m-%dT%H:%M}")
    assert "Rescheduled." in said(answer)[-1]
    again = reread(row)
    assert (again.status, again.overrides, again.late_policy) == ("scheduled", {"body": "Only here."}, "hold")
    # A time on the clocks of Berlin.
    assert (again.local_time, again.zone) == (f"{local:%Y-%m-%dT%H:%M:%S}", "Europe/Berlin")
    undo(editor, newsroom, answer)
    assert reread(row).status == "failed"


def test_late_ones_take_the_next_free_slots_each_its_own(editor, newsroom):
    other = make_stage(newsroom, name="Other")
    first, second = late(newsroom, other), late(newsroom, other, "Fog delays the morning boats")
    was = first.due_at
    answer = clear(editor, newsroom, "next", token(first), token(second))
    moved = sorted(reread(row).due_at for row in (first, second))
    assert timezone.now() < moved[0] < moved[1]
    assert all(reread(row).queue_id is not None for row in (first, second))
    assert shown(editor, newsroom) == {}
    undo(editor, newsroom, answer)
    assert reread(first).due_at == was
    assert shown(editor, newsroom) == {"late": [token(reread(first)), token(reread(second))]}


def test_a_paused_queue_refuses_and_the_failed_one_stays_failed(editor, newsroom, stage):
    row = failed(newsroom, stage)
    PublishQueue.everywhere.filter(workspace=newsroom).update(is_paused=True)
    answer = clear(editor, newsroom, "next", token(row))
    assert "is paused" in said(answer)[0]
    assert (reread(row).status, reread(row).version) == ("failed", row.version)


def test_cancelled_ones_are_gone_and_come_back_as_they_were(editor, newsroom, stage):
    refused, overdue = failed(newsroom, stage), late(newsroom, make_stage(newsroom, name="Other"))
    answer = clear(editor, newsroom, "cancel", token(refused), token(overdue))
    assert [reread(row).status for row in (refused, overdue)] == ["cancelled", "cancelled"]
    assert [reread(row.item).status for row in (refused, overdue)] == ["ready", "ready"]
    assert shown(editor, newsroom) == {}
    undo(editor, newsroom, answer)
    back = {row.item_id: row for row in Publication.everywhere.exclude(status="cancelled")}
    again, due = back[refused.item_id], back[overdue.item_id]
    assert (again.status, again.error, again.wake_at) == ("failed", refused.error, None)
    assert (due.status, due.due_at, due.outlet_id) == ("scheduled", overdue.due_at, overdue.outlet_id)
    assert due.wake_at is not None
    assert reread(refused.item).status == "publish_failed"


def test_what_has_failed_is_dismissed_and_what_is_late_unscheduled(editor, newsroom, stage):
    refused, overdue = failed(newsroom, stage), late(newsroom, make_stage(newsroom, name="Other"))
    html = editor.get(at(newsroom)).content.decode()
    buttons = dict(re.findall(r'value="cancel:(\w+):\d+">.*?</svg> (\w+)</button>', html, re.DOTALL))
    assert buttons == {encode("pub", refused.pk): "Dismiss", encode("pub", overdue.pk): "Unschedule"}
    answer = clear(editor, newsroom, "cancel", token(refused))
    assert "Dismissed. It won&#x27;t be published there." in said(answer)[0]
    assert "Unscheduled." in said(clear(editor, newsroom, "cancel", token(overdue)))[-1]


def test_what_was_promised_anew_meanwhile_isnt_promised_twice(editor, newsroom, stage):
    row = failed(newsroom, stage)
    answer = clear(editor, newsroom, "cancel", token(row))
    promise(reread(row.item), stage)
    assert (
        "Changed since you opened it: scheduled. This is the current version."
        in said(undo(editor, newsroom, answer))[-1]
    )
    assert Publication.everywhere.exclude(status="cancelled").count() == 1


def test_items_raw_items_sources_and_drafts_are_tried_again(editor, newsroom):
    broken, raw = item(newsroom), push_raw(newsroom, title="Fog", url="https://n.example/fog").raw_item
    GeneratedItem.everywhere.filter(pk=broken.pk).update(status="failed", revision=0)
    RawItem.everywhere.filter(pk=raw.pk).update(status="failed")
    gone = Source.everywhere.create(
        workspace=newsroom, name="Old", type="rss", status="gone", config={"url": "https://x.example/feed"}
    )
    draft = PersonaDraft.everywhere.create(workspace=newsroom, status="failed", url="https://x.example")
    answer = clear(
        editor, newsroom, "retry", token(reread(broken), "gen"), token(reread(raw), "raw"),
        token(gone, "src"), token(draft, "pdr"),
    )  # fmt: skip
    assert said(answer) == ["Retrying 4."]
    assert [reread(row).status for row in (broken, raw, gone, draft)] == [
        "queued",
        "queued",
        "active",
        "queued",
    ]
    # Nothing of them has a time.
    GeneratedItem.everywhere.filter(pk=broken.pk).update(status="failed")
    answer = clear(editor, newsroom, "cancel", token(reread(broken), "gen"))
    assert said(answer)[-1].startswith("Only publications have a time")


@pytest.mark.parametrize("act", ["retry", "next", "cancel"])
def test_a_version_that_is_old_changes_nothing_and_hinders_no_other(editor, newsroom, stage, act):
    row = failed(newsroom, stage)
    fine = failed(newsroom, make_stage(newsroom, "reject", name="Other"), "Fog delays the morning boats")
    looked_at = token(row)
    Publication.everywhere.filter(pk=row.pk).update(version=row.version + 1)
    answer = clear(editor, newsroom, act, looked_at, token(fine))
    assert any("Changed since you opened it. This is the current version." in line for line in said(answer))
    assert (reread(row).status, reread(row).version) == ("failed", row.version + 1)
    assert reread(fine).status != "failed"


@pytest.mark.parametrize(("prefix", "model"), [("gen", GeneratedItem), ("raw", RawItem), ("src", Source)])
def test_versions_of_the_others_are_checked_too(editor, newsroom, prefix, model):
    made = item(newsroom)
    row = {"gen": made, "raw": made.raw_item}.get(prefix) or Source.everywhere.create(
        workspace=newsroom, name="Old", type="rss", status="gone", config={"url": "https://x.example/feed"}
    )
    status = "gone" if prefix == "src" else "failed"
    model.everywhere.filter(pk=row.pk).update(status=status)
    answer = clear(editor, newsroom, "retry", f"{encode(prefix, row.pk)}:99")
    assert said(answer)[0].startswith("Changed since you opened it. This is the current version.")
    assert reread(row).status == status


def test_an_undo_after_somebody_else_acted_changes_nothing(editor, newsroom, stage):
    row = failed(newsroom, stage)
    answer = clear(editor, newsroom, "retry", token(row))
    decisions.approve(reread(row.item), by="alice@example.test", now=timezone.now())
    before = reread(row)
    assert (
        "Changed since you opened it: scheduled. This is the current version."
        in said(undo(editor, newsroom, answer))[-1]
    )
    assert (reread(row).status, reread(row).version) == ("scheduled", before.version)


def test_a_note_of_another_workspace_takes_nothing_back(editor, newsroom, charlie, as_person, stage):
    row = failed(newsroom, stage)
    answer = clear(editor, newsroom, "retry", token(row))
    (note,) = re.findall(r'name="undo" value="([^"]+)"', " ".join(said(answer)))
    elsewhere = charlie.memberships.get().workspace
    theirs = as_person(charlie).post(at(elsewhere, "failures_undo"), {"undo": note})
    assert said(theirs) == ["This can't be undone any more."]
    assert reread(row).status == "scheduled"


def test_one_row_has_buttons_of_its_own_and_goes_before_what_is_ticked(editor, newsroom, stage):
    row = failed(newsroom, stage)
    other = failed(newsroom, make_stage(newsroom, "reject", name="Other"), "Fog delays the morning boats")
    html = editor.get(at(newsroom)).content.decode()
    assert f'name="one" value="retry:{token(row)}"' in html
    editor.post(at(newsroom, "failures_clear"), {"one": f"retry:{token(row)}", "rows": [token(other)]})
    assert (reread(row).status, reread(other).status) == ("scheduled", "failed")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"act": "retry"}, "Select at least one row."),
        ({"act": "retry", "rows": ["pub_nonsense:1", "out_x:1", "x"]}, "Select at least one row."),
        ({"act": "explode", "rows": ["x"]}, "explode"),
        ({"act": "at", "rows": ["x"]}, "Enter a date and time."),
        (
            {"act": "at", "rows": ["x"], "local_time": "2001-01-01T10:00"},
            "This time is in the past. Choose a later one or publish now.",
        ),
    ],
)
def test_what_is_no_act_says_why(editor, newsroom, given, why):
    answer = editor.post(at(newsroom, "failures_clear"), {**given, "query": "kind=raw&section=late&x=1"})
    assert why in said(answer)[0]
    assert "kind=raw&section=late" in answer["Location"]
    assert "x=1" not in answer["Location"]
    if "local_time" in given:
        # What was typed is still there.
        assert given["local_time"] in editor.get(answer["Location"]).content.decode()


def test_more_than_one_call_clears_says_so(editor, newsroom, stage, monkeypatch):
    monkeypatch.setattr(recovery, "AT_ONCE", 1)
    first = failed(newsroom, stage)
    second = failed(newsroom, make_stage(newsroom, "reject", name="Other"), "Fog delays the morning boats")
    answer = clear(editor, newsroom, "retry", token(first), token(second))
    assert any("At most 1 are cleared at once" in line for line in said(answer))
    assert (reread(first).status, reread(second).status) == ("scheduled", "failed")


def test_home_and_calendar_lead_here(editor, newsroom, stage):
    failed(newsroom, stage)
    late(newsroom, make_stage(newsroom, name="Other"))
    home = editor.get(reverse("home", kwargs={"ws": newsroom.pk})).content.decode()
    assert f'href="{at(newsroom)}?cause=late"' in home
    assert f'href="{at(newsroom)}?since=day"' in home
    calendar = editor.get(reverse("calendar", kwargs={"ws": newsroom.pk})).content.decode()
    assert f'href="{at(newsroom)}?kind=publications"' in calendar
