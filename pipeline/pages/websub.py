"""Answers WebSub hubs at a subscription's own address: verifications by GET, and pushes by POST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt

from config.core.clock import utc_now
from config.core.middleware import error_response
from pipeline.ingest import websub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest

_CHUNK_BYTES: Final = 64 * 1024
"""The bytes of a push that are read at a time."""
MAX_CHALLENGE_CHARACTERS: Final = 4096
"""The longest challenge that is echoed."""
_MAX_LEASE_DIGITS: Final = 11


@csrf_exempt
def hub_calls(request: HttpRequest, token: str) -> HttpResponse:
    """Answer a hub as the W3C's recommendation of WebSub says.

    A verification that we expect gets a 200 with the challenge, and a denial of our request a 200 without one; any
    other GET gets a 404. A push gets a 202, or a 410 if nobody subscribes any more. Any other method gets a 405.
    """
    if request.method == "POST":
        signature = request.headers.get("X-Hub-Signature", "")
        is_accepted = websub.receive(token, signature, _read_chunks(request), now=utc_now())
        if not is_accepted:
            return _not_found_response(410)
        return HttpResponse(status=202, content_type="text/plain")
    if request.method != "GET":
        return error_response("method_not_allowed", headers={"Allow": "GET, POST"})
    mode, topic = request.GET.get("hub.mode", ""), request.GET.get("hub.topic", "")
    if mode == "denied":
        reason = request.GET.get("hub.reason", "")
        is_known = websub.deny(token, topic=topic, reason=reason, now=utc_now())
        return HttpResponse(content_type="text/plain") if is_known else _not_found_response(404)
    challenge, lease_text = request.GET.get("hub.challenge", ""), request.GET.get("hub.lease_seconds", "")
    is_number = lease_text.isascii() and lease_text.isdigit() and len(lease_text) <= _MAX_LEASE_DIGITS
    lease_seconds = int(lease_text) if is_number else None
    if not challenge or len(challenge) > MAX_CHALLENGE_CHARACTERS:
        return _not_found_response(404)
    if not websub.verify(token, mode=mode, topic=topic, lease_seconds=lease_seconds, now=utc_now()):
        return _not_found_response(404)
    # The challenge is sent as plain text, so that no browser interprets what a stranger sent.
    return HttpResponse(challenge, content_type="text/plain; charset=utf-8")


def _not_found_response(status: int) -> HttpResponse:
    """Return an error with this status: 404 for a verification; 410 for a push, so that the hub forgets the address."""
    response = error_response("not_found")
    response.status_code = status
    return response


def _read_chunks(request: HttpRequest) -> Iterator[bytes]:
    """Yield the request's body in chunks."""
    while chunk := request.read(_CHUNK_BYTES):
        yield chunk
