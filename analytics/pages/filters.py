"""Provides the form of the analytics page's filters, which its URL keeps, and the question that they ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import timezones
from analytics import limits
from analytics.aggregate import METRICS
from analytics.calendar_periods import Period, local_midnight
from analytics.models import Attribution
from analytics.queries import Question
from config.core.ids import decode, encode
from pipeline.models import Bucket, Outlet

if TYPE_CHECKING:
    from accounts.models import Workspace

MAX_OUTLETS_OFFERED: Final = 200
"""The most outlets that the form offers."""
MAX_DAYS_BY_HOUR: Final = 14
"""The longest range by hour, which has about as many points as the longest one by day."""
WEEKLY_FROM_DAYS: Final = 93
"""The days from which on a range is shown by weeks if no interval was chosen."""
FIRST_YEAR: Final = 1971
"""The first year that begins after 1970-01-01 in UTC in every zone, because buckets count seconds since then."""
LAST_YEAR: Final = 2999
"""A year far from the last day of `datetime`, so that the end of any day in any zone can be computed."""
CHOSEN: Final = "chosen"
"""The range whose days are those of `start` and `end`."""
SHORT_RANGES: Final = {
    "7": gettext_lazy("7 days"),
    "30": gettext_lazy("30 days"),
    "90": gettext_lazy("90 days"),
}
"""The ranges that are always shown; the others are below *Custom*."""
RANGES: Final = {
    "1": gettext_lazy("Today"),
    **SHORT_RANGES,
    "365": gettext_lazy("365 days"),
    CHOSEN: gettext_lazy("Custom"),
}
DEFAULT_RANGE: Final = "30"
INTERVALS: Final = {
    "hour": gettext_lazy("By hour"),
    "day": gettext_lazy("By day"),
    "week": gettext_lazy("By week"),
    "month": gettext_lazy("By month"),
}
METRIC_NAMES: Final = {
    "published": gettext_lazy("Published"),
    "failed": gettext_lazy("Failed"),
    "impressions": gettext_lazy("Impressions"),
    "views": gettext_lazy("Views"),
    "likes": gettext_lazy("Likes"),
    "comments": gettext_lazy("Comments"),
    "shares": gettext_lazy("Shares"),
    "clicks": gettext_lazy("Clicks"),
    "engagements": gettext_lazy("Engagements"),
    "engagement_rate": gettext_lazy("Engagement rate"),
}
CUSTOMISE_FIELDS: Final = ("content_type", "metric", "interval", "tz", "attribution")
"""The fields below *Customise*."""
_DAY_INPUT: Final = {"type": "date"}


class AnalyticsFilter(forms.Form):
    """The filters of the analytics page; the range `chosen` takes its days from `start` and `end`."""

    range = forms.ChoiceField(label=gettext_lazy("Range"), required=False, choices=[*RANGES.items()])
    start = forms.DateField(
        label=gettext_lazy("From"),
        required=False,
        widget=forms.DateInput(attrs=_DAY_INPUT, format="%Y-%m-%d"),
    )
    end = forms.DateField(
        label=gettext_lazy("To"),
        required=False,
        widget=forms.DateInput(attrs=_DAY_INPUT, format="%Y-%m-%d"),
    )
    outlet = forms.ChoiceField(
        label=gettext_lazy("Outlet"), required=False, widget=forms.Select(attrs={"data-submit": True})
    )
    content_type = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=[("", gettext_lazy("All kinds")), *Bucket.choices],
    )
    metric = forms.ChoiceField(
        label=gettext_lazy("Metric"),
        required=False,
        choices=[("", gettext_lazy("Automatic")), *((name, METRIC_NAMES[name]) for name in METRICS)],
    )
    interval = forms.ChoiceField(
        label=gettext_lazy("Interval"),
        required=False,
        choices=[("", gettext_lazy("Auto")), *INTERVALS.items()],
    )
    tz = forms.ChoiceField(label=gettext_lazy("Time zone"), required=False)
    attribution = forms.ChoiceField(
        label=gettext_lazy("Attribute to"), required=False, choices=Attribution.choices
    )

    def __init__(self, *args: Any, workspace: Workspace, now: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.workspace = workspace
        self.now = now
        fields: Any = self.fields
        rows = Outlet.objects.of(workspace).filter(deleted_at=None).order_by("name", "id")
        outlets = [
            (encode("out", outlet_id), name)
            for outlet_id, name in rows.values_list("id", "name")[:MAX_OUTLETS_OFFERED]
        ]
        # Accept an outlet by its id even if it is beyond the list's end or was disconnected since.
        chosen_id = self.data.get("outlet", "")
        if decode("out", chosen_id) is not None and chosen_id not in dict(outlets):
            outlets.append((chosen_id, _("Another outlet")))
        fields["outlet"].choices = [("", _("All outlets")), *outlets]
        chosen_zone = self.data.get("tz", "")
        fields["tz"].choices = timezones.timezone_choices(
            workspace.timezone, chosen_zone if timezones.is_known(chosen_zone) else ""
        )

    def customise_fields(self) -> list[forms.BoundField]:
        return [self[name] for name in CUSTOMISE_FIELDS]

    def is_set(self, name: str) -> bool:
        """Return whether the field differs from its default."""
        defaults = {"tz": self.workspace.timezone, "attribution": Attribution.RECEIVED}
        return self.data.get(name, "") not in {"", defaults.get(name, "")}

    def count_set_fields(self) -> int:
        """Count the fields below *Customise* that differ from their defaults."""
        return sum(self.is_set(name) for name in CUSTOMISE_FIELDS)

    def has_customise_errors(self) -> bool:
        return any(name in self.errors for name in CUSTOMISE_FIELDS)

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = {**(super().clean() or {})}
        if self.errors:
            return data
        data["period"] = self._period(data)
        return data

    def _period(self, data: dict[str, Any]) -> Period:
        """Return the chosen period; each reason why it is impossible is added as an error of its field.

        No period can be computed from a day out of range, so the result is empty then.
        """
        zone = ZoneInfo(data["tz"] or self.workspace.timezone)
        today = self.now.astimezone(zone).date()
        range_name = data["range"] or (CHOSEN if data["start"] else DEFAULT_RANGE)
        if range_name == CHOSEN:
            if data["start"] is None:
                self.add_error("start", _("Enter a start date."))
            last_day = data["end"] or today
            first_day = data["start"] or last_day
        else:
            last_day = today
            first_day = today - timedelta(days=int(range_name) - 1)
        days = (last_day - first_day).days + 1
        if days < 1:
            self.add_error("end", _("The end is before the start."))
        elif days > limits.ANALYTICS_DAYS:
            self.add_error("end", _("Choose at most %(days)s days.") % {"days": limits.ANALYTICS_DAYS})
        interval = data["interval"] or (
            "hour" if days == 1 else "week" if days >= WEEKLY_FROM_DAYS else "day"
        )
        if interval == "hour" and days > MAX_DAYS_BY_HOUR:
            self.add_error(
                "interval",
                _("Hourly data covers at most %(days)s days.") % {"days": MAX_DAYS_BY_HOUR},
            )
        out_of_range = [
            name
            for name, day in (("start", first_day), ("end", last_day))
            if not FIRST_YEAR <= day.year <= LAST_YEAR
        ]
        for name in out_of_range:
            # Without a start, its day was taken from the end, which gets the error.
            if data[name] is not None:
                self.add_error(name, _("Choose a day in range."))
        if out_of_range:
            return Period(self.now.astimezone(UTC), self.now.astimezone(UTC), "day", zone)
        return Period(
            local_midnight(first_day, zone),
            local_midnight(last_day + timedelta(days=1), zone),
            interval,
            zone,
        )

    def question(self) -> Question:
        """Return the question that the filters ask."""
        data = self.cleaned_data
        outlet_id = decode("out", data["outlet"]) if data["outlet"] else None
        return Question(
            workspace_id=self.workspace.pk,
            test=False,
            period=data["period"],
            attribution=data["attribution"] or Attribution.RECEIVED,
            outlets=None if outlet_id is None else (outlet_id,),
            content_types=(data["content_type"],) if data["content_type"] else None,
        )
