"""401 → 403 whitelist → 429 → 404/405 route → 403 scope → 404 object → 413/415/400 body → 402 → 409.

Each check is a violation that a request may carry; a request with several answers by the first of them.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from accounts import workspaces
from accounts.access import permissions, tokens, workspace_rate_limit
from accounts.ledger import credits as credit_account
from config.core import ids, task_runner
from pipeline.models import GeneratedItem, Generation, RawItem
from tests.contracts.conftest import Api, never_existed

ORDER = ("token", "whitelist", "rate", "method", "scope", "object", "size", "type", "body", "quota", "state")
ANSWERS = {
    "token": (401, "unauthenticated"),
    "whitelist": (403, "workspace_not_whitelisted"),
    "rate": (429, "rate_limited"),
    "path": (404, "not_found"),
    "method": (405, "method_not_allowed"),
    "scope": (403, "insufficient_scope"),
    "object": (404, "not_found"),
    "size": (413, "payload_too_large"),
    "type": (415, "unsupported_media_type"),
    "body": (400, "invalid_request"),
    "query": (400, "invalid_request"),
    "json": (400, "malformed_json"),
    "quota": (402, "quota_exceeded"),
    "state": (409, "conflict"),
}
ACTS = {"generated": "generated:write", "regenerate": "generated:write", "raw": "raw:write"}


def _prepared(newsroom, act, *, state):
    """The path of an object, in a state that allows the act or, with `state`, doesn't."""
    if act == "raw":
        raw = newsroom.push()
        if not state:
            key = ids.decode("raw", raw["id"])
            GeneratedItem.everywhere.filter(raw_item=key).update(status="failed")
            Generation.everywhere.filter(raw_item=key).update(status="failed", wake_at=None)
            RawItem.everywhere.filter(pk=key).update(status="failed")
        return f"/raw/{raw['id']}/retry"
    if act == "regenerate":
        if state:
            return f"/generated/{newsroom.generated_of(newsroom.push())[0]['id']}/regenerate"
        return f"/generated/{newsroom.ready()['id']}/regenerate"
    item = newsroom.ready() if state else newsroom.failed()
    return f"/generated/{item['id']}/retry"


def _send(newsroom, path, monkeypatch, act, violations):
    """Asks for an act on the object at a path, with these violations; with a key where they hold `key`."""
    scopes = tuple(scope for scope in tokens.SCOPES if "scope" not in violations or scope != ACTS[act])
    api = newsroom.client(scopes=scopes)
    if "object" in violations:
        prefix, (head, _, tail) = ("raw" if act == "raw" else "gen"), path[1:].split("/")
        path = f"/{head}/{never_existed(prefix)}/{tail}"
    if "quota" in violations:
        left = newsroom.api.read("/usage")["available"]
        credit_account.adjust(newsroom.workspace, -left, "for this test", "operator")
    if "whitelist" in violations:
        workspaces.delist(newsroom.workspace, "operator")
    if "rate" in violations:
        refused = workspace_rate_limit.Decision(
            allowed=False, limit=120, remaining=0, reset_seconds=120, retry_after=1
        )
        monkeypatch.setattr(permissions.workspace_rate_limit, "take_request", lambda _: refused)
    if "path" in violations:
        path = f"{path}/nothing"
    if "query" in violations:
        path = f"{path}?force=true"
    if "token" in violations:
        api = Api("cpk_live_nonsense")
    kind = "text/plain" if "type" in violations else "application/json"
    method = "PATCH" if "method" in violations else "POST"
    headers = {"Idempotency-Key": "one"} if "key" in violations else {}
    return api.call(method, path, data=_body(violations), kind=kind, headers=headers)


def _body(violations):
    bodies = {
        "size": b"{" + b" " * 5 * 1024 * 1024 + b"}",
        "json": b"{",
        "body": b'{"x": 1}',
        "type": b"text",
    }
    return next((body for violation, body in bodies.items() if violation in violations), b"")


@pytest.fixture
def check(alice, each_case, monkeypatch):
    """Tries acts with violations, and looks whether each answers by the first: of (act, violations, first)."""

    def run(cases):
        wanted = {(act, "state" in violations) for act, violations, _ in cases}
        # What must not be made yet comes last: making an item makes all that wait.
        paths = {(act, state): _prepared(alice, act, state=state) for act, state in sorted(wanted)}

        def one(case):
            act, violations, first = case
            with monkeypatch.context() as patch:
                answer = _send(alice, paths[act, "state" in violations], patch, act, set(violations))
            if first is None:
                assert answer.status_code == 202
            else:
                assert (answer.status_code, answer.json()["error"]) == ANSWERS[first]

        each_case([(f"{case[0]}: {', '.join(case[1])}", case) for case in cases], one)

    return run


@pytest.mark.parametrize("act", ACTS)
def test_one_violation_and_none(check, act):
    check([(act, (), None), *((act, (violation,), violation) for violation in ANSWERS)])


def test_two_violations_answer_the_first(check):
    check([("generated", pair, pair[0]) for pair in combinations(ORDER, 2)])


@pytest.mark.parametrize("act", ["regenerate", "raw"])
def test_neighbours_of_other_acts(check, act):
    check([(act, pair, pair[0]) for pair in pairwise(ORDER)])


def test_route_query_and_syntax_stand_with_their_like(check):
    pairs = (
        ("rate", "path"),
        ("path", "scope"),
        ("path", "body"),
        ("object", "query"),
        ("object", "json"),
        ("size", "query"),
        ("type", "query"),
        ("query", "quota"),
        ("json", "state"),
    )
    check([("generated", pair, pair[0]) for pair in pairs])


def test_whole_chain(check):
    check([("generated", ORDER[start:], ORDER[start]) for start in range(len(ORDER))])


def test_whole_chain_with_an_idempotency_key(check):
    """The key's own transaction changes nothing in the order."""
    check([("generated", (*ORDER[start:], "key"), ORDER[start]) for start in range(4, len(ORDER))])


def test_reading_answers_404_before_400(api):
    for path, prefix in (
        ("sources", "src"),
        ("raw", "raw"),
        ("generated", "gen"),
        ("publications", "pub"),
        ("outlets", "out"),
        ("personas", "per"),
        ("topics", "top"),
    ):
        assert api.get(f"/{path}/{never_existed(prefix)}?x=1").status_code == 404


def test_push_answers_in_the_same_order(alice, monkeypatch):
    big = b"{" + b" " * 5 * 1024 * 1024 + b"}"
    credit_account.adjust(alice.workspace, -1000, "for this test", "operator")
    assert alice.api.call("POST", "/raw?x=1", data=big, kind="text/plain").status_code == 413
    assert alice.api.call("POST", "/raw?x=1", data=b"{", kind="text/plain").status_code == 415
    assert alice.api.call("POST", "/raw", alice.content(x=1)).status_code == 400
    assert alice.api.call("POST", "/raw", alice.content()).status_code == 402
    assert task_runner.work_all_due("generate.run_item") == 0
