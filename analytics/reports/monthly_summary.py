"""A month in numbers, as people read them in a mail; what isn't known is said, and nothing stands in for it.

The numbers are those of `GET /v1/analytics` for the month's days in the workspace's time zone. A number is compared
with the month before only where it is known of every post of both: what its platform never gives to anybody is left
out of both months and named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics import queries
from analytics.periods import Period, local_midnight
from analytics.reports.number_format import number, seconds_said
from analytics.reports.punctuality_and_top_posts import Doing, doing
from pipeline.models import Bucket

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.models import Workspace
    from analytics.aggregate import Figures

LINES: Final = 12
"""Of one list; it says how many more there are."""
BEST: Final = 5
MEASURED: Final = ("impressions", "views", "engagements")
_RANKED_BY: Final = ("engagements", "views", "impressions")
_NAMES: Final = {
    "impressions": gettext_lazy("Impressions"),
    "views": gettext_lazy("Views"),
    "engagements": gettext_lazy("Engagements"),
}


@dataclass(frozen=True)
class SummaryPart:
    name: str
    figures: Figures

    @property
    def published(self) -> int:
        return int(self.figures.metrics["published"] or 0)

    @property
    def known(self) -> int:
        """Posts of the month of which any number is known."""
        return round((self.figures.coverage or 0.0) * self.published)


@dataclass(frozen=True)
class Month:
    """Everything that the summary says, before it is put into words."""

    first: date
    totals: Figures
    outlets: tuple[SummaryPart, ...]
    content_types: tuple[SummaryPart, ...]

    @property
    def has_publications(self) -> bool:
        return bool(self.totals.metrics["published"] or self.totals.metrics["failed"])

    def is_covered(self, metric: str) -> bool:
        """Known of every post, but for those of platforms that give it to nobody."""
        return self.totals.metrics[metric] is not None and all(
            part.figures.availability.get(metric) == "unsupported"
            or (part.figures.metrics[metric] is not None and part.known == part.published)
            for part in self.outlets
            if part.published
        )


@dataclass(frozen=True)
class Summary:
    title: str
    text: str
    path: str
    """Of the page that shows the same dates, below the workspace's address."""


def summary_of(workspace: Workspace, first: date) -> Summary | None:
    """Of the month that begins with that day; None where nothing was published in it and nothing failed."""
    zone = ZoneInfo(workspace.timezone)
    question = queries.Question(
        workspace.pk, test=False, period=period_of(first, zone), group_by=("outlet", "content_type")
    )
    month = read(question, first)
    if not month.has_publications:
        return None
    earlier = month_before(first)
    before = read(replace(question, period=period_of(earlier, zone)), earlier)
    ranked_by = next((name for name in _RANKED_BY if month.totals.metrics[name] is not None), "")
    did = doing(question, ranked_by or "engagements")
    sections = [
        [_headline(month, before), *_compared(month, before)],
        _missing(month),
        _parts(_("By outlet"), month.outlets),
        _parts(_("By kind"), month.content_types),
        _best(did, ranked_by),
        _punctuality(month, did),
    ]
    name = month_said(first)
    count = month.totals.metrics["published"] or 0
    last = month_after(first) - timedelta(days=1)
    return Summary(
        ngettext(
            "%(count)s post in %(month)s from %(workspace)s",
            "%(count)s posts in %(month)s from %(workspace)s",
            int(count),
        )
        % {"count": number(count, ""), "month": name, "workspace": workspace.name},
        "\n\n".join("\n".join(lines) for lines in sections if lines),
        f"analytics?range=chosen&start={first}&end={last}",
    )


def read(question: queries.Question, first: date) -> Month:
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
    return Month(first, by_outlet.totals, _largest_first(outlets), _largest_first(types))


# --- Months ----------------------------------------------------------------------------------------------------------


def month_before(first: date) -> date:
    return (first - timedelta(days=1)).replace(day=1)


def month_after(first: date) -> date:
    return (first + timedelta(days=31)).replace(day=1)


def period_of(first: date, zone: ZoneInfo) -> Period:
    """That month by the clocks there."""
    return Period(local_midnight(first, zone), local_midnight(month_after(first), zone), "day", zone)


def month_said(first: date) -> str:
    return f"{first:%B %Y}"


# --- Words -----------------------------------------------------------------------------------------------------------


def _largest_first(parts: Sequence[SummaryPart]) -> tuple[SummaryPart, ...]:
    return tuple(sorted(parts, key=lambda part: (-part.published, part.name)))


def _headline(month: Month, before: Month) -> str:
    if before.has_publications:
        return _("%(month)s, compared with %(before)s:") % {
            "month": month_said(month.first),
            "before": month_said(before.first),
        }
    return _("%(month)s (no posts in %(before)s):") % {
        "month": month_said(month.first),
        "before": month_said(before.first),
    }


def _compared(month: Month, before: Month) -> list[str]:
    lines = []
    for metric, name in (("published", _("Published")), ("failed", _("Failed"))):
        said = number(month.totals.metrics[metric] or 0, metric)
        if before.has_publications:
            said += _(" (%(number)s before)") % {"number": number(before.totals.metrics[metric] or 0, metric)}
        lines.append(f"- {name}: {said}")
    for metric in MEASURED:
        value = month.totals.metrics[metric]
        if value is None:
            continue
        said = number(value, metric)
        if month.is_covered(metric) and before.is_covered(metric):
            said += _(" (%(number)s before)") % {"number": number(before.totals.metrics[metric], metric)}
        elif before.totals.metrics[metric] is not None:
            said += _(" (not compared: missing data)")
        lines.append(f"- {_NAMES[metric]}: {said}")
    return lines


def _missing(month: Month) -> list[str]:
    """Which posts no number is known of, and which numbers whose platform never gives."""
    lines = [
        ngettext(
            "- No data from %(outlet)s: %(missing)s of %(count)s post",
            "- No data from %(outlet)s: %(missing)s of %(count)s posts",
            part.published,
        )
        % {
            "outlet": part.name,
            "missing": number(part.published - part.known, ""),
            "count": number(part.published, ""),
        }
        for part in month.outlets
        if part.published > part.known
    ]
    for metric in MEASURED:
        silent = [part.name for part in month.outlets if part.known and part.figures.metrics[metric] is None]
        if silent:
            lines.append(
                _("- %(metric)s not provided by: %(outlets)s")
                % {"metric": str(_NAMES[metric]), "outlets": ", ".join(silent[:LINES])}
            )
    return [_("Missing data, not in any total:"), *_cut(lines)] if lines else []


def _parts(title: str, parts: Sequence[SummaryPart]) -> list[str]:
    lines = []
    for part in parts:
        told = [
            ngettext("%(count)s published", "%(count)s published", part.published)
            % {"count": number(part.published, "")}
        ]
        failed = part.figures.metrics["failed"]
        if failed:
            told.append(_("%(count)s failed") % {"count": number(failed, "")})
        told += [
            f"{number(value, metric)} {str(_NAMES[metric]).lower()}"
            for metric in MEASURED
            if (value := part.figures.metrics[metric]) is not None
        ]
        if part.published > part.known:
            told.append(
                _("no data from %(missing)s of %(count)s")
                % {
                    "missing": number(part.published - part.known, ""),
                    "count": number(part.published, ""),
                }
            )
        lines.append(f"- {part.name}: {', '.join(told)}")
    return [f"{title}:", *_cut(lines)] if lines else []


def _best(did: Doing, metric: str) -> list[str]:
    if not metric or not did.best:
        return []
    lines = [
        f"- {_one_line(post.title) or _('Untitled')} ({post.outlet}): {number(post.value, metric)}"
        for post in did.best[:BEST]
    ]
    return [_("Best posts by %(metric)s:") % {"metric": str(_NAMES[metric]).lower()}, *lines]


def _punctuality(month: Month, did: Doing) -> list[str]:
    lines = []
    late = did.lateness
    if late is not None:
        lines += [
            _("- Published on time: %(percent)s %%") % {"percent": late.on_time_percent},
            _("- Median delay: %(span)s") % {"span": seconds_said(late.median)},
            _("- Delay, 95th percentile: %(span)s") % {"span": seconds_said(late.worst_twentieth)},
        ]
    failed, published = month.totals.metrics["failed"] or 0, month.totals.metrics["published"] or 0
    lines.append(
        _("- Failed publications: %(failed)s of %(all)s")
        % {"failed": number(failed, ""), "all": number(failed + published, "")}
    )
    if did.made or did.not_made:
        lines.append(
            _("- Failed items: %(failed)s of %(all)s")
            % {"failed": number(did.not_made, ""), "all": number(did.made + did.not_made, "")}
        )
    title = _("Delivery:") if did.is_whole else _("Delivery (newest 5,000):")
    return [title, *lines]


def _cut(lines: Sequence[str]) -> list[str]:
    more = len(lines) - LINES
    if more <= 0:
        return list(lines)
    return [*lines[:LINES], ngettext("- And %(count)d more", "- And %(count)d more", more) % {"count": more}]


def _one_line(text: str) -> str:
    """A title may hold what would end a line of the mail."""
    said = " ".join(text.split())
    return f"{said[:79]}…" if len(said) > 80 else said
