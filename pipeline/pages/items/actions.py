"""Acts on an item or one of its publications: approve, reject, regenerate, unschedule, retry, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors, show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import decode, encode
from config.core.states import Overtaken
from pipeline import labels, publish
from pipeline.generate import generation_plan
from pipeline.models import Publication
from pipeline.pages.items import next_actions, slot_times
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import RegenerateForm, RejectForm, version_in
from pipeline.pages.review.actions import offer_undo_of
from pipeline.review import bulk_review, decisions, regenerate, variants

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit", methods=("POST",))
def item_approve(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Approve the item in the version that the form names, with an undo."""
    row = find_item(place, gen)
    with report_errors(request):
        version = version_in(request.POST)
        review_input = bulk_review.BulkReviewInput(place.workspace, by=place.user.email, now=utc_now())
        (decided,) = bulk_review.decide(
            bulk_review.APPROVE, [(row, row.version if version is None else version)], review_input
        )
        if decided.error is not None:
            raise decided.error
        message = _("Approved. Scheduled posts will publish on time.") if row.publish_at else _("Approved.")
        offer_undo_of(request, place, message, decided)
    return redirect(place.url_of("item_page", gen=gen))


@workspace_page("edit")
def item_reject(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form that rejects the item, and reject it with the reason on POST, with an undo."""
    row = find_item(place, gen)
    form = kept_forms.form_for(request, RejectForm, initial={"version": row.version})
    if request.method == "POST" and form.is_valid():
        try:
            rejected = decisions.reject(
                row,
                reason=form.cleaned_data["reason"],
                by=place.user.email,
                now=utc_now(),
                expected_version=version_in(request.POST),
            )
        except Overtaken:
            row = find_item(place, gen)
            form.take_newest(row.version)
        except AppError as error:
            show_at_fields(form, error)
        else:
            message = _("Rejected.")
            fields = {"version": str(rejected.version)}
            offer_undo(request, message, place.url_of("item_restore", gen=gen), fields)
            return redirect(place.url_of("item_page", gen=gen))
    return render(request, "pages/items/reject.html", {**item_head(place, row), "form": form})


@workspace_page("edit", methods=("POST",))
def item_restore(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Restore a rejected item."""
    row = find_item(place, gen)
    with report_errors(request):
        decisions.restore(row, now=utc_now(), expected_version=version_in(request.POST))
        messages.success(request, _("Restored."))
    return redirect(place.url_of("item_page", gen=gen))


@workspace_page("edit", methods=("POST",))
def item_retry(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Generate a failed item again."""
    row = find_item(place, gen)
    with report_errors(request):
        regenerate.retry(row, workspace=place.workspace, now=utc_now())
        messages.success(request, _("Regenerating."))
    return redirect(place.url_of("item_page", gen=gen))


@workspace_page("edit")
def item_regenerate(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form for another variant; on POST, create the variant and redirect to it.

    A double click creates one variant. If the creation fails, the form keeps its instructions.
    """
    row = find_item(place, gen)
    form = kept_forms.form_for(request, RegenerateForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("item_page", gen=gen))
        with report_errors(request, form):
            hint = form.cleaned_data["hint"]
            variant = regenerate.regenerate(row, workspace=place.workspace, now=utc_now(), hint=hint)
            messages.success(request, _("Creating a variant."))
            return redirect(place.url_of("item_page", gen=variant.pk))
    context = {
        **item_head(place, row),
        "form": form,
        "no_hints": regenerate.why_no_hints(row),
        "credits": generation_plan.engine_named(row.engine_output).credits,
    }
    return render(request, "pages/items/regenerate.html", context)


@workspace_page("edit", methods=("POST",))
def item_choose(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Choose this variant and archive the others, with an undo.

    A POST with `back`, ids separated by commas, restores those variants that were archived at the time `at` instead.
    """
    row = find_item(place, gen)
    restored_keys = [
        key
        for variant in request.POST.get("back", "").split(",")
        if (key := decode("gen", variant)) is not None
    ]
    if "back" in request.POST:
        count = variants.take_back(row, set(restored_keys), at=request.POST.get("at", ""), now=utc_now())
        message = ngettext("%(count)d variant restored.", "%(count)d variants restored.", count)
        messages.success(request, message % {"count": count})
        return redirect(place.url_of("item_page", gen=gen))
    with report_errors(request):
        others = variants.choose(row, by=place.user.email, now=utc_now())
        message = ngettext(
            "Variant chosen; %(count)d other archived.",
            "Variant chosen; %(count)d others archived.",
            len(others),
        ) % {"count": len(others)}
        if others:
            fields = {
                "back": ",".join(encode("gen", variant.pk) for variant in others),
                "at": str((others[0].rejection or {}).get("at", "")),
            }
            offer_undo(request, message, place.url_of("item_choose", gen=gen), fields)
        else:
            messages.success(request, _("No other variant to choose."))
    return redirect(place.url_of("item_page", gen=gen))


@workspace_page("edit", methods=("POST",))
def item_cancel(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Unschedule every publication of the item."""
    row = find_item(place, gen)
    with report_errors(request):
        decided = bulk_review.unschedule(row, now=utc_now(), expected_version=version_in(request.POST))
        state = labels.of_item(decided.item).label
        offer_undo_of(request, place, _("Unscheduled. New status: %(state)s.") % {"state": state}, decided)
    return redirect(place.url_of("item_page", gen=gen))


def _find_publication(place: Place, pub: UUID) -> Publication:
    """Return the publication with its item and outlet.

    Raises `Http404` if the workspace has no such publication, or if it is a test's or its item was deleted.
    """
    rows = Publication.objects.of(place.workspace).filter(test=False, item__deleted_at=None)
    row: Publication = get_object_or_404(rows.select_related("item", "outlet"), pk=pub)
    return row


@workspace_page("edit", methods=("POST",))
def publication_retry(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Retry a failed publication, and warn if a blocker keeps it from being sent."""
    row = _find_publication(place, pub)
    with report_errors(request):
        now = utc_now()
        retried = publish.retry(row, by=place.user.email, now=now)
        waits = next_actions.find_waits(
            place, slot_times.load_publications(place.workspace, [retried.pk]), now=now
        )
        for line in waits.lines:
            messages.warning(request, line)
        if not waits.blockers:
            messages.success(request, _("Retrying %(outlet)s.") % {"outlet": row.outlet.name})
    return redirect(place.url_of("item_page", gen=row.item_id))


@workspace_page("edit", methods=("POST",))
def publication_reconcile(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Look up at the platform what became of a publication whose outcome is unknown."""
    row = _find_publication(place, pub)
    with report_errors(request):
        publish.reconcile_now(row, now=utc_now())
        messages.success(request, _("Checking status on %(outlet)s.") % {"outlet": row.outlet.name})
    return redirect(place.url_of("item_page", gen=row.item_id))


@workspace_page("edit")
def publication_remove(request: HttpRequest, place: Place, pub: UUID) -> HttpResponse:
    """Delete a post at its platform on POST; before that, show a page that asks for confirmation.

    The page asks because a deleted post can only be published again as a new one.
    """
    row = _find_publication(place, pub)
    if request.method == "POST":
        with report_errors(request):
            publish.request_removal(row, now=utc_now())
            message = _("Deleting from %(outlet)s.")
            messages.success(request, message % {"outlet": row.outlet.name})
        return redirect(place.url_of("item_page", gen=row.item_id))
    return render(request, "pages/items/remove.html", {"publication": row, "item": row.item})
