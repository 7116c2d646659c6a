"""Builds the controls above the analytics page: links to ranges that keep the other filters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.utils.translation import gettext as _

from analytics.pages.charts import format_day
from analytics.pages.filters import CHOSEN, CUSTOMISE_FIELDS, RANGES, SHORT_RANGES

if TYPE_CHECKING:
    from analytics.pages.filters import AnalyticsFilter

_RANGE_FIELDS: Final = ("range", "start", "end")


@dataclass(frozen=True)
class ControlLink:
    """A link to the same page with another query."""

    label: str
    query: str
    is_current: bool


@dataclass(frozen=True)
class Controls:
    """The links and hidden fields of the controls."""

    ranges: tuple[ControlLink, ...]
    other_ranges: tuple[ControlLink, ...]
    custom_label: str
    """The chosen days, the range if it is one of `other_ranges`, or else *Custom*."""
    is_custom: bool
    """Whether the range isn't one of `ranges`."""
    has_days: bool
    """Whether the range is of days that somebody chose."""
    kept: tuple[tuple[str, str], ...]
    """Names and values of the filters that another range keeps."""
    reset: str
    """The query with nothing set below *Customise*."""


def controls_of(form: AnalyticsFilter) -> Controls:
    """Return the controls of the form."""
    current = form.data["range"]
    kept = kept_filters(form, ("outlet", *CUSTOMISE_FIELDS))
    links = {
        name: ControlLink(str(label), urlencode([("range", name), *kept]), name == current)
        for name, label in RANGES.items()
        if name != CHOSEN
    }
    return Controls(
        ranges=tuple(links[name] for name in SHORT_RANGES),
        other_ranges=tuple(link for name, link in links.items() if name not in SHORT_RANGES),
        custom_label=_custom_label(form, current),
        is_custom=current not in SHORT_RANGES,
        has_days=current == CHOSEN,
        kept=kept,
        reset=urlencode(kept_filters(form, (*_RANGE_FIELDS, "outlet"))),
    )


def kept_filters(form: AnalyticsFilter, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the fields that are set, with their values."""
    return tuple((name, form.data[name]) for name in names if form.is_set(name))


def metric_query(form: AnalyticsFilter, metric: str) -> str:
    """Return the query that shows another metric with the same filters."""
    others = tuple(name for name in CUSTOMISE_FIELDS if name != "metric")
    return urlencode([*kept_filters(form, (*_RANGE_FIELDS, "outlet", *others)), ("metric", metric)])


def _custom_label(form: AnalyticsFilter, current: str) -> str:
    if current in RANGES and current not in {CHOSEN, *SHORT_RANGES}:
        return str(RANGES[current])
    if current != CHOSEN or not form.is_valid():
        return _("Custom")
    period = form.cleaned_data["period"]
    first, last = (
        format_day(moment.astimezone(period.zone).date())
        for moment in (period.start, period.end - timedelta(microseconds=1))
    )
    return first if first == last else f"{first} – {last}"
