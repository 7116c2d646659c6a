"""Serves `/hooks/<token>`, to which bridges POST, and `/hooks/mail/<secret>` for mails returned to newsletters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import OperationalError
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django_ratelimit.core import is_ratelimited  # type: ignore[import-untyped]
from redis import RedisError
from rest_framework.request import Request

from accounts.access.authentication import client_network
from config.core import limits as core_limits
from config.core.api.jsonio import raw_body
from config.core.clock import utc_now
from config.core.errors import AppError, Detail, NotFound
from config.core.ids import encode
from config.core.json_encoding import dump
from config.core.middleware import error_response
from pipeline import limits
from pipeline.ingest.inbound_deliveries import receive
from pipeline.mailing import bounces
from pipeline.models import Source

if TYPE_CHECKING:
    from django.http import HttpRequest

log = structlog.get_logger(__name__)
_STATUS_BY_OUTCOME: Final = {"new": 202, "failed": 202}
"""The status of the answer: 202 for a new raw item, and for a failed delivery, which is stored for its owner.

Every other outcome is answered with 200, because the raw item was there already, or the delivery makes none.
"""


class TooManyCalls(AppError):
    code = "rate_limited"


@csrf_exempt
def inbound(request: HttpRequest, token: str) -> HttpResponse:
    """Take in a bridge's POST to a source, and answer with the outcome.

    The status is 202 for a new raw item, and for a failed delivery, which is stored for its owner; 200 for every
    other outcome (a duplicate, a revised or ignored one) and for a service's challenge; 405 for another method.
    Raises `NotFound` for an unknown address or a workspace that isn't at work, `TooManyCalls` beyond the rate,
    `NotVerified` if the sender doesn't prove itself, `NotVerifiable` if the source is paused or has no secret, the
    error of `raw_body` for an unreadable body, and the delivery's problem if the sender shows it to a person.
    """
    if request.method != "POST":
        return error_response("method_not_allowed", headers={"Allow": "POST"})
    source = (
        Source.everywhere.select_related("workspace__plan")
        .filter(inbound_token=token, deleted_at=None)
        .first()
    )
    _refuse_too_many(request, source)
    if source is None or not source.workspace.is_at_work:
        raise NotFound
    body = raw_body(Request(request), max_bytes=core_limits.BODY_BYTES)
    headers = {name.lower(): value for name, value in request.headers.items()}
    received = receive.receive(source, receive.IncomingDelivery(body, headers), now=utc_now())
    if received.outcome == "challenge":
        return _answer({"challenge": received.challenge})
    if received.problem is not None and received.shows_refusals:
        raise received.problem
    return _answer(_serialize_result(received), status=_STATUS_BY_OUTCOME.get(received.outcome, 200))


def _answer(data: dict[str, Any], *, status: int = 200) -> HttpResponse:
    return HttpResponse(dump(data), status=status, content_type="application/json")


def _serialize_result(received: receive.DeliveryResult) -> dict[str, Any]:
    """Return the answer's JSON: the outcome, the ids of raw item and delivery, and the reason and notes."""
    raw_item_id, delivery = received.raw_item_id, received.delivery
    result: dict[str, Any] = {
        "id": encode("raw", raw_item_id) if raw_item_id else None,
        "outcome": received.outcome,
        "delivery": encode("ind", delivery.pk) if delivery else None,
    }
    if delivery is not None and delivery.reason:
        result["reason"] = delivery.reason
    if delivery is not None and delivery.notes:
        result["notes"] = delivery.notes
    return result


def _refuse_too_many(request: HttpRequest, source: Source | None) -> None:
    """Count a call, and raise `TooManyCalls` beyond `INBOUND_CALLS`.

    Calls are counted by source, because many workspaces share a bridge's few addresses. Without a `source`, which is
    a guess at an address, they are counted by the sender's network. Nothing is refused while the cache doesn't
    answer.
    """

    def count_key(group: str, request: HttpRequest) -> str:
        del group
        return str(source.pk) if source else client_network(request)

    try:
        is_over = is_ratelimited(
            request, group="pipeline.inbound", key=count_key, rate=limits.INBOUND_CALLS, increment=True
        )
    # Without the cache nothing can be counted, and the secret address is the only guard.
    except (RedisError, OSError, OperationalError) as error:
        log.warning("inbound_not_counted", error=str(error))
        return
    if is_over:
        calls = limits.INBOUND_CALLS.removesuffix("/m")
        message = f"More than {calls} calls a minute came to this address; wait a minute."
        raise TooManyCalls(Detail(None, "rate_limited", message), headers={"Retry-After": "60"})


@csrf_exempt
def returned_mail(request: HttpRequest, secret: str) -> HttpResponse:
    """Take in a mail that came back to a newsletter; the request's body is the raw mail.

    The status is 200 with the outcome, also for a mail that is no bounce, so that a mailbox's pipe goes on, and 405
    for another method. Raises `NotFound` if no newsletter has this address, and the error of `raw_body` for an
    unreadable body.
    """
    if request.method != "POST":
        return error_response("method_not_allowed", headers={"Allow": "POST"})
    body = raw_body(Request(request), max_bytes=limits.BOUNCE_BYTES)
    outcome = bounces.receive(secret, body, now=utc_now())
    if outcome is None:
        raise NotFound
    return _answer({"outcome": outcome})
