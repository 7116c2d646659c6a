"""Defines the form of a series: when its digests are made, of what, and for which outlets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import timezones
from config.core.ids import decode, encode
from pipeline import limits
from pipeline.engines.newsletter_digest import MAX_STORIES, MIN_STORIES
from pipeline.models import Outlet, Source
from pipeline.pages import form_choices
from pipeline.pages.queues.forms import QueueForm, by_day

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from accounts.models import Workspace
    from pipeline.models import Series

SOURCES_OFFERED: Final = 200
"""The most sources that the form lists."""
_LIST_FIELDS: Final = ("sources", "outlets")


class SeriesForm(QueueForm):
    """The form of a series: that of a queue, which has the times of a week, and what a digest is made of."""

    window_days = forms.IntegerField(
        label=gettext_lazy("Days to look back"),
        min_value=1,
        max_value=limits.SERIES_WINDOW_DAYS,
        initial=7,
        help_text=gettext_lazy("Older content is skipped"),
    )
    items_least = forms.IntegerField(
        label=gettext_lazy("Minimum stories"),
        min_value=MIN_STORIES,
        max_value=MAX_STORIES,
        initial=3,
        help_text=gettext_lazy("No digest with fewer"),
    )
    items_most = forms.IntegerField(
        label=gettext_lazy("Maximum stories"), min_value=MIN_STORIES, max_value=MAX_STORIES, initial=7
    )
    sources = forms.MultipleChoiceField(
        label=gettext_lazy("Sources"),
        required=False,
        help_text=gettext_lazy("Leave empty for all"),
        widget=forms.CheckboxSelectMultiple,
    )
    persona = forms.ChoiceField(label=gettext_lazy("Persona"), required=False)

    def __init__(self, *args: Any, workspace: Workspace, series: Series | None = None, **kwargs: Any) -> None:
        super().__init__(*args, workspace=workspace, **kwargs)
        fields: Any = self.fields
        fields["timezone"].choices = timezones.timezone_choices(
            series.timezone if series else workspace.timezone
        )
        fields["outlets"].label = _("Outlets")
        fields["outlets"].help_text = _("Leave empty for the default")
        selected = series.outlets if series else ()
        fields["outlets"].choices = [
            *(offered := form_choices.outlet_choices(workspace)),
            *_missing_choices(selected, offered, Outlet.objects.of(workspace), "out", _("Another outlet")),
        ]
        rows = Source.objects.of(workspace).filter(deleted_at=None, test=False).order_by("id")
        source_names = rows.values_list("id", "name")[:SOURCES_OFFERED]
        selected = series.sources if series else ()
        fields["sources"].choices = [
            *(offered := [(encode("src", key), name) for key, name in source_names]),
            *_missing_choices(selected, offered, Source.objects.of(workspace), "src", _("Another source")),
        ]
        fields["persona"].choices = [("", _("Default")), *form_choices.persona_choices(workspace)]

    def clean(self) -> dict[str, Any]:
        """Require a time, and a maximum of stories that is at least the minimum."""
        cleaned = super().clean()
        if not cleaned["slots"] and not any(day.name in self.errors for day in self.days):
            self.add_error("day_0", _("Enter a time."))
        min_stories, max_stories = cleaned.get("items_least"), cleaned.get("items_most")
        if min_stories and max_stories and min_stories > max_stories:
            self.add_error("items_most", _("Enter at least the minimum."))
        return cleaned

    def values(self) -> dict[str, Any]:
        """Return the values as `pipeline.schedule.series` takes them."""
        cleaned = self.cleaned_data
        field_names = (
            "name",
            "timezone",
            "slots",
            "on_gap",
            "on_overlap",
            "window_days",
            "items_least",
            "items_most",
        )
        persona = decode("per", cleaned["persona"]) if cleaned["persona"] else None
        lists = {name: cleaned[name] for name in _LIST_FIELDS}
        return {name: cleaned[name] for name in field_names} | lists | {"persona_id": persona}

    def changes(self, row: Series) -> dict[str, Any]:
        """Return only the values that differ from those of the series; the order in lists doesn't matter.

        Sources and outlets that were deleted stay with the series, because unchanged lists aren't validated again.
        """
        return {
            name: value
            for name, value in self.values().items()
            if (
                set(value) != set(getattr(row, name)) if name in _LIST_FIELDS else value != getattr(row, name)
            )
        }

    def field_of(self, path: str) -> str:
        """Return the field at which an error of this path, such as `sources[2]`, is shown."""
        return super().field_of(path.partition("[")[0])


def _missing_choices(
    selected: Sequence[str], offered: form_choices.Choices, rows: QuerySet[Any], prefix: str, unknown: str
) -> form_choices.Choices:
    """Return choices for what the series names and the form doesn't offer, such as deleted sources.

    Without them, saving the form would silently drop these, and an empty list would stand for all.
    """
    missing = [public_id for public_id in selected if public_id not in dict(offered)]
    if not missing:
        return []
    existing = rows.filter(pk__in=[key for public_id in missing if (key := decode(prefix, public_id))])
    names = {
        encode(prefix, key): name if deleted_at is None else _("%(name)s (deleted)") % {"name": name}
        for key, name, deleted_at in existing.values_list("id", "name", "deleted_at")
    }
    return [(public_id, names.get(public_id) or unknown) for public_id in missing]


def values_of(series: Series) -> dict[str, Any]:
    """Return the initial values of the form of an existing series."""
    field_names = (
        *("name", "timezone", "on_gap", "on_overlap", "version"),
        *("window_days", "items_least", "items_most", "sources", "outlets"),
    )
    persona = encode("per", series.persona_id) if series.persona_id else ""
    return {
        **{name: getattr(series, name) for name in field_names},
        **by_day(series.slots),
        "persona": persona,
    }
