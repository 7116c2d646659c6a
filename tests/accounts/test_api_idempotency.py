"""Every POST with an Idempotency-Key: one effect, replayed byte for byte."""

import pytest
from django.test import Client

from accounts.models import AuditEntry, IdempotencyKey
from tests.factories import TokenFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]


def post(client, path="/v1/things", body=None, key=None, **more):
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(path, body or {}, content_type="application/json", headers=headers, **more)


def things():
    return AuditEntry.everywhere.filter(action="thing.made").count()


def own_headers(response):
    return {
        name: value
        for name, value in response.headers.items()
        if not name.lower().startswith(("ratelimit", "x-ratelimit", "x-request-id", "idempotency-replayed"))
    }


def test_without_a_key_every_post_has_its_effect(api):
    first, second = post(api), post(api)
    assert first.json()["id"] != second.json()["id"]
    assert (things(), IdempotencyKey.everywhere.count()) == (2, 0)


def test_replay_is_the_first_answer_byte_for_byte(api):
    first = post(api, body={"name": "Ünïcode"}, key="k")
    second = post(api, body={"name": "Ünïcode"}, key="k")
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.content == first.content
    assert own_headers(second) == own_headers(first)
    assert first["Location"] == f"/v1/things/{first.json()['id']}"
    assert first["Content-Type"] == "application/json"
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    # A replay is a request like any other to the rate limit.
    assert [one["X-RateLimit-Remaining"] for one in (first, second)] == ["119", "118"]
    assert things() == 1


def test_first_answer_is_the_same_with_and_without_a_key(api):
    plain, kept = post(api, body={"name": "x"}), post(api, body={"name": "x"}, key="k")
    assert {**plain.json(), "id": None} == {**kept.json(), "id": None}
    assert {**own_headers(plain), "Location": "", "Content-Length": ""} == {
        **own_headers(kept),
        "Location": "",
        "Content-Length": "",
    }


def test_key_with_another_body_is_422(api):
    post(api, body={"name": "one"}, key="k")
    response = post(api, body={"name": "two"}, key="k")
    assert response.status_code == 422
    assert response.json() == {
        "error": "idempotency_key_reused",
        "detail": [
            {
                "field": "Idempotency-Key",
                "code": "idempotency_key_reused",
                "message": "This Idempotency-Key was used with another request; make a new key for each new request.",
            }
        ],
    }
    assert things() == 1


def test_trailing_slash_is_the_same_request(api):
    assert post(api, "/v1/things/", key="k").content == post(api, "/v1/things", key="k").content


def test_bad_key_is_400(api):
    response = post(api, key="x" * 256)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert response.json()["detail"][0]["field"] == "Idempotency-Key"
    assert things() == 0


def test_error_is_not_kept_and_leaves_nothing(api):
    for _ in range(2):
        response = post(api, "/v1/things/fail", key="k")
        assert (response.status_code, "Idempotency-Replayed" in response) == (409, False)
    assert (things(), IdempotencyKey.everywhere.count()) == (0, 0)


def test_action_without_effect_reads_the_key_and_ignores_it(api):
    for _ in range(2):
        assert "Idempotency-Replayed" not in post(api, "/v1/things/preview", key="k")
    assert post(api, "/v1/things/preview", key="").status_code == 400
    assert AuditEntry.everywhere.filter(action="thing.previewed").count() == 2
    assert IdempotencyKey.everywhere.count() == 0


def test_answer_without_a_body_is_replayed_without_one(api):
    first, second = post(api, "/v1/things/plain", key="k"), post(api, "/v1/things/plain", key="k")
    for response in (first, second):
        assert (response.status_code, response.content, "Content-Type" in response) == (204, b"", False)
    assert second["Idempotency-Replayed"] == "true"


def test_refusals_come_before_the_replay(api, token):
    post(api, key="k")
    lacking = Client(
        headers={
            "Authorization": f"Bearer {TokenFactory(workspace=token.workspace, scopes=['raw:read']).secret}"
        }
    )
    assert post(lacking, key="k").status_code == 403


def test_too_large_a_body_is_413_before_it_is_read(api):
    response = api.post(
        "/v1/things",
        b'"' + b"x" * (1024 * 1024) + b'"',
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )
    assert response.status_code == 413


def test_key_on_a_get_means_nothing(api):
    assert api.get("/v1/things", headers={"Idempotency-Key": "x" * 300}).status_code == 200


def test_key_on_a_method_that_the_route_lacks_is_405(api):
    response = api.post("/v1/workspace", {}, content_type="application/json", headers={"Idempotency-Key": ""})
    assert response.status_code == 405


def test_test_token_has_keys_of_its_own(api, token):
    testing = Client(
        headers={"Authorization": f"Bearer {TokenFactory(workspace=token.workspace, is_test=True).secret}"}
    )
    assert post(api, key="k").content != post(testing, key="k").content
    assert things() == 2
