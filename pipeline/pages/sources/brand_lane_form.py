"""The form of a brand lane: who speaks, of which topics, when, in which formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import timezones
from accounts.pages.act_messages import first_part
from config.core.ids import encode
from pipeline.models import Topic
from pipeline.pages import choices
from pipeline.pages.sources import lane_cadence
from pipeline.pages.sources.forms import BasicsForm
from pipeline.sources.brand import DEFAULT_CADENCE, MAX_EVERY_HOURS, MAX_SLOTS, topics_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.models import Workspace
    from pipeline.models import Source

_EVERY_HOURS: Final = DEFAULT_CADENCE["every_hours"]
FRESH: Final[Mapping[str, Any]] = {
    "scope": "all",
    "rhythm": "days",
    "days": list(lane_cadence.DAYS),
    "times": "09:00",
    "hours": _EVERY_HOURS,
}
"""What the form of a new lane begins with."""


class LaneForm(BasicsForm):
    """`kept` is the config of a lane that is there: what no field can say of it is offered as it is."""

    scope = forms.ChoiceField(label=gettext_lazy("Topics"), widget=forms.RadioSelect)
    topics = forms.MultipleChoiceField(
        label=gettext_lazy("Selected topics"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    rhythm = forms.ChoiceField(label=gettext_lazy("Frequency"), widget=forms.RadioSelect)
    days = forms.MultipleChoiceField(
        label=gettext_lazy("Days"),
        required=False,
        choices=list(lane_cadence.DAYS.items()),
        widget=forms.CheckboxSelectMultiple,
    )
    times = forms.CharField(
        label=gettext_lazy("Times"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("For example 09:00, 17:30"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    hours = forms.IntegerField(
        label=gettext_lazy("Every (hours)"),
        required=False,
        min_value=1,
        max_value=MAX_EVERY_HOURS,
    )
    timezone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        required=False,
        help_text=gettext_lazy("Follows daylight saving time"),
    )

    def __init__(
        self, *args: Any, workspace: Workspace, kept: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, workspace=workspace, **kwargs)
        self.kept: Mapping[str, Any] = kept or {}
        self.pool = _pool(workspace)
        fields: Any = self.fields
        fields["engines"].choices = choices.engines(made_from="topic")
        fields["engines"].help_text = _("Leave empty for the default")
        fields["topics"].choices = [(name, _topic(topic)) for name, topic in self.pool.items()]
        fields["scope"].choices = self._scopes()
        fields["rhythm"].choices = self._rhythms()
        zone = _cadence(self.kept).get("timezone")
        known = list(timezones.timezone_choices())
        if zone and zone not in dict(known):
            known.insert(0, (zone, zone))
        own = _("Default: %(zone)s") % {"zone": workspace.timezone}
        fields["timezone"].choices = [("", own), *known]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("scope") == "some":
            self._clean_topics(given)
        if given.get("rhythm") == "days":
            self._clean_days(given)
        elif given.get("rhythm") == "hours" and not given.get("hours") and "hours" not in self.errors:
            self.add_error("hours", _("Enter an interval"))
        return given

    def field_of(self, path: str) -> str:
        if path.startswith("config.pool"):
            return "topics"
        if path.startswith("config.cadence"):
            return "timezone" if path.endswith("timezone") else "times"
        return first_part(path)

    def values(self) -> dict[str, Any]:
        return {**super().values(), "config": self._config()}

    def _scopes(self) -> list[tuple[str, Any]]:
        scopes = [
            ("all", _("All topics, including future ones")),
            ("some", _("Selected topics")),
        ]
        own = topics_in(self.kept)
        if own:
            scopes.append(("own", _("Own list: %(topics)s") % {"topics": ", ".join(own)}))
        return scopes

    def _rhythms(self) -> list[tuple[str, Any]]:
        rhythms = [("days", _("At set times")), ("hours", _("At an interval"))]
        slots = _cadence(self.kept).get("slots")
        if slots and lane_cadence.grid_of(slots) is None:
            rhythms.append(
                ("kept", _("Current: %(cadence)s") % {"cadence": lane_cadence.describe(self.kept)})
            )
        return rhythms

    def _clean_topics(self, given: dict[str, Any]) -> None:
        ticked = given.get("topics") or []
        if not ticked:
            self.add_error("topics", _("Choose at least one topic, or all."))
        speakers = {name: self.pool[name].persona_id for name in ticked}
        strangers = [
            self.pool[name].title
            for name, speaker in speakers.items()
            if speaker and encode("per", speaker) != given.get("persona")
        ]
        # Of the workspace's persona nothing is said here: the stage knows which one it is on the day.
        if strangers and given.get("persona"):
            message = _("%(topics)s belongs to another persona. Clear it or choose that persona.")
            self.add_error("topics", message % {"topics": ", ".join(strangers)})

    def _clean_days(self, given: dict[str, Any]) -> None:
        times = lane_cadence.read_times(given.get("times") or "")
        if not given.get("days"):
            self.add_error("days", _("Choose at least one day."))
        if not times:
            self.add_error("times", _("Enter times such as 09:00, 17:30."))
        elif len(times) * len(given.get("days") or ()) > MAX_SLOTS:
            self.add_error("times", _("At most %(most)d slots per week.") % {"most": MAX_SLOTS})

    def _config(self) -> dict[str, Any]:
        given = self.cleaned_data
        found: dict[str, Any] = {}
        if given["scope"] == "some":
            found["pool"] = given["topics"]
        elif given["scope"] == "own":
            found["topics"] = self.kept["topics"]
        found["cadence"] = self._chosen_cadence()
        if given["timezone"]:
            found["cadence"]["timezone"] = given["timezone"]
        if "batch_hours" in self.kept:
            # No field of this form says it: saving the form must not take it away.
            found["batch_hours"] = self.kept["batch_hours"]
        return found

    def _chosen_cadence(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given["rhythm"] == "kept":
            return {"slots": _cadence(self.kept)["slots"]}
        if given["rhythm"] == "hours":
            return {"every_hours": given["hours"]}
        grid = lane_cadence.Grid(tuple(given["days"]), lane_cadence.read_times(given["times"]) or ())
        return {"slots": grid.slots}


def values_of(source: Source) -> dict[str, Any]:
    """What the form of a lane that is there begins with."""
    found = _cadence(source.config)
    slots = found.get("slots")
    grid = lane_cadence.grid_of(slots) if slots else None
    own, some = source.config.get("topics"), source.config.get("pool")
    return {
        **FRESH,
        **{name: getattr(source, name) for name in ("name", "engines", "outlets", "autopilot")},
        "persona": encode("per", source.persona_id) if source.persona_id else "",
        "scope": "own" if own else "some" if some else "all",
        "topics": some or [],
        "rhythm": "days" if grid else "kept" if slots else "hours",
        "days": list(grid.days) if grid else FRESH["days"],
        "times": ", ".join(grid.times) if grid else FRESH["times"],
        "hours": found.get("every_hours", _EVERY_HOURS),
        "timezone": found.get("timezone", ""),
    }


def _cadence(config: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = config.get("cadence") or DEFAULT_CADENCE
    return found


def _pool(workspace: Workspace) -> dict[str, Topic]:
    rows = Topic.objects.of(workspace).filter(test=False, source=None, deleted_at=None)
    return {encode("top", one.pk): one for one in rows.select_related("persona").order_by("title", "id")}


def _topic(topic: Topic) -> str:
    about = topic.persona.name if topic.persona else _("All personas")
    if not topic.is_active:
        about = _("%(about)s · paused") % {"about": about}
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', topic.title, about)
