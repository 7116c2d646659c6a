"""The filters of the list of problems, and the form that retries, reschedules or cancels what is selected."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core.ids import decode, encode
from pipeline.models import Outlet
from pipeline.pages.items.forms import AT, WhenForm
from pipeline.schedule import recovery

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from django.utils.functional import _StrPromise

    from accounts.models import Workspace

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
LATE, BY_HAND, ACCOUNT, CONTENT, PLATFORM, UNKNOWN, MAKING, CREDITS, FETCHING, STOPPED = (
    "late",
    "by_hand",
    "account",
    "content",
    "platform",
    "unknown",
    "making",
    "credits",
    "fetching",
    "stopped",
)
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
FILTERS: Final = ("kind", "outlet", "cause", "since")


class FailureFilter(forms.Form):
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

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Outlet.objects.of(workspace).filter(deleted_at=None).order_by("id")
        found = [(encode("out", key), name) for key, name in rows.values_list("id", "name")]
        asked = self.data.get("outlet", "")
        if decode("out", asked) is not None and asked not in dict(found):
            found.append((asked, _("Another outlet")))
        fields: Any = self.fields
        fields["outlet"].choices = [("", _("Any outlet")), *found]

    @property
    def outlet_asked(self) -> UUID | None:
        return decode("out", self.cleaned_data["outlet"])

    def starts_at(self, now: datetime) -> datetime | None:
        span = SPANS.get(self.cleaned_data["since"])
        return None if span is None else now - span[1]


class ClearForm(WhenForm):
    """An act; what it is done with is read apart, and its time only where it is `at`."""

    act = forms.ChoiceField(
        choices=[(one, one) for one in (recovery.RETRY, recovery.NEXT, recovery.AT, recovery.CANCEL)]
    )

    def __init__(self, data: Any, *, zone: str) -> None:
        given = data.copy()
        if given.get("act") == recovery.AT:
            given["when"] = AT
        else:
            # What was typed for another act is nobody's business here.
            given.pop("local_time", None)
            given.pop("when", None)
        super().__init__(given)
        self.zone = zone
        self.fields["when"].required = False
