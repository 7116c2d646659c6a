"""The page behind a mail's way out: one button that switches one kind of notice off, and one that takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts import notices
from accounts.models import NoticeKind
from accounts.notices import KINDS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def leave(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button, because programs open links in advance. POST does it without cookies (RFC 8058)."""
    way = notices.way_of(token)
    if way is None:
        answer = render(request, "pages/notices/off_over.html", status=404)
    else:
        if request.method == "POST":
            notices.switch(way, is_on=request.POST.get("act") == "come_back")
            way = notices.way_of(token) or way
        context = {"way": way, "kind": KINDS[way.kind], "label": NoticeKind(way.kind).label}
        answer = render(request, "pages/notices/off.html", context)
    answer["X-Robots-Tag"] = "noindex, nofollow"
    return answer
