"""What a log line never holds."""

from __future__ import annotations

import re

import pytest
from django.test import RequestFactory
from django.urls import get_resolver

from config.core import logs
from config.core.logs import redact
from pipeline import plugins
from pipeline.platforms.base import Platform

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
    assert redact(written) == kept


def test_address_of_a_door_is_cut_out_of_a_request_that_is_logged():
    request = RequestFactory().post(f"/hooks/{'t' * 32}")
    assert redact({"request": request}) == {"request": "<WSGIRequest: POST '/hooks/[redacted]'>"}
    harmless = RequestFactory().get("/v1/me")
    assert redact([harmless]) == [harmless]


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
    assert len(known) == 11
    for address, secret in known:
        request = RequestFactory().get(address)
        written = redact({"event": f"Internal Server Error: {address}", "request": request, "path": address})
        assert secret not in str(written), address


SECRET = "S3cretTextOfIt0"
ADDRESSES = {
    "discord": [
        f"https://discord.com/api/webhooks/1234567/{SECRET}",
        f"https://canary.discord.com/api/v10/webhooks/1234567/{SECRET}?wait=true&thread_id=1234",
        f"https://discord.com/api/v10/webhooks/1234567/{SECRET}/messages/998?thread_id=1234",
        f"/api/v9/webhooks/1234567/{SECRET}/slack",
    ],
    "slack": [
        f"https://hooks.slack.com/services/T0001/B0001/{SECRET}",
        f"https://hooks.slack-gov.com/workflows/T0001/A0001/123/{SECRET}",
        f"https://hooks.slack.com/triggers/E0001/123/{SECRET}",
        f"Max retries exceeded with url: /triggers/T0001/123/{SECRET}",
        f"invalid_auth: xoxb-123-456-{SECRET}",
    ],
    "telegram": [
        f"https://api.telegram.org/bot123456:{SECRET}/sendMessage",
        f"https://api.telegram.org/file/bot123456%3A{SECRET}/photos/1.jpg",
    ],
    "linkedin": [
        f"https://www.linkedin.com/dms-uploads/D4E10/{SECRET}/0?ca=vector",
        f"/oauth/v2/accessToken?grant_type=refresh_token&refresh_token={SECRET}&client_secret={SECRET}",
        f"refresh_token={SECRET}&grant_type=refresh_token",
    ],
    "youtube": [
        f"https://www.googleapis.com/upload/youtube/v3/videos?uploadType=resumable&upload_id={SECRET}",
        f"https://www.googleapis.com/youtube/v3/videos?part=id&key={SECRET}",
        f"https://storage.googleapis.com/b/o?X-Goog-Credential={SECRET}&X-Goog-Signature={SECRET}",
    ],
    "mastodon": [f"https://social.example/api/v1/timelines/home?access_token={SECRET}"],
    "signed_webhook": [
        f"https://hooks.zapier.com/hooks/catch/123456/{SECRET}/",
        f"https://hook.eu2.make.com/{SECRET}",
        f"https://maker.ifttt.com/trigger/posted/with/key/{SECRET}",
        f"https://maker.ifttt.com/trigger/posted/json/with/key/{SECRET}?value1=a",
        f"https://x.webhook.office.com/webhookb2/1-2@3-4/IncomingWebhook/{SECRET}/5-6",
        f"https://prod.example/workflows/abc/triggers/manual/paths/invoke?api-version=1&sig={SECRET}",
        f"https://chat.googleapis.com/v1/spaces/AA/messages?key=k&amp;token={SECRET}",
    ],
    "feed": [
        f"https://b.s3.amazonaws.com/f.mp4?X-Amz-Credential={SECRET}&X-Amz-Signature={SECRET}",
        f"https://b.s3.amazonaws.com/f.mp4?X-Amz-Security-Token={SECRET}&X-Amz-Expires=60",
        f"https://someone:{SECRET}@feeds.example/rss",
        f"https://feeds.example/rss#access_token={SECRET}",
        f"GET /outlets/connect/x/callback?state={SECRET}&code={SECRET}",
    ],
}
"""Addresses and texts that each platform, or who receives its posts, hands out to be kept."""


@pytest.mark.parametrize("written", [one for kind in ADDRESSES.values() for one in kind])
def test_secrets_in_addresses_of_others_are_cut_out(written):
    cleaned = redact({"url": written, "event": f"Failed: {written}"})
    assert SECRET not in str(cleaned)
    assert "[redacted]" in cleaned["url"]


def test_the_kinds_of_addresses_are_platforms():
    assert set(ADDRESSES) <= set(plugins.kinds("platforms"))


def test_every_form_of_a_platform_s_secrets_is_tried():
    """The first group of a form is what stays of it in the logs."""
    platforms = plugins.every("platforms", Platform)
    forms = {one.kind: own for one in platforms if (own := one.secret_addresses + one.secret_keys)}
    assert set(forms) == {"discord", "linkedin", "signed_webhook", "slack", "telegram"}
    for kind, own in forms.items():
        for form in own:
            found = [match for text in ADDRESSES[kind] if (match := re.search(form, text))]
            assert found, form
            assert all(match[1] and SECRET not in match[1] for match in found), form


def test_a_key_is_looked_for_everywhere_and_an_address_where_there_is_a_slash(monkeypatch):
    monkeypatch.setattr(logs, "_added_addresses", {})
    monkeypatch.setattr(logs, "_added_keys", {})
    assert redact("the key new-12345678") == "the key new-12345678"
    logs.add_secrets(addresses=[r"(/keys/)\d+"], keys=[r"\b(new-)\d{8}"])
    with pytest.raises(ValueError, match="needs a group"):
        logs.add_secrets(keys=[r"bare-\d+"])
    with pytest.raises(ValueError, match="needs a /"):
        logs.add_secrets(addresses=[r"(keys)\d+"])
    assert redact("the key new-12345678 of /keys/123") == "the key new-[redacted] of /keys/[redacted]"
    assert redact("the key new-12345678") == "the key new-[redacted]"


@pytest.mark.parametrize(
    "written",
    [
        "https://discord.com/channels/123456/7890123",
        "https://council.example/services/Transport/Buses-and-trams",
        "https://www.youtube.com/watch?v=abcdefghijk&t=30s",
        "https://news.example/story?utm_source=feed&page=2",
        "https://github.com/a/b/actions/workflows/tests.yaml",
        "GET /v1/generated?status=ready&limit=25",
    ],
)
def test_addresses_without_a_secret_are_told_whole(written):
    assert redact(written) == written
