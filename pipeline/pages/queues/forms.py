"""Defines the forms of a queue, with a field of times for each day of the week, and of the hold."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.dates import WEEKDAYS
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import timezones
from config.core.ids import decode, encode
from pipeline.models import Outlet, OverlapChoice, PublishQueue, SlotGapChoice
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.sources import lane_cadence
from pipeline.publish import workspace_hold
from pipeline.publish.timing import queue_slots
from pipeline.schedule import queues
from pipeline.text.local_time import UnknownZone, zone_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.forms import BoundField

    from accounts.models import Workspace

_DAY_PREFIX: Final = "day_"
_MAX_DAY_CHARACTERS: Final = 2000
_MAX_BLACKOUT_CHARACTERS: Final = 10_000


class QueueForm(forms.Form):
    """The form of a queue; `queue` is the one that is edited, or `None` for a new one.

    The default queue has no field for outlets, because all outlets without a queue of their own use it.
    """

    name = forms.CharField(label=gettext_lazy("Name"), max_length=queues.MAX_NAME_CHARACTERS)
    timezone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Follows daylight saving time"),
    )
    on_gap = forms.ChoiceField(
        label=gettext_lazy("Skipped hour (DST)"),
        help_text=gettext_lazy("When clocks go forward"),
        choices=SlotGapChoice.choices,
        initial=SlotGapChoice.SHIFT,
        widget=forms.RadioSelect,
    )
    on_overlap = forms.ChoiceField(
        label=gettext_lazy("Repeated hour (DST)"),
        help_text=gettext_lazy("When clocks go back"),
        choices=OverlapChoice.choices,
        initial=OverlapChoice.FIRST,
        widget=forms.RadioSelect,
    )
    blackouts = forms.CharField(
        label=gettext_lazy("Blackout dates"),
        required=False,
        max_length=_MAX_BLACKOUT_CHARACTERS,
        help_text=gettext_lazy(
            "One per line, such as 2027-12-24 to 2027-12-26 Holidays or 2027-05-01 18:00 to 2027-05-02 06:00"
        ),
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    outlets = forms.MultipleChoiceField(
        label=gettext_lazy("Outlets"),
        required=False,
        help_text=gettext_lazy("An outlet has one queue"),
        widget=forms.CheckboxSelectMultiple,
    )
    version = forms.IntegerField(widget=forms.HiddenInput, required=False)
    """The version of the queue that was shown, so that nobody overwrites a change that they haven't seen."""

    def __init__(
        self, *args: Any, workspace: Workspace, queue: PublishQueue | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["timezone"].choices = timezones.timezone_choices(
            queue.timezone if queue else workspace.timezone
        )
        for weekday, label in WEEKDAYS.items():
            fields[f"{_DAY_PREFIX}{weekday}"] = forms.CharField(
                label=label,
                required=False,
                max_length=_MAX_DAY_CHARACTERS,
                widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("None")}),
            )
        if queue is not None and queue.is_default:
            del fields["outlets"]
        else:
            fields["outlets"].choices = _outlet_choices(workspace, queue)

    @property
    def days(self) -> Iterator[BoundField]:
        """The fields of the days of the week, Monday first."""
        return (self[f"{_DAY_PREFIX}{weekday}"] for weekday in WEEKDAYS)

    @property
    def has_times(self) -> bool:
        """True if the form was sent and the fields that make the slots are valid; others may have errors."""
        times = {"timezone", "blackouts", "on_gap", "on_overlap", *(day.name for day in self.days)}
        return self.is_bound and not times & set(self.errors)

    def clean_timezone(self) -> str:
        """Refuse a time zone that no longer exists, which is among the choices only because the queue has it."""
        name: str = self.cleaned_data["timezone"]
        try:
            zone_named(name)
        except UnknownZone:
            message = _("%(zone)s no longer exists. Choose another.") % {"zone": name}
            raise forms.ValidationError(message) from None
        return name

    def clean_blackouts(self) -> list[dict[str, str]]:
        """Return the blackouts as the queue stores them."""
        blackouts = read_blackouts(self.cleaned_data["blackouts"])
        if blackouts is None:
            message = _("Enter each line as 2027-12-24 to 2027-12-26 Holidays.")
            raise forms.ValidationError(message)
        return blackouts

    def clean(self) -> dict[str, Any]:
        """Collect the times of all days in `slots`; the first day that exceeds the week's limit gets the error."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        slots: list[dict[str, Any]] = []
        for weekday in WEEKDAYS:
            name = f"{_DAY_PREFIX}{weekday}"
            times = lane_cadence.read_times(cleaned.get(name) or "")
            if times is None:
                self.add_error(name, _("Enter times such as 09:00, 17:30."))
                continue
            was_within_limit = len(slots) <= queues.MAX_SLOTS_PER_WEEK
            slots += [{"weekday": weekday, "time": slot_time} for slot_time in times]
            if was_within_limit and len(slots) > queues.MAX_SLOTS_PER_WEEK:
                message = _("At most %(most)d slots per week.")
                self.add_error(name, message % {"most": queues.MAX_SLOTS_PER_WEEK})
        cleaned["slots"] = slots
        return cleaned

    def values(self) -> dict[str, Any]:
        """Return the values as `pipeline.schedule.queues` takes them."""
        cleaned = self.cleaned_data
        values = {
            name: cleaned[name] for name in ("name", "timezone", "slots", "blackouts", "on_gap", "on_overlap")
        }
        if "outlets" in self.fields:
            values["outlets"] = [decode("out", public_id) for public_id in cleaned["outlets"]]
        return values

    def take_newest(self, version: int) -> None:
        """Set the newer version, after somebody else saved meanwhile, and say so.

        What was typed stays, so that saving again overwrites the other change.
        """
        self.data = {name: self[name].data for name in self.fields} | {"version": str(version)}
        message = _("Edited since you opened it. Save again to overwrite, or cancel to see it.")
        self.add_error(None, message)

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path is shown; errors of the slots are shown at Monday."""
        return f"{_DAY_PREFIX}0" if path == "slots" else path


class HoldForm(forms.Form):
    """The reason for pausing all publishing."""

    reason = forms.CharField(
        label=gettext_lazy("Why"),
        max_length=workspace_hold.REASON_CHARACTERS,
        help_text=gettext_lazy("Shown to all members"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


def default_values(workspace: Workspace) -> dict[str, Any]:
    """Return the initial values of the form of a new queue."""
    return {"timezone": workspace.timezone, **by_day(queue_slots.DEFAULT_SLOTS)}


def values_of(queue: PublishQueue, outlets: Sequence[Outlet]) -> dict[str, Any]:
    """Return the initial values of the form of an existing queue."""
    return {
        **{name: getattr(queue, name) for name in ("name", "timezone", "on_gap", "on_overlap", "version")},
        **by_day(queue.slots),
        "blackouts": write_blackouts(queue.blackouts),
        "outlets": [encode("out", outlet.pk) for outlet in outlets if outlet.queue_id == queue.pk],
    }


def by_day(slots: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the times of each day's slots, separated by commas, by the name of the day's field."""
    times_by_field: defaultdict[str, list[str]] = defaultdict(list)
    for slot in slots:
        times_by_field[f"{_DAY_PREFIX}{slot['weekday']}"].append(slot["time"])
    return {name: ", ".join(times) for name, times in times_by_field.items()}


def _outlet_choices(workspace: Workspace, queue: PublishQueue | None) -> list[tuple[str, str]]:
    """Return the outlets as pairs of public id and label, the oldest first."""
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).select_related("queue").order_by("id")
    return [(encode("out", outlet.pk), _outlet_label(outlet, queue)) for outlet in rows.defer("credentials")]


def _outlet_label(outlet: Outlet, queue: PublishQueue | None) -> str:
    """Return the label of an outlet: its name, its platform, and the queue that it would leave."""
    details = str(platform_of(outlet.platform).label)
    if outlet.queue is not None and outlet.queue != queue and not outlet.queue.is_default:
        current_queue = _("now in %(queue)s") % {"queue": outlet.queue.name}
        details = f"{details} · {current_queue}"
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', outlet.name, details)


_DATE_PATTERN: Final = r"(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}))?"
# Matches `2027-12-24 to 2027-12-26 Holidays` and `2027-05-01 18:00 to 2027-05-02 06:00`.
_BLACKOUT_LINE: Final = re.compile(rf"{_DATE_PATTERN}(?: to {_DATE_PATTERN})?(?: (.*))?", re.ASCII)


def read_blackouts(text: str) -> list[dict[str, str]] | None:
    """Return the blackouts of a text as the queue stores them, or `None` if a line isn't a range of time.

    Dates without a time count as whole days, the last one too.
    """
    blackouts = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _BLACKOUT_LINE.fullmatch(re.sub(r"\s+", " ", line))
        if match is None:
            return None
        first_date, start_time, last_date, end_time, reason = match.groups()
        try:
            start = datetime.combine(
                date.fromisoformat(first_date), time.fromisoformat(start_time or "00:00")
            )
            end = datetime.combine(
                date.fromisoformat(last_date or first_date), time.fromisoformat(end_time or "00:00")
            )
            # Without an end time the day counts whole, up to the next midnight.
            until = end if end_time else end + timedelta(days=1)
        except (ValueError, OverflowError):
            return None
        blackouts.append(
            {"from": _to_local_text(start), "until": _to_local_text(until), "reason": reason or ""}
        )
    return blackouts


def write_blackouts(blackouts: Sequence[Mapping[str, str]]) -> str:
    """Return the text that `read_blackouts` reads as these blackouts."""
    return "\n".join(_format_blackout(blackout) for blackout in blackouts)


def _format_blackout(blackout: Mapping[str, str]) -> str:
    """Return the line of one blackout; a time of midnight is left out."""
    start, until = (datetime.fromisoformat(blackout[name]) for name in ("from", "until"))
    first = f"{start:%Y-%m-%d}" if start.time() == time.min else f"{start:%Y-%m-%d %H:%M}"
    last = f"{until - timedelta(days=1):%Y-%m-%d}" if until.time() == time.min else f"{until:%Y-%m-%d %H:%M}"
    return " ".join(
        filter(None, (first if first == last else f"{first} to {last}", blackout.get("reason", "")))
    )


def _to_local_text(moment: datetime) -> str:
    """Return the local time in ISO format without seconds, as `2027-12-24T00:00`."""
    return moment.isoformat(timespec="minutes")
