"""review: what people decide, and every state in which they can't."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.ledger import credits
from config.core import states
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline import publish
from pipeline.engines.base import ANGLES
from pipeline.generate import recoverable_failures
from pipeline.generate import run as generation_run
from pipeline.generate.lifecycle import start_run
from pipeline.ingest import erase_raw_item
from pipeline.models import (
    Asset,
    Attempt,
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    Outlet,
    Publication,
    RawBody,
    Revision,
)
from pipeline.review import decisions, regenerate
from tests.pipeline import steps
from tests.pipeline.steps import (
    NOON,
    claimed,
    codes,
    make_items,
    make_stage,
    promise,
    push_raw,
    reread,
    send,
    state,
)

LATER = NOON + timedelta(days=1)
EDITABLE = {"ready", "scheduled", "partially_published", "publish_failed"}
STATUSES = (
    "queued",
    "generating",
    "failed",
    "ready",
    "rejected",
    "scheduled",
    "publishing",
    "published",
    "partially_published",
    "publish_failed",
    "deleted",
)


def bring_on(workspace, item, status):
    if status == "rejected":
        decisions.reject(item, reason="dull", by="alice", now=NOON)
    elif status == "deleted":
        decisions.erase(item, now=NOON)
    elif status == "partially_published":
        wish = steps.to(make_stage(workspace), make_stage(workspace, "reject"))
        for publication in publish.request(item, wish, by="alice")[1]:
            send(publication)
    elif status != "ready":
        words = {"publishing": ["error"], "publish_failed": ["reject"]}.get(status, [])
        publication = promise(item, make_stage(workspace, *words))
        if status != "scheduled":
            send(publication)


@pytest.fixture
def make(workspace, feed):
    """An item in any status, brought there by the stages themselves."""

    def bring(status):
        raw = push_raw(workspace, test=True).raw_item
        generation = Generation.everywhere.get(raw_item=raw)
        if status == "generating":
            start_run(claimed(generation))
        elif status == "failed":
            generation_run.give_up(claimed(generation))
        elif status != "queued":
            generation_run.run_generation(claimed(generation))
            bring_on(workspace, steps.items_of(raw)[0], status)
        return steps.items_of(raw)[0]

    return bring


ACTS = {
    "approve": (lambda item, _: decisions.approve(item, by="alice", now=NOON), EDITABLE),
    "reject": (lambda item, _: decisions.reject(item, reason="", by="alice", now=NOON), {"ready"}),
    "restore": (lambda item, _: decisions.restore(item, now=NOON), {"rejected"}),
    "edit": (lambda item, _: decisions.edit(item, {"title": "x"}, by="alice", now=NOON), EDITABLE),
    "retry": (lambda item, workspace: regenerate.retry(item, workspace=workspace, now=NOON), {"failed"}),
    "regenerate": (
        lambda item, workspace: regenerate.regenerate(item, workspace=workspace, now=NOON),
        set(STATUSES) - {"queued", "generating", "deleted"},
    ),
    "cancel": (lambda item, _: publish.cancel(item, now=NOON), {"scheduled"}),
    "erase": (lambda item, _: decisions.erase(item, now=NOON), set(STATUSES) - {"publishing"}),
    "publish": (
        lambda item, _: publish.request(item, publish.PublishWish(), by="alice"),
        {"ready", "scheduled", "publishing", "published", "partially_published", "publish_failed"},
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_act_is_done_in_its_statuses_and_refused_in_every_other(make, workspace, act):
    do, allowed = ACTS[act]
    done, refused = set(), {}
    for status in STATUSES:
        item = make(status)
        assert (item.status, item.deleted_at is None) == (
            (status, True) if status != "deleted" else ("ready", False)
        )
        before = reread(item)
        try:
            do(item, workspace)
        # A refusal is a Conflict and nothing else; whatever else is raised fails the test.
        except Conflict as error:
            refused[status] = [one.code for one in error.detail], reread(item).version - before.version
        else:
            done.add(status)
        erase_raw_item.erase(item.raw_item, now=NOON)
        item.raw_item.__class__.everywhere.filter(pk=item.raw_item_id).update(dedup_key=f"h:{item.pk}")
    assert done == allowed
    others = set(STATUSES) - allowed - {"deleted"}
    code = {
        "approve": "not_approved",
        "reject": "move_not_allowed",
        "restore": "not_rejected",
        "edit": "not_edited",
        "retry": "move_not_allowed",
        "regenerate": "not_made_yet",
        "cancel": "nothing_scheduled",
        "erase": "in_flight",
        "publish": "not_publishable",
    }[act]
    assert {status: refused[status] for status in others} == {status: ([code], 0) for status in others}


# --- Approve ---------------------------------------------------------------------------------------------------------


def test_approve_names_the_revision(ready):
    decisions.approve(ready, by="alice", now=NOON)
    assert state(ready, "approved_by", "approved_at", "approved_revision", "held", "status") == {
        "approved_by": "alice",
        "approved_at": NOON,
        "approved_revision": 1,
        "held": "",
        "status": "ready",
    }
    assert reread(ready).version == ready.version + 1


def test_approval_of_an_older_revision_holds_until_it_is_approved_again(workspace, ready, stage):
    decisions.approve(ready, by="alice", now=NOON)
    decisions.edit(ready, {"title": "Better"}, by="bob", now=NOON)
    assert state(ready, "held", "revision", "approved_revision") == {
        "held": "approval_stale",
        "revision": 2,
        "approved_revision": 1,
    }
    decisions.approve(ready, by="alice", now=NOON)
    assert state(ready, "held", "approved_revision") == {"held": "", "approved_revision": 2}
    assert send(promise(ready, stage)).revision == 2


def test_workspace_that_asks_for_an_approval_gets_it_first(workspace, ready, stage):
    workspace.requires_approval = True
    workspace.save(update_fields=["requires_approval"])
    with pytest.raises(Conflict) as refused:
        promise(ready, stage)
    assert codes(refused) == [("approval", "approval_required")]
    decisions.approve(ready, by="alice", now=NOON)
    publication = promise(ready, stage)
    assert state(ready, "approved_by", "status") == {"approved_by": "alice", "status": "scheduled"}
    decisions.edit(ready, {"title": "Better"}, by="bob", now=NOON)
    with pytest.raises(Conflict) as refused:
        promise(ready, stage)
    assert codes(refused) == [("approval", "approval_required")]
    assert send(publication).status == "scheduled"


@pytest.mark.parametrize("lifts", [{}, {"held": "source_changed"}, {"flagged": "source_changed"}], ids=str)
@pytest.mark.parametrize("status", GeneratedItemStatus.values)
def test_an_approval_is_offered_just_where_it_is_taken(ready, status, lifts):
    GeneratedItem.everywhere.filter(pk=ready.pk).update(status=status, **lifts)
    offered = decisions.needs_approval(reread(ready))
    try:
        decisions.approve(ready, by="alice", now=NOON)
    except Conflict:
        assert not offered
    else:
        assert offered
        assert not decisions.needs_approval(reread(ready))


def test_approve_lets_go_of_what_is_held_in_any_publishing_status(workspace, make):
    """Otherwise a failed publication whose source changed could never be sent again."""
    item = make("publish_failed")
    publication = Publication.everywhere.get(item=item)
    push_raw(workspace, test=True, body=steps.OTHER_TEXT)
    assert reread(item).held == "source_changed"
    with pytest.raises(Conflict) as refused:
        publish.retry(publication, by="alice", now=NOON)
    assert codes(refused) == [("held", "held")]
    decisions.approve(item, by="alice", now=NOON)
    publish.retry(publication, by="alice", now=NOON)
    assert send(publication).status == "published"


def test_words_that_a_platform_refused_are_changed_and_sent(workspace, make):
    item = make("publish_failed")
    publication = Publication.everywhere.get(item=item)
    edited = decisions.edit(item, {"body": "Other words."}, by="alice", now=NOON)
    assert (edited.status, edited.revision, edited.held) == ("publish_failed", 2, "approval_stale")
    assert reread(publication).status == "failed"
    decisions.approve(item, by="alice", now=NOON)
    publish.retry(publication, by="alice", now=NOON)
    sent = send(publication)
    assert (sent.status, sent.revision, reread(item).status) == ("published", 2, "published")
    assert Attempt.everywhere.filter(publication=sent).latest("id").revision == 2


def test_words_for_who_refused_leave_what_is_out_as_it_is(make):
    item = make("partially_published")
    out, refused = (
        Publication.everywhere.get(item=item, status=status) for status in ("published", "failed")
    )
    decisions.edit(item, {"body": "Other words."}, by="alice", now=NOON)
    decisions.approve(item, by="alice", now=NOON)
    publish.retry(refused, by="alice", now=NOON)
    assert (send(refused).revision, reread(out).revision, reread(item).status) == (2, 1, "published")


# --- Reject and restore ----------------------------------------------------------------------------------------------


def test_reject_and_restore(ready):
    decisions.reject(ready, reason="dull", by="alice", now=NOON)
    assert state(ready, "status", "rejection") == {
        "status": "rejected",
        "rejection": {
            "code": "by_person",
            "message": "dull",
            "by": "alice",
            "at": "2027-03-01T12:00:00.000Z",
        },
    }
    decisions.restore(ready, now=NOON)
    assert state(ready, "status", "rejection", "version") == {
        "status": "ready",
        "rejection": None,
        "version": ready.version + 2,
    }


def test_superseded_sibling_is_restored(workspace, stage):
    first, second = make_items(workspace, variants=2)
    send(promise(first, stage))
    decisions.restore(second, now=NOON)
    assert reread(second).status == "ready"
    assert send(promise(second, make_stage(workspace))).status == "published"


# --- Edit ------------------------------------------------------------------------------------------------------------


def test_edit_of_words_is_the_next_revision(ready):
    edited = decisions.edit(
        ready, {"title": "Better", "body": "New   words.\nTwo lines."}, by="alice", now=LATER
    )
    assert state(
        ready, "title", "body", "content", "excerpt", "revision", "version", "updated_at", "held"
    ) == {
        "title": "Better",
        "body": "New   words.\nTwo lines.",
        "content": {"parts": ["New   words.\nTwo lines."]},
        "excerpt": "New words. Two lines.",
        "revision": 2,
        "version": ready.version + 1,
        "updated_at": LATER,
        "held": "",
    }
    assert (edited.revision, edited.excerpt) == (2, "New words. Two lines.")
    kept = Revision.everywhere.filter(item=ready).order_by("number")
    assert list(kept.values_list("number", "title", "body", "made_by")) == [
        (1, ready.title, ready.body, "extractive-1"),
        (2, "Better", "New   words.\nTwo lines.", "alice"),
    ]


@pytest.mark.parametrize(
    ("changes", "body", "parts"),
    [
        ({"body": "One."}, "One.", ["One."]),
        ({"content": {"parts": ["One.", "Two."]}}, "One.\n\nTwo.", ["One.", "Two."]),
        ({"body": "One.\n\nTwo.", "content": {"parts": ["One.", "Two."]}}, "One.\n\nTwo.", ["One.", "Two."]),
        ({"body": "One.", "content": {}}, "One.", ["One."]),
    ],
)
def test_edit_keeps_body_and_parts_in_step(ready, changes, body, parts):
    decisions.edit(ready, changes, by="alice", now=NOON)
    assert state(ready, "body", "content", "excerpt") == {
        "body": body,
        "content": {"parts": parts},
        "excerpt": " ".join(body.split()),
    }


THREAD = ["One.", "Two\n\nof two.", "Three."]


@pytest.mark.parametrize(
    ("changes", "body", "parts"),
    [
        ({"body": "One.\n\nTwo.\n\n\n\nThree."}, "One.\n\nTwo.\n\nThree.", ["One.", "Two.", "Three."]),
        ({"body": "One."}, "One.", ["One."]),
        ({"content": {}}, "\n\n".join(THREAD), THREAD),
        ({"body": "\n\n".join(THREAD), "content": {}}, "\n\n".join(THREAD), THREAD),
        ({"content": {}, "body": "One.\n\nTwo."}, "One.\n\nTwo.", ["One.", "Two."]),
    ],
)
def test_a_thread_stays_one_when_its_body_is_edited(ready, changes, body, parts):
    decisions.edit(ready, {"content": {"parts": THREAD}}, by="alice", now=NOON)
    decisions.edit(ready, changes, by="alice", now=NOON)
    assert state(ready, "body", "content") == {"body": body, "content": {"parts": parts}}


@pytest.mark.parametrize(
    ("bucket", "content", "changes", "after"),
    [
        ("video", {"script": "Old."}, {"body": "New."}, {"script": "New."}),
        ("video", {"script": "Other."}, {"body": "New."}, {"script": "Other."}),
        ("image", {"caption": "Old."}, {"body": "New."}, {"caption": "New."}),
        ("image", {"caption": "Old.\nhttps://n.example/a"}, {"body": "New."}, {"caption": "New.\nhttps://n.example/a"}),
        ("image", {"caption": "Old. And more."}, {"body": "New."}, {"caption": "Old. And more."}),
        ("image", {"caption": "Old."}, {"body": "New.", "content": {"caption": "Mine."}}, {"caption": "Mine."}),
        ("image", {"caption": "Old."}, {"body": "New.", "content": {"caption": "Old."}}, {"caption": "New."}),
        ("image", {"caption": "Old."}, {"body": "New.", "content": {"slides": []}}, {"slides": [], "caption": "New."}),
    ],
)  # fmt: skip
def test_what_says_the_body_again_follows_it(ready, bucket, content, changes, after):
    GeneratedItem.everywhere.filter(pk=ready.pk).update(bucket=bucket, body="Old.", content=content)
    decisions.edit(ready, changes, by="alice", now=NOON)
    assert state(ready, "body", "content") == {"body": "New.", "content": after}


@pytest.mark.parametrize(
    ("bucket", "content", "changes", "after"),
    [
        (
            "newsletter",
            {"subject": "Old", "preheader": "Stays", "sections": []},
            {"content": {"subject": "New"}},
            {"subject": "New", "preheader": "Stays"},
        ),
        (
            "video",
            {"caption": "Old", "tags": ["a"]},
            {"content": {"caption": "New"}},
            {"caption": "New", "tags": ["a"]},
        ),
        (
            "blog",
            {"tags": ["a"], "slug": "old"},
            {"content": {"slug": "new"}},
            {"tags": ["a"], "slug": "new"},
        ),
    ],
)
def test_what_content_leaves_out_stays(ready, bucket, content, changes, after):
    GeneratedItem.everywhere.filter(pk=ready.pk).update(
        bucket=bucket, body_format="markdown", content=content
    )
    decisions.edit(ready, changes, by="alice", now=NOON)
    assert reread(ready).content.items() >= after.items()


def test_edit_with_empty_content_keeps_the_words(ready):
    decisions.edit(ready, {"content": {}}, by="alice", now=NOON)
    assert state(ready, "body", "content", "revision") == {
        "body": ready.body,
        "content": {"parts": [ready.body]},
        "revision": 1,
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"body": "One.", "content": {"parts": ["Two."]}}, [("content.parts", "differs_from_body")]),
        ({"content": {"caption": "x"}}, [("content.caption", "unknown_field")]),
        ({"content": {"parts": "x"}}, [("content.parts", "invalid")]),
        ({"content": {"parts": ["x" * 200_000, "y"]}}, [("content.parts", "too_long")]),
        ({"outlets": ["out_x"]}, [("outlets[0]", "unknown_outlet")]),
        ({"overrides": {"out_x": {"title": "x"}}}, [("overrides.out_x", "unknown_outlet")]),
    ],
)
def test_edit_refuses_what_cannot_be(ready, changes, expected):
    with pytest.raises(Invalid) as refused:
        decisions.edit(ready, changes, by="alice", now=NOON)
    assert codes(refused) == expected
    assert reread(ready).version == ready.version


def test_edit_refuses_another_workspaces_outlet(ready, charlies):
    his = encode("out", Outlet.everywhere.get(workspace=charlies, platform="simulated").pk)
    for changes in ({"outlets": [his]}, {"overrides": {his: {"title": "x"}}}):
        with pytest.raises(Invalid):
            decisions.edit(ready, changes, by="alice", now=NOON)
    assert reread(ready).version == ready.version


def test_edit_of_no_words_makes_no_revision_and_no_hold(ready, stage):
    decisions.approve(ready, by="alice", now=NOON)
    asset = Asset.everywhere.create(
        workspace_id=ready.workspace_id,
        item=ready,
        role="main",
        kind="image",
        name="a.png",
        path="a.png",
        mime_type="image/png",
        bytes=1,
        sha256="0" * 64,
    )
    changes = {
        "outlets": [encode("out", stage.pk)],
        "title": ready.title,
        "alt_texts": {asset.pk: "A tram."},
    }
    decisions.edit(ready, changes, by="alice", now=NOON)
    assert state(ready, "revision", "held", "outlets") == {
        "revision": 1,
        "held": "",
        "outlets": [encode("out", stage.pk)],
    }
    assert (reread(asset).alt_text, Revision.everywhere.count()) == ("A tram.", 1)


def test_edit_of_what_has_moved_on_is_a_version_conflict(ready):
    with pytest.raises(states.Overtaken) as refused:
        decisions.edit(ready, {"title": "x"}, by="alice", now=NOON, expected_version=ready.version - 1)
    assert (refused.value.code, refused.value.status) == ("version_conflict", 412)
    decisions.edit(ready, {"title": "x"}, by="alice", now=NOON, expected_version=ready.version)
    assert reread(ready).title == "x"


def test_edit_while_scheduled_holds_and_names_the_revision_to_be_sent(workspace, ready, stage):
    publication = promise(ready, stage, publish_at=LATER)
    decisions.edit(ready, {"body": "New words."}, by="alice", now=NOON)
    assert state(ready, "status", "held", "revision") == {
        "status": "scheduled",
        "held": "approval_stale",
        "revision": 2,
    }
    assert state(publication, "revision", "version", "wake_at") == {
        "revision": 2,
        "version": publication.version + 1,
        "wake_at": LATER,
    }


# --- Again, and gone -------------------------------------------------------------------------------------------------


def test_retry_and_regenerate_need_the_source(workspace, make):
    failed = make("failed")
    erase_raw_item.erase(failed.raw_item, now=NOON)
    for act in (regenerate.retry, regenerate.regenerate):
        with pytest.raises(Conflict) as refused:
            act(failed, workspace=workspace, now=NOON)
        assert codes(refused) == [("raw_item", "source_deleted")]


def test_retry_and_regenerate_need_the_topic(workspace, make):
    failed = make("failed")
    # What is left of an item when its topic is gone.
    GeneratedItem.everywhere.filter(pk=failed.pk).update(raw_item=None, topic=None)
    for act in (regenerate.retry, regenerate.regenerate):
        with pytest.raises(Conflict) as refused:
            act(reread(failed), workspace=workspace, now=NOON)
        assert codes(refused) == [("raw_item", "source_deleted")]


def test_regenerate_with_too_few_credits_leaves_nothing_behind(workspace, ready):
    credits.adjust(workspace, -9, "spent", "operator")
    with pytest.raises(credits.QuotaExceeded):
        regenerate.regenerate(ready, workspace=workspace, now=NOON)
    assert (GeneratedItem.everywhere.count(), Generation.everywhere.count()) == (1, 1)


def test_regenerate_of_a_failed_one_lets_its_raw_item_go_on(workspace, make):
    item = make("failed")
    assert reread(item.raw_item).status == "failed"
    variant = regenerate.regenerate(item, workspace=workspace, now=NOON)
    steps.run_generations(item.raw_item)
    assert (reread(variant).status, reread(item.raw_item).status) == ("ready", "processed")


def test_regenerate_goes_by_the_latest_version_of_its_source(workspace):
    item = make_items(workspace, external_id="story-1")[0]
    steps.push_raw(workspace, external_id="story-1", body=f"{steps.TEXT} It was revised at noon.")
    assert RawBody.everywhere.filter(raw_item=item.raw_item).count() == 2
    variant = regenerate.regenerate(reread(item), workspace=workspace, now=NOON)
    assert variant.generation.raw_version == 2


def test_erase_cancels_and_leaves_a_tombstone(workspace, ready, stage, feed):
    public = encode("out", stage.pk)
    wish = steps.to(stage, feed, overrides={public: {"body": "Secret."}})
    _, (one, other) = publish.request(ready, wish, by="alice")
    send(other)
    decisions.erase(ready, now=LATER)
    assert state(
        ready, "title", "body", "content", "excerpt", "claims", "checks", "overrides", "deleted_at", "status"
    ) == {
        "title": "",
        "body": "",
        "content": {},
        "excerpt": "",
        "claims": [],
        "checks": [],
        "overrides": {},
        "deleted_at": LATER,
        "status": "published",
    }
    assert [(reread(row).status, reread(row).overrides) for row in (one, other)] == [
        ("cancelled", {}),
        ("published", {}),
    ]
    assert Revision.everywhere.count() == 0
    decisions.erase(ready, now=NOON)
    assert reread(ready).deleted_at == LATER


def test_erase_leaves_neither_alt_texts_nor_what_a_person_said(ready):
    assets = [
        Asset.everywhere.create(
            workspace_id=ready.workspace_id,
            item=ready,
            role="main",
            kind="image",
            name=f"{number}.png",
            path=f"{number}.png",
            mime_type="image/png",
            bytes=1,
            sha256="0" * 64,
            alt_text="The mayor at the harbour.",
            revoked_at=revoked_at,
        )
        for number, revoked_at in enumerate((None, NOON))
    ]
    decisions.reject(ready, reason="The mayor never said so.", by="alice", now=NOON)

    decisions.erase(ready, now=LATER)

    assert [reread(asset).alt_text for asset in assets] == ["", ""]
    assert reread(ready).rejection == {
        "code": "by_person",
        "message": "",
        "by": "alice",
        "at": "2027-03-01T12:00:00.000Z",
    }


def test_erase_of_what_failed_keeps_the_kind_of_failure_alone(make):
    failed = make("failed")
    error = {**failed.error, "message": "The title doesn't fit: “Tram line approved”."}
    GeneratedItem.everywhere.filter(pk=failed.pk).update(error=error)
    Generation.everywhere.filter(pk=failed.generation_id).update(error=error)

    decisions.erase(reread(failed), now=LATER)

    kept = {**error, "message": recoverable_failures.ERASED}
    assert [reread(failed).error, reread(failed.generation).error] == [kept, kept]


def test_erase_leaves_of_a_late_answer_what_names_the_post(ready, stage):
    send(promise(ready, stage))
    answer = {"external_id": "7", "url": "https://social.example/7", "at": "2027-03-01T12:00:00.000Z"}
    Attempt.everywhere.update(late_answer={**answer, "details": {"mentions_not_linked": ["@ann"]}})

    decisions.erase(ready, now=LATER)

    assert [one.late_answer for one in Attempt.everywhere.all()] == [{**answer, "details": {}}]


def test_regenerate_ends_where_no_further_angle_is_left(workspace):
    item = make_items(workspace)[0]
    GeneratedItem.everywhere.filter(pk=item.pk).update(variant_index=len(ANGLES) - 1)

    with pytest.raises(Conflict) as caught:
        regenerate.regenerate(reread(item), workspace=workspace, now=NOON)

    assert [detail.code for detail in caught.value.detail] == ["no_more_variants"]
    assert GeneratedItem.everywhere.filter(variant_group=item.variant_group).count() == 1
