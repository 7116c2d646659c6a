"""Bearer tokens at the door: who gets in, what is kept, and how many guesses there are."""

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.test import Client, RequestFactory

from accounts.access import authentication, tokens
from accounts.access.authentication import client_address
from accounts.models import ApiToken, Workspace
from tests.factories import TokenFactory

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.accounts.urls")]
URL = "/v1/workspace"
UNAUTHENTICATED = {
    "error": "unauthenticated",
    "detail": [
        {
            "field": None,
            "code": "unauthenticated",
            "message": "Send a valid token: Authorization: Bearer cpk_live_…",
        }
    ],
}


def get(header=None, **more):
    headers = {} if header is None else {"Authorization": header}
    return Client().get(URL, headers=headers, **more)


def bad():
    return tokens._new_secret(is_test=False)


def dead_headers(kind, workspace, alice):
    token = TokenFactory(workspace=workspace)
    if kind == "expired":
        ApiToken.everywhere.filter(pk=token.pk).update(expires_at=datetime.now(UTC))
    elif kind == "revoked":
        tokens.revoke(token, alice)
    elif kind == "deleted":
        Workspace.everywhere.filter(pk=workspace.pk).update(deleted_at=datetime.now(UTC))
    return {
        "missing": None,
        "empty": "",
        "other scheme": f"Basic {token.secret}",
        "no text": "Bearer ",
        "two words": f"Bearer {token.secret} {token.secret}",
        "not ASCII": "Bearer cpk_live_ä",
        "mistyped": f"Bearer {token.secret[:-1]}-",
        "unknown": f"Bearer {bad()}",
    }.get(kind, f"Bearer {token.secret}")


@pytest.mark.parametrize(
    "kind",
    [
        "missing",
        "empty",
        "other scheme",
        "no text",
        "two words",
        "not ASCII",
        "mistyped",
        "unknown",
        "expired",
        "revoked",
        "deleted",
    ],
)
def test_all_bad_tokens_get_the_same_answer(kind, workspace, alice):
    response = get(dead_headers(kind, workspace, alice))
    assert (response.status_code, response.json()) == (401, UNAUTHENTICATED)
    assert response["WWW-Authenticate"] == "Bearer"
    assert "RateLimit" not in response


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_good_token_gets_in(token, scheme):
    response = get(f"{scheme} {token.secret}")
    assert (response.status_code, response.json()["token"]["id"]) == (200, tokens.public_id(token))


def test_request_costs_two_statements_on_the_way_to_the_view(token, api, django_assert_num_queries):
    api.get(URL)
    # The token with its workspace and plan, and the rate limit.
    with django_assert_num_queries(2):
        assert api.get(URL).status_code == 200


def test_use_is_noted_with_the_address(token, api):
    api.get(URL, REMOTE_ADDR="203.0.113.9")
    token.refresh_from_db()
    assert token.last_used_from == "203.0.113.9"
    assert datetime.now(UTC) - token.last_used_at < timedelta(seconds=10)


def test_revoking_takes_effect_on_the_next_request(token, api, alice):
    assert api.get(URL).status_code == 200
    tokens.revoke(token, alice)
    assert api.get(URL).status_code == 401


@pytest.mark.usefixtures("one_minute")
def test_21st_bad_token_of_a_minute_has_to_wait(workspace):
    answers = [get(f"Bearer {bad()}") for _ in range(22)]
    assert [one.status_code for one in answers] == [401] * 20 + [429] * 2

    refused = answers[-1]
    wait = int(refused["Retry-After"])
    assert 1 <= wait <= 60
    assert refused.json() == {
        "error": "rate_limited",
        "detail": [
            {
                "field": None,
                "code": "too_many_bad_tokens",
                "message": f"Too many invalid tokens came from this address; wait {wait} second{'' if wait == 1 else 's'}.",
            }
        ],
    }
    assert get(f"Bearer {bad()}", REMOTE_ADDR="203.0.113.1").status_code == 401
    # A good token works from there all the same, and asking without one is no guess.
    assert get(f"Bearer {TokenFactory(workspace=workspace).secret}").status_code == 200
    assert get().status_code == 401

    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=wait + 1)):
        assert get(f"Bearer {bad()}").status_code == 401


@pytest.mark.usefixtures("one_minute")
def test_ipv6_neighbours_are_one_guesser(db):
    for number in range(20):
        get(f"Bearer {bad()}", REMOTE_ADDR=f"2001:db8::{number:x}")
    assert get(f"Bearer {bad()}", REMOTE_ADDR="2001:db8::ffff").status_code == 429
    assert get(f"Bearer {bad()}", REMOTE_ADDR="2001:db8:0:1::1").status_code == 401


@pytest.mark.usefixtures("one_minute")
def test_guessers_without_an_address_are_counted_together(db):
    for _ in range(20):
        get(f"Bearer {bad()}", REMOTE_ADDR="")
    assert get(f"Bearer {bad()}", REMOTE_ADDR="").status_code == 429


def test_dead_cache_lets_guesses_be_refused_as_usual(settings, db, monkeypatch):
    settings.CACHES = {
        "counts": {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": "redis://127.0.0.1:9/0",
        }
    }
    asked = []
    real = authentication.get_usage
    monkeypatch.setattr(
        authentication, "get_usage", lambda *args, **more: asked.append(1) or real(*args, **more)
    )
    assert [get(f"Bearer {bad()}").status_code for _ in range(25)] == [401] * 25
    assert len(asked) == 1


def test_cache_that_gives_no_count_limits_nobody(db, monkeypatch):
    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.add", lambda *_args, **_more: False)
    monkeypatch.setattr("django.core.cache.backends.locmem.LocMemCache.incr", lambda *_args, **_more: None)
    assert get(f"Bearer {bad()}").status_code == 401


def test_switched_off_limit_limits_nobody(settings, db):
    settings.RATELIMIT_ENABLE = False
    assert get(f"Bearer {bad()}").status_code == 401


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "203.0.113.7", "198.51.100.1"),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "10.9.9.9, 203.0.113.7", "203.0.113.7"),
        (2, "10.9.9.9, 203.0.113.7, 192.0.2.1", "203.0.113.7"),
        (2, "203.0.113.7", "198.51.100.1"),
        (1, "", "198.51.100.1"),
        (1, "not an address", "198.51.100.1"),
        (1, "::ffff:203.0.113.7", "203.0.113.7"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_client_address_trusts_only_our_own_proxies(settings, proxies, forwarded, address):
    settings.TRUSTED_PROXIES = proxies
    request = RequestFactory().get("/", REMOTE_ADDR="198.51.100.1", headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == address


def test_client_address_may_be_unknown(settings):
    settings.TRUSTED_PROXIES = 0
    assert client_address(RequestFactory().get("/", REMOTE_ADDR="")) is None


def test_drf_is_told_the_scheme_for_its_own_refusals():
    assert authentication.BearerToken().authenticate_header(RequestFactory().get("/")) == "Bearer"
