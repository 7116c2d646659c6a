"""What a log line never holds."""

from __future__ import annotations

import re

import pytest
from django.test import RequestFactory
from django.urls import get_resolver

from config.core.logs import redacted

GOOGLE = "AIza-the-operators-own-key-000"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"key {GOOGLE} refused", "key AIza[redacted] refused"),
        ({"X-Goog-Api-Key": GOOGLE}, {"X-Goog-Api-Key": "[redacted]"}),
        ({"YOUTUBE_API_KEY": "short"}, {"YOUTUBE_API_KEY": "[redacted]"}),
        (["AIza"], ["AIza"]),
    ],
)
def test_googles_keys_are_cut_out(written, kept):
    assert redacted(written) == kept


def test_address_of_a_door_is_cut_out_of_a_request_that_is_logged():
    request = RequestFactory().post(f"/hooks/{'t' * 32}")
    assert redacted({"request": request}) == {"request": "<WSGIRequest: POST '/hooks/[redacted]'>"}
    harmless = RequestFactory().get("/v1/me")
    assert redacted([harmless]) == [harmless]


def secret_addresses():
    """An address of each route that works for whoever knows its token or secret, and that text."""
    for pattern in get_resolver().url_patterns:
        for one in getattr(pattern, "url_patterns", [pattern]):
            route = str(one.pattern)
            named = re.search(r"\(\?P<(?:token|secret)>\[[^]]+\]\{(\d+)[^)]*\)", route)
            if named:
                secret = ("s3cret-" * 20)[: int(named[1])]
                rest = re.sub(r"\(\?P<\w+>[^)]*\)(?:\{[\d,]+\}\))?", "x", route[named.end() :])
                yield re.sub(r"/\?\$|[\\^$]", "", f"/{route[: named.start()]}{secret}{rest}"), secret


def test_no_secret_of_an_address_is_logged():
    known = list(secret_addresses())
    assert len(known) == 10
    for address, secret in known:
        request = RequestFactory().get(address)
        written = redacted(
            {"event": f"Internal Server Error: {address}", "request": request, "path": address}
        )
        assert secret not in str(written), address


@pytest.mark.parametrize(
    "written",
    [
        "GET /outlets/connect/x/callback?state=s3cret-text&code=s3cret-text",
        "https://api.example/token?grant=a&client_secret=s3cret-text",
        "https://api.example/x?refresh_token=s3cret-text",
        "https://api.telegram.org/bot123456:s3cret-text_of_it/sendMessage",
        "https://hooks.slack.com/services/T0001/B0001/s3cret-text",
        "https://discord.com/api/webhooks/1234567/s3cret-text_of_it",
    ],
)
def test_secrets_in_addresses_of_others_are_cut_out(written):
    assert "s3cret-text" not in redacted(written)
