"""Numbers and spans as people read them, on pages and in mails."""

from __future__ import annotations

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def number(value: float | None, metric: str) -> str:
    if value is None:
        return "—"
    return f"{value * 100:.2f} %" if metric == "engagement_rate" else str(intcomma(value))


def seconds_said(seconds: float) -> str:
    """A span for people, to two figures or so."""
    if seconds < 1:
        return _("under a second")
    for size, one in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            amount = seconds / size
            return f"{amount:.1f} {one}" if amount < 10 else f"{amount:.0f} {one}"
    return ngettext("%(count)d second", "%(count)d seconds", int(seconds)) % {"count": int(seconds)}
