"""Publishes an item now, in the next slot or at a time, or shows first what each outlet would get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import encode
from config.core.states import Overtaken
from pipeline import publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Outlet, Publication
from pipeline.outlets.outlet_client import buckets_of
from pipeline.pages.items import next_actions, outlet_fit, slot_times
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import AT, NEXT, NOW, PublishForm, version_in
from pipeline.pages.review.actions import offer_undo_of
from pipeline.review import bulk_review
from pipeline.text.local_time import shift_of

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit")
def item_publish(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form, and publish or schedule the item on POST.

    A POST with `check` shows what each outlet would get instead, and stores nothing.
    """
    row = find_item(place, gen)
    outlets = _list_outlets(place, row)
    form = kept_forms.form_for(
        request,
        PublishForm,
        item=row,
        outlets=outlets,
        has_siblings=_has_siblings(place, row),
        next_slots=slot_times.next_slots(row, outlets, now=utc_now()),
        initial=_initial_values(request, row, outlets),
    )
    dry_run_results: list[dict[str, Any]] = []
    if request.method == "POST" and form.is_valid():
        try:
            if "check" in request.POST:
                dry_run_results = _dry_run(place, row, form)
            else:
                return _publish_and_redirect(request, place, row, form)
        except Overtaken:
            row = find_item(place, gen)
            form.take_newest(row.version)
        except AppError as error:
            show_at_fields(form, error)
    context = {
        **item_head(place, row),
        "form": form,
        "has_outlets": bool(outlets),
        "waits": next_actions.access_blockers_of(place, outlets),
        "rehearsed": dry_run_results,
    }
    return render(request, "pages/items/publish.html", context)


def _list_outlets(place: Place, row: GeneratedItem) -> list[Outlet]:
    """Return the outlets that take the item, its default outlets first."""
    rows = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    outlets = [outlet for outlet in rows if row.bucket in buckets_of(outlet.platform)]
    return sorted(outlets, key=lambda outlet: encode("out", outlet.pk) not in row.outlets)


def _has_siblings(place: Place, row: GeneratedItem) -> bool:
    """Return whether the item has other variants that are ready."""
    siblings = GeneratedItem.objects.of(place.workspace).filter(
        variant_group=row.variant_group, status=GeneratedItemStatus.READY, deleted_at=None, test=False
    )
    return bool(siblings.exclude(pk=row.pk).exists())


def _initial_values(request: HttpRequest, row: GeneratedItem, outlets: list[Outlet]) -> dict[str, Any]:
    """Return the form's initial values: by default the item's default outlets, or else the first outlet.

    For a scheduled item they are its outlets and its time, so that a person who changes nothing keeps them.
    """
    outlet_ids = [encode("out", outlet.pk) for outlet in outlets]
    requested_when = request.GET.get("when", "")
    values: dict[str, Any] = {
        "version": row.version,
        "when": requested_when if requested_when in {NOW, NEXT, AT} else NOW,
    }
    rows = Publication.objects.of(row.workspace_id).scheduled().filter(item=row)
    scheduled_ids = [encode("out", key) for key in rows.values_list("outlet_id", flat=True)]
    chosen_ids = [outlet for outlet in outlet_ids if outlet in scheduled_ids] or [
        outlet for outlet in row.outlets if outlet in outlet_ids
    ]
    values["outlets"] = chosen_ids or outlet_ids[:1]
    if row.status == GeneratedItemStatus.SCHEDULED and row.publish_at is not None:
        local_time = row.publish_at.astimezone(ZoneInfo(row.workspace.timezone))
        values["local_time"] = local_time.replace(tzinfo=None)
        if not requested_when:
            values["when"] = AT
    return values


def _dry_run(place: Place, row: GeneratedItem, form: PublishForm) -> list[dict[str, Any]]:
    """Return what each outlet would get and when, and what would keep it from being sent."""
    verdicts = publish.dry_run(row, form.wish(), now=utc_now())
    is_now = form.cleaned_data["when"] == NOW
    return [
        {
            "fit": outlet_fit.fit_of(row, verdict),
            "due_at": None if is_now else verdict.due_at,
            "waits": next_actions.access_blockers_of(place, [verdict.outlet]),
        }
        for verdict in verdicts
    ]


def _publish_and_redirect(
    request: HttpRequest, place: Place, row: GeneratedItem, form: PublishForm
) -> HttpResponse:
    """Publish or schedule the item and redirect to its page, with an undo if it was scheduled.

    Raises the error of the decision if it failed, such as `Overtaken` or `CannotPublish`.
    """
    if not kept_forms.is_first_sending(request):
        return redirect(place.url_of("item_page", gen=row.pk))
    version = version_in(request.POST)
    review_input = bulk_review.BulkReviewInput(
        place.workspace, by=place.user.email, now=utc_now(), wish=form.wish()
    )
    (decided,) = bulk_review.decide(
        bulk_review.PUBLISH, [(row, row.version if version is None else version)], review_input
    )
    if decided.error is not None or decided.former is None:
        kept_forms.allow_sending_again(request)
        raise decided.error or Overtaken()
    publications = slot_times.publications_in(place.workspace, decided.former)
    waits = next_actions.find_waits(place, publications, now=utc_now())
    for line in waits.lines:
        messages.warning(request, line)
    if form.cleaned_data["when"] == NOW:
        names = ", ".join(
            publication.outlet.name
            for publication in publications
            if publication.pk not in waits.publications
        )
        if names:
            messages.success(request, _("Publishing to %(outlets)s.") % {"outlets": names})
        return redirect(place.url_of("item_page", gen=row.pk))
    message = slot_times.scheduled_sentence(publications, place.workspace.timezone)
    clock = form.cleaned_data.get("clock")
    if clock is not None:
        message = f"{message} {shift_of(clock)}".rstrip()
    offer_undo_of(request, place, message, decided)
    return redirect(place.url_of("item_page", gen=row.pk))
