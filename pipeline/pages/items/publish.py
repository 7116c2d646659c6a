"""Publish an item now, in the next slot, or at a time; what each outlet would get is shown before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, page
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


@page("edit")
def item_publish(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """With `check` it runs every outlet's rules and stores nothing."""
    row = find_item(place, gen)
    outlets = _outlets(place, row)
    form = form_recovery.form_for(
        request,
        PublishForm,
        item=row,
        outlets=outlets,
        has_siblings=_has_siblings(place, row),
        next_slots=slot_times.next_slots(row, outlets, now=utc_now()),
        initial=_initial(request, row, outlets),
    )
    rehearsed: list[dict[str, Any]] = []
    if request.method == "POST" and form.is_valid():
        try:
            if "check" in request.POST:
                rehearsed = _rehearse(place, row, form)
            else:
                return _publish(request, place, row, form)
        except Overtaken:
            row = find_item(place, gen)
            form.take_newest(row.version)
        except AppError as error:
            show_at_fields(form, error)
    context = {
        **item_head(place, row),
        "form": form,
        "has_outlets": bool(outlets),
        "waits": next_actions.before_publishing(place, outlets),
        "rehearsed": rehearsed,
    }
    return render(request, "pages/items/publish.html", context)


def _outlets(place: Place, row: GeneratedItem) -> list[Outlet]:
    """Those that take such items, the item's own first."""
    there = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    taking = [one for one in there if row.bucket in buckets_of(one.platform)]
    return sorted(taking, key=lambda one: encode("out", one.pk) not in row.outlets)


def _has_siblings(place: Place, row: GeneratedItem) -> bool:
    siblings = GeneratedItem.objects.of(place.workspace).filter(
        variant_group=row.variant_group, status=GeneratedItemStatus.READY, deleted_at=None, test=False
    )
    return bool(siblings.exclude(pk=row.pk).exists())


def _initial(request: HttpRequest, row: GeneratedItem, outlets: list[Outlet]) -> dict[str, Any]:
    """Of a scheduled item, as it is scheduled: whoever changes nothing leaves it there."""
    known = [encode("out", one.pk) for one in outlets]
    asked = request.GET.get("when", "")
    found: dict[str, Any] = {"version": row.version, "when": asked if asked in {NOW, NEXT, AT} else NOW}
    rows = Publication.objects.of(row.workspace_id).scheduled().filter(item=row)
    promised = [encode("out", key) for key in rows.values_list("outlet_id", flat=True)]
    own = [one for one in known if one in promised] or [one for one in row.outlets if one in known]
    found["outlets"] = own or known[:1]
    if row.status == GeneratedItemStatus.SCHEDULED and row.publish_at is not None:
        clock = row.publish_at.astimezone(ZoneInfo(row.workspace.timezone))
        found["local_time"] = clock.replace(tzinfo=None)
        if not asked:
            found["when"] = AT
    return found


def _rehearse(place: Place, row: GeneratedItem, form: PublishForm) -> list[dict[str, Any]]:
    judged = publish.dry_run(row, form.wish(), now=utc_now())
    is_now = form.cleaned_data["when"] == NOW
    return [
        {
            "fit": outlet_fit.fit_of(row, one),
            "due_at": None if is_now else one.due_at,
            "waits": next_actions.before_publishing(place, [one.outlet]),
        }
        for one in judged
    ]


def _publish(request: HttpRequest, place: Place, row: GeneratedItem, form: PublishForm) -> HttpResponse:
    if not form_recovery.is_first_sending(request):
        return redirect(place.address("item_page", gen=row.pk))
    version = version_in(request.POST)
    given = bulk_review.BulkReviewInput(place.workspace, by=place.user.email, now=utc_now(), wish=form.wish())
    (done,) = bulk_review.decide(
        bulk_review.PUBLISH, [(row, row.version if version is None else version)], given
    )
    if done.error is not None or done.former is None:
        form_recovery.allow_sending_again(request)
        raise done.error or Overtaken()
    promised = slot_times.publications_in(place.workspace, done.former)
    waits = next_actions.waits_of(place, promised, now=utc_now())
    for line in waits.lines:
        messages.warning(request, line)
    if form.cleaned_data["when"] == NOW:
        names = ", ".join(one.outlet.name for one in promised if one.pk not in waits.publications)
        if names:
            messages.success(request, _("Publishing to %(outlets)s.") % {"outlets": names})
        return redirect(place.address("item_page", gen=row.pk))
    said = slot_times.scheduled_sentence(promised, place.workspace.timezone)
    clock = form.cleaned_data.get("clock")
    if clock is not None:
        said = f"{said} {shift_of(clock)}".rstrip()
    offer_undo_of(request, place, said, done)
    return redirect(place.address("item_page", gen=row.pk))
