"""Endpoint that WebSub hubs call at a subscription's own address: verification by GET, pushes by POST."""

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

PIECE: Final = 64 * 1024
"""Bytes of a push that are read at a time."""
MAX_CHALLENGE: Final = 4096
"""Characters of a challenge that are echoed at most."""


@csrf_exempt
def hub_calls(request: HttpRequest, token: str) -> HttpResponse:
    """Answer a hub as the W3C's recommendation says.

    2xx with the challenge for a subscription that we asked for, 404 for one
    that we didn't; for a push 202, or 410 where nobody subscribes any more.
    """
    if request.method == "POST":
        signature = request.headers.get("X-Hub-Signature", "")
        is_accepted = websub.receive(token, signature, _read_chunks(request), now=utc_now())
        return (
            HttpResponse(status=202, content_type="text/plain") if is_accepted else _not_found_response(410)
        )
    if request.method != "GET":
        return error_response("method_not_allowed", headers={"Allow": "GET, POST"})
    mode, topic = request.GET.get("hub.mode", ""), request.GET.get("hub.topic", "")
    if mode == "denied":
        reason = request.GET.get("hub.reason", "")
        is_known = websub.deny(token, topic=topic, reason=reason, now=utc_now())
        return HttpResponse(content_type="text/plain") if is_known else _not_found_response(404)
    challenge, lease_text = request.GET.get("hub.challenge", ""), request.GET.get("hub.lease_seconds", "")
    lease_seconds = (
        int(lease_text) if lease_text.isascii() and lease_text.isdigit() and len(lease_text) < 12 else None
    )
    if not challenge or len(challenge) > MAX_CHALLENGE:
        return _not_found_response(404)
    if not websub.verify(token, mode=mode, topic=topic, lease_seconds=lease_seconds, now=utc_now()):
        return _not_found_response(404)
    # Plain text, so that no browser interprets what a stranger sent.
    return HttpResponse(challenge, content_type="text/plain; charset=utf-8")


def _not_found_response(status: int) -> HttpResponse:
    """Return an error: 404 for a verification; 410 for a push, after which the hub forgets the address."""
    response = error_response("not_found")
    response.status_code = status
    return response


def _read_chunks(request: HttpRequest) -> Iterator[bytes]:
    """Yield the request's body in chunks."""
    while chunk := request.read(PIECE):
        yield chunk
