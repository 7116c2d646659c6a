"""Defines the forms of items: filters of the list, the reason of a rejection, and outlets and time of publishing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages.act_messages import changed_meanwhile_message
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline import labels, limits, plugins
from pipeline.engines.base import Engine
from pipeline.models import Bucket, GeneratedItemStatus
from pipeline.pages import form_choices
from pipeline.publish import PublishWish
from pipeline.text.local_time import WallClock, moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.http import QueryDict

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, Outlet
    from pipeline.models.generated_item import OwnGeneratedItems as ItemQuerySet

SOURCES_OFFERED: Final = 200
"""The most sources that the filter lists."""
REASON_CHARACTERS: Final = 500
"""The most characters of the reason for a rejection."""
_MAX_NUMBER_DIGITS: Final = 9
NOW, NEXT, AT = "now", "next", "at"
"""The values of the field `when`: now, in the next free slot, or at a chosen time."""


TO_REVIEW, ON_HOLD, APPROVED = "to_review", "on_hold", "approved"
"""The values of the filter `status` that part the ready items, as their badges do (`labels.of_status`)."""
_READY: Final = GeneratedItemStatus.READY.value


class ItemFilter(forms.Form):
    """Filters of the list of items; formats, sources and personas are those of the workspace."""

    q = forms.CharField(
        label=gettext_lazy("Search"),
        required=False,
        max_length=limits.SEARCH_CHARACTERS,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": gettext_lazy("Search")}),
    )
    bucket = forms.ChoiceField(
        label=gettext_lazy("Kind"),
        required=False,
        choices=[("", gettext_lazy("Any kind")), *Bucket.choices],
    )
    status = forms.ChoiceField(
        label=gettext_lazy("Status"),
        required=False,
        choices=[
            ("", gettext_lazy("Any status")),
            (TO_REVIEW, labels.TO_REVIEW.label),
            (ON_HOLD, labels.HELD.label),
            (APPROVED, labels.APPROVED.label),
            *((value, label) for value, label in GeneratedItemStatus.choices if value != _READY),
        ],
    )
    engine = forms.ChoiceField(label=gettext_lazy("Format"), required=False)
    source = forms.ChoiceField(label=gettext_lazy("Source"), required=False)
    persona = forms.ChoiceField(label=gettext_lazy("Persona"), required=False)
    held = forms.ChoiceField(
        label=gettext_lazy("On hold"),
        required=False,
        choices=[
            ("", gettext_lazy("Hold: any")),
            ("yes", gettext_lazy("On hold")),
            ("flagged", gettext_lazy("Source changed")),
        ],
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        engines = [engine.name for engine in plugins.every("engines", Engine)]
        if self.data.get("status") == _READY:
            # Views that were saved before have the status of both.
            fields["status"].choices += [(_READY, GeneratedItemStatus.READY.label)]
        fields["engine"].choices = [("", _("Any format")), *((name, name) for name in engines)]
        sources = form_choices.source_choices(workspace, SOURCES_OFFERED)
        # A source that isn't listed is accepted by its id: the list may be too short, or the source was deleted.
        source_id = self.data.get("source", "")
        if decode("src", source_id) is not None and source_id not in dict(sources):
            sources.append((source_id, _("Another source")))
        fields["source"].choices = [("", _("Any source")), *sources]
        fields["persona"].choices = [("", _("Any persona")), *form_choices.persona_choices(workspace)]

    def narrow(self, rows: ItemQuerySet) -> ItemQuerySet:
        """Return the items that match the chosen filters, except for the search."""
        data = self.cleaned_data
        rows = rows.filter(**self._conditions())
        if data["status"] == ON_HOLD:
            rows = rows.ready().on_hold()
        elif data["status"] in {TO_REVIEW, APPROVED}:
            rows = rows.ready().filter(held="", approved_at__isnull=data["status"] == TO_REVIEW)
        if data["held"] == "yes":
            return rows.on_hold()
        return rows.flagged() if data["held"] == "flagged" else rows

    def _conditions(self) -> dict[str, Any]:
        """Return the filters that compare a column with a value."""
        data = self.cleaned_data
        conditions: dict[str, Any] = {
            column: data[name]
            for name, column in (("bucket", "bucket"), ("status", "status"), ("engine", "engine_output"))
            if data[name] not in {"", TO_REVIEW, ON_HOLD, APPROVED}
        }
        for name, prefix in (("source", "src"), ("persona", "per")):
            if data[name]:
                conditions[f"{name}_id"] = decode(prefix, data[name])
        return conditions


def version_in(posted: QueryDict) -> int | None:
    """Return the version that the page showed, or `None` if the form names no valid one."""
    return number_in(posted, "version")


def number_in(posted: QueryDict, name: str) -> int | None:
    """Return a posted number, or `None` if the field is no number or has more than `_MAX_NUMBER_DIGITS` digits."""
    text = posted.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_NUMBER_DIGITS else None


class VersionedForm(forms.Form):
    """A form that carries the version that the person looked at, even if they have to log in again."""

    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def take_newest(self, version: int) -> None:
        """Set the newer version, after somebody else saved meanwhile, and say so; what was typed stays."""
        self.add_error(None, changed_meanwhile_message())
        posted: Any = self.data
        updated = posted.copy()
        updated["version"] = str(version)
        self.data = updated


class RejectForm(VersionedForm):
    """The reason for rejecting an item."""

    reason = forms.CharField(
        label=gettext_lazy("Why"),
        required=False,
        max_length=REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Saved with the item"),
    )


class RegenerateForm(forms.Form):
    """Instructions for another variant."""

    hint = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=limits.HINT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": gettext_lazy("Shorter, for beginners")}),
        help_text=gettext_lazy("Changes style, not facts"),
    )


class WhenForm(VersionedForm):
    """When something is published; `local_time` is a local time in `zone`, the workspace's time zone."""

    when = forms.ChoiceField(
        label=gettext_lazy("When"),
        initial=NOW,
        choices=(
            (NOW, gettext_lazy("Now")),
            (NEXT, gettext_lazy("Next free slot")),
            (AT, gettext_lazy("Pick a time")),
        ),
        widget=forms.RadioSelect,
    )
    local_time = forms.DateTimeField(
        label=gettext_lazy("Time"),
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        error_messages={"invalid": gettext_lazy("Enter a date and time, such as 2027-03-28 14:30.")},
    )
    zone: str = "UTC"

    def clean_local_time(self) -> datetime | None:
        """Return the time as it was typed, without a zone, because it isn't one in the server's zone."""
        typed: datetime | None = self.cleaned_data["local_time"]
        return typed.replace(tzinfo=None) if typed is not None else None

    def clean(self) -> dict[str, Any]:
        """Check that a picked time exists, isn't in the past, and is at most `PUBLISH_AHEAD` away."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if data.get("when") != AT or "local_time" in self.errors:
            return data
        if data.get("local_time") is None:
            self.add_error("local_time", _("Enter a date and time."))
            return data
        try:
            clock = WallClock(data["local_time"], self.zone)
            moment = moment_of(clock)
        except (OverflowError, ValueError):
            self.add_error("local_time", _("This date and time doesn't exist."))
            return data
        now = utc_now()
        if moment < now:
            self.add_error("local_time", _("This time is in the past. Choose a later one or publish now."))
        elif moment > now + limits.PUBLISH_AHEAD:
            message = _("Schedule at most %(days)d days ahead.") % {"days": limits.PUBLISH_AHEAD.days}
            self.add_error("local_time", message)
        data["clock"], data["moment"] = clock, moment
        return data

    def timing(self) -> PublishWish:
        """Return the chosen time, as `publish` takes it."""
        data = self.cleaned_data
        is_timed = data["when"] == AT
        return PublishWish(
            publish_at=data["moment"] if is_timed else None,
            clock=data["clock"] if is_timed else None,
            is_queued=data["when"] == NEXT,
        )


class PublishForm(WhenForm):
    """The outlets and the time of a publication."""

    field_order = ("version", "outlets", "when", "local_time", "keep_siblings")
    outlets = forms.MultipleChoiceField(
        label=gettext_lazy("Outlets"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one outlet.")},
    )
    keep_siblings = forms.BooleanField(
        label=gettext_lazy("Keep other variants"),
        required=False,
        help_text=gettext_lazy("Other variants are archived"),
    )

    def __init__(
        self,
        *args: Any,
        item: GeneratedItem,
        outlets: Sequence[Outlet],
        has_siblings: bool,
        next_slots: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.zone = item.workspace.timezone
        fields: Any = self.fields
        fields["outlets"].choices = [
            (encode("out", outlet.pk), form_choices.outlet_label(outlet)) for outlet in outlets
        ]
        fields["local_time"].help_text = _("%(zone)s") % {"zone": self.zone}
        if next_slots:
            fields["when"].choices = [
                (value, _("%(label)s (%(slots)s)") % {"label": label, "slots": next_slots})
                if value == NEXT
                else (value, label)
                for value, label in fields["when"].choices
            ]
        if not has_siblings:
            del self.fields["keep_siblings"]

    def wish(self) -> PublishWish:
        """Return the chosen time and outlets, as `publish` takes them."""
        data = self.cleaned_data
        return replace(self.timing(), outlets=data["outlets"], keep_siblings=data.get("keep_siblings", False))
