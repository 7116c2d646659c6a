"""The door for WebSub hubs: their questions (GET) and their pushes (POST), at a subscription's own address."""

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
MAX_CHALLENGE: Final = 4096


@csrf_exempt
def hub_calls(request: HttpRequest, token: str) -> HttpResponse:
    """As the W3C's recommendation says: 2xx with the challenge, 404 for what we didn't want, 410 where nobody listens."""
    if request.method == "POST":
        signature = request.headers.get("X-Hub-Signature", "")
        is_heard = websub.receive(token, signature, _pieces(request), now=utc_now())
        return HttpResponse(status=202, content_type="text/plain") if is_heard else _nothing(410)
    if request.method != "GET":
        return error_response("method_not_allowed", headers={"Allow": "GET, POST"})
    mode, topic = request.GET.get("hub.mode", ""), request.GET.get("hub.topic", "")
    if mode == "denied":
        reason = request.GET.get("hub.reason", "")
        is_taken = websub.deny(token, topic=topic, reason=reason, now=utc_now())
        return HttpResponse(content_type="text/plain") if is_taken else _nothing(404)
    challenge, written = request.GET.get("hub.challenge", ""), request.GET.get("hub.lease_seconds", "")
    lease = int(written) if written.isascii() and written.isdigit() and len(written) < 12 else None
    if not challenge or len(challenge) > MAX_CHALLENGE:
        return _nothing(404)
    if not websub.verify(token, mode=mode, topic=topic, lease_seconds=lease, now=utc_now()):
        return _nothing(404)
    # Plain text, so that no browser makes anything of it.
    return HttpResponse(challenge, content_type="text/plain; charset=utf-8")


def _nothing(status: int) -> HttpResponse:
    """404 for a question, 410 for a push: then the hub forgets the address."""
    answer = error_response("not_found")
    answer.status_code = status
    return answer


def _pieces(request: HttpRequest) -> Iterator[bytes]:
    while piece := request.read(PIECE):
        yield piece
