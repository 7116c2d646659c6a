"""Serves the pages of posts that are published by hand: the list of due posts, and the package of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
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
    """The address of the post, which may be left out."""

    url = forms.URLField(
        label=gettext_lazy("Post URL"),
        required=False,
        max_length=limits.URL_CHARACTERS,
        assume_scheme="https",
        help_text=gettext_lazy("Optional"),
    )


@workspace_page("look", methods=("GET",))
def manual_posts(request: HttpRequest, place: Place) -> HttpResponse:
    """List the posts that wait to be published by hand, the earliest first, at most `PAGE_ROWS`."""
    due_publications = Publication.objects.of(place.workspace).live().unsent().by_hand()
    rows = due_publications.select_related("item", "outlet").order_by("due_at", "id")
    publications = list(
        rows.defer("item__content", "item__body", "outlet__credentials")[: limits.PAGE_ROWS + 1]
    )
    context = {"rows": publications[: limits.PAGE_ROWS], "is_cut": len(publications) > limits.PAGE_ROWS}
    return render(request, "pages/manual_posts.html", context)


@workspace_page("edit")
def package(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Show what has to be copied and posted; on POST, record whether it was posted.

    `outcome=not_posted` marks the publication as not sent; any other value marks it as published.
    """
    publication = _find_publication(place, pub)
    form = kept_forms.form_for(request, SettleForm)
    if request.method == "POST" and form.is_valid():
        is_posted = request.POST.get("outcome") != "not_posted"
        with report_errors(request):
            publish.settle_publication(
                publication,
                was_sent=is_posted,
                url=form.cleaned_data["url"] if is_posted else "",
                by=place.user.email,
                now=utc_now(),
            )
            message = _("Marked as published.") if is_posted else _("Marked as not posted.")
            messages.success(request, message)
        return redirect(place.url_of("package", pub=pub))
    context = {
        **_package_context(publication),
        "row": publication,
        "form": form,
        "is_open": publication.is_handed_over,
    }
    return render(request, "pages/manual_publish.html", context)


def _find_publication(place: Place, pub: UUID) -> Publication:
    """Return the publication; raises `Http404` unless people publish on its platform by hand and its item exists."""
    rows = Publication.objects.of(place.workspace).filter(test=False).select_related("item", "outlet")
    publication: Publication | None = rows.filter(pk=pub, item__deleted_at=None).first()
    if publication is None or not platform_of(publication.platform).is_by_hand:
        raise Http404
    return publication


def _package_context(publication: Publication) -> dict[str, Any]:
    """Return the template's context: the post's fields, files, destination and instructions."""
    post = publish.package_of(publication)
    payload, config = post.payload, publication.outlet.config
    return {
        "payload": payload,
        "fields": _copyable_fields(payload),
        "parts": list(enumerate(post.parts, start=1)) if len(post.parts) > 1 else [],
        "files": publish.package_files(publication),
        "destination": config.get("place") or publication.outlet.name,
        "address": config.get("address", ""),
        "steps": [line.strip() for line in config.get("instructions", "").splitlines() if line.strip()],
    }


def _copyable_fields(payload: Payload) -> list[tuple[str, str, str]]:
    """Return id, label and text of each field to copy, without empty fields."""
    fields = [("title", _("Title"), payload.title.strip())]
    if payload.body_format == "text":
        fields.append(("body", _("Text"), payload.body))
    else:
        format_name = "HTML" if payload.body_format == "html" else "Markdown"
        fields.append(("body", format_name, payload.body))
        fields.append(("plain", _("Plain text"), plain_text(payload.body, payload.body_format)))
    fields.append(("link", _("Link to the source"), payload.link))
    return [field for field in fields if field[2].strip()]
