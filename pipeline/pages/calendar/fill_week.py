"""Fill my week: what would be scheduled is shown, what is ticked is scheduled, and one undo takes all of it back."""

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

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.datetimes import as_z, read_moment
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
A_DAY_OFFERED: Final = (1, 2, 3, 5)
LEFT_SHOWN: Final = 50
_ALIKE: Final[dict[str, _StrPromise]] = {
    "source": gettext_lazy("the same source"),
    "topic": gettext_lazy("the same topic"),
    "engine": gettext_lazy("the same format"),
    "bucket": gettext_lazy("the same kind"),
}


class FillForm(forms.Form):
    """What to fill; nothing is stored by it."""

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
    unapproved = forms.BooleanField(
        label=gettext_lazy("Also select posts that haven't been approved"), required=False
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
                for count in A_DAY_OFFERED
            ),
        ]
        fields["outlets"].choices = [(encode("out", outlet.pk), outlet.name) for outlet in outlets]

    def plan_request(self, now: datetime) -> planning.PlanRequest:
        """What a valid form asks for."""
        values = self.cleaned_data
        outlets = [key for public_id in values["outlets"] if (key := decode("out", public_id)) is not None]
        return planning.PlanRequest(now, int(values["days"]), outlets or None, values["a_day"])


@page("edit")
def calendar_fill(request: HttpRequest, place: Place) -> HttpResponse:
    """GET shows what would be scheduled; POST schedules what is ticked, each as it was shown."""
    now = utc_now()
    if request.method == "POST":
        return _schedule(request, place, now)
    outlets = list(
        Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials").order_by("id")
    )
    form = FillForm(request.GET or {"days": planning.DAYS}, outlets=outlets)
    context: dict[str, Any] = {"form": form, "has_outlets": bool(outlets)}
    if form.is_valid():
        with report_errors(request, form):
            found = planning.propose(place.workspace, form.plan_request(now), test=False, now=now)
            context |= _context_of(place, found, is_all_ticked=form.cleaned_data["unapproved"])
    return render(request, "pages/calendar/fill.html", context)


def _context_of(place: Place, found: planning.Proposal, *, is_all_ticked: bool) -> dict[str, Any]:
    """What the template shows of a proposal: its lines by day, and what is left out by its reason."""
    zone = ZoneInfo(place.workspace.timezone)
    lines = [_line(entry, zone) for entry in found.entries]
    if all(line["alike"] for line in lines):
        # What all of them share tells nothing of one.
        lines = [{**line, "alike": []} for line in lines]
    left: dict[str, list[GeneratedItem]] = {}
    for rest in found.left[:LEFT_SHOWN]:
        left.setdefault(rest.message, []).append(rest.item)
    return {
        "is_all_ticked": is_all_ticked,
        "unapproved": sum(not line["is_approved"] for line in lines),
        "days": [(day, list(group)) for day, group in groupby(lines, key=lambda line: line["day"])],
        "count": len(lines),
        "outlets_filled": len({line["outlet"] for line in lines}),
        "left": list(left.items()),
        "left_count": len(found.left),
        "free": found.free,
        "kinds": [
            (Bucket(bucket).label, count)
            for bucket, count in Counter(entry.item.bucket for entry in found.entries).most_common()
        ],
    }


def _line(entry: planning.Proposed, zone: ZoneInfo) -> dict[str, Any]:
    """What the template shows of one post, on the clocks of the zone."""
    local = entry.slot.moment.astimezone(zone)
    return {
        "is_approved": entry.item.is_approved_as_it_is,
        "badge": labels.of_promise(entry.item),
        "day": local.date(),
        "time": f"{local:%H:%M}",
        "value": _as_value(entry),
        "title": entry.item.title or entry.item.excerpt,
        "item": entry.item.pk,
        "kind": entry.item.get_bucket_display(),
        "format": entry.item.engine_output,
        "outlet": entry.outlet.name,
        "alike": [str(_ALIKE[name]) for name in entry.alike if name in {"source", "topic"}],
    }


def _as_value(entry: planning.Proposed) -> str:
    """What a tick sends: the line as it was shown."""
    return " ".join(
        (
            encode("gen", entry.item.pk),
            str(entry.item.version),
            encode("out", entry.outlet.pk),
            as_z(entry.slot.moment),
        )
    )


def _entries(values: Iterable[str]) -> list[planning.PlanEntry]:
    """The lines that were ticked, out of what `_as_value` made; what isn't one of ours is left out."""
    found = []
    for value in values:
        item, version, outlet, at = (*value.split(" "), "", "", "")[:4]
        keys = decode("gen", item), decode("out", outlet)
        moment = read_moment(at) if at else None
        if keys[0] and keys[1] and moment and version.isascii() and version.isdigit():
            found.append(planning.PlanEntry(keys[0], int(version[:9]), keys[1], moment))
    return found


def _schedule(request: HttpRequest, place: Place, now: datetime) -> HttpResponse:
    """Schedule what is ticked and lead to the week of the first post; back to the plan where nothing was scheduled."""
    asked = request.GET.urlencode()
    plan_page = place.address("calendar_fill") + (f"?{asked}" if asked else "")
    if not form_recovery.is_first_sending(request):
        return redirect(plan_page)
    entries = _entries(request.POST.getlist("entry"))
    if not entries:
        form_recovery.allow_sending_again(request)
        messages.error(request, _("Choose at least one post."))
        return redirect(plan_page)
    try:
        done = planning.commit(place.workspace, entries, test=False, by=place.user.email, now=now)
    except AppError as error:
        form_recovery.allow_sending_again(request)
        message = _("Nothing was scheduled: %(why)s This is the current plan.")
        messages.error(request, message % {"why": error.detail[0].message})
        return redirect(plan_page)
    if done.refused:
        message = ngettext(
            "%(count)d changed and wasn't scheduled: %(why)s",
            "%(count)d changed and weren't scheduled: %(why)s",
            len(done.refused),
        )
        why = " ".join(sorted({refusal.message for refusal in done.refused}))
        messages.warning(request, message % {"count": len(done.refused), "why": why})
    count = len(done.scheduled)
    message = ngettext("%(count)d post scheduled.", "%(count)d posts scheduled.", count) % {"count": count}
    rows = slot_times.with_obstacles(place.workspace, [one.pk for one in done.scheduled])
    for line in next_actions.waits_of(place, rows, now=utc_now()).lines:
        messages.warning(request, line)
    offer_undo(request, message, place.address("calendar_undo", pln=done.plan.pk))
    first = min(publication.due_at for publication in done.scheduled if publication.due_at)
    on = first.astimezone(ZoneInfo(place.workspace.timezone)).date()
    return redirect(f"{place.address('calendar')}?view=week&on={on.isoformat()}")


@page("edit", methods=("POST",))
def calendar_undo(request: HttpRequest, place: Place, pln: UUID) -> HttpResponse:
    """Takes back what a plan scheduled, but for what was changed since."""
    row = get_object_or_404(WeekPlan.objects.of(place.workspace), pk=pln)
    with report_errors(request):
        undone = planning.undo(row, by=place.user.email, now=utc_now())
        count = len(undone.taken_back)
        messages.success(
            request,
            ngettext("%(count)d post unscheduled.", "%(count)d posts unscheduled.", count) % {"count": count},
        )
        if undone.kept:
            message = ngettext(
                "%(count)d stays: published or changed since.",
                "%(count)d stay: published or changed since.",
                len(undone.kept),
            )
            messages.info(request, message % {"count": len(undone.kept)})
    return redirect(place.address("calendar"))
