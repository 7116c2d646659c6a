"""The forms of items: what the list is narrowed to, why one is rejected, where and when one is published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages.act_messages import changed_meanwhile_message
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline import limits, plugins
from pipeline.engines.base import Engine
from pipeline.models import Bucket, GeneratedItemStatus
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages import choices
from pipeline.publish import PublishWish
from pipeline.text.local_time import WallClock, moment_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from django.http import QueryDict

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, Outlet

SOURCES_OFFERED: Final = 200
REASON_CHARACTERS: Final = 500
_NUMBER_DIGITS: Final = 9
NOW, NEXT, AT = "now", "next", "at"


class ItemFilter(forms.Form):
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
            *GeneratedItemStatus.choices,
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
        engines = [one.name for one in plugins.every("engines", Engine)]
        fields["engine"].choices = [("", _("Any format")), *((name, name) for name in engines)]
        sources = choices.sources(workspace, SOURCES_OFFERED)
        # One that was asked for by its id is taken, though the list doesn't reach to it or it was deleted since.
        asked = self.data.get("source", "")
        if decode("src", asked) is not None and asked not in dict(sources):
            sources.append((asked, _("Another source")))
        fields["source"].choices = [("", _("Any source")), *sources]
        fields["persona"].choices = [("", _("Any persona")), *choices.personas(workspace)]

    def conditions(self) -> dict[str, Any]:
        given = self.cleaned_data
        found: dict[str, Any] = {
            column: given[name]
            for name, column in (("bucket", "bucket"), ("status", "status"), ("engine", "engine_output"))
            if given[name]
        }
        for name, prefix in (("source", "src"), ("persona", "per")):
            if given[name]:
                found[f"{name}_id"] = decode(prefix, given[name])
        return found


def version_in(posted: QueryDict) -> int | None:
    """The version that the page showed; None where it said none."""
    return number_in(posted, "version")


def number_in(posted: QueryDict, name: str) -> int | None:
    """None where it is none, or longer than any that there is."""
    given = posted.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) <= _NUMBER_DIGITS else None


class VersionedForm(forms.Form):
    """It carries the version that was looked at, through a log-in too."""

    version = forms.CharField(required=False, widget=forms.HiddenInput)

    def take_newest(self, version: int) -> None:
        """Of a form that was overtaken: what was typed stays, for another look at the newer version."""
        self.add_error(None, changed_meanwhile_message())
        sent: Any = self.data
        again = sent.copy()
        again["version"] = str(version)
        self.data = again


class RejectForm(VersionedForm):
    reason = forms.CharField(
        label=gettext_lazy("Why"),
        required=False,
        max_length=REASON_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Saved with the item"),
    )


class RegenerateForm(forms.Form):
    hint = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=limits.HINT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": gettext_lazy("Shorter, for beginners")}),
        help_text=gettext_lazy("Changes style, not facts"),
    )


class WhenForm(VersionedForm):
    """When something goes out; the time is one on the workspace's clocks."""

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
        """As it was typed, without a zone: it is one of the workspace's clocks, not of the server's."""
        given: datetime | None = self.cleaned_data["local_time"]
        return given.replace(tzinfo=None) if given is not None else None

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("when") != AT or "local_time" in self.errors:
            return given
        if given.get("local_time") is None:
            self.add_error("local_time", _("Enter a date and time."))
            return given
        try:
            clock = WallClock(given["local_time"], self.zone)
            moment = moment_of(clock)
        except (OverflowError, ValueError):
            self.add_error("local_time", _("This date and time doesn't exist."))
            return given
        now = utc_now()
        if moment < now:
            self.add_error("local_time", _("This time is in the past. Choose a later one or publish now."))
        elif moment > now + limits.PUBLISH_AHEAD:
            message = _("Schedule at most %(days)d days ahead.") % {"days": limits.PUBLISH_AHEAD.days}
            self.add_error("local_time", message)
        given["clock"], given["moment"] = clock, moment
        return given

    def timing(self) -> PublishWish:
        given = self.cleaned_data
        is_timed = given["when"] == AT
        return PublishWish(
            publish_at=given["moment"] if is_timed else None,
            clock=given["clock"] if is_timed else None,
            is_queued=given["when"] == NEXT,
        )


class PublishForm(WhenForm):
    """Where an item goes, and when."""

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
        fields["outlets"].choices = [(encode("out", one.pk), _outlet_line(one)) for one in outlets]
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
        given = self.cleaned_data
        return replace(
            self.timing(), outlets=given["outlets"], keep_siblings=given.get("keep_siblings", False)
        )


def _outlet_line(outlet: Outlet) -> str:
    platform = str(platform_of(outlet.platform).label)
    about = _("Test channel") if outlet.is_simulated else platform
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', outlet.name, about)
