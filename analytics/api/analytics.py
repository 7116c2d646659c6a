"""Serves GET /analytics: counts and metrics by outlet, content type and date."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from zoneinfo import ZoneInfo

from drf_spectacular.utils import extend_schema

from accounts.api.base import WorkspaceResource, openapi_parameters, openapi_responses
from analytics import limits, queries
from analytics.api.csv_renderer import CsvRenderer
from analytics.api.response_schemas import AnalyticsSerializer
from analytics.calendar_periods import INTERVALS, Period, local_midnight, zone_names
from analytics.models import Attribution
from analytics.queries import DEFAULT_DIMENSIONS, DIMENSIONS
from analytics.serialize import figures, serialize_row
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.fields import unknown_names
from config.core.api.jsonio import DumpedJson, JsonRenderer
from config.core.api.query_params import (
    DATE_OR_MOMENT,
    EXCLUSIVE_END_DESCRIPTION,
    Parameter,
    choice,
    choices,
    explain_invalid_date,
    public_id,
    read_query,
    restore_plus,
)
from config.core.clock import utc_now
from config.core.datetimes import EMPTY_RANGE_MESSAGE, format_utc, format_utc_or_none, read_moment
from config.core.errors import Invalid
from config.core.json_encoding import dump
from pipeline.models import Bucket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rest_framework.renderers import BaseRenderer
    from rest_framework.request import Request
    from rest_framework.response import Response

    from accounts.access.authentication import Caller

DEFAULT_DAYS: Final = timedelta(days=30)
_YEARS: Final = range(1970, 3000)


# --- Request ---------------------------------------------------------------------------------------------------------


def _read_day_or_moment(text: str) -> date | datetime:
    """Parse a date or a moment. A date stays one, because the moment it starts at depends on `tz`."""
    parsed: date | datetime | None
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        try:
            parsed = date.fromisoformat(text)
        except ValueError:
            parsed = None
    else:
        parsed = read_moment(restore_plus(text))
    if parsed is None:
        raise ValueError(explain_invalid_date(text))
    if parsed.year not in _YEARS:
        message = f"Give a date of the years {_YEARS.start} to {_YEARS.stop - 1}."
        raise ValueError(message)
    return parsed


def _read_zone(text: str) -> ZoneInfo:
    if text not in zone_names():
        message = "Give a time zone by its IANA name, such as UTC or Europe/Berlin."
        raise ValueError(message)
    return ZoneInfo(text)


def _read_dimensions(text: str) -> tuple[str, ...]:
    names = text.split(",")
    interval_names = [name for name in names if name in INTERVALS]
    if interval_names:
        message = f"Group by date, and give interval={interval_names[0]}."
        raise ValueError(message)
    unknown = unknown_names(names, DIMENSIONS, noun="dimension")
    if unknown:
        raise ValueError(" ".join(detail.message for detail in unknown))
    return tuple(name for name in DIMENSIONS if name in names)


def _repeatable(parameter: Parameter, description: str) -> Parameter:
    schema = {"type": "array", "items": parameter.schema}
    return Parameter(parameter.read, is_repeatable=True, description=description, schema=schema)


def _with_description(parameter: Parameter, description: str) -> Parameter:
    return Parameter(parameter.read, parameter.is_repeatable, description, parameter.schema)


_DIMENSION: Final = "|".join(DIMENSIONS)
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "from": Parameter(
        _read_day_or_moment,
        description="A date in `tz`, or an RFC 3339 time with an offset. Default: 30 days before `to`.",
        schema=DATE_OR_MOMENT,
    ),
    "to": Parameter(
        _read_day_or_moment,
        description=f"{EXCLUSIVE_END_DESCRIPTION} Default: the end of today in `tz`. At most "
        f" {limits.ANALYTICS_DAYS} days after `from`.",
        schema=DATE_OR_MOMENT,
    ),
    "interval": _with_description(
        choice(*INTERVALS), "How long a date bucket is; weeks start on Monday. Default: day."
    ),
    "tz": Parameter(
        _read_zone,
        description="The IANA name of the time zone whose dates are meant, such as Europe/Berlin. Default: UTC.",
    ),
    "outlet": _repeatable(public_id("out"), "Only these outlets."),
    "content_type": _with_description(choices(*Bucket.values), "Only these buckets."),
    "group_by": Parameter(
        _read_dimensions,
        description=f"The dimensions of a row, with commas between: {', '.join(DIMENSIONS)}. Default: "
        f"{','.join(DEFAULT_DIMENSIONS)}.",
        schema={"type": "string", "pattern": f"^({_DIMENSION})(,({_DIMENSION}))*$"},
    ),
    "attribution": _with_description(
        choice(*Attribution.values),
        "Which date the platforms' numbers count for: the one on which they were counted (received, the default) or "
        "the one of publication.",
    ),
}


def _read_question(request: Request, caller: Caller, now: datetime) -> queries.Question:
    """Return the question that the request's query asks.

    Raises `Invalid` for a bad query, and for a range that is empty or too long.
    """
    query = read_query(request, PARAMETERS)
    zone: ZoneInfo = query.get("tz") or ZoneInfo("UTC")
    end = _to_moment(query.get("to"), zone) or _end_of_today(now, zone)
    start = _to_moment(query.get("from"), zone) or _default_start(end, zone)
    period = Period(start, end, query.get("interval", "day"), zone)
    if start >= end:
        raise _invalid_end(EMPTY_RANGE_MESSAGE, code="empty_range")
    if period.days > limits.ANALYTICS_DAYS:
        message = f"The range may be {limits.ANALYTICS_DAYS} days long at most; ask for a shorter one."
        raise _invalid_end(message, code="range_too_long")
    return queries.Question(
        workspace_id=caller.workspace.pk,
        test=caller.test,
        period=period,
        group_by=query.get("group_by", DEFAULT_DIMENSIONS),
        attribution=query.get("attribution", "received"),
        outlets=_tuple_or_none(query.get("outlet")),
        content_types=_tuple_or_none(query.get("content_type")),
    )


def _invalid_end(message: str, *, code: str) -> Invalid:
    return Invalid.one("to", code, message)


def _to_moment(day_or_moment: date | datetime | None, zone: ZoneInfo) -> datetime | None:
    return (
        day_or_moment
        if day_or_moment is None or isinstance(day_or_moment, datetime)
        else local_midnight(day_or_moment, zone)
    )


def _end_of_today(now: datetime, zone: ZoneInfo) -> datetime:
    return local_midnight(now.astimezone(zone).date() + timedelta(days=1), zone)


def _default_start(end: datetime, zone: ZoneInfo) -> datetime:
    """Return the same wall-clock time `DEFAULT_DAYS` earlier, even if the clocks were changed in between."""
    wall = end.astimezone(zone).replace(tzinfo=None) - DEFAULT_DAYS
    return wall.replace(tzinfo=zone).astimezone(UTC)


def _tuple_or_none(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


# --- Response --------------------------------------------------------------------------------------------------------


def _body(question: queries.Question) -> dict[str, Any]:
    """Return the response's body."""
    result = queries.answer(question)
    period = question.period
    return {
        "data": [serialize_row(row, question.group_by) for row in result.rows],
        "totals": figures(result.totals),
        "range": {"from": format_utc(period.start), "to": format_utc(period.end)},
        "interval": period.interval,
        "timezone": period.zone.key,
        "fresh_at": format_utc_or_none(result.fresh_at),
    }


_JSON: Final = "application/json"
_CSV: Final = CsvRenderer.media_type


# Of two forms of one answer code generators make a type that fits neither, so the words alone tell of CSV.
_RESPONSES: Final[Mapping[Any, Any]] = {
    (status, _JSON): serializer
    for status, serializer in openapi_responses({200: AnalyticsSerializer}).items()
}


class AnalyticsView(WorkspaceResource):
    scopes: ClassVar[Mapping[str, str | None]] = {"list": "analytics:read"}
    renderer_classes: ClassVar[list[type[BaseRenderer]]] = [JsonRenderer, CsvRenderer]  # type: ignore[misc]
    dimensions: tuple[str, ...] = DEFAULT_DIMENSIONS

    @extend_schema(
        operation_id="get_analytics",
        summary="Counts and metrics by outlet, content type and date",
        tags=["analytics"],
        parameters=openapi_parameters(PARAMETERS),
        responses=_RESPONSES,
    )
    def list(self, request: Request) -> Response:
        """With `Accept: text/csv` the rows of `data` come as CSV, with a column for each reason."""
        question = _read_question(request, self.caller, utc_now())
        self.dimensions = question.group_by
        result = _body(question)
        if getattr(request, "accepted_media_type", _JSON) != _CSV:
            body = DumpedJson(dump(result))
            return respond_with_tag(request, body, tag=weak_tag(body))
        # JSON and CSV of the same answer need different ETags.
        return respond_with_tag(
            request,
            result,
            tag=weak_tag([_CSV, result]),
            headers={"Content-Disposition": 'attachment; filename="analytics.csv"'},
        )
