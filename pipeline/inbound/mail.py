"""`/hooks/mail/<secret>`: an operator's mailbox pipes each mail that comes back to a newsletter here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.request import Request

from config.core import limits
from config.core.api.jsonio import raw_body
from config.core.clock import utc_now
from config.core.errors import NotFound
from config.core.middleware import error_response
from pipeline.mailing import bounces

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@csrf_exempt
def returned_mail(request: HttpRequest, secret: str) -> HttpResponse:
    """The body is the mail as it is. 200 also for what tells nothing, so that a mailbox's pipe goes on."""
    if request.method != "POST":
        return error_response("method_not_allowed", headers={"Allow": "POST"})
    body = raw_body(Request(request), most=limits.BOUNCE_BYTES)
    outcome = bounces.receive(secret, body, now=utc_now())
    if outcome is None:
        raise NotFound
    return JsonResponse({"outcome": outcome})
