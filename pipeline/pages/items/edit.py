"""Edits an item in place, counting its text for each outlet meanwhile, and restores former revisions."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors, show_at_fields
from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for
from config.core.clock import utc_now
from config.core.errors import AppError, Invalid
from config.core.states import Overtaken
from pipeline.models import GeneratedItem, Revision
from pipeline.pages.items import display, outlet_fit
from pipeline.pages.items.detail import files_of, find_item, item_head
from pipeline.pages.items.edit_form import ItemEditForm
from pipeline.pages.items.forms import number_in, version_in
from pipeline.review import decisions

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit")
def item_edit(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form that edits the item, and save it on POST with `save`.

    If somebody else saved meanwhile, the form keeps what was typed, shows the newest text, and may be saved over it.
    While a person types, polls to this view count the text as each outlet counts it. They come to this view so that
    what was typed is kept if the session has ended meanwhile.
    """
    row = find_item(place, gen)
    form = kept_forms.form_for(request, ItemEditForm, item=row, assets=files_of(place, row))
    if is_poll_for(request, "counts"):
        counts_context = {"fits": outlet_fit.read_fits(copy_as_typed(row, form), now=utc_now())}
        return render(request, "pages/items/outlet_fit.html", counts_context)
    overtaken = ""
    if request.method == "POST" and "save" in request.POST and form.is_valid():
        try:
            return _save(request, place, row, form)
        except Overtaken:
            row = find_item(place, gen)
            overtaken = display.describe_newer_edit(row, place.user.email)
            form = ItemEditForm(form.data, item=row, assets=files_of(place, row))
            form.merge_with_newest()
        except AppError as error:
            show_at_fields(form, error)
    context = {
        **item_head(place, row),
        "form": form,
        "overtaken": overtaken,
        "fits": outlet_fit.read_fits(copy_as_typed(row, form), now=utc_now()),
    }
    return render(request, "pages/items/edit.html", context)


@workspace_page("edit", methods=("POST",))
def item_back(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Make the text of a former revision the newest one; raises `Http404` if the item has no such revision."""
    row = find_item(place, gen)
    number = number_in(request.POST, "number")
    revisions = Revision.objects.of(place.workspace).filter(item=row)
    former: Revision | None = revisions.filter(number=number).first() if number is not None else None
    if former is None:
        raise Http404
    changes: dict[str, Any] = {
        "title": former.title,
        "content": former.content,
        "overrides": former.overrides,
    }
    if row.bucket != "text" or "parts" not in former.content:
        changes["body"] = former.body
    with report_errors(request):
        decisions.edit(
            row, changes, by=place.user.email, now=utc_now(), expected_version=version_in(request.POST)
        )
        message = _("Revision %(number)s restored.")
        messages.success(request, message % {"number": former.number})
    return redirect(place.url_of("item_page", gen=gen))


def copy_as_typed(row: GeneratedItem, form: ItemEditForm) -> GeneratedItem:
    """Return an unsaved copy of the item with the form's text, or unchanged if the form is unbound or invalid."""
    typed_item = copy(row)
    if form.is_bound and form.is_valid():
        changes = form.changes()
        for name in ("title", "body", "content"):
            if name in changes:
                setattr(typed_item, name, changes[name])
        if "parts" in changes.get("content", {}):
            typed_item.body = "\n\n".join(changes["content"]["parts"])
    return typed_item


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: ItemEditForm) -> HttpResponse:
    """Save what was changed and redirect to the item, with an undo if that made a revision.

    Raises `Invalid` if the form names no version, `Overtaken` if the version isn't the newest, and each other error
    of `decisions.edit`.
    """
    changes = form.changes()
    # Without a change nothing is written, so the version doesn't matter.
    if not changes:
        messages.info(request, _("No changes."))
        return redirect(place.url_of("item_page", gen=row.pk))
    revision_before = row.revision
    expected_version = version_in(request.POST)
    if expected_version is None:
        raise Invalid.one(None, "version", _("Reload the page and try again."))
    edited = decisions.edit(
        row, changes, by=place.user.email, now=utc_now(), expected_version=expected_version
    )
    if edited.revision == revision_before:
        messages.success(request, _("Saved."))
    else:
        fields = {"number": str(revision_before), "version": str(edited.version)}
        offer_undo(request, _("Saved."), place.url_of("item_back", gen=row.pk), fields)
    return redirect(place.url_of("item_page", gen=row.pk))
