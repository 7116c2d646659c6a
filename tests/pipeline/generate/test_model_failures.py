"""What a run says and pays when the model, its key or the content won't do; and what strangers wrote stays data."""

from __future__ import annotations

import dataclasses
import json

import pytest

from accounts.models import Workspace
from pipeline.generate import recoverable_failures
from pipeline.generate import run as generation_run
from pipeline.ingest import raw_content
from pipeline.models import Generation, ModelCall, Source
from tests.pipeline.generate.test_generate_with_model import found, written
from tests.pipeline.steps import TEXT, balance, claimed, items_of, push_raw, reread, run_generations
from tests.writers.messages_server import Scripted, error, ok, refusal

pytestmark = pytest.mark.usefixtures("anthropic_sdk")


def work(raw):
    run = Generation.everywhere.select_related("workspace").get(raw_item=raw)
    generation_run.run_generation(claimed(run))
    return reread(run)


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


def gateway(message, kind="None"):
    """What LiteLLM's proxy and others say with a 400."""
    body = {"error": {"message": message, "type": kind, "param": "None", "code": "400"}}
    return Scripted(json.dumps(body), status=400)


KEYS |= {
    "gateway's key": (
        gateway(
            "Authentication Error, LiteLLM Virtual Key expected. Received=abc, expected to start with 'sk-'."
        ),
        *KEYS["401"][1:],
    ),
    "vendor's key behind it": (
        gateway("litellm.BadRequestError: OpenAIException - Incorrect API key provided: sk-1."),
        *KEYS["401"][1:],
    ),
    "gateway's model": (
        gateway(
            {"error": "/v1/messages: Invalid model name passed in model=claude-haiku-5-5. Call `/v1/models`."}
        ),
        *KEYS["404"][1:],
    ),
    "model of no deployment": (
        gateway("You passed in model=claude-haiku-5-5. There is no 'model_name' with this string"),
        *KEYS["404"][1:],
    ),
    "gateway's budget": (
        gateway("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "budget_exceeded"),
        *KEYS["402"][1:],
    ),
    "no credit": (
        Scripted(
            json.dumps(
                {
                    "type": "error",
                    "error": {
                        "type": "invalid_request_error",
                        "message": "Your credit balance is too low to access the API.",
                    },
                }
            ),
            status=400,
        ),
        *KEYS["402"][1:],
    ),
}


@pytest.mark.parametrize(("answer", "code", "of_operator", "of_workspace"), KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("is_own", [False, True])
def test_key_that_does_not_do_says_whose_it_is_and_what_to_do(
    workspace, model_server, answer, code, of_operator, of_workspace, is_own
):
    if is_own:
        Workspace.everywhere.filter(pk=workspace.pk).update(model_key="key-of-alice")
    model_server.script = [answer]
    raw = push_raw(workspace).raw_item
    work(raw)
    item = items_of(raw)[0]
    assert (item.status, item.error, balance(workspace)) == (
        "failed",
        recoverable_failures.error_of(code, of_workspace if is_own else of_operator, "brief", has_model=True),
        (10, 0),
    )
    assert len(model_server.requests) == 1


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
    workspace, model_server, script, code, outcomes, stage
):
    before = [found()] if stage == "draft" else []
    model_server.script = [*before, *script, found(), written()]
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
    assert len(model_server.requests) == len(before) + len(script)


# --- What strangers wrote ---------------------------------------------------------------------------------------------

INVENTED = {"quote": "The mayor resigned on Friday over the price of bread.", "kind": "statement"}

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


def test_nothing_of_a_raw_item_reaches_the_system_prompt(workspace, model_server):
    fields = {one.name for one in dataclasses.fields(raw_content.RawContent)}
    assert set(MARKS) == fields - NOT_WORDS, "a new field of raw content needs its mark here"
    Source.everywhere.filter(workspace=workspace).update(name="ZQX-source")
    wrong = written("Exactly 999 people will work at the northern depot.", "f2")
    model_server.script = [found(), wrong, written()]
    raw = push_raw(workspace, **MARKS).raw_item
    run_generations(raw)
    assert items_of(raw)[0].status == "ready"
    assert len(model_server.requests) == 3
    for request in model_server.requests:
        assert "zqx" not in json.dumps(request.body["system"], ensure_ascii=False).lower()
    # The marks do reach the reading model, as data, so that their absence above says something.
    assert [
        name for name in ("title", "body", "author") if f"ZQX-{name}" in model_server.requests[0].raw
    ] == [
        "title",
        "body",
        "author",
    ]
    # The writing model is told nothing of them at all.
    assert not any("zqx" in request.raw.lower() for request in model_server.requests[1:])


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: 40000 > 8192, which is the maximum allowed number of output tokens for claude-haiku-5-5",
        "output_config.format: this model does not support structured outputs",
        "messages.0.content.0: the key of this block is invalid",
        "prompt contains an invalid token count",
    ],
)
def test_other_refusals_of_a_request_name_their_reason_and_what_to_do(workspace, model_server, message):
    model_server.script = [gateway(message, "invalid_request_error")]
    raw = push_raw(workspace).raw_item
    work(raw)
    assert items_of(raw)[0].error == {
        "code": "model_request_declined",
        "message": f"The model's service declined the request with status 400: {message}.",
        "stage": "brief",
        "retryable": True,
        "action": "Try it again. If that doesn't help, the operator has to choose another model or gateway.",
    }


# --- A model that can't read -------------------------------------------------------------------------------------------


def test_facts_that_nobody_said_make_an_item_of_the_sources_own_words(workspace, model_server):
    model_server.script = [
        ok({"language": "en", "is_instruction_like": False, "facts": [INVENTED, INVENTED]})
    ]
    raw = push_raw(workspace).raw_item
    run_generations(raw)
    item = items_of(raw)[0]
    assert (item.status, item.error, len(model_server.requests)) == ("ready", None, 1)
    assert (item.generator["offline"], item.body.partition("\n")[0] in TEXT) == (True, True)
    warned = {check["code"]: check["message"] for check in item.checks if check["outcome"] == "warning"}
    assert warned == {
        "reading": "None of the 2 facts that the model listed can be used: they aren't in the source, or "
        "give orders. So the words were taken from the source as they stand, without AI."
    }
    # The call is paid for, and the item says so.
    assert item.generator["cost_usd"] == "0.000203"
