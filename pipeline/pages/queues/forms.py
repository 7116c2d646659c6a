"""The form of a queue, with a field of times for each day of the week; and that of the hold."""

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

_DAY: Final = "day_"
_DAY_CHARACTERS: Final = 2000
_BLACKOUT_CHARACTERS: Final = 10_000


class QueueForm(forms.Form):
    """`queue` is the one that is there; the default one isn't given to outlets, so it has no field for them."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=queues.NAME_CHARACTERS)
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
        max_length=_BLACKOUT_CHARACTERS,
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
    """Of the queue that was read; what was changed meanwhile isn't written over unseen."""

    def __init__(
        self, *args: Any, workspace: Workspace, queue: PublishQueue | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        zone = queue.timezone if queue else workspace.timezone
        known = timezones.timezone_choices()
        fields["timezone"].choices = known if zone in dict(known) else [(zone, zone), *known]
        for weekday, label in WEEKDAYS.items():
            fields[f"{_DAY}{weekday}"] = forms.CharField(
                label=label,
                required=False,
                max_length=_DAY_CHARACTERS,
                widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("None")}),
            )
        if queue is not None and queue.is_default:
            del fields["outlets"]
        else:
            fields["outlets"].choices = _outlets(workspace, queue)

    @property
    def days(self) -> Iterator[BoundField]:
        return (self[f"{_DAY}{weekday}"] for weekday in WEEKDAYS)

    @property
    def has_times(self) -> bool:
        """Whether it says soundly when its slots are, whatever else is wrong with it."""
        times = {"timezone", "blackouts", "on_gap", "on_overlap", *(day.name for day in self.days)}
        return self.is_bound and not times & set(self.errors)

    def clean_timezone(self) -> str:
        """One that was dropped from the tables since it was chosen is offered, but not taken."""
        name: str = self.cleaned_data["timezone"]
        try:
            zone_named(name)
        except UnknownZone:
            message = _("%(zone)s no longer exists. Choose another.") % {"zone": name}
            raise forms.ValidationError(message) from None
        return name

    def clean_blackouts(self) -> list[dict[str, str]]:
        found = read_blackouts(self.cleaned_data["blackouts"])
        if found is None:
            message = _("Enter each line as 2027-12-24 to 2027-12-26 Holidays.")
            raise forms.ValidationError(message)
        return found

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        slots: list[dict[str, Any]] = []
        for weekday in WEEKDAYS:
            name = f"{_DAY}{weekday}"
            times = lane_cadence.read_times(given.get(name) or "")
            if times is None:
                self.add_error(name, _("Enter times such as 09:00, 17:30."))
                continue
            had_room = len(slots) <= queues.SLOTS_MOST
            slots += [{"weekday": weekday, "time": at} for at in times]
            if had_room and len(slots) > queues.SLOTS_MOST:
                message = _("At most %(most)d slots per week.")
                self.add_error(name, message % {"most": queues.SLOTS_MOST})
        given["slots"] = slots
        return given

    def values(self) -> dict[str, Any]:
        """As the stage takes them."""
        given = self.cleaned_data
        found = {
            name: given[name] for name in ("name", "timezone", "slots", "blackouts", "on_gap", "on_overlap")
        }
        if "outlets" in self.fields:
            found["outlets"] = [decode("out", one) for one in given["outlets"]]
        return found

    def take_newest(self, version: int) -> None:
        """Somebody else saved meanwhile: what was typed stays, and saving it again writes over what they did."""
        self.data = {name: self[name].data for name in self.fields} | {"version": str(version)}
        message = _("Edited since you opened it. Save again to overwrite, or cancel to see it.")
        self.add_error(None, message)

    def field_of(self, path: str) -> str:
        """The field of a fault; one of the slots is at the week's first day."""
        return f"{_DAY}0" if path == "slots" else path


class HoldForm(forms.Form):
    reason = forms.CharField(
        label=gettext_lazy("Why"),
        max_length=workspace_hold.REASON_CHARACTERS,
        help_text=gettext_lazy("Shown to all members"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


def fresh_values(workspace: Workspace) -> dict[str, Any]:
    """What the form of a new queue begins with."""
    return {"timezone": workspace.timezone, **by_day(queue_slots.DEFAULT_SLOTS)}


def values_of(queue: PublishQueue, outlets: Sequence[Outlet]) -> dict[str, Any]:
    """What the form of a queue that is there begins with."""
    return {
        **{name: getattr(queue, name) for name in ("name", "timezone", "on_gap", "on_overlap", "version")},
        **by_day(queue.slots),
        "blackouts": write_blackouts(queue.blackouts),
        "outlets": [encode("out", one.pk) for one in outlets if one.queue_id == queue.pk],
    }


def by_day(slots: Sequence[dict[str, Any]]) -> dict[str, str]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for slot in slots:
        found[f"{_DAY}{slot['weekday']}"].append(slot["time"])
    return {name: ", ".join(times) for name, times in found.items()}


def _outlets(workspace: Workspace, queue: PublishQueue | None) -> list[tuple[str, str]]:
    rows = Outlet.objects.of(workspace).filter(deleted_at=None).select_related("queue").order_by("id")
    return [(encode("out", one.pk), _outlet(one, queue)) for one in rows.defer("credentials")]


def _outlet(outlet: Outlet, queue: PublishQueue | None) -> str:
    """With the queue that it would leave."""
    about = str(platform_of(outlet.platform).label)
    if outlet.queue is not None and outlet.queue != queue and not outlet.queue.is_default:
        now = _("now in %(queue)s") % {"queue": outlet.queue.name}
        about = f"{about} · {now}"
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', outlet.name, about)


_DATE: Final = r"(\d{4}-\d{2}-\d{2})(?: (\d{2}:\d{2}))?"
_LINE: Final = re.compile(rf"{_DATE}(?: to {_DATE})?(?: (.*))?", re.ASCII)


def read_blackouts(text: str) -> list[dict[str, str]] | None:
    """As the stage takes them; a day without a time is meant whole, the last one too. None where a line is no stretch."""
    found = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _LINE.fullmatch(re.sub(r"\s+", " ", line))
        if match is None:
            return None
        first, begins, last, ends, reason = match.groups()
        try:
            start = datetime.combine(date.fromisoformat(first), time.fromisoformat(begins or "00:00"))
            end = datetime.combine(date.fromisoformat(last or first), time.fromisoformat(ends or "00:00"))
            # A time alone closes the rest of its day.
            until = end if ends else end + timedelta(days=1)
        except (ValueError, OverflowError):
            return None
        found.append({"from": _local_text(start), "until": _local_text(until), "reason": reason or ""})
    return found


def write_blackouts(blackouts: Sequence[Mapping[str, str]]) -> str:
    """As `read_blackouts` reads it again."""
    return "\n".join(_blackout_line(one) for one in blackouts)


def _blackout_line(one: Mapping[str, str]) -> str:
    start, until = (datetime.fromisoformat(one[name]) for name in ("from", "until"))
    first = f"{start:%Y-%m-%d}" if start.time() == time.min else f"{start:%Y-%m-%d %H:%M}"
    last = f"{until - timedelta(days=1):%Y-%m-%d}" if until.time() == time.min else f"{until:%Y-%m-%d %H:%M}"
    return " ".join(filter(None, (first if first == last else f"{first} to {last}", one.get("reason", ""))))


def _local_text(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")
