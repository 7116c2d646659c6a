"""Every error code by a real request, in one shape from every path, with nothing leaked."""

from __future__ import annotations

import gzip
import json

import pytest
from django.conf import settings
from django.db import DataError, InterfaceError, OperationalError, connection

from accounts import workspaces
from accounts.access import idempotency, permissions, workspace_rate_limit
from accounts.ledger import credits as credit_account
from config.core.errors import CODES
from pipeline.api import catalogue
from pipeline.pages import public_feed
from tests.contracts.conftest import Api, problem, refusal

SECRET = "swordfish-in-the-traceback"


def _no_rate_left(monkeypatch):
    refused = workspace_rate_limit.Decision(
        allowed=False, limit=120, remaining=0, reset_seconds=120, retry_after=1
    )
    monkeypatch.setattr(permissions.workspace_rate_limit, "take_request", lambda _: refused)


def _outage(error=OperationalError):
    def fail(execute, sql, params, many, context):
        raise error(SECRET)

    return connection.execute_wrapper(fail)


def _unauthenticated(alice, monkeypatch):
    return Api("cpk_live_nonsense").get("/workspace")


def _not_whitelisted(alice, monkeypatch):
    workspaces.delist(alice.workspace, "operator")
    return alice.api.get("/workspace")


def _rate_limited(alice, monkeypatch):
    _no_rate_left(monkeypatch)
    return alice.api.get("/workspace")


def _quota(alice, monkeypatch):
    credit_account.adjust(alice.workspace, -1000, "for this test", "operator")
    return alice.api.post("/raw", alice.content())


def _version(alice, monkeypatch):
    return alice.api.patch(f"/sources/{alice.push_source}", {}, headers={"If-Match": '"v99"'})


def _key_reused(alice, monkeypatch):
    headers = {"Idempotency-Key": "one"}
    alice.api.post("/raw", alice.content(), headers=headers)
    return alice.api.post("/raw", alice.content(), headers=headers)


def _in_progress(alice, monkeypatch):
    def refuse(*_):
        raise idempotency.InProgress

    # The race itself is in test_idempotency.
    monkeypatch.setattr(idempotency, "_refuse_while_in_flight", refuse)
    return alice.api.post("/raw", alice.content(), headers={"Idempotency-Key": "one"})


def _unavailable(alice, monkeypatch):
    with _outage():
        return alice.api.get("/workspace")


def _internal(alice, monkeypatch):
    def fail(*_):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(catalogue.plugins, "every", fail)
    return alice.api.get("/engines")


def _engine_unavailable(alice, monkeypatch):
    monkeypatch.setattr(settings, "DISABLED_KINDS", frozenset({"engines/short_post"}))
    return alice.api.post("/raw", alice.content(engines=["Short Post"]))


def _source_unavailable(alice, monkeypatch):
    monkeypatch.setattr(settings, "DISABLED_KINDS", frozenset({"sources/rss"}))
    return alice.api.post("/sources", {"type": "rss", "config": {"url": "https://example.test/feed"}})


HOW = {
    "invalid_request": lambda alice, _: alice.api.get("/raw?limit=0"),
    "malformed_json": lambda alice, _: alice.api.call("POST", "/raw", data=b"{"),
    "invalid_cursor": lambda alice, _: alice.api.get("/raw?cursor=x"),
    "unauthenticated": _unauthenticated,
    "quota_exceeded": _quota,
    "workspace_not_whitelisted": _not_whitelisted,
    "insufficient_scope": lambda alice, _: alice.client(scopes=("raw:read",)).get("/sources"),
    "not_found": lambda alice, _: alice.api.get("/raw/raw_x"),
    "not_acceptable": lambda alice, _: alice.api.get("/raw", headers={"Accept": "text/csv"}),
    "method_not_allowed": lambda alice, _: alice.api.call("PUT", "/raw"),
    "conflict": lambda alice, _: alice.api.delete(f"/sources/{alice.push_source}"),
    "engine_unavailable": _engine_unavailable,
    "source_unavailable": _source_unavailable,
    "idempotency_in_progress": _in_progress,
    "version_conflict": _version,
    "payload_too_large": lambda alice, _: alice.api.call("POST", "/sources", data=b" " * (1024 * 1024 + 1)),
    "unsupported_media_type": lambda alice, _: alice.api.call("POST", "/raw", data=b"a=b", kind="text/plain"),
    "idempotency_key_reused": _key_reused,
    "rate_limited": _rate_limited,
    "internal_error": _internal,
    "unavailable": _unavailable,
}
HEADERS = {
    "unauthenticated": {"WWW-Authenticate": "Bearer"},
    "method_not_allowed": {"Allow": "GET, POST, HEAD"},
    "idempotency_in_progress": {"Retry-After": "1"},
    "rate_limited": {"Retry-After": "1"},
    "unavailable": {"Retry-After": "5"},
}


def test_every_code_has_its_request():
    assert set(HOW) == set(CODES)


@pytest.mark.parametrize("code", HOW)
def test_code(alice, monkeypatch, code):
    answer = HOW[code](alice, monkeypatch)
    status, error, details = refusal(answer)
    assert (status, error) == (CODES[code].status, code)
    assert len(details) == 1
    expected = HEADERS.get(code, {})
    assert {name: answer[name] for name in expected} == expected
    assert answer["X-Request-Id"].startswith("req_")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert SECRET not in answer.content.decode()
    compact = json.dumps(json.loads(answer.content), ensure_ascii=False, separators=(",", ":"))
    assert answer.content.decode() == compact


def test_statuses_are_the_contracts():
    assert {code: known.status for code, known in CODES.items()} == {
        "invalid_request": 400,
        "malformed_json": 400,
        "invalid_cursor": 400,
        "unauthenticated": 401,
        "quota_exceeded": 402,
        "workspace_not_whitelisted": 403,
        "insufficient_scope": 403,
        "not_found": 404,
        "method_not_allowed": 405,
        "not_acceptable": 406,
        "conflict": 409,
        "engine_unavailable": 409,
        "source_unavailable": 409,
        "idempotency_in_progress": 409,
        "version_conflict": 412,
        "payload_too_large": 413,
        "unsupported_media_type": 415,
        "idempotency_key_reused": 422,
        "rate_limited": 429,
        "internal_error": 500,
        "unavailable": 503,
    }


@pytest.mark.parametrize("error", [OperationalError, InterfaceError])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/raw"), ("POST", "/raw"), ("GET", "/nothing"), ("PUT", "/raw")]
)
def test_database_outage(alice, error, method, path):
    with _outage(error):
        answer = alice.api.call(method, path)
    message = "The service can't answer right now; try again after Retry-After seconds."
    assert (answer.status_code, answer.json(), answer["Retry-After"]) == (
        503,
        problem("unavailable", (None, "unavailable", message)),
        "5",
    )


@pytest.mark.parametrize(
    "table", ["api_token", "raw_item", "raw_body", "generation", "generated_item", "event"]
)
def test_database_outage_in_the_middle_of_a_push(alice, table):
    def fail(execute, sql, params, many, context):
        if (sql.startswith("INSERT") and f'"{table}"' in sql) or (
            table == "api_token" and '"api_token"' in sql
        ):
            raise OperationalError(SECRET)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(fail):
        answer = alice.api.post("/raw", alice.content())
    assert refusal(answer) == (503, "unavailable", [(None, "unavailable")])
    assert SECRET not in answer.content.decode()
    assert alice.api.read("/raw")["data"] == []
    assert alice.api.read("/usage")["reserved"] == 0


@pytest.mark.parametrize("error", [RuntimeError, DataError, KeyError, AssertionError, RecursionError])
def test_unforeseen_fault_tells_nothing_of_itself(alice, monkeypatch, error):
    def fail(*_):
        raise error(SECRET)

    monkeypatch.setattr(catalogue.plugins, "every", fail)
    answer = alice.api.get("/engines", headers={"X-Request-Id": "request-of-mine"})
    message = "Something failed on our side; the request id finds it in our logs."
    assert (answer.status_code, answer.json(), answer["X-Request-Id"]) == (
        500,
        problem("internal_error", (None, "internal_error", message)),
        "request-of-mine",
    )
    assert answer["RateLimit"].startswith('"workspace";')


def test_fault_of_a_page_outside_the_api_views_has_the_same_shape(alice, monkeypatch):
    def fail(*_):
        raise RuntimeError(SECRET)

    path = alice.api.read(f"/outlets/{alice.feed}")["feeds"]["json"].removeprefix("http://127.0.0.1:8000")
    monkeypatch.setattr(public_feed, "_load_entries", fail)
    answer = Api(None).client.get(path)
    assert refusal(answer) == (500, "internal_error", [(None, "internal_error")])
    with _outage():
        answer = Api(None).client.get(path)
    assert refusal(answer) == (503, "unavailable", [(None, "unavailable")])


def test_messages_tell_what_to_do_and_no_internals(alice):
    answer = alice.api.call("POST", "/raw", data=b'{"title": 1' + b"1" * 5000 + b"}")
    assert answer.json() == problem(
        "invalid_request", (None, "number_too_large", "A number in the body has too many digits.")
    )


@pytest.mark.parametrize(
    ("accept", "status_there"),
    [("text/html", 406), ("application/xml", 406), ("*/*", 200), ("", 200), ("nonsense", 200)],
)
def test_answer_is_json_whatever_is_accepted(api, accept, status_there):
    for path, status in (("/workspace", status_there), ("/nothing", 404)):
        answer = api.get(path, headers={"Accept": accept})
        assert (answer.status_code, answer["Content-Type"]) == (status, "application/json")
        json.loads(answer.content)


def test_closed_documents_are_not_found(alice, settings):
    settings.DOCS_ARE_PUBLIC = False
    answer = Api(None).client.get("/openapi.json")
    assert refusal(answer) == (404, "not_found", [(None, "not_found")])
    assert Api(None).client.get("/docs").status_code == 404
    assert alice.api.get("/openapi.json").status_code == 200


def test_document_is_sent_gzipped_and_once():
    client = Api(None).client
    plain = client.get("/openapi.json")
    zipped = client.get("/openapi.json", headers={"Accept-Encoding": "br;q=1, gzip;q=0.8"})
    assert (zipped["Content-Encoding"], plain.headers.get("Content-Encoding")) == ("gzip", None)
    assert gzip.decompress(zipped.content) == plain.content
    assert len(zipped.content) < len(plain.content) / 5
    for answer in (plain, zipped):
        assert answer["Vary"] == "Accept-Encoding"
        assert answer["Cache-Control"] == "public, max-age=300"
        assert answer["ETag"] == plain["ETag"]
    refused = client.get("/openapi.json", headers={"Accept-Encoding": "gzip;q=0"})
    assert refused.content == plain.content
    known = client.get("/openapi.json", headers={"If-None-Match": plain["ETag"]})
    assert (known.status_code, known.content, known["ETag"]) == (304, b"", plain["ETag"])
    assert client.get("/openapi.json", headers={"If-None-Match": '"other"'}).status_code == 200


def test_only_the_document_may_be_read_by_pages_of_other_origins(alice):
    headers = {"Origin": "https://editor.example"}
    answer = Api(None).client.get("/openapi.json", headers=headers)
    assert answer["Access-Control-Allow-Origin"] == "*"
    private = alice.api.get("/openapi.json", headers=headers)
    assert (private.status_code, private["Cache-Control"]) == (200, "private, no-cache")
    for path in ("/openapi.json", "/workspace", "/generated"):
        assert "Access-Control-Allow-Origin" not in alice.api.get(path, headers=headers).headers


def test_public_document_is_only_read():
    answer = Api(None).client.post("/openapi.json")
    assert refusal(answer) == (405, "method_not_allowed", [(None, "method_not_allowed")])
    assert answer["Allow"] == "GET, HEAD"


@pytest.mark.django_db
@pytest.mark.usefixtures("one_minute")
def test_twenty_bad_tokens_and_then_a_wait(alice):
    guesser = Api("cpk_live_nonsense", address="203.0.113.9")
    assert [guesser.get("/workspace").status_code for _ in range(20)] == [401] * 20
    answer = guesser.get("/workspace")
    assert refusal(answer) == (429, "rate_limited", [(None, "too_many_bad_tokens")])
    assert 1 <= int(answer["Retry-After"]) <= 60
    # A good token works from the same address.
    good = Api(alice.api.secret, address="203.0.113.9")
    assert good.get("/workspace").status_code == 200
