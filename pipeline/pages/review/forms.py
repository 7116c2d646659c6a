"""What the queue is narrowed to, and what comes with a decision: why, when, and what a further variant should do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.db.models import F, Q, TextField
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core.ids import decode, encode
from pipeline import labels
from pipeline.models import Bucket, GeneratedItemStatus, Outlet
from pipeline.models.generated_item import IS_APPROVED, TO_REVIEW, ChecksOutcome
from pipeline.pages import choices
from pipeline.pages.items.forms import SOURCES_OFFERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.utils.functional import _StrOrPromise, _StrPromise

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem

WAITING, HELD, APPROVED, SCHEDULED, REJECTED = "", "held", "approved", "scheduled", "rejected"
STATUSES: Final[Mapping[str, tuple[_StrOrPromise, Q]]] = {
    WAITING: (labels.TO_REVIEW.label, TO_REVIEW),
    HELD: (
        labels.HELD.label,
        Q(status__in=(GeneratedItemStatus.READY, GeneratedItemStatus.SCHEDULED)) & ~Q(held=""),
    ),
    APPROVED: (
        gettext_lazy("Approved, not scheduled"),
        Q(status=GeneratedItemStatus.READY, held="") & IS_APPROVED,
    ),
    SCHEDULED: (gettext_lazy("Scheduled"), Q(status=GeneratedItemStatus.SCHEDULED)),
    REJECTED: (gettext_lazy("Rejected"), Q(status=GeneratedItemStatus.REJECTED)),
}
_CHECKS: Final[Mapping[str, _StrPromise]] = {
    "failed": gettext_lazy("Failed checks"),
    "warning": gettext_lazy("Warnings"),
    "passed": gettext_lazy("Passed"),
}
_CAME_TO: Final[Mapping[str, tuple[str, ...]]] = {"failed": ("f", "fw"), "warning": ("w", "fw")}
REASONS: Final[tuple[_StrPromise, ...]] = (
    gettext_lazy("Off topic"),
    gettext_lazy("Outdated"),
    gettext_lazy("Inaccurate"),
    gettext_lazy("Off brand"),
    gettext_lazy("Duplicate"),
)
"""Why an item is rejected, one tap each."""


class QueueFilter(forms.Form):
    status = forms.ChoiceField(
        label=gettext_lazy("Status"),
        required=False,
        choices=[(name, label) for name, (label, _of) in STATUSES.items()],
    )
    bucket = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=[("", gettext_lazy("Any kind")), *Bucket.choices],
    )
    source = forms.ChoiceField(label=gettext_lazy("Source"), required=False)
    persona = forms.ChoiceField(label=gettext_lazy("Persona"), required=False)
    outlet = forms.ChoiceField(label=gettext_lazy("Outlet"), required=False)
    check = forms.ChoiceField(
        label=gettext_lazy("Checks"),
        required=False,
        choices=[("", gettext_lazy("All checks")), *_CHECKS.items()],
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        found = choices.sources(workspace, SOURCES_OFFERED)
        asked = self.data.get("source", "")
        if decode("src", asked) is not None and asked not in dict(found):
            found.append((asked, _("Another source")))
        fields["source"].choices = [("", _("Any source")), *found]
        fields["persona"].choices = [("", _("Any persona")), *choices.personas(workspace)]
        outlets = (
            Outlet.objects.of(workspace).filter(deleted_at=None).order_by("id").values_list("id", "name")
        )
        fields["outlet"].choices = [
            ("", _("Any outlet")),
            *((encode("out", key), name) for key, name in outlets),
        ]

    @property
    def status_asked(self) -> str:
        return str(self.cleaned_data.get("status") or WAITING) if self.is_valid() else WAITING

    def narrow(self, rows: QuerySet[GeneratedItem]) -> QuerySet[GeneratedItem]:
        """Those that are like it. The lists within an item are searched as the text that both databases keep them as."""
        given = self.cleaned_data
        rows = rows.filter(STATUSES[given["status"]][1])
        if given["bucket"]:
            rows = rows.filter(bucket=given["bucket"])
        for name, prefix in (("source", "src"), ("persona", "per")):
            if given[name]:
                rows = rows.filter(**{f"{name}_id": decode(prefix, given[name])})
        if given["outlet"]:
            rows = rows.alias(outlets_text=Cast("outlets", TextField()))
            rows = rows.filter(outlets_text__contains=f'"{given["outlet"]}"')
        return _of_checks(rows, given["check"]) if given["check"] else rows


def _of_checks(rows: QuerySet[GeneratedItem], asked: str) -> QuerySet[GeneratedItem]:
    """Those that are few are found by their index; of all the others the newest are soon found without."""
    rows = rows.filter(checks_revision=F("revision"))
    if asked in _CAME_TO:
        return rows.alias(checks_came_to=ChecksOutcome("checks")).filter(checks_came_to__in=_CAME_TO[asked])
    rows = rows.alias(checks_text=Cast("checks", TextField()))
    failed, warning = (Q(checks_text__contains=f'"outcome": "{one}"') for one in ("failed", "warning"))
    return rows.exclude(failed | warning)
