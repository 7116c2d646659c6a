"""Defines the form of a brand lane: its persona, topics, cadence and formats."""

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
from pipeline.pages import form_choices
from pipeline.pages.sources import lane_cadence
from pipeline.pages.sources.forms import BasicsForm
from pipeline.sources.brand import DEFAULT_CADENCE, MAX_EVERY_HOURS, MAX_SLOTS, cadence_of, topics_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.models import Workspace
    from pipeline.models import Source

_EVERY_HOURS: Final = DEFAULT_CADENCE["every_hours"]
INITIAL_VALUES: Final[Mapping[str, Any]] = {
    "scope": "all",
    "rhythm": "days",
    "days": list(lane_cadence.DAYS),
    "times": "09:00",
    "hours": _EVERY_HOURS,
}
"""The initial values of a new lane's form."""


class LaneForm(BasicsForm):
    """The form of a new or existing lane.

    `stored_config` is the config of an existing lane. What no field can express of it becomes an additional choice.
    """

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
        self, *args: Any, workspace: Workspace, stored_config: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, workspace=workspace, **kwargs)
        self.stored_config: Mapping[str, Any] = stored_config or {}
        self.topics_by_id = _topics_by_id(workspace)
        fields: Any = self.fields
        fields["engines"].choices = form_choices.engine_choices(made_from="topic")
        fields["engines"].help_text = _("Leave empty for the default")
        fields["topics"].choices = [(name, _topic_label(topic)) for name, topic in self.topics_by_id.items()]
        fields["scope"].choices = self._scope_choices()
        fields["rhythm"].choices = self._cadence_choices()
        zone_choices = timezones.timezone_choices(cadence_of(self.stored_config).get("timezone") or "")
        default_label = _("Default: %(zone)s") % {"zone": workspace.timezone}
        fields["timezone"].choices = [("", default_label), *zone_choices]

    def clean(self) -> dict[str, Any]:
        """Check the fields that the chosen topics and cadence need, and ignore the others."""
        form_data: dict[str, Any] = super().clean() or self.cleaned_data
        if form_data.get("scope") == "some":
            self._clean_topics(form_data)
        if form_data.get("rhythm") == "days":
            self._clean_days(form_data)
        elif form_data.get("rhythm") == "hours" and not form_data.get("hours") and "hours" not in self.errors:
            self.add_error("hours", _("Enter an interval"))
        return form_data

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path, such as `config.cadence.slots`, is shown."""
        if path.startswith("config.pool"):
            return "topics"
        if path.startswith("config.cadence"):
            return "timezone" if path.endswith("timezone") else "times"
        return first_part(path)

    def values(self) -> dict[str, Any]:
        """Return the settings as `collect` takes them."""
        return {**super().values(), "config": self._config()}

    def _scope_choices(self) -> list[tuple[str, Any]]:
        """Return the choices of topics; the last one is the lane's own list, if its config has one."""
        scopes = [
            ("all", _("All topics, including future ones")),
            ("some", _("Selected topics")),
        ]
        own_topics = topics_in(self.stored_config)
        if own_topics:
            scopes.append(("own", _("Own list: %(topics)s") % {"topics": ", ".join(own_topics)}))
        return scopes

    def _cadence_choices(self) -> list[tuple[str, Any]]:
        """Return the choices of cadence; the last one keeps slots whose times differ between days, if there are any.

        It is needed because no field can hold such slots.
        """
        rhythms = [("days", _("At set times")), ("hours", _("At an interval"))]
        slots = cadence_of(self.stored_config).get("slots")
        if slots and lane_cadence.grid_of(slots) is None:
            rhythms.append(
                ("kept", _("Current: %(cadence)s") % {"cadence": lane_cadence.describe(self.stored_config)})
            )
        return rhythms

    def _clean_topics(self, form_data: dict[str, Any]) -> None:
        """Require a topic, and topics that the chosen persona may use."""
        topic_ids = form_data.get("topics") or []
        if not topic_ids:
            self.add_error("topics", _("Choose at least one topic, or all."))
        persona_ids = {name: self.topics_by_id[name].persona_id for name in topic_ids}
        foreign_titles = [
            self.topics_by_id[name].title
            for name, persona_id in persona_ids.items()
            if persona_id and encode("per", persona_id) != form_data.get("persona")
        ]
        # The workspace's default persona isn't checked, because it may be another one when a slot is due.
        if foreign_titles and form_data.get("persona"):
            message = _("%(topics)s belongs to another persona. Clear it or choose that persona.")
            self.add_error("topics", message % {"topics": ", ".join(foreign_titles)})

    def _clean_days(self, form_data: dict[str, Any]) -> None:
        times = lane_cadence.read_times(form_data.get("times") or "")
        if not form_data.get("days"):
            self.add_error("days", _("Choose at least one day."))
        if not times:
            self.add_error("times", _("Enter times such as 09:00, 17:30."))
        elif len(times) * len(form_data.get("days") or ()) > MAX_SLOTS:
            self.add_error("times", _("At most %(most)d slots per week.") % {"most": MAX_SLOTS})

    def _config(self) -> dict[str, Any]:
        """Return the lane's config with the chosen topics and cadence."""
        form_data = self.cleaned_data
        config: dict[str, Any] = {}
        if form_data["scope"] == "some":
            config["pool"] = form_data["topics"]
        elif form_data["scope"] == "own":
            config["topics"] = self.stored_config["topics"]
        config["cadence"] = self._chosen_cadence()
        if form_data["timezone"]:
            config["cadence"]["timezone"] = form_data["timezone"]
        if "batch_hours" in self.stored_config:
            # The form has no field for this setting, and saving the form must not remove it.
            config["batch_hours"] = self.stored_config["batch_hours"]
        return config

    def _chosen_cadence(self) -> dict[str, Any]:
        form_data = self.cleaned_data
        if form_data["rhythm"] == "kept":
            return {"slots": cadence_of(self.stored_config)["slots"]}
        if form_data["rhythm"] == "hours":
            return {"every_hours": form_data["hours"]}
        grid = lane_cadence.Grid(tuple(form_data["days"]), lane_cadence.read_times(form_data["times"]) or ())
        return {"slots": grid.slots}


def values_of(source: Source) -> dict[str, Any]:
    """Return the initial values of an existing lane's form."""
    cadence = cadence_of(source.config)
    slots = cadence.get("slots")
    grid = lane_cadence.grid_of(slots) if slots else None
    rhythm = "hours"
    if slots:
        rhythm = "days" if grid else "kept"
    own_topics, pool = source.config.get("topics"), source.config.get("pool")
    return {
        **INITIAL_VALUES,
        **{name: getattr(source, name) for name in ("name", "engines", "outlets", "autopilot")},
        "persona": encode("per", source.persona_id) if source.persona_id else "",
        "scope": "own" if own_topics else "some" if pool else "all",
        "topics": pool or [],
        "rhythm": rhythm,
        "days": list(grid.days) if grid else INITIAL_VALUES["days"],
        "times": ", ".join(grid.times) if grid else INITIAL_VALUES["times"],
        "hours": cadence.get("every_hours", _EVERY_HOURS),
        "timezone": cadence.get("timezone", ""),
    }


def _topics_by_id(workspace: Workspace) -> dict[str, Topic]:
    """Return the topics that a lane of the workspace may take, by public id, sorted by title."""
    rows = Topic.objects.of(workspace).filter(test=False, source=None, deleted_at=None)
    return {
        encode("top", topic.pk): topic for topic in rows.select_related("persona").order_by("title", "id")
    }


def _topic_label(topic: Topic) -> str:
    persona_name = topic.persona.name if topic.persona else _("All personas")
    if not topic.is_active:
        persona_name = _("%(about)s · paused") % {"about": persona_name}
    return format_html('<span>{}<br><span class="soft small">{}</span></span>', topic.title, persona_name)
