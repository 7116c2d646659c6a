"""GET /publications, GET /publications/:id, POST …/reconcile, …/retry, …/settle."""

from __future__ import annotations

import pytest

from config.core import task_runner
from config.core.ids import encode
from pipeline.models import Outlet, SimulatedPost
from pipeline.plugins import Refused, TryLater
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, refusal


def _shown(platform, status, **changes):
    return {
        "id": "pub_*",
        "version": 3,
        "revision": 1,
        "outlet": "out_*",
        "platform": platform,
        "status": status,
        "external_id": None,
        "url": None,
        "attempts": 1,
        "error": None,
        "due_at": "<moment>",
        "scheduled_for": None,
        "late_policy": "publish",
        "max_lateness_minutes": None,
        "overdue_seconds": 0,
        "waits_for": None,
        "next_attempt_at": None,
        "published_at": None,
        "test": False,
        "created_at": "<moment>",
        "updated_at": "<moment>",
        "generated_item": "gen_*",
        "metrics": None,
        **changes,
    }


def _error(code, kind, message, *, retryable, status, words):
    return {
        "code": code,
        "class": kind.error_class,
        "message": message,
        "action": kind.default_action,
        "retryable": retryable,
        "platform_status": status,
        "platform_message": words,
    }


def test_published(alice):
    shown = alice.publication()
    post = shown["external_id"]
    assert normal(shown) == _shown(
        "simulated",
        "published",
        external_id="sim_*",
        url="https://simulated.invalid/posts/sim_*",
        published_at="<moment>",
    )
    assert shown["url"].endswith(post)
    path = f"/publications/{shown['id']}"
    answer = alice.api.get(path)
    same = alice.api.get(path, headers={"If-None-Match": answer["ETag"]})
    assert (answer["ETag"], same.status_code, same.content) == ('"v3"', 304, b"")


@pytest.mark.parametrize(
    ("word", "status", "next_attempt", "error"),
    [
        (
            "reject",
            "failed",
            None,
            _error(
                "refused",
                Refused,
                "The platform refused the post: Texts like this one are not allowed here.",
                retryable=False,
                status=422,
                words="Texts like this one are not allowed here.",
            ),
        ),
        (
            "429",
            "scheduled",
            "<moment>",
            _error(
                "rate_limited",
                TryLater,
                "The platform asks to wait: Too many posts; slow down.",
                retryable=True,
                status=429,
                words="Too many posts; slow down.",
            ),
        ),
        (
            "timeout_before_accept",
            "scheduled",
            "<moment>",
            _error(
                "temporary",
                TryLater,
                "The platform couldn't be reached: The simulated platform could not be reached.",
                retryable=True,
                status=None,
                words=None,
            ),
        ),
    ],
)
def test_failed_attempt_says_why_and_when_the_next_is(alice, word, status, next_attempt, error):
    assert normal(alice.publication(word)) == _shown(
        "simulated", status, next_attempt_at=next_attempt, error=error
    )


@pytest.mark.parametrize("word", ["timeout_after_accept", "error"])
def test_unknown_outcome_is_said(alice, word):
    shown = alice.publication(word)
    assert (shown["status"], shown["attempts"], shown["error"]["code"], shown["error"]["retryable"]) == (
        "unknown",
        1,
        "outcome_unknown",
        False,
    )
    item = alice.api.read(f"/generated/{shown['generated_item']}")
    assert item["status"] == "publishing"


# --- GET /publications -----------------------------------------------------------------------------------------------


def test_publications_are_listed_and_filtered(alice):
    own = alice.published()["publications"][0]
    there = alice.publication("reject")
    own = alice.api.read(f"/publications/{own['id']}")
    answer = alice.api.read("/publications")
    assert answer == {"data": [there, own], "has_more": False, "next_cursor": None}

    def found(query):
        return [one["id"] for one in alice.api.read(f"/publications?{query}")["data"]]

    assert found("status=published") == [own["id"]]
    assert found("status=published&status=failed") == [there["id"], own["id"]]
    assert found("status=cancelled") == []
    assert found(f"outlet={alice.simulated}") == [there["id"]]
    assert found(f"generated_item={own['generated_item']}") == [own["id"]]
    assert found(f"generated_item={never_existed('gen')}") == []


def test_publications_refuse_a_wrong_filter(api):
    assert refusal(api.get("/publications?status=done&item=x")) == (
        400,
        "invalid_request",
        [("item", "unknown_parameter"), ("status", "invalid")],
    )


# --- POST /publications/:id/reconcile --------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "status"), [("timeout_after_accept", "published"), ("error", "unknown")])
def test_unknown_outcome_is_looked_up_at_once(alice, word, status):
    publication = alice.publication(word)
    paths = [f"/publications/{publication['id']}", f"/generated/{publication['generated_item']}"]
    tags = [alice.api.get(path)["ETag"] for path in paths]
    answer = alice.api.post(f"/publications/{publication['id']}/reconcile")
    assert (answer.status_code, answer.json()["status"]) == (202, "unknown")
    assert answer.json()["version"] == publication["version"] + 1
    for path, tag in zip(paths, tags, strict=True):
        assert alice.api.get(path, headers={"If-None-Match": tag}).status_code == 200
    task_runner.work_all_due("publish.send_publication")
    after = alice.api.read(f"/publications/{publication['id']}")
    # What isn't there may still come, as long as its call can get through.
    assert (after["status"], (after["error"] or {}).get("code")) == (
        status,
        "not_there_yet" if status == "unknown" else None,
    )
    assert SimulatedPost.everywhere.filter(is_accepted=True).count() == (1 if status == "published" else 0)


def test_known_outcome_is_not_looked_up(alice):
    publication = alice.publication()
    answer = alice.api.post(f"/publications/{publication['id']}/reconcile")
    assert refusal(answer) == (409, "conflict", [("status", "not_unknown")])
    assert "published" in answer.json()["detail"][0]["message"]


# --- POST /publications/:id/retry ------------------------------------------------------------------------------------


def test_failed_publication_is_tried_again(alice):
    publication = alice.publication("reject")
    answer = alice.api.post(f"/publications/{publication['id']}/retry")
    shown = answer.json()
    assert (answer.status_code, shown["status"], shown["attempts"], shown["error"]) == (
        202,
        "scheduled",
        0,
        None,
    )
    assert shown["version"] > publication["version"]
    task_runner.work_all_due("publish.send_publication")
    assert alice.api.read(f"/publications/{publication['id']}")["status"] == "published"


@pytest.mark.parametrize(("words", "status"), [((), "published"), (("timeout_after_accept",), "unknown")])
def test_only_failed_publications_are_tried_again(alice, words, status):
    publication = alice.publication(*words)
    before = alice.api.read(f"/publications/{publication['id']}")
    assert before["status"] == status
    answer = alice.api.post(f"/publications/{publication['id']}/retry")
    assert refusal(answer)[:2] == (409, "conflict")
    assert alice.api.read(f"/publications/{publication['id']}") == before


@pytest.mark.parametrize("act", ["reconcile", "retry"])
def test_acts_take_no_fields(alice, act):
    publication = alice.publication("reject")
    answer = alice.api.post(f"/publications/{publication['id']}/{act}", {"force": True})
    assert refusal(answer) == (400, "invalid_request", [("force", "unknown_field")])


def test_publication_that_never_existed(api):
    path = f"/publications/{never_existed('pub')}"
    for answer in (api.get(path), api.post(f"{path}/reconcile"), api.post(f"{path}/retry")):
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND)


def test_attempts_hold_what_was_handed_over(alice):
    shown = alice.publication("429")
    answer = alice.api.get(f"/publications/{shown['id']}/attempts")
    (made,) = answer.json()["data"]
    item = alice.api.read(f"/generated/{shown['generated_item']}")
    assert normal(made) == {
        "id": "att_*",
        "publication": "pub_*",
        "number": 1,
        "revision": 1,
        "status": "failed",
        "error": shown["error"],
        "receipt": {
            "title": item["title"],
            "body": item["body"],
            "body_format": item["body_format"],
            "parts": [item["body"]],
            "steps": [],
            "disclosure": {},
            "media": [],
            "settings": {"script": ["429"]},
        },
        "started_at": "<moment>",
        "finished_at": "<moment>",
        "late_answer": None,
    }
    assert made["publication"] == shown["id"]


# --- POST /publications/:id/settle -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "url"),
    [
        ({"published": True, "url": "https://example.com/p"}, "published", "https://example.com/p"),
        ({"published": True}, "published", None),
        ({"published": False}, "scheduled", None),
    ],
)
def test_a_person_says_what_became_of_an_unknown_outcome(alice, body, status, url):
    publication = alice.publication("error")
    answer = alice.api.post(f"/publications/{publication['id']}/settle", body)
    shown = answer.json()
    assert (answer.status_code, shown["status"], shown["url"]) == (200, status, url)
    assert alice.api.read(f"/publications/{publication['id']}") == shown


def test_what_is_handed_over_is_settled(alice):
    outlet = Outlet.everywhere.create(
        workspace=alice.workspace, platform="handoff", name="Substack", config={"place": "Substack"}
    )
    item = alice.ready()
    asked = {"outlets": [encode("out", outlet.pk)]}
    alice.api.post(f"/generated/{item['id']}/publish", asked)
    task_runner.work_all_due("publish.send_publication")
    (shown,) = alice.api.read(f"/publications?outlet={encode('out', outlet.pk)}")["data"]
    assert (shown["status"], shown["error"], shown["attempts"]) == ("publishing", None, 1)
    answer = alice.api.post(f"/publications/{shown['id']}/settle", {"published": False})
    assert (answer.json()["status"], answer.json()["error"]["code"]) == ("failed", "not_posted")


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "published", "required"),
        ({"published": "yes"}, "published", "invalid"),
        ({"published": True, "url": "javascript:alert(1)"}, "url", "invalid_address"),
    ],
)
def test_settling_refuses_what_it_cannot_use(alice, body, field, code):
    publication = alice.publication("error")
    answer = alice.api.post(f"/publications/{publication['id']}/settle", body)
    assert refusal(answer) == (400, "invalid_request", [(field, code)])


def test_a_known_outcome_is_not_settled(alice):
    publication = alice.publication()
    answer = alice.api.post(f"/publications/{publication['id']}/settle", {"published": False})
    assert refusal(answer) == (409, "conflict", [("status", "not_unknown")])
