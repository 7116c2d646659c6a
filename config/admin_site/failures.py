"""The operators' page of what failed and what is late, over a stretch of time and on a platform, by workspace."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.template.response import TemplateResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from config.core.clock import utc_now
from config.operations import failures, queue_stats
from config.operations.failures import FailurePeriod
from pipeline import plugins
from pipeline.models import PublicationStatus
from pipeline.platforms.base import Platform

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

DAYS: Final = 7
DAYS_MOST: Final = 366
_HEADS: Final = {
    failures.LATE: gettext_lazy("Late"),
    "publications": gettext_lazy("Publications"),
    "generated_items": gettext_lazy("Items"),
    "raw_items": gettext_lazy("Raw items"),
    "sources": gettext_lazy("Sources"),
    "persona_drafts": gettext_lazy("Drafts"),
    "deliveries": gettext_lazy("Deliveries"),
}
_STATUSES: Final = {
    failures.LATE: gettext_lazy("Late"),
    **dict(PublicationStatus.choices),
}


class PeriodForm(forms.Form):
    """Days of UTC; `until` is the last of them."""

    since = forms.DateField(
        label=gettext_lazy("From"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    until = forms.DateField(
        label=gettext_lazy("To"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    platform = forms.ChoiceField(label=gettext_lazy("Platform"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = sorted((str(one.label), one.kind) for one in plugins.every("platforms", Platform))
        fields: Any = self.fields
        fields["platform"].choices = [("", _("All platforms")), *((kind, label) for label, kind in kinds)]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        since, until = given.get("since"), given.get("until")
        if since and until and since > until:
            self.add_error("until", _("The end is before the start."))
        elif since and until and (until - since).days >= DAYS_MOST:
            self.add_error("until", _("Choose at most a year."))
        elif until == date.max:
            # The calendar has no midnight that ends it.
            self.add_error("until", _("Enter an earlier day."))
        return given

    @property
    def stretch(self) -> FailurePeriod:
        given = self.cleaned_data
        return FailurePeriod(
            _midnight(given["since"]),
            _midnight(given["until"]) + timedelta(days=1),
            given["platform"],
        )


def read_period(request: HttpRequest) -> tuple[PeriodForm, FailurePeriod | None]:
    """What the address asks for; None where it can't be understood, or nothing is asked."""
    form = PeriodForm(request.GET)
    return form, form.stretch if form.is_valid() else None


@require_safe
def failing_page(request: HttpRequest) -> HttpResponse:
    """Behind `admin_view`; a person sees the kinds that their permissions show."""
    kinds = [name for name in queue_stats.DEAD if _may_view(request, name)]
    if "publications" not in kinds:
        raise PermissionDenied
    now = utc_now()
    form, stretch = read_period(request)
    if not request.GET:
        starts_at, ends_at = failures.last_days(DAYS, now)
        last = ends_at - timedelta(days=1)
        form = PeriodForm({"since": f"{starts_at:%Y-%m-%d}", "until": f"{last:%Y-%m-%d}"})
        stretch = FailurePeriod(starts_at, ends_at)
    shown = [one for one in _HEADS if one in {failures.LATE, *kinds}]
    if stretch is not None and stretch.platform:
        shown = [failures.LATE, "publications"]
    found = [] if stretch is None else failures.affected_workspaces(stretch, kinds, now)
    context = {
        **admin.site.each_context(request),
        "title": _("Failed and late"),
        "form": form,
        "query": urlencode({name: form.data.get(name, "") for name in form.fields}),
        "heads": [_HEADS[one] for one in shown],
        "causes": [(one, _STATUSES[one.status]) for one in failures.failure_causes(stretch, now)]
        if stretch
        else [],
        "affected": [(one, [one.counts.get(name, 0) for name in shown]) for one in found],
        "shown_most": failures.SHOWN_MOST,
        "is_understood": stretch is not None,
    }
    return TemplateResponse(request, "admin/failing.html", context)


def _may_view(request: HttpRequest, name: str) -> bool:
    options = queue_stats.DEAD[name].model._meta
    return request.user.has_perm(f"{options.app_label}.view_{options.model_name}")


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
