"""Posts that a person publishes by hand: the list of those that are due, and each one's package, to copy and settle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from config.core import limits
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Publication
from pipeline.outlets.outlet_client import platform_of
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.platforms.payload_types import Payload


class SettleForm(forms.Form):
    url = forms.URLField(
        label=gettext_lazy("Post URL"),
        required=False,
        max_length=limits.URL_CHARACTERS,
        assume_scheme="https",
        help_text=gettext_lazy("Optional"),
    )


@page("look", methods=("GET",))
def manual_posts(request: HttpRequest, place: Place) -> HttpResponse:
    """Those that are due, the first due first."""
    due = Publication.objects.of(place.workspace).live().unsent().by_hand()
    rows = due.select_related("item", "outlet").order_by("due_at", "id")
    found = list(rows.defer("item__content", "item__body", "outlet__credentials")[: limits.PAGE_ROWS + 1])
    context = {"rows": found[: limits.PAGE_ROWS], "is_cut": len(found) > limits.PAGE_ROWS}
    return render(request, "pages/manual_posts.html", context)


@page("edit")
def package(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    row = _find(place, pub)
    form = form_recovery.form_for(request, SettleForm)
    if request.method == "POST" and form.is_valid():
        is_posted = request.POST.get("outcome") != "not_posted"
        with report_errors(request):
            publish.settle_publication(
                row,
                was_sent=is_posted,
                url=form.cleaned_data["url"] if is_posted else "",
                by=place.user.email,
                now=utc_now(),
            )
            said = _("Marked as published.") if is_posted else _("Marked as not posted.")
            messages.success(request, said)
        return redirect(place.address("package", pub=pub))
    context = {**_shown(row), "row": row, "form": form, "is_open": publish.is_handed_over(row)}
    return render(request, "pages/manual_publish.html", context)


def _find(place: Place, pub: UUID) -> Publication:
    rows = Publication.objects.of(place.workspace).filter(test=False).select_related("item", "outlet")
    found: Publication | None = rows.filter(pk=pub, item__deleted_at=None).first()
    if found is None or not platform_of(found.platform).is_by_hand:
        raise Http404
    return found


def _shown(row: Publication) -> dict[str, Any]:
    post = publish.package_of(row)
    payload, config = post.payload, row.outlet.config
    return {
        "payload": payload,
        "fields": _fields(payload),
        "parts": list(enumerate(post.parts, start=1)) if len(post.parts) > 1 else [],
        "files": publish.package_files(row),
        "destination": config.get("place") or row.outlet.name,
        "address": config.get("address", ""),
        "steps": [line.strip() for line in config.get("instructions", "").splitlines() if line.strip()],
    }


def _fields(payload: Payload) -> list[tuple[str, str, str]]:
    """What can be copied: an id, its label, its words."""
    fields = [("title", _("Title"), payload.title.strip())]
    if payload.body_format == "text":
        fields.append(("body", _("Text"), payload.body))
    else:
        kind = "HTML" if payload.body_format == "html" else "Markdown"
        fields.append(("body", kind, payload.body))
        fields.append(("plain", _("Plain text"), plain_text(payload.body, payload.body_format)))
    fields.append(("link", _("Link to the source"), payload.link))
    return [one for one in fields if one[2].strip()]
