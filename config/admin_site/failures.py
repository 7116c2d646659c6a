"""Serves the operators' page of failed and late rows in a period, by cause and by workspace."""

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

DEFAULT_DAYS: Final = 7
"""Days of the period if the address names none."""
MAX_DAYS: Final = 366
"""Days of the longest period."""
_COLUMN_HEADINGS: Final = {
    failures.LATE: gettext_lazy("Late"),
    "publications": gettext_lazy("Publications"),
    "generated_items": gettext_lazy("Items"),
    "raw_items": gettext_lazy("Raw items"),
    "sources": gettext_lazy("Sources"),
    "persona_drafts": gettext_lazy("Drafts"),
    "deliveries": gettext_lazy("Deliveries"),
}
_STATUS_LABELS: Final = {failures.LATE: gettext_lazy("Late"), **dict(PublicationStatus.choices)}


class PeriodForm(forms.Form):
    """A period in days of UTC, from `since` to `until` inclusive, and a platform."""

    since = forms.DateField(
        label=gettext_lazy("From"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    until = forms.DateField(
        label=gettext_lazy("To"), widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    )
    platform = forms.ChoiceField(label=gettext_lazy("Platform"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = sorted(
            (str(platform.label), platform.kind) for platform in plugins.every("platforms", Platform)
        )
        fields: Any = self.fields
        fields["platform"].choices = [("", _("All platforms")), *((kind, label) for label, kind in kinds)]

    def clean(self) -> dict[str, Any]:
        values: dict[str, Any] = super().clean() or self.cleaned_data
        since, until = values.get("since"), values.get("until")
        if since and until and since > until:
            self.add_error("until", _("The end is before the start."))
        elif since and until and (until - since).days >= MAX_DAYS:
            self.add_error("until", _("Choose at most a year."))
        elif until == date.max:
            # The period's end, the next midnight, is beyond what a date can be.
            self.add_error("until", _("Enter an earlier day."))
        return values

    @property
    def period(self) -> FailurePeriod:
        """The period of a valid form."""
        values = self.cleaned_data
        return FailurePeriod(
            _midnight(values["since"]), _midnight(values["until"]) + timedelta(days=1), values["platform"]
        )


def read_period(request: HttpRequest) -> tuple[PeriodForm, FailurePeriod | None]:
    """Return the form of the query string, and its period or, if the form is invalid or empty, `None`."""
    form = PeriodForm(request.GET)
    return form, form.period if form.is_valid() else None


@require_safe
def failing_page(request: HttpRequest) -> HttpResponse:
    """Show the failures of the kinds that the person may view, who must be allowed to view publications.

    The page is behind `admin_view`. Without a query string it shows the last `DEFAULT_DAYS`.
    """
    kinds = [name for name in queue_stats.DEAD if _may_view(request, name)]
    if "publications" not in kinds:
        raise PermissionDenied
    now = utc_now()
    form, period = read_period(request)
    if not request.GET:
        starts_at, ends_at = failures.last_days(DEFAULT_DAYS, now)
        last = ends_at - timedelta(days=1)
        form = PeriodForm({"since": f"{starts_at:%Y-%m-%d}", "until": f"{last:%Y-%m-%d}"})
        period = FailurePeriod(starts_at, ends_at)
    columns = [kind for kind in _COLUMN_HEADINGS if kind in {failures.LATE, *kinds}]
    if period is not None and period.platform:
        columns = [failures.LATE, "publications"]
    affected = [] if period is None else failures.affected_workspaces(period, kinds, now)
    context = {
        **admin.site.each_context(request),
        "title": _("Failed and late"),
        "form": form,
        "query": urlencode({name: form.data.get(name, "") for name in form.fields}),
        "heads": [_COLUMN_HEADINGS[kind] for kind in columns],
        "causes": [(cause, _STATUS_LABELS[cause.status]) for cause in failures.failure_causes(period, now)]
        if period
        else [],
        "affected": [
            (workspace, [workspace.counts.get(name, 0) for name in columns]) for workspace in affected
        ],
        "shown_most": failures.MAX_ROWS,
        "is_understood": period is not None,
    }
    return TemplateResponse(request, "admin/failing.html", context)


def _may_view(request: HttpRequest, name: str) -> bool:
    """Return whether the person may view rows of this kind."""
    options = queue_stats.DEAD[name].model._meta
    return request.user.has_perm(f"{options.app_label}.view_{options.model_name}")


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
