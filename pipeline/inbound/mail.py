"""`/hooks/mail/<secret>`: an operator's mailbox pipes each mail that comes back to a newsletter here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request

from config.ground import limits
from config.ground.clock import utc_now
from config.ground.errors import NotFound
from config.ground.jsonio import raw_body
from config.ground.requests import error_response
from pipeline.stages.mailing import bouncing

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@csrf_exempt
def returned_mail(request: HttpRequest, secret: str) -> HttpResponse:
    """The body is the mail as it is. 200 also for what tells nothing, so that a mailbox's pipe goes on."""
    if request.method != "POST":
        return error_response("method_not_allowed", headers={"Allow": "POST"})
    body = raw_body(Request(request), most=limits.BOUNCE_BYTES)
    outcome = bouncing.receive(secret, body, now=utc_now())
    if outcome is None:
        raise NotFound
    return JsonResponse({"outcome": outcome})
