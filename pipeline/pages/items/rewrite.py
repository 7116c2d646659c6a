"""Requests, cancels and undoes a rewrite of an item's text, from the item's page or its review card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline import limits
from pipeline.generate import generation_plan
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import VersionedForm, version_in
from pipeline.pages.review.forms import QueueFilter
from pipeline.review import rewrites

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

REVIEW: Final = "review"
"""The value of `back` for a person who came from the review card."""


class RewriteForm(VersionedForm):
    """The wish for a rewrite, with instructions that add to it or replace it.

    `back` and `query` say from which page it was requested, and with which filters.
    """

    wish = forms.ChoiceField(
        label=gettext_lazy("Change"),
        initial=rewrites.SHORTER,
        choices=(
            (rewrites.SHORTER, gettext_lazy("Shorter")),
            (rewrites.PLAINER, gettext_lazy("Plainer")),
            (rewrites.OWN, gettext_lazy("Only the instructions")),
        ),
        widget=forms.RadioSelect,
    )
    hint = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=limits.HINT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": gettext_lazy("For beginners")}),
        help_text=gettext_lazy("Changes style, not facts"),
    )
    back = forms.CharField(required=False, widget=forms.HiddenInput)
    query = forms.CharField(required=False, widget=forms.HiddenInput)


@workspace_page("edit")
def item_rewrite(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form for a rewrite, and request the rewrite on POST; a double click requests one.

    The page shows the price, or what is missing, or the button that cancels a rewrite that is running.
    """
    row = find_item(place, gen)
    origin = {name: request.GET.get(name, "") for name in ("back", "query")}
    form = kept_forms.form_for(request, RewriteForm, initial={"version": row.version, **origin})
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(_return_address(request, place, gen))
        newest = find_item(place, gen).version
        with report_errors(request, form, on_overtaken=lambda: form.take_newest(newest)):
            rewrites.request(
                row,
                form.cleaned_data["wish"],
                hint=form.cleaned_data["hint"],
                workspace=place.workspace,
                by=place.user.email,
                now=utc_now(),
                expected_version=version_in(request.POST),
            )
            return redirect(_return_address(request, place, gen))
    standing = rewrites.standing_of(row)
    context = {
        **item_head(place, row),
        "form": form,
        "is_working": standing is not None and standing.is_working,
        "why_not": rewrites.why_not_rewritten(row),
        "needs_key": not rewrites.has_model(row),
        "credits": generation_plan.engine_named(row.engine_output).credits,
    }
    return render(request, "pages/items/rewrite.html", context)


@workspace_page("edit", methods=("POST",))
def item_rewrite_cancel(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Cancel the rewrite that is running."""
    row = find_item(place, gen)
    with report_errors(request):
        rewrites.cancel(row, now=utc_now())
        messages.success(request, _("Rewrite cancelled. You weren't charged."))
    return redirect(_return_address(request, place, gen))


@workspace_page("edit", methods=("POST",))
def item_rewrite_undo(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Restore the text from before the rewrite."""
    row = find_item(place, gen)
    with report_errors(request):
        rewrites.undo_rewrite(
            row, by=place.user.email, now=utc_now(), expected_version=version_in(request.POST)
        )
        messages.success(request, _("Undone. The former text is back."))
    return redirect(_return_address(request, place, gen))


def _return_address(request: HttpRequest, place: Place, gen: UUID) -> str:
    """Return the address where the person was: the item's page, or its card with the same filters."""
    if request.POST.get("back") != REVIEW:
        return place.url_of("item_page", gen=gen)
    query = QueryDict(QueueFilter.query_in(QueryDict(request.POST.get("query", ""))), mutable=True)
    query["at"] = encode("gen", gen)
    return f"{place.url_of('review')}?{query.urlencode()}"
