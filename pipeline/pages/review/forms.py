"""Defines the form of the queue's filters, and the ready-made reasons of a rejection."""

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
from pipeline.pages import form_choices
from pipeline.pages.filters import FilterForm
from pipeline.pages.items.forms import SOURCES_OFFERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet
    from django.utils.functional import _StrOrPromise, _StrPromise

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
_CHECK_LABELS: Final[Mapping[str, _StrPromise]] = {
    "failed": gettext_lazy("Failed checks"),
    "warning": gettext_lazy("Warnings"),
    "passed": gettext_lazy("Passed"),
}
# The values of `ChecksOutcome` that match: an `f` stands for a failed check, a `w` for a warning.
_MATCHING_OUTCOMES: Final[Mapping[str, tuple[str, ...]]] = {"failed": ("f", "fw"), "warning": ("w", "fw")}
REASONS: Final[tuple[_StrPromise, ...]] = (
    gettext_lazy("Off topic"),
    gettext_lazy("Outdated"),
    gettext_lazy("Inaccurate"),
    gettext_lazy("Off brand"),
    gettext_lazy("Duplicate"),
)
"""The ready-made reasons for a rejection."""


class QueueFilter(FilterForm):
    """The filters of the queue, all optional; without a status, the queue lists what waits for review."""

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
        choices=[("", gettext_lazy("All checks")), *_CHECK_LABELS.items()],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        source_choices = form_choices.source_choices(self.workspace, SOURCES_OFFERED)
        source_id = self.data.get("source", "")
        if decode("src", source_id) is not None and source_id not in dict(source_choices):
            source_choices.append((source_id, _("Another source")))
        fields["source"].choices = [("", _("Any source")), *source_choices]
        fields["persona"].choices = [("", _("Any persona")), *form_choices.persona_choices(self.workspace)]
        outlets = (
            Outlet.objects.of(self.workspace).filter(deleted_at=None).order_by("id").values_list("id", "name")
        )
        fields["outlet"].choices = [
            ("", _("Any outlet")),
            *((encode("out", key), name) for key, name in outlets),
        ]

    @property
    def chosen_status(self) -> str:
        """The chosen status, or `WAITING` if the form isn't valid."""
        return str(self.cleaned_data.get("status") or WAITING) if self.is_valid() else WAITING

    def narrow(self, rows: QuerySet[GeneratedItem]) -> QuerySet[GeneratedItem]:
        """Return the rows that match the filters.

        An item's outlets are a JSON column, which is searched as text because both databases can do that.
        """
        filters = self.cleaned_data
        rows = rows.filter(STATUSES[filters["status"]][1])
        if filters["bucket"]:
            rows = rows.filter(bucket=filters["bucket"])
        for name, prefix in (("source", "src"), ("persona", "per")):
            if filters[name]:
                rows = rows.filter(**{f"{name}_id": decode(prefix, filters[name])})
        if filters["outlet"]:
            rows = rows.alias(outlets_text=Cast("outlets", TextField()))
            rows = rows.filter(outlets_text__contains=f'"{filters["outlet"]}"')
        return _filter_by_checks(rows, filters["check"]) if filters["check"] else rows


def _filter_by_checks(rows: QuerySet[GeneratedItem], outcome: str) -> QuerySet[GeneratedItem]:
    """Return the rows whose newest text was checked with this outcome.

    Items with failures or warnings are few, so an index finds them. Items that passed are many, so that the newest of
    them are found soon without an index.
    """
    rows = rows.filter(checks_revision=F("revision"))
    if outcome in _MATCHING_OUTCOMES:
        return rows.alias(checks_came_to=ChecksOutcome("checks")).filter(
            checks_came_to__in=_MATCHING_OUTCOMES[outcome]
        )
    rows = rows.alias(checks_text=Cast("checks", TextField()))
    failed, warning = (Q(checks_text__contains=f'"outcome": "{value}"') for value in ("failed", "warning"))
    return rows.exclude(failed | warning)
