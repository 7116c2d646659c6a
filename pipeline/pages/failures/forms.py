"""Defines the filters of the list of problems, and the form that retries, reschedules or cancels rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core.ids import decode, encode
from pipeline.models import Outlet
from pipeline.pages.filters import FilterForm
from pipeline.pages.items.forms import AT, WhenForm
from pipeline.schedule import recovery

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from django.utils.functional import _StrPromise


KINDS: Final[Mapping[str, _StrPromise]] = {
    "publications": gettext_lazy("Publications"),
    "items": gettext_lazy("Items"),
    "raw": gettext_lazy("Raw items"),
    "sources": gettext_lazy("Sources"),
    "outlets": gettext_lazy("Outlets"),
    "drafts": gettext_lazy("Drafts of personas"),
    "mailings": gettext_lazy("Mailings"),
    "deliveries": gettext_lazy("Deliveries to webhook sources"),
}
LATE: Final = "late"
BY_HAND: Final = "by_hand"
ACCOUNT: Final = "account"
CONTENT: Final = "content"
PLATFORM: Final = "platform"
UNKNOWN: Final = "unknown"
MAKING: Final = "making"
CREDITS: Final = "credits"
FETCHING: Final = "fetching"
STOPPED: Final = "stopped"
CAUSES: Final[Mapping[str, _StrPromise]] = {
    LATE: gettext_lazy("Late"),
    BY_HAND: gettext_lazy("Post manually"),
    ACCOUNT: gettext_lazy("Account"),
    CONTENT: gettext_lazy("Content"),
    PLATFORM: gettext_lazy("Platform error"),
    UNKNOWN: gettext_lazy("Outcome unknown"),
    MAKING: gettext_lazy("It could not be made"),
    CREDITS: gettext_lazy("Credits used up"),
    FETCHING: gettext_lazy("Fetch failed"),
    STOPPED: gettext_lazy("Stopped"),
}
SPANS: Final[Mapping[str, tuple[_StrPromise, timedelta]]] = {
    "day": (gettext_lazy("Last day"), timedelta(days=1)),
    "week": (gettext_lazy("Last week"), timedelta(days=7)),
    "month": (gettext_lazy("Last 30 days"), timedelta(days=30)),
}


class FailureFilter(FilterForm):
    """The filters of the list, all optional: kind, outlet, cause and time span."""

    kind = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=[("", gettext_lazy("Any kind")), *KINDS.items()],
    )
    outlet = forms.ChoiceField(label=gettext_lazy("Outlet"), required=False)
    cause = forms.ChoiceField(
        label=gettext_lazy("Cause"),
        required=False,
        choices=[("", gettext_lazy("Any cause")), *CAUSES.items()],
    )
    since = forms.ChoiceField(
        label=gettext_lazy("Since"),
        required=False,
        choices=[
            ("", gettext_lazy("Any time")),
            *((name, label) for name, (label, _span) in SPANS.items()),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        outlets = Outlet.objects.of(self.workspace).filter(deleted_at=None).order_by("id")
        outlet_choices = [(encode("out", key), name) for key, name in outlets.values_list("id", "name")]
        outlet_id = self.data.get("outlet", "")
        if decode("out", outlet_id) is not None and outlet_id not in dict(outlet_choices):
            outlet_choices.append((outlet_id, _("Another outlet")))
        fields: Any = self.fields
        fields["outlet"].choices = [("", _("Any outlet")), *outlet_choices]

    @property
    def outlet_id(self) -> UUID | None:
        """The id of the chosen outlet, or `None` for any outlet."""
        return decode("out", self.cleaned_data["outlet"])

    def starts_at(self, now: datetime) -> datetime | None:
        """Return the beginning of the chosen time span, or `None` for any time."""
        span = SPANS.get(self.cleaned_data["since"])
        return None if span is None else now - span[1]


class RecoveryForm(WhenForm):
    """Validates the act, and its time only if the act is `at`; the view parses the selected rows."""

    act = forms.ChoiceField(
        choices=[(act, act) for act in (recovery.RETRY, recovery.NEXT, recovery.AT, recovery.CANCEL)]
    )

    def __init__(self, data: Any, *, zone: str) -> None:
        form_data = data.copy()
        if form_data.get("act") == recovery.AT:
            form_data["when"] = AT
        else:
            # A time that was typed for another act must not make this one invalid.
            form_data.pop("local_time", None)
            form_data.pop("when", None)
        super().__init__(form_data)
        self.zone = zone
        self.fields["when"].required = False
