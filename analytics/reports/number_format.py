"""Formats numbers and durations for people, on pages and in mails."""

from __future__ import annotations

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def format_number(value: float | None, metric: str = "") -> str:
    """Return the value with thousands separators, a rate as a percentage, or a dash for `None`."""
    if value is None:
        return "—"
    return f"{value * 100:.2f} %" if metric == "engagement_rate" else str(intcomma(value))


def format_change(percent: int) -> str:
    """Return a change in percent with its sign."""
    return f"{percent:+d} %".replace("-", "\u2212") if percent else "0 %"


def format_seconds(seconds: float) -> str:
    """Return the duration in its largest unit, with at most one decimal."""
    if seconds < 1:
        return _("under a second")
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.1f} {unit}" if amount < 10 else f"{amount:.0f} {unit}"
    return ngettext("%(count)d second", "%(count)d seconds", int(seconds)) % {"count": int(seconds)}
