"""GET|PATCH|DELETE /generated/:id and what people decide about it."""

from __future__ import annotations

import pytest

from accounts.ledger import credits as credit_account
from accounts.models import Workspace
from config.core import ids, task_runner
from pipeline.models import Asset, Event, GeneratedItem, Generation, Publication, Revision
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, problem, refusal

ACTS = ("approve", "reject", "restore", "retry", "regenerate")


def _item(newsroom, item):
    return newsroom.api.read(f"/generated/{item['id']}")


def _act(newsroom, item, act, body=None):
    return newsroom.api.post(f"/generated/{item['id']}/{act}", *([] if body is None else [body]))


def _without_times(shown, *names):
    return {name: value for name, value in shown.items() if name not in {"updated_at", *names}}


# --- GET -------------------------------------------------------------------------------------------------------------


def test_item_is_shown_whole(alice):
    raw = alice.push(title="Cranes", body="The harbour of Norden bought 7 new cranes on Monday.")
    task_runner.work_all_due("generate.run_item")
    item = alice.generated_of(raw)[0]
    sentence = "The harbour of Norden bought 7 new cranes on Monday."
    shown = alice.api.get(f"/generated/{item['id']}")
    assert shown.status_code == 200
    body = normal(shown.json())
    checks = body.pop("checks")
    assert body.pop("checks_revision") == 1
    assert {check["outcome"] for check in checks} == {"passed"}
    assert body == {
        "id": "gen_*",
        "bucket": "text",
        "engine_output": "Short Post",
        "status": "ready",
        "progress": None,
        "revision": 1,
        "version": 3,
        "variant": {"group": "<hex>", "index": 0, "angle": body["variant"]["angle"]},
        "title": "Cranes",
        "body": sentence,
        "body_format": "text",
        "excerpt": sentence,
        "language": "en",
        "assets": [],
        "source": "src_*",
        "raw_item": "raw_*",
        "raw_items": ["raw_*"],
        "topic": None,
        "persona": "per_*",
        "outlets": ["out_*"],
        "overrides": {},
        "approval": {"required": False, "by": None, "at": None, "revision": None},
        "rejection": None,
        "publications": [],
        "publish_at": None,
        "overdue_seconds": 0,
        "held": None,
        "flagged": None,
        "generator": {
            "provider": "offline",
            "model": "extractive-1",
            "offline": True,
            "prompt_version": "extractive-1",
            "input_tokens": 0,
            "output_tokens": 0,
            "cost_usd": "0.000000",
            "credits": 1,
        },
        "error": None,
        "test": False,
        "created_at": "<moment>",
        "ready_at": "<moment>",
        "published_at": None,
        "updated_at": "<moment>",
        "content": {"parts": [sentence]},
        "claims": [
            {
                "text": sentence,
                "quote": sentence,
                "start": 0,
                "end": len(sentence),
                "derived": "",
                "draft_start": 0,
                "draft_end": len(sentence),
            }
        ],
        "provenance": {
            "raw_version": 1,
            "persona_version": 1,
            "engine_version": 1,
            "parent": None,
            "hint": None,
        },
    }
    assert (shown.json()["outlets"], shown.json()["raw_item"]) == ([alice.feed], raw["id"])
    same = alice.api.get(f"/generated/{item['id']}", headers={"If-None-Match": shown["ETag"]})
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", shown["ETag"])


def test_tag_is_strong_and_changes_with_everything_that_is_shown(alice):
    item = alice.published()
    path = f"/generated/{item['id']}"
    tag = alice.api.get(path)["ETag"]
    assert tag.startswith('"v')
    # Numbers of a platform change a publication's version without touching the item.
    Publication.everywhere.update(version=99)
    changed = alice.api.get(path, headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["publications"][0]["version"]) == (200, 99)


# --- PATCH -----------------------------------------------------------------------------------------------------------


def test_words_are_edited_as_a_new_revision(alice):
    item = alice.ready()
    answer = alice.api.patch(
        f"/generated/{item['id']}", {"title": "Better", "body": "The harbour has cranes."}
    )
    expected = {
        **item,
        "title": "Better",
        "body": "The harbour has cranes.",
        "content": {"parts": ["The harbour has cranes."]},
        # They stand in the source still; the draft doesn't say them any more.
        "claims": [{**claim, "draft_start": None, "draft_end": None} for claim in item["claims"]],
        "revision": 2,
        "checks_revision": 2,
        "version": item["version"] + 1,
    }
    shown = dict(answer.json())
    checks = {check["code"]: check["outcome"] for check in shown.pop("checks")}
    assert (item["checks_revision"], checks["support"], "claims" in checks) == (1, "warning", True)
    del expected["checks"]
    assert (answer.status_code, _without_times(shown, "excerpt")) == (
        200,
        _without_times(expected, "excerpt"),
    )
    assert _item(alice, item) == answer.json()
    assert alice.api.get(f"/generated/{item['id']}")["ETag"] == answer["ETag"]
    assert list(Revision.everywhere.order_by("number").values_list("number", "title")) == [
        (1, item["title"]),
        (2, "Better"),
    ]


FALSE = (
    "Mayor Donald Fakeman stole 99 million dollars and sold 4711 children. \u201cI did it and I am proud,\u201d he said. "
    "Call 0900 123456 or visit http://evil.example/pay now."
)


def test_false_words_are_never_passed(alice):
    item = alice.ready()
    checks = alice.api.patch(f"/generated/{item['id']}", {"body": FALSE}).json()["checks"]
    vouching = {"numbers", "quotations", "names", "support", "claims", "contacts", "link_origin"}
    passed = {check["code"] for check in checks if check["outcome"] == "passed"}
    assert passed & vouching == set()
    # What was found comes first, and nothing fails that a person wrote.
    outcomes = [check["outcome"] for check in checks]
    assert outcomes == sorted(outcomes, key=["warning", "passed"].index)
    told = {check["code"]: check["message"] for check in checks}
    assert "99 million dollars, 4711" in told["numbers"]
    assert "Mayor Donald Fakeman stole" in told["support"]
    listed = alice.api.read("/generated?include=checks")["data"][0]
    assert (listed["checks"], listed["checks_revision"]) == (checks, 2)


def test_checks_of_other_words_are_not_shown(alice):
    """As a release before this one leaves them: the revision rose, the checks stayed."""
    item = alice.ready()
    assert item["checks"]
    GeneratedItem.everywhere.update(body=FALSE, revision=2)
    shown = _item(alice, item)
    assert (shown["checks"], shown["checks_revision"]) == ([], None)
    listed = alice.api.read("/generated?include=checks")["data"][0]
    assert (listed["checks"], listed["checks_revision"]) == ([], None)


def test_content_is_edited_and_the_body_follows(alice):
    item = alice.ready()
    shown = alice.api.patch(f"/generated/{item['id']}", {"content": {"parts": ["One.", "Two."]}}).json()
    assert (shown["content"], shown["body"], shown["revision"]) == (
        {"parts": ["One.", "Two."]},
        "One.\n\nTwo.",
        2,
    )


def test_outlets_are_no_words(alice):
    item = alice.ready()
    shown = alice.api.patch(f"/generated/{item['id']}", {"outlets": [alice.simulated]}).json()
    assert (shown["outlets"], shown["revision"], shown["version"]) == (
        [alice.simulated],
        1,
        item["version"] + 1,
    )


def test_overrides_are_kept(alice):
    item = alice.ready()
    overrides = {alice.feed: {"title": "For the feed", "settings": {}}}
    shown = alice.api.patch(f"/generated/{item['id']}", {"overrides": overrides}).json()
    assert (shown["overrides"], shown["revision"]) == (overrides, 2)


def test_alt_text_of_an_own_asset(alice):
    item, other = alice.ready(), alice.ready()

    def asset_of(owner):
        return Asset.everywhere.create(
            workspace=alice.workspace, item_id=ids.decode("gen", owner["id"]), role="main", kind="image",
            name="a.png", path="a.png", mime_type="image/png", bytes=5, sha256="0" * 64,
        )  # fmt: skip

    own, foreign = asset_of(item), asset_of(other)
    path = f"/generated/{item['id']}"
    answer = alice.api.patch(path, {"assets": [{"id": ids.encode("ast", own.pk), "alt_text": "A crane"}]})
    assert [one["alt_text"] for one in answer.json()["assets"]] == ["A crane"]
    answer = alice.api.patch(path, {"assets": [{"id": ids.encode("ast", foreign.pk), "alt_text": "Mine"}]})
    message = "This item has no such asset; its `assets` lists them."
    assert (answer.status_code, answer.json()) == (
        400,
        problem("invalid_request", ("assets[0].id", "unknown_asset", message)),
    )
    foreign.refresh_from_db()
    assert foreign.alt_text == ""


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"status": "published"}, ("status", "unknown_field")),
        ({"body": ""}, ("body", "blank")),
        ({"body": None}, ("body", "null")),
        ({"title": 5}, ("title", "invalid")),
        ({"content": {"slides": []}}, ("content.slides", "unknown_field")),
        ({"content": {"parts": "x"}}, ("content.parts", "invalid")),
        ({"outlets": ["x"]}, ("outlets[0]", "invalid_id")),
        ({"overrides": {"x": {}}}, ("overrides", "invalid_id")),
        ({"assets": [{"id": "x", "alt_text": ""}]}, ("assets[0].id", "invalid_id")),
    ],
)
def test_wrong_change_is_refused(alice, change, detail):
    item = alice.ready()
    answer = alice.api.patch(f"/generated/{item['id']}", change)
    assert refusal(answer) == (400, "invalid_request", [detail])
    assert _item(alice, item) == item


def test_outlet_that_is_not_there_is_refused(alice):
    item = alice.ready()
    strange = never_existed("out")
    answer = alice.api.patch(f"/generated/{item['id']}", {"outlets": [alice.feed, strange]})
    assert refusal(answer) == (400, "invalid_request", [("outlets[1]", "unknown_outlet")])
    overrides = {alice.feed: {"title": "y"}, strange: {"title": "x"}}
    answer = alice.api.patch(f"/generated/{item['id']}", {"overrides": overrides})
    assert refusal(answer) == (400, "invalid_request", [(f"overrides.{strange}", "unknown_outlet")])
    assert _item(alice, item) == item


def test_only_the_version_that_was_read_is_changed(alice):
    item = alice.ready()
    path = f"/generated/{item['id']}"
    tag = alice.api.get(path)["ETag"]
    assert alice.api.patch(path, {"title": "Mine"}, headers={"If-Match": tag}).status_code == 200
    late = alice.api.patch(path, {"title": "Late"}, headers={"If-Match": tag})
    newest = _item(alice, item)
    message = f"It has changed: it is at revision 2, version {newest['version']} now. Read it again."
    assert (late.status_code, late.json()) == (
        412,
        problem("version_conflict", (None, "version_conflict", message)),
    )
    for wrong in ('"nonsense"', f"W/{alice.api.get(path)['ETag']}", "v4", '"v40"', ","):
        assert alice.api.patch(path, {"title": "Late"}, headers={"If-Match": wrong}).status_code == 412
    assert _item(alice, item)["title"] == "Mine"
    newest = alice.api.get(path)["ETag"]
    several = alice.api.patch(path, {"title": "Several"}, headers={"If-Match": f'"old", {newest}'})
    assert several.status_code == 200
    assert alice.api.patch(path, {"title": "Any"}, headers={"If-Match": "*"}).status_code == 200


def test_overdue_item_can_be_changed_by_the_version_that_was_read(alice):
    """How late it is changes the tag every second; that is nobody's change."""
    item = alice.scheduled()
    GeneratedItem.everywhere.update(publish_at="2026-01-01T00:00:00Z")
    path = f"/generated/{item['id']}"
    tag = alice.api.get(path)["ETag"]
    GeneratedItem.everywhere.update(publish_at="2025-01-01T00:00:00Z")
    assert alice.api.get(path)["ETag"] != tag
    assert alice.api.patch(path, {"title": "Mine"}, headers={"If-Match": tag}).status_code == 200


def test_change_between_our_look_and_the_lock_is_a_version_conflict(alice, monkeypatch):
    from pipeline.review import decisions

    item = alice.ready()
    locked = decisions.lock_with_workspace

    def overtaken(row):
        GeneratedItem.everywhere.filter(pk=row.pk).update(version=50)
        return locked(row)

    tag = alice.api.get(f"/generated/{item['id']}")["ETag"]
    monkeypatch.setattr(decisions, "lock_with_workspace", overtaken)
    answer = alice.api.patch(f"/generated/{item['id']}", {"title": "Late"}, headers={"If-Match": tag})
    assert refusal(answer) == (412, "version_conflict", [(None, "version_conflict")])


@pytest.mark.parametrize("change", [{}, {"assets": []}])
def test_change_of_nothing_keeps_the_version(alice, change):
    item = alice.ready()
    tag = alice.api.get(f"/generated/{item['id']}")["ETag"]
    answer = alice.api.patch(f"/generated/{item['id']}", change, headers={"If-Match": tag})
    assert (answer.status_code, answer.json(), answer["ETag"]) == (200, _item(alice, item), tag)
    assert answer.json()["updated_at"] == item["updated_at"]


@pytest.mark.parametrize("make", ["published", "failed"])
def test_only_ready_and_scheduled_items_are_edited(alice, make):
    item = getattr(alice, make)()
    before = _item(alice, item)
    answer = alice.api.patch(f"/generated/{item['id']}", {"title": "Late"})
    assert refusal(answer) == (409, "conflict", [("status", "not_edited")])
    assert item["status"] in answer.json()["detail"][0]["message"]
    assert _item(alice, item) == before


def test_scheduled_item_is_edited(alice):
    item = alice.scheduled()
    shown = alice.api.patch(f"/generated/{item['id']}", {"title": "Better"}).json()
    assert (shown["title"], shown["status"], shown["revision"]) == ("Better", "scheduled", 2)


# --- Decisions -------------------------------------------------------------------------------------------------------


def test_approve_names_the_revision(alice):
    item = alice.ready()
    answer = _act(alice, item, "approve")
    shown = answer.json()
    actor = alice.api.read("/workspace")["token"]["id"]
    assert (answer.status_code, normal(shown["approval"])) == (
        200,
        {"required": False, "by": "tok_*", "at": "<moment>", "revision": 1},
    )
    assert (shown["approval"]["by"], shown["version"], shown["status"]) == (
        actor,
        item["version"] + 1,
        "ready",
    )
    assert answer["ETag"] == alice.api.get(f"/generated/{item['id']}")["ETag"]


def test_edit_after_the_approval_holds_the_item(alice):
    item = alice.ready()
    _act(alice, item, "approve")
    held = alice.api.patch(f"/generated/{item['id']}", {"title": "Changed"}).json()
    assert (held["held"], held["approval"]["revision"], held["revision"]) == ("approval_stale", 1, 2)
    released = _act(alice, item, "approve").json()
    assert (released["held"], released["approval"]["revision"]) == (None, 2)


def test_reject_and_restore(alice):
    item = alice.ready()
    answer = _act(alice, item, "reject", {"reason": "Off topic"})
    rejected = answer.json()
    assert (answer.status_code, rejected["status"]) == (200, "rejected")
    assert normal(rejected["rejection"]) == {
        "code": "by_person",
        "message": "Off topic",
        "by": "tok_*",
        "at": "<moment>",
    }
    assert refusal(_act(alice, item, "reject"))[:2] == (409, "conflict")
    answer = _act(alice, item, "restore")
    restored = answer.json()
    assert (answer.status_code, restored["status"], restored["rejection"]) == (200, "ready", None)
    assert _without_times(restored, "version") == _without_times(item, "version")


def test_reject_needs_no_reason(alice):
    assert _act(alice, alice.ready(), "reject").json()["rejection"]["message"] == ""


def test_restore_of_what_is_not_rejected(alice):
    assert refusal(_act(alice, alice.ready(), "restore")) == (409, "conflict", [("status", "not_rejected")])


def test_failed_item_is_made_again(alice):
    failed = alice.failed()
    answer = _act(alice, failed, "retry")
    shown = answer.json()
    assert (answer.status_code, shown["status"], shown["error"]) == (202, "queued", None)
    assert shown["version"] == failed["version"] + 1
    assert alice.api.read("/usage")["reserved"] == 2


def test_retry_of_what_did_not_fail(alice):
    assert refusal(_act(alice, alice.ready(), "retry"))[:2] == (409, "conflict")


def test_regenerate_makes_a_further_variant(alice):
    item = alice.ready()
    answer = _act(alice, item, "regenerate")
    variant = answer.json()
    assert (answer.status_code, variant["status"], variant["id"] == item["id"]) == (202, "queued", False)
    assert variant["variant"] == {"group": item["variant"]["group"], "index": 1, "angle": None}
    assert variant["provenance"]["parent"] == item["id"]
    task_runner.work_all_due("generate.run_item")
    made = alice.api.read(f"/generated/{variant['id']}")
    assert (made["status"], made["body"] == item["body"]) == ("ready", False)
    assert alice.api.read("/usage")["used"] == 2


def test_progress_is_told_while_it_is_made(alice):
    item = alice.ready()
    key = ids.decode("gen", item["id"])
    assert item["progress"] is None
    GeneratedItem.everywhere.filter(pk=key).update(status="generating")
    run = GeneratedItem.everywhere.get(pk=key).generation
    tags = []
    for percent in (0, 42):
        Generation.everywhere.filter(pk=run.pk).update(stage="render", progress=percent)
        answer = alice.api.get(f"/generated/{item['id']}")
        tags.append(answer.headers["ETag"])
        told = {"stage": "render", "percent": percent}
        assert [answer.json()["progress"], alice.api.read("/generated")["data"][0]["progress"]] == [
            told,
            told,
        ]
    # Who asks whether it has changed hears of it, and who changes it names the version alone.
    assert tags[0] != tags[1]


def test_a_hint_that_nobody_can_follow_is_refused_in_words(alice):
    item = alice.ready()
    answer = _act(alice, item, "regenerate", {"hint": "Shorter, for beginners"})
    assert refusal(answer) == (409, "conflict", [("hint", "needs_ai")])
    assert "no hint can be followed" in answer.json()["detail"][0]["message"]
    assert alice.api.read("/usage")["reserved"] == 0
    assert _act(alice, item, "regenerate", {"hint": " "}).status_code == 202


def test_a_hint_has_an_end(alice):
    item = alice.ready()
    answer = _act(alice, item, "regenerate", {"hint": "x" * 501})
    assert refusal(answer)[2] == [("hint", "max_length")]
    answer = _act(alice, item, "regenerate", {"hint": ["shorter"]})
    assert refusal(answer)[:2] == (400, "invalid_request")


@pytest.mark.parametrize("act", ["retry", "regenerate"])
def test_making_again_needs_credits(alice, act):
    item = alice.failed() if act == "retry" else alice.ready()
    before = _item(alice, item)
    credit_account.adjust(alice.workspace, -2000, "for this test", "operator")
    assert refusal(_act(alice, item, act)) == (402, "quota_exceeded", [(None, "quota_exceeded")])
    assert (_item(alice, item), GeneratedItem.everywhere.filter(status="queued").count()) == (before, 0)


@pytest.mark.parametrize("act", ["retry", "regenerate"])
def test_making_again_needs_the_source(alice, act):
    item = alice.failed() if act == "retry" else alice.ready()
    alice.api.delete(f"/raw/{item['raw_item']}")
    assert refusal(_act(alice, item, act))[:2] == (409, "conflict")


@pytest.mark.parametrize("act", ACTS)
def test_decisions_take_no_other_fields(alice, act):
    item = alice.ready()
    answer = _act(alice, item, act, {"notes": "x"})
    assert refusal(answer) == (400, "invalid_request", [("notes", "unknown_field")])
    assert _item(alice, item) == item


@pytest.mark.parametrize("act", ACTS)
def test_decisions_take_an_empty_object_too(alice, act):
    with_body, without = alice.ready(), alice.ready()
    assert _act(alice, with_body, act, {}).status_code == _act(alice, without, act).status_code


def test_workspace_that_asks_for_approval_gets_it_first(alice):
    Workspace.everywhere.filter(pk=alice.workspace.pk).update(requires_approval=True)
    item = alice.ready()
    assert item["approval"]["required"] is True
    assert refusal(_act(alice, item, "publish"))[:2] == (409, "conflict")
    _act(alice, item, "approve")
    assert _act(alice, item, "publish").status_code == 202


def test_the_approval_that_is_asked_for_is_the_workspace_s_setting_of_now(alice):
    item = alice.ready()
    before = alice.api.get(f"/generated/{item['id']}")["ETag"]
    Workspace.everywhere.filter(pk=alice.workspace.pk).update(requires_approval=True)
    shown = alice.api.get(f"/generated/{item['id']}")
    assert (shown.json()["approval"]["required"], shown["ETag"] == before) == (True, False)
    assert [one["approval"]["required"] for one in alice.api.read("/generated")["data"]] == [True]
    assert refusal(_act(alice, item, "publish"))[:2] == (409, "conflict")
    _act(alice, item, "approve")
    assert _act(alice, item, "publish").json()["approval"]["required"] is True


# --- DELETE ----------------------------------------------------------------------------------------------------------


def test_deleted_item_is_erased(alice):
    item = alice.ready()
    answer = alice.api.delete(f"/generated/{item['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    row = GeneratedItem.everywhere.get()
    assert [row.title, row.body, row.content, row.claims, row.checks] == ["", "", {}, [], []]
    assert Revision.everywhere.count() == 0
    path = f"/generated/{item['id']}"
    for gone in (alice.api.get(path), alice.api.patch(path, {}), alice.api.delete(path)):
        assert (gone.status_code, gone.json()) == (404, NOT_FOUND)
    for act in (*ACTS, "publish"):
        assert _act(alice, item, act).json() == NOT_FOUND
    assert alice.api.read(f"/raw/{item['raw_item']}")["generated"] == []


def test_deleting_cancels_the_schedule(alice):
    item = alice.scheduled()
    assert alice.api.delete(f"/generated/{item['id']}").status_code == 204
    assert [one["status"] for one in alice.api.read("/publications")["data"]] == ["cancelled"]


def test_item_whose_publication_is_under_way_is_not_deleted(alice):
    item = alice.publish(alice.ready(), alice.to_simulated("timeout_after_accept"))
    answer = alice.api.delete(f"/generated/{item['id']}")
    assert refusal(answer) == (409, "conflict", [("status", "in_flight")])


def test_item_that_never_existed(api):
    path = f"/generated/{never_existed('gen')}"
    answers = [api.get(path), api.patch(path, {}), api.delete(path), api.delete(f"{path}/publish")]
    answers += [api.post(f"{path}/{act}") for act in (*ACTS, "publish")]
    for answer in answers:
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)
    assert Event.everywhere.count() == 0
