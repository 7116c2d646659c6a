"""The forms in which clients write a request: encodings, repeated parameters, `Accept`, errors outside `/v1`."""

from __future__ import annotations

import gzip
import json

import pytest
from django.test import Client

from config.core import limits, task_runner
from tests.contracts.conftest import never_existed, refusal


def packed(body, times=1):
    text = json.dumps(body).encode()
    for _ in range(times):
        text = gzip.compress(text, mtime=0)
    return text


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_a_packed_body_is_unpacked(alice, encoding):
    content = alice.content()
    answer = alice.api.post("/raw", data=packed(content), headers={"Content-Encoding": encoding})
    assert answer.status_code == 202, answer.content
    assert answer.json()["title"] == content["title"]


def test_a_packed_request_is_repeated_by_its_key(alice):
    body = packed(alice.content())
    headers = {"Content-Encoding": "gzip", "Idempotency-Key": "once"}
    first, second = (alice.api.post("/raw", data=body, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (202, 202)
    assert (second["Idempotency-Replayed"], first.json()["id"]) == ("true", second.json()["id"])


@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("br", b"{}", (415, "unsupported_media_type")),
        ("deflate", b"{}", (415, "unsupported_media_type")),
        ("gzip, gzip", packed({}, 2), (415, "unsupported_media_type")),
        ("gzip", b'{"title": "plain"}', (400, "malformed_json")),
        ("gzip", packed({"title": "a" * 500})[:-4], (400, "malformed_json")),
        ("gzip", packed({}) + b"more", (400, "malformed_json")),
        ("gzip", packed({}) + packed({}), (400, "malformed_json")),
        ("gzip", packed({"body": " " * 20_000_000}), (413, "payload_too_large")),
    ],
)
def test_a_body_that_is_packed_otherwise_is_refused(alice, encoding, data, expected):
    answer = alice.api.post("/raw", data=data, headers={"Content-Encoding": encoding})
    assert refusal(answer)[:2] == expected
    assert len(data) < limits.BODY_BYTES


def test_a_packed_body_that_is_too_large_is_told_so_with_a_key_too(alice):
    headers = {"Content-Encoding": "gzip", "Idempotency-Key": "once"}
    answer = alice.api.post("/raw", data=packed({"body": " " * 20_000_000}), headers=headers)
    assert refusal(answer)[:2] == (413, "payload_too_large")


def test_a_missing_object_comes_before_the_encoding(alice):
    headers = {"Content-Encoding": "br", "Idempotency-Key": "once"}
    answer = alice.api.post(f"/raw/{never_existed('raw')}/retry", data=b"{}", headers=headers)
    assert refusal(answer)[:2] == (404, "not_found")


def test_a_key_that_no_text_can_hold_is_refused(api):
    answer = api.post("/raw", data=b'{"\\ud800": 1, "\\ud800": 2}')
    assert refusal(answer)[:2] == (400, "malformed_json")


def test_a_packed_upload_is_refused(api):
    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nThe harbour.\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x"
    answer = api.post("/uploads", data=form, kind=kind, headers={"Content-Encoding": "br"})
    assert refusal(answer)[:2] == (415, "unsupported_media_type")


def test_an_unknown_method_comes_before_the_format(api):
    answer = api.call("PUT", "/generated", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Allow"]) == (405, "GET, HEAD")


def test_a_cursor_is_taken_however_its_filters_are_written(alice):
    alice.ready()
    alice.ready()
    cursor = alice.api.read("/generated?status=ready,failed&limit=1")["next_cursor"]
    rest = alice.api.read(f"/generated?status[]=failed&status[]=ready&limit=1&cursor={cursor}")
    assert len(rest["data"]) == 1


@pytest.mark.parametrize("charset", ["utf-16", "iso-8859-1", '"latin-1"'])
def test_another_charset_is_refused(alice, charset):
    answer = alice.api.post("/raw", alice.content(), kind=f"application/json; charset={charset}")
    assert refusal(answer)[:2] == (415, "unsupported_media_type")


@pytest.mark.parametrize("charset", ["utf-8", "UTF-8", '"utf-8"'])
def test_utf_8_may_be_named_and_marked(alice, charset):
    data = b"\xef\xbb\xbf" + json.dumps(alice.content()).encode()
    assert alice.api.post("/raw", data=data, kind=f"application/json; charset={charset}").status_code == 202


@pytest.mark.parametrize(
    "query",
    [
        "status=ready&status=failed",
        "status[]=ready&status[]=failed",
        "status=ready,failed",
        "status%5B%5D=ready,failed",
        "status=ready&status[]=failed",
    ],
)
def test_a_repeatable_parameter_is_taken_in_every_form(alice, query):
    alice.ready()
    alice.failed()
    statuses = {row["status"] for row in alice.api.read(f"/generated?{query}")["data"]}
    assert statuses == {"ready", "failed"}


@pytest.mark.parametrize("moment", ["2026-11-20T09:30:00+02:00", "2026-11-20T09:30:00%2B02:00"])
@pytest.mark.parametrize("path", ["/generated?created_after=", "/analytics?from="])
def test_a_plus_sign_is_read_as_meant(api, path, moment):
    assert api.get(f"{path}{moment}").status_code == 200


def test_events_are_paged_as_every_list_is(alice):
    alice.ready()
    task_runner.work_all_due("webhooks.fan_out")
    first = alice.api.read("/events?limit=1")
    cursor = first["next_cursor"]
    assert alice.api.read(f"/events?cursor={cursor}") == alice.api.read(f"/events?after={cursor}")
    answer = alice.api.get(f"/events?cursor={cursor}&after={cursor}")
    assert refusal(answer) == (400, "invalid_request", [("after", "conflicting")])


@pytest.mark.parametrize(
    "accept",
    ["text/csv", "application/xml", "text/html, image/*;q=0.8", "application/json;q=0", "*/*; q=0.0"],
)
def test_a_format_that_there_is_not_is_406(api, accept):
    answer = api.get("/generated", headers={"Accept": accept})
    assert refusal(answer) == (406, "not_acceptable", [(None, "not_acceptable")])


@pytest.mark.parametrize(
    "accept", ["*/*", "application/json", "application/*;q=0.5", "text/html,application/xhtml+xml,*/*;q=0.8"]
)
def test_json_is_what_is_mostly_accepted(api, accept):
    assert api.get("/generated", headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", "/nope", {"headers": {"Accept": "application/json"}}),
        ("GET", "/docs/nope", {"headers": {"Accept": "application/json"}}),
        ("GET", "/v2/generated", {"headers": {"Accept": "application/json"}}),
        ("GET", "/V1/generated", {"headers": {"Authorization": "Bearer cpk_live_x"}}),
        ("POST", "/nope", {"content_type": "application/json"}),
        ("POST", "/v2/generated", {"content_type": "application/json"}),
    ],
)
def test_an_unknown_address_is_told_in_json_to_who_speaks_it(db, method, path, sent):
    answer = Client().generic(method, path, b"{}" if "content_type" in sent else b"", **sent)
    assert refusal(answer)[:2] == (404, "not_found")
    assert answer["X-Request-Id"]
    assert "Allow" not in answer


def test_an_error_of_a_page_keeps_its_status(db):
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/account/login/", data="{}", content_type="application/json")
    assert refusal(answer) == (403, "invalid_request", [(None, "invalid_request")])
    assert answer.json()["detail"][0]["message"] == "Forbidden."


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("text/csv;q=0, application/json", "application/json"),
        ("text/csv;q=0, */*", "application/json"),
        ("text/*", None),
        ("application/json;q=0, */*", None),
    ],
)
def test_an_excluded_format_is_not_chosen(api, accept, expected):
    answer = api.get("/analytics", headers={"Accept": accept})
    assert answer.status_code == (200 if expected else 406)
    assert answer["Content-Type"].startswith(expected or "application/json")


def test_a_password_for_a_proxy_is_no_token(db):
    answer = Client().get("/nope", headers={"Authorization": "Basic dXNlcjpwYXNz"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_a_browser_with_a_token_gets_a_page(db):
    answer = Client().get("/nope", headers={"Authorization": "Bearer x", "Accept": "text/html"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")


def test_a_person_gets_a_page(db):
    answer = Client().get("/nope", headers={"Accept": "text/html,application/json;q=0.9"})
    assert (answer.status_code, answer["Content-Type"]) == (404, "text/html; charset=utf-8")
