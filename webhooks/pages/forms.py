"""Provides the forms of the webhooks' pages."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import forms
from django.utils.dateparse import parse_datetime
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import limits as accounts_limits
from config.core import limits as core_limits
from pipeline.events import TYPES
from webhooks import limits
from webhooks.endpoint_validation import MAX_DESCRIPTION_CHARACTERS
from webhooks.endpoints import TEST_EVENT
from webhooks.models import EVERY_EVENT, DeliveryStatus
from webhooks.pages import labels

if TYPE_CHECKING:
    from datetime import datetime

    from django.utils.safestring import SafeString

    from webhooks.models import Endpoint

# The posted values of `which`.
_DEFAULT: Final = "usual"
_ALL: Final = "all"
_CHOSEN: Final = "chosen"
_DEFAULT_EVENTS: Final = [name for name, is_default in TYPES.items() if is_default]


def _event_choices() -> list[tuple[str, SafeString]]:
    """Return the types of events, each labelled with its name and description in HTML."""
    return [
        (name, format_html('<span><code>{}</code> <span class="soft small">{}</span></span>', name, sentence))
        for name, sentence in labels.EVENTS.items()
    ]


class EndpointForm(forms.Form):
    """Changes an endpoint; `which` says if it gets the default, all or the chosen `events`."""

    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=core_limits.URL_CHARACTERS,
        help_text=gettext_lazy("We POST each event to it as JSON"),
        widget=forms.URLInput(
            attrs={
                "placeholder": "https://example.com/webhooks",
                "autocomplete": "off",
                "spellcheck": "false",
            }
        ),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        max_length=MAX_DESCRIPTION_CHARACTERS,
        required=False,
        help_text=gettext_lazy("For example “CRM” or “Slack bridge”"),
    )
    which = forms.ChoiceField(
        label=gettext_lazy("Events"),
        choices=(
            (
                _DEFAULT,
                gettext_lazy("Default events: new raw item, ready for review, published, publish failed"),
            ),
            (_ALL, gettext_lazy("All events, including future ones")),
            (_CHOSEN, gettext_lazy("Selected events")),
        ),
        initial=_DEFAULT,
        widget=forms.RadioSelect,
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Chosen events"),
        choices=_event_choices,
        required=False,
        initial=_DEFAULT_EVENTS,
        widget=forms.CheckboxSelectMultiple,
    )

    rate = forms.IntegerField(
        label=gettext_lazy("Maximum requests per second"),
        min_value=1,
        max_value=limits.WEBHOOK_RATE_MOST,
        # Empty leaves the rate unchanged.
        required=False,
        initial=limits.WEBHOOK_RATE,
        help_text=gettext_lazy("Events above it are queued"),
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if cleaned.get("which") == _CHOSEN and not cleaned.get("events") and "events" not in self.errors:
            self.add_error("events", _("Choose at least one event."))
        return cleaned

    def chosen_events(self) -> list[str]:
        """Return the types as an endpoint stores them: empty for the default events, `*` for all."""
        choice = self.cleaned_data["which"]
        if choice == _DEFAULT:
            return []
        return [EVERY_EVENT] if choice == _ALL else list(self.cleaned_data["events"])


class AddEndpointForm(EndpointForm):
    """Adds an endpoint, whose mode can't be changed later."""

    mode = forms.ChoiceField(
        label=gettext_lazy("Live or test items"),
        choices=(
            ("live", gettext_lazy("Live")),
            ("test", gettext_lazy("Test")),
        ),
        initial="live",
        widget=forms.RadioSelect,
    )


def initial_values(endpoint: Endpoint) -> dict[str, Any]:
    """Return the initial values of the endpoint's form."""
    is_all = EVERY_EVENT in endpoint.events
    chosen_events = [] if is_all else list(endpoint.events)
    return {
        "url": endpoint.url,
        "description": endpoint.description,
        "rate": endpoint.rate,
        "which": _ALL if is_all else _CHOSEN if chosen_events else _DEFAULT,
        # They are ticked when somebody begins to choose.
        "events": chosen_events or _DEFAULT_EVENTS,
    }


_OVERLAPS: Final = {
    "0": (timedelta(0), gettext_lazy("Revoke the old secret now")),
    "1h": (timedelta(hours=1), gettext_lazy("1 hour")),
    "1d": (accounts_limits.TOKEN_OVERLAP_DEFAULT, gettext_lazy("24 hours")),
    "3d": (timedelta(days=3), gettext_lazy("3 days")),
    "7d": (accounts_limits.TOKEN_OVERLAP_MOST, gettext_lazy("7 days")),
}


class RotateEndpointSecretForm(forms.Form):
    """Rotates an endpoint's secret; `overlap` is how long the old one signs too."""

    overlap = forms.ChoiceField(
        label=gettext_lazy("Keep the old secret for"),
        choices=[(name, label) for name, (_span, label) in _OVERLAPS.items()],
        initial="1d",
        help_text=gettext_lazy("Requests carry both signatures until then"),
    )

    def overlap_duration(self) -> timedelta:
        return _OVERLAPS[self.cleaned_data["overlap"]][0]


class _WallClockField(forms.DateTimeField):
    """A time on the workspace's clocks; a text that names a time zone is invalid."""

    def to_python(self, value: Any) -> datetime | None:
        wall_time = super().to_python(value)
        if isinstance(value, str) and wall_time is not None and _has_timezone(value.strip()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return wall_time


def _has_timezone(value: str) -> bool:
    try:
        parsed = parse_datetime(value)
    except ValueError:
        return False
    return parsed is not None and parsed.tzinfo is not None


class ResendForm(forms.Form):
    """Resends what an endpoint missed, or all, since a time on the workspace's clocks."""

    since = _WallClockField(
        label=gettext_lazy("Since"),
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={"invalid": gettext_lazy("Enter a date and time, such as 2027-03-28 14:30.")},
    )
    what = forms.ChoiceField(
        label=gettext_lazy("Events to resend"),
        choices=(
            ("missed", gettext_lazy("Undelivered: failed, held or waiting")),
            ("all", gettext_lazy("All")),
        ),
        initial="missed",
        help_text=gettext_lazy("Event IDs stay the same"),
        widget=forms.RadioSelect,
    )

    def __init__(self, *args: Any, zone: str, **kwargs: Any) -> None:
        # In a dialog the form is on one page with the log's filter, which has a field `since` too.
        kwargs.setdefault("auto_id", "recover_%s")
        super().__init__(*args, **kwargs)
        self.zone = ZoneInfo(zone)
        self.fields["since"].help_text = _("%(zone)s") % {"zone": zone}

    def moment(self) -> datetime:
        """Return `since` with its time zone.

        If a change of the clocks makes the time exist twice or not at all, the earlier moment is taken, which has
        the greater offset from UTC, so that nothing is left out.
        """
        wall_time: datetime = self.cleaned_data["since"]
        candidates = [wall_time.replace(tzinfo=self.zone, fold=fold) for fold in (0, 1)]
        return max(candidates, key=lambda candidate: candidate.utcoffset() or timedelta(0))

    @staticmethod
    def to_wall_time(zone: str, moment: datetime) -> datetime:
        """Return the moment on clocks in the zone, without its time zone, to the minute."""
        return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None, second=0, microsecond=0)


_SINCE: Final = {
    "1h": (timedelta(hours=1), gettext_lazy("The last hour")),
    "1d": (timedelta(days=1), gettext_lazy("The last 24 hours")),
    "7d": (timedelta(days=7), gettext_lazy("The last 7 days")),
    "30d": (timedelta(days=30), gettext_lazy("The last 30 days")),
}


class LogFilter(forms.Form):
    """Filters an endpoint's log by outcome, type of event and age; an empty field doesn't filter."""

    outcome = forms.ChoiceField(
        label=gettext_lazy("Outcome"),
        required=False,
        choices=[("", gettext_lazy("Any outcome")), *DeliveryStatus.choices],
    )
    event = forms.ChoiceField(
        label=gettext_lazy("Event"),
        required=False,
        choices=[("", gettext_lazy("Any event")), *((name, name) for name in (*labels.EVENTS, TEST_EVENT))],
    )
    since = forms.ChoiceField(
        label=gettext_lazy("Since"),
        required=False,
        choices=[("", gettext_lazy("Any time")), *((name, label) for name, (_span, label) in _SINCE.items())],
    )

    def max_age(self) -> timedelta | None:
        """Return the age of the oldest deliveries to show, or `None` for any age."""
        choice = self.cleaned_data["since"]
        return _SINCE[choice][0] if choice else None
