"""What is done with one publication of an item: try it again, look it up, take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages.feedback import report_errors
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from pipeline import publish
from pipeline.models import Publication

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


def _find(place: Place, pub: UUID) -> Publication:
    rows = Publication.objects.of(place.workspace).filter(test=False, item__deleted_at=None)
    found: Publication = get_object_or_404(rows.select_related("item", "outlet"), pk=pub)
    return found


@page("edit", methods=("POST",))
def publication_retry(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    row = _find(place, pub)
    with report_errors(request):
        publish.retry(row, by=place.user.email, now=utc_now())
        messages.success(request, _("%(outlet)s is tried again.") % {"outlet": row.outlet.name})
    return redirect(place.address("item_page", gen=row.item_id))


@page("edit", methods=("POST",))
def publication_reconcile(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    row = _find(place, pub)
    with report_errors(request):
        publish.reconcile_now(row, now=utc_now())
        messages.success(request, _("%(outlet)s is asked whether it has it.") % {"outlet": row.outlet.name})
    return redirect(place.address("item_page", gen=row.item_id))


@page("edit")
def publication_remove(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Asks first: a post that was deleted at its platform comes back as another one only."""
    row = _find(place, pub)
    if request.method == "POST":
        with report_errors(request):
            publish.remove(row, now=utc_now())
            said = _("It is taken back from %(outlet)s; until that has worked it stays published.")
            messages.success(request, said % {"outlet": row.outlet.name})
        return redirect(place.address("item_page", gen=row.item_id))
    return render(request, "pages/items/remove.html", {"place": place, "publication": row, "item": row.item})
