"""Fills the free slots of a week: shows what would be scheduled, schedules all or what is ticked, and undoes it."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.datetimes import format_utc, read_moment
from config.core.errors import AppError
from config.core.ids import decode, encode
from pipeline import labels
from pipeline.models import Bucket, Outlet, WeekPlan
from pipeline.pages.items import next_actions, slot_times
from pipeline.schedule import planning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse
    from django.utils.functional import _StrPromise

    from pipeline.models import GeneratedItem

DAYS_OFFERED: Final = (7, 14, 28)
"""Lengths of a plan that the form offers, in days."""
POSTS_PER_DAY_OFFERED: Final = (1, 2, 3, 5)
"""The most posts per day and outlet that the form offers."""
MAX_LEFT_OUT_SHOWN: Final = 50
"""The most items left out of a plan that are listed."""
_MAX_VERSION_DIGITS: Final = 9
_ALIKE_LABELS: Final[dict[str, _StrPromise]] = {
    "source": gettext_lazy("the same source"),
    "topic": gettext_lazy("the same topic"),
}
"""What a post may have in common with its neighbours, as the page names it; equal formats and kinds aren't shown."""


class FillForm(forms.Form):
    """The days, posts per day and outlets of a plan. The form stores nothing."""

    days = forms.TypedChoiceField(
        label=gettext_lazy("For"),
        coerce=int,
        empty_value=str(planning.DAYS),
        initial=planning.DAYS,
        required=False,
    )
    a_day = forms.TypedChoiceField(
        label=gettext_lazy("Posts per day per outlet"), coerce=int, empty_value=None, required=False
    )
    outlets = forms.MultipleChoiceField(
        label=gettext_lazy("Outlets"),
        required=False,
        help_text=gettext_lazy("Leave empty for all"),
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, outlets: Sequence[Outlet], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["days"].choices = [
            (days, ngettext("%(count)d week", "%(count)d weeks", days // 7) % {"count": days // 7})
            for days in DAYS_OFFERED
        ]
        fields["a_day"].choices = [
            ("", _("All free slots")),
            *(
                (count, ngettext("%(count)d post", "%(count)d posts", count) % {"count": count})
                for count in POSTS_PER_DAY_OFFERED
            ),
        ]
        fields["outlets"].choices = [(encode("out", outlet.pk), outlet.name) for outlet in outlets]

    def plan_request(self, now: datetime) -> planning.PlanRequest:
        """Return the request for the plan of this valid form."""
        values = self.cleaned_data
        outlets = [key for public_id in values["outlets"] if (key := decode("out", public_id)) is not None]
        return planning.PlanRequest(now, int(values["days"]), outlets or None, values["a_day"])


@workspace_page("edit")
def calendar_fill(request: HttpRequest, place: Place) -> HttpResponse:
    """Show what would be scheduled; on POST, schedule the ticked posts, or with `all` each, as they were shown."""
    now = utc_now()
    if request.method == "POST":
        return _schedule_posted(request, place, now)
    outlets = list(
        Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    )
    form = FillForm(request.GET or {"days": planning.DAYS}, outlets=outlets)
    context: dict[str, Any] = {"form": form, "has_outlets": bool(outlets), "is_asked": bool(request.GET)}
    if form.is_valid():
        with report_errors(request, form):
            proposal = planning.propose(place.workspace, form.plan_request(now), test=False, now=now)
            context |= _proposal_context(place, proposal)
    return render(request, "pages/calendar/fill.html", context)


def _proposal_context(place: Place, proposal: planning.Proposal) -> dict[str, Any]:
    """Return the template's context of a proposal: its posts by day, and the items left out by reason."""
    zone = ZoneInfo(place.workspace.timezone)
    lines = [_line_context(entry, zone) for entry in proposal.entries]
    if all(line["alike"] for line in lines):
        # What all posts have in common says nothing about a single one.
        lines = [{**line, "alike": []} for line in lines]
    items_by_reason: dict[str, list[GeneratedItem]] = {}
    for left_out in proposal.left[:MAX_LEFT_OUT_SHOWN]:
        items_by_reason.setdefault(left_out.message, []).append(left_out.item)
    return {
        "approved": sum(line["is_approved"] for line in lines),
        "unapproved": sum(not line["is_approved"] for line in lines),
        "days": [(day, list(group)) for day, group in groupby(lines, key=lambda line: line["day"])],
        "count": len(lines),
        "outlets_filled": len({line["outlet"] for line in lines}),
        "left": list(items_by_reason.items()),
        "left_count": len(proposal.left),
        "free": proposal.free,
        "kinds": [
            (Bucket(bucket).label, count)
            for bucket, count in Counter(entry.item.bucket for entry in proposal.entries).most_common()
        ],
    }


def _line_context(entry: planning.Proposed, zone: ZoneInfo) -> dict[str, Any]:
    """Return the template's context of one post, with its time in the zone."""
    local = entry.slot.moment.astimezone(zone)
    return {
        "is_approved": entry.item.is_approved_as_it_is,
        "badge": labels.of_promise(entry.item),
        "day": local.date(),
        "time": f"{local:%H:%M}",
        "value": _encode_entry(entry),
        "title": entry.item.title or entry.item.excerpt,
        "item": entry.item.pk,
        "kind": entry.item.get_bucket_display(),
        "format": entry.item.engine_output,
        "outlet": entry.outlet.name,
        "alike": [str(_ALIKE_LABELS[name]) for name in entry.alike if name in _ALIKE_LABELS],
    }


def _encode_entry(entry: planning.Proposed) -> str:
    """Return the value that a checkbox sends: item, version, outlet and moment of the post, with spaces between."""
    return " ".join(
        (
            encode("gen", entry.item.pk),
            str(entry.item.version),
            encode("out", entry.outlet.pk),
            format_utc(entry.slot.moment),
        )
    )


def _decode_entries(values: Iterable[str]) -> list[planning.PlanEntry]:
    """Return the posts that `_encode_entry` encoded, and leave out any other value."""
    entries = []
    for value in values:
        # A value with too few parts is filled up with empty ones, which are no ids.
        item_id, version, outlet_id, at = (*value.split(" "), "", "", "")[:4]
        item_key, outlet_key = decode("gen", item_id), decode("out", outlet_id)
        moment = read_moment(at) if at else None
        if item_key and outlet_key and moment and version.isascii() and version.isdigit():
            expected_version = int(version[:_MAX_VERSION_DIGITS])
            entries.append(planning.PlanEntry(item_key, expected_version, outlet_key, moment))
    return entries


def _schedule_posted(request: HttpRequest, place: Place, now: datetime) -> HttpResponse:
    """Schedule the ticked posts, or with `all` each that was shown, and redirect to the week of the first one.

    Redirects back to the plan if nothing is ticked, nothing could be scheduled, or the form was sent before.
    """
    query = request.GET.urlencode()
    plan_page = place.url_of("calendar_fill") + (f"?{query}" if query else "")
    if not kept_forms.is_first_sending(request):
        return redirect(plan_page)
    entries = _decode_entries(request.POST.getlist("shown" if "all" in request.POST else "entry"))
    if not entries:
        kept_forms.allow_sending_again(request)
        messages.error(request, _("Choose at least one post."))
        return redirect(plan_page)
    try:
        result = planning.commit(place.workspace, entries, test=False, by=place.user.email, now=now)
    except AppError as error:
        kept_forms.allow_sending_again(request)
        message = _("Nothing was scheduled: %(why)s This is the current plan.")
        messages.error(request, message % {"why": error.detail[0].message})
        return redirect(plan_page)
    _report_commit(request, place, result)
    first_due_at = min(publication.due_at for publication in result.scheduled if publication.due_at)
    first_day = first_due_at.astimezone(ZoneInfo(place.workspace.timezone)).date()
    return redirect(f"{place.url_of('calendar')}?view=week&on={first_day.isoformat()}")


def _report_commit(request: HttpRequest, place: Place, result: planning.PlanCommit) -> None:
    """Add messages about the refused posts, about what keeps scheduled ones waiting, and with an undo."""
    if result.refused:
        message = ngettext(
            "%(count)d changed and wasn't scheduled: %(why)s",
            "%(count)d changed and weren't scheduled: %(why)s",
            len(result.refused),
        )
        reasons = " ".join(sorted({refusal.message for refusal in result.refused}))
        messages.warning(request, message % {"count": len(result.refused), "why": reasons})
    count = len(result.scheduled)
    message = ngettext("%(count)d post scheduled.", "%(count)d posts scheduled.", count) % {"count": count}
    rows = slot_times.load_publications(place.workspace, [row.pk for row in result.scheduled])
    for line in next_actions.find_waits(place, rows, now=utc_now()).lines:
        messages.warning(request, line)
    offer_undo(request, message, place.url_of("calendar_undo", pln=result.plan.pk))


@workspace_page("edit", methods=("POST",))
def calendar_undo(request: HttpRequest, place: Place, pln: UUID) -> HttpResponse:
    """Unschedule what a plan scheduled, except for posts that were published or changed since."""
    plan = get_object_or_404(WeekPlan.objects.of(place.workspace), pk=pln)
    with report_errors(request):
        result = planning.undo(plan, by=place.user.email, now=utc_now())
        count = len(result.taken_back)
        messages.success(
            request,
            ngettext("%(count)d post unscheduled.", "%(count)d posts unscheduled.", count) % {"count": count},
        )
        if result.kept:
            message = ngettext(
                "%(count)d stays: published or changed since.",
                "%(count)d stay: published or changed since.",
                len(result.kept),
            )
            messages.info(request, message % {"count": len(result.kept)})
    return redirect(place.url_of("calendar"))
