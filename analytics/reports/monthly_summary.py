"""Composes the text of a month's summary mail, which names unknown numbers as missing.

The numbers are those of `GET /v1/analytics` for the month's days in the workspace's time zone. A number is
compared with the month before only if it is known of every post of both months; platforms that never give it
don't count, and are named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics import queries
from analytics.calendar_periods import Period, local_midnight
from analytics.reports.number_format import format_number, format_seconds
from analytics.reports.punctuality_and_top_posts import MAX_ROWS_READ, Performance, compute_performance
from pipeline.models import Bucket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.models import Workspace
    from analytics.aggregate import Figures

MAX_LINES: Final = 12
"""The most lines of one list, which says how many more there are."""
MAX_NAMES_IN_LINE: Final = 12
"""The most names of outlets in one line, which says how many more there are."""
MAX_BEST_POSTS: Final = 5
SUMMARY_METRICS: Final = ("impressions", "views", "engagements")
_RANKING_METRICS: Final = ("engagements", "views", "impressions")
"""The best posts are those by the first of these that is known."""
_NAMES: Final = {
    "impressions": gettext_lazy("Impressions"),
    "views": gettext_lazy("Views"),
    "engagements": gettext_lazy("Engagements"),
}


@dataclass(frozen=True)
class SummaryPart:
    """The month's numbers of one outlet, or of one kind of content."""

    name: str
    figures: Figures

    @property
    def published(self) -> int:
        return int(self.figures.metrics["published"] or 0)

    @property
    def posts_with_data(self) -> int:
        """The number of the part's posts with any known number."""
        return round((self.figures.coverage or 0.0) * self.published)


@dataclass(frozen=True)
class MonthFigures:
    """The numbers of a month that the summary states."""

    first_day: date
    totals: Figures
    outlets: tuple[SummaryPart, ...]
    content_types: tuple[SummaryPart, ...]

    @property
    def has_publications(self) -> bool:
        """Whether anything was published or failed."""
        return bool(self.totals.metrics["published"] or self.totals.metrics["failed"])

    def is_covered(self, metric: str) -> bool:
        """Return whether the metric is known of every post, except on platforms that never give it."""
        return self.totals.metrics[metric] is not None and all(
            part.figures.availability.get(metric) == "unsupported"
            or (part.figures.metrics[metric] is not None and part.posts_with_data == part.published)
            for part in self.outlets
            if part.published
        )


@dataclass(frozen=True)
class Summary:
    """The texts of a month's notice."""

    title: str
    text: str
    path: str
    """The address of the page with the same dates, relative to the workspace's."""


def compose_summary(workspace: Workspace, first_day: date) -> Summary | None:
    """Return the summary of the month beginning with `first_day`, or `None` if nothing was published or failed."""
    zone = ZoneInfo(workspace.timezone)
    question = queries.Question(
        workspace.pk, test=False, period=period_of(first_day, zone), group_by=("outlet", "content_type")
    )
    month = read_month(question, first_day)
    if not month.has_publications:
        return None
    earlier = month_before(first_day)
    before = read_month(replace(question, period=period_of(earlier, zone)), earlier)
    ranked_by = next((name for name in _RANKING_METRICS if month.totals.metrics[name] is not None), "")
    results = compute_performance(question, ranked_by or "engagements")
    sections = [
        [_headline(month, before), *_comparison_lines(month, before)],
        _missing_data_lines(month),
        _part_lines(_("By outlet"), month.outlets),
        _part_lines(_("By kind"), month.content_types),
        _best_post_lines(results, ranked_by),
        _delivery_lines(month, results),
    ]
    name = format_month(first_day)
    count = month.totals.metrics["published"] or 0
    last = month_after(first_day) - timedelta(days=1)
    return Summary(
        ngettext(
            "%(count)s post in %(month)s from %(workspace)s",
            "%(count)s posts in %(month)s from %(workspace)s",
            int(count),
        )
        % {"count": format_number(count), "month": name, "workspace": workspace.name},
        "\n\n".join("\n".join(lines) for lines in sections if lines),
        f"analytics?range=chosen&start={first_day}&end={last}",
    )


def read_month(question: queries.Question, first_day: date) -> MonthFigures:
    """Return the figures of the month that `question` asks about, the largest outlets and kinds first."""
    by_outlet, by_type = queries.answers(question, [("outlet",), ("content_type",)])
    outlets = tuple(
        SummaryPart(row.dimensions.outlet.name, row.figures)
        for row in by_outlet.rows
        if row.dimensions.outlet
    )
    types = tuple(
        SummaryPart(str(dict(Bucket.choices).get(kind, kind)), row.figures)
        for row in by_type.rows
        if (kind := row.dimensions.content_type or "")
    )
    return MonthFigures(first_day, by_outlet.totals, _largest_first(outlets), _largest_first(types))


# --- Months ----------------------------------------------------------------------------------------------------------


def month_before(first_day: date) -> date:
    return (first_day - timedelta(days=1)).replace(day=1)


def month_after(first_day: date) -> date:
    return (first_day + timedelta(days=31)).replace(day=1)


def period_of(first_day: date, zone: ZoneInfo) -> Period:
    """Return the month as a period in the time zone."""
    return Period(local_midnight(first_day, zone), local_midnight(month_after(first_day), zone), "day", zone)


def format_month(first_day: date) -> str:
    return f"{first_day:%B %Y}"


# --- Lines of the mail -----------------------------------------------------------------------------------------------


def _largest_first(parts: Sequence[SummaryPart]) -> tuple[SummaryPart, ...]:
    return tuple(sorted(parts, key=lambda part: (-part.published, part.name)))


def _headline(month: MonthFigures, before: MonthFigures) -> str:
    if before.has_publications:
        return _("%(month)s, compared with %(before)s:") % {
            "month": format_month(month.first_day),
            "before": format_month(before.first_day),
        }
    return _("%(month)s (no posts in %(before)s):") % {
        "month": format_month(month.first_day),
        "before": format_month(before.first_day),
    }


def _comparison_lines(month: MonthFigures, before: MonthFigures) -> list[str]:
    """Return a line for each known number, compared with the month before if both are complete."""
    lines = []
    for metric, name in (("published", _("Published")), ("failed", _("Failed"))):
        text = format_number(month.totals.metrics[metric] or 0, metric)
        if before.has_publications:
            text += _(" (%(number)s before)") % {
                "number": format_number(before.totals.metrics[metric] or 0, metric)
            }
        lines.append(f"- {name}: {text}")
    for metric in SUMMARY_METRICS:
        value = month.totals.metrics[metric]
        if value is None:
            continue
        text = format_number(value, metric)
        if month.is_covered(metric) and before.is_covered(metric):
            text += _(" (%(number)s before)") % {
                "number": format_number(before.totals.metrics[metric], metric)
            }
        elif before.totals.metrics[metric] is not None:
            text += _(" (not compared: missing data)")
        lines.append(f"- {_NAMES[metric]}: {text}")
    return lines


def _missing_data_lines(month: MonthFigures) -> list[str]:
    """Return lines about posts without numbers and metrics that outlets lack, or none if all is known."""
    lines = [
        ngettext(
            "- No data from %(outlet)s: %(missing)s of %(count)s post",
            "- No data from %(outlet)s: %(missing)s of %(count)s posts",
            part.published,
        )
        % {
            "outlet": part.name,
            "missing": format_number(part.published - part.posts_with_data),
            "count": format_number(part.published),
        }
        for part in month.outlets
        if part.published > part.posts_with_data
    ]
    for metric in SUMMARY_METRICS:
        outlets_without = [
            part.name
            for part in month.outlets
            if part.posts_with_data and part.figures.metrics[metric] is None
        ]
        if outlets_without:
            lines.append(
                _("- %(metric)s not provided by: %(outlets)s")
                % {"metric": str(_NAMES[metric]), "outlets": _join_names(outlets_without)}
            )
    return [_("Missing data, not in any total:"), *_limit_lines(lines)] if lines else []


def _part_lines(title: str, parts: Sequence[SummaryPart]) -> list[str]:
    """Return the title and a line for each part, without its unknown numbers, or none without parts."""
    lines = []
    for part in parts:
        numbers = [
            ngettext("%(count)s published", "%(count)s published", part.published)
            % {"count": format_number(part.published)}
        ]
        failed = part.figures.metrics["failed"]
        if failed:
            numbers.append(_("%(count)s failed") % {"count": format_number(failed)})
        numbers += [
            f"{format_number(value, metric)} {str(_NAMES[metric]).lower()}"
            for metric in SUMMARY_METRICS
            if (value := part.figures.metrics[metric]) is not None
        ]
        if part.published > part.posts_with_data:
            numbers.append(
                _("no data from %(missing)s of %(count)s")
                % {
                    "missing": format_number(part.published - part.posts_with_data),
                    "count": format_number(part.published),
                }
            )
        lines.append(f"- {part.name}: {', '.join(numbers)}")
    return [f"{title}:", *_limit_lines(lines)] if lines else []


def _best_post_lines(results: Performance, metric: str) -> list[str]:
    """Return a title and a line for each of the best posts, or none if no post has a known number."""
    if not metric or not results.best:
        return []
    lines = [
        f"- {_one_line(post.title) or _('Untitled')} ({post.outlet}): {format_number(post.value, metric)}"
        for post in results.best[:MAX_BEST_POSTS]
    ]
    return [_("Best posts by %(metric)s:") % {"metric": str(_NAMES[metric]).lower()}, *lines]


def _delivery_lines(month: MonthFigures, results: Performance) -> list[str]:
    """Return lines about delays and failures, with a title that says if only the newest were read."""
    lines = []
    lateness = results.lateness
    if lateness is not None:
        lines += [
            _("- Published on time: %(percent)s %%") % {"percent": lateness.on_time_percent},
            _("- Median delay: %(span)s") % {"span": format_seconds(lateness.median)},
            _("- Delay, 95th percentile: %(span)s") % {"span": format_seconds(lateness.worst_twentieth)},
        ]
    failed, published = month.totals.metrics["failed"] or 0, month.totals.metrics["published"] or 0
    lines.append(
        _("- Failed publications: %(failed)s of %(all)s")
        % {"failed": format_number(failed), "all": format_number(failed + published)}
    )
    if results.made or results.not_made:
        lines.append(
            _("- Failed items: %(failed)s of %(all)s")
            % {
                "failed": format_number(results.not_made),
                "all": format_number(results.made + results.not_made),
            }
        )
    title = (
        _("Delivery:")
        if results.is_complete
        else _("Delivery (newest %(count)s):") % {"count": format_number(MAX_ROWS_READ)}
    )
    return [title, *lines]


def _join_names(names: Sequence[str]) -> str:
    """Return the first names with commas between them, and how many more there are, if any."""
    listed = ", ".join(names[:MAX_NAMES_IN_LINE])
    hidden_count = len(names) - MAX_NAMES_IN_LINE
    if hidden_count <= 0:
        return listed
    return ngettext("%(names)s and %(count)d more", "%(names)s and %(count)d more", hidden_count) % {
        "names": listed,
        "count": hidden_count,
    }


def _limit_lines(lines: Sequence[str]) -> list[str]:
    """Return the first `MAX_LINES` lines, and a line that says how many more there are, if any."""
    hidden_count = len(lines) - MAX_LINES
    if hidden_count <= 0:
        return list(lines)
    return [
        *lines[:MAX_LINES],
        ngettext("- And %(count)d more", "- And %(count)d more", hidden_count) % {"count": hidden_count},
    ]


def _one_line(text: str) -> str:
    """Return the text in one line, cut to 80 characters."""
    line = " ".join(text.split())
    return f"{line[:79]}…" if len(line) > 80 else line
