"""What a run says and pays when the model, its key or the content won't do; and what strangers wrote stays data."""

from __future__ import annotations

import dataclasses
import json

import anthropic  # noqa: F401 - loaded before any test stops the clock
import pytest

from accounts.models import CreditBalance, Workspace
from pipeline.models import Generation, ModelCall, Source
from pipeline.stages import generate, push
from tests.stages.steps import TEXT, claimed, items_of, push_raw, reread, run_generations
from tests.stages.test_generate_with_model import found, server, written
from tests.writers.messages_server import error, ok, refusal

__all__ = ["server"]


def work(raw):
    run = Generation.everywhere.select_related("workspace").get(raw_item=raw)
    generate.work(claimed(run))
    return reread(run)


def balance(workspace):
    row = CreditBalance.everywhere.get(workspace=workspace)
    return row.available, row.reserved


SERVICE, OWN = "this service's key", "the workspace's own key"
LATER = "retry afterwards."
KEYS = {
    "401": (
        error(401, "authentication_error"),
        "model_key_refused",
        f"This service's key for the model was refused. Its operator has to replace it; {LATER}",
        "The workspace's own key for the model was refused. Replace it with a valid one, then retry.",
    ),
    "402": (
        error(402, "billing_error"),
        "model_unpaid",
        f"The account behind {SERVICE} for the model has no money left. Its operator has to top it up; {LATER}",
        f"The account behind {OWN} for the model has no money left. Top it up, then retry.",
    ),
    "404": (
        error(404, "not_found_error"),
        "model_unknown",
        f"The model claude-haiku-5-5 isn't there for {SERVICE}. The operator has to choose another one; {LATER}",
        f"The model claude-haiku-5-5 isn't there for {OWN}. Use a key that may ask it, then retry.",
    ),
}
KEYS["403"] = (error(403, "permission_error"), *KEYS["401"][1:])


@pytest.mark.parametrize(("answer", "code", "of_operator", "of_workspace"), KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("is_own", [False, True])
def test_key_that_does_not_do_says_whose_it_is_and_what_to_do(
    workspace, server, answer, code, of_operator, of_workspace, is_own
):
    if is_own:
        Workspace.everywhere.filter(pk=workspace.pk).update(model_key="key-of-alice")
    server.script = [answer]
    raw = push_raw(workspace).raw_item
    work(raw)
    item = items_of(raw)[0]
    assert (item.status, item.error, balance(workspace)) == (
        "failed",
        {"code": code, "message": of_workspace if is_own else of_operator, "stage": "brief"},
        (10, 0),
    )
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("script", "code", "outcomes"),
    [
        ([error(400, "invalid_request_error")], "model_request_declined", ["failed"]),
        ([error(413, "request_too_large")], "too_long", ["too_long"]),
        ([ok("", stop_reason="model_context_window_exceeded")], "too_long", ["too_long"]),
        ([ok("{", stop_reason="max_tokens")] * 2, "truncated", ["truncated", "truncated"]),
        ([ok("no json")] * 2, "invalid_output", ["answered", "answered"]),
        ([refusal("cyber")] * 2, "refused", ["refused", "refused"]),
        (
            [refusal(None), ok("{", stop_reason="max_tokens"), ok("no json")],
            "invalid_output",
            ["refused", "truncated", "answered"],
        ),
    ],
    ids=["400", "413", "window", "truncated", "invalid", "refused", "all of it"],
)
@pytest.mark.parametrize("stage", ["brief", "draft"])
def test_content_that_will_never_do_ends_the_run_and_its_calls_are_in_the_books(
    workspace, server, script, code, outcomes, stage
):
    before = [found()] if stage == "draft" else []
    server.script = [*before, *script, found(), written()]
    raw = push_raw(workspace).raw_item
    run = work(raw)
    item = items_of(raw)[0]
    assert (run.status, item.status, item.error["code"], item.error["stage"], balance(workspace)) == (
        "failed",
        "failed",
        code,
        stage,
        (10, 0),
    )
    assert item.error["message"].endswith(".")
    calls = list(ModelCall.everywhere.filter(stage=stage).order_by("id"))
    assert [one.outcome for one in calls] == outcomes
    # Every answer that came is paid for, whatever it was good for.
    assert [one.cost_micro_usd > 0 for one in calls] == [one.stop_reason != "" for one in calls]
    assert len(server.requests) == len(before) + len(script)


# --- What strangers wrote ---------------------------------------------------------------------------------------------

MARKS = {
    "external_id": "ZQX-external",
    "url": "https://zqx-url.example/ZQX-url",
    "title": "ZQX-title of the article",
    "body": f"{TEXT} ZQX-body was said too.",
    "author": "ZQX-author",
    "language": "en-x-zqxlang",
    "media": [{"type": "image", "url": "https://media.example/ZQX-media.jpg"}],
    "metadata": {"tags": ["ZQX-tag"], "feed": "ZQX-feed"},
}
NOT_WORDS = {"body_format", "published_at", "engines", "variants", "persona_id"}
NOT_WORDS |= {"key", "body_hash", "is_fetched", "has_second_key"}


def test_nothing_of_a_raw_item_reaches_the_system_prompt(workspace, server):
    fields = {one.name for one in dataclasses.fields(push.RawContent)}
    assert set(MARKS) == fields - NOT_WORDS, "a new field of raw content needs its mark here"
    Source.everywhere.filter(workspace=workspace).update(name="ZQX-source")
    wrong = written("Exactly 999 people will work at the northern depot.", "f2")
    server.script = [found(), wrong, written()]
    raw = push_raw(workspace, **MARKS).raw_item
    run_generations(raw)
    assert items_of(raw)[0].status == "ready"
    assert len(server.requests) == 3
    for request in server.requests:
        assert "zqx" not in json.dumps(request.body["system"], ensure_ascii=False).lower()
    # The marks do reach the reading model, as data, so that their absence above says something.
    assert [name for name in ("title", "body", "author") if f"ZQX-{name}" in server.requests[0].raw] == [
        "title",
        "body",
        "author",
    ]
    # The writing model is told nothing of them at all.
    assert not any("zqx" in request.raw.lower() for request in server.requests[1:])
