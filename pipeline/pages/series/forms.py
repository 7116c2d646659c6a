"""The form of a series: when its digests are made, of what, and where they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from config.core.ids import decode, encode
from pipeline import limits
from pipeline.engines.newsletter_digest import MAX_STORIES, MIN_STORIES
from pipeline.models import Outlet, Source
from pipeline.pages import choices
from pipeline.pages.queues.forms import QueueForm, by_day

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from accounts.models import Workspace
    from pipeline.models import Series

SOURCES_OFFERED = 200
_LISTS: Final = ("sources", "outlets")


class SeriesForm(QueueForm):
    """The times of a week as a queue has them, and what a digest is made of."""

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
        zone = series.timezone if series else workspace.timezone
        known = fields["timezone"].choices
        fields["timezone"].choices = known if zone in dict(known) else [(zone, zone), *known]
        fields["outlets"].label = _("Outlets")
        fields["outlets"].help_text = _("Leave empty for the default")
        kept = series.outlets if series else ()
        fields["outlets"].choices = [
            *(offered := choices.outlets(workspace)),
            *_others(kept, offered, Outlet.objects.of(workspace), "out", _("Another outlet")),
        ]
        rows = Source.objects.of(workspace).filter(deleted_at=None, test=False).order_by("id")
        named = rows.values_list("id", "name")[:SOURCES_OFFERED]
        kept = series.sources if series else ()
        fields["sources"].choices = [
            *(offered := [(encode("src", key), name) for key, name in named]),
            *_others(kept, offered, Source.objects.of(workspace), "src", _("Another source")),
        ]
        fields["persona"].choices = [("", _("Default")), *choices.personas(workspace)]

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        if not given["slots"] and not any(day.name in self.errors for day in self.days):
            self.add_error("day_0", _("Enter a time."))
        least, most = given.get("items_least"), given.get("items_most")
        if least and most and least > most:
            self.add_error("items_most", _("Enter at least the minimum."))
        return given

    def values(self) -> dict[str, Any]:
        given = self.cleaned_data
        named = (
            "name",
            "timezone",
            "slots",
            "on_gap",
            "on_overlap",
            "window_days",
            "items_least",
            "items_most",
        )
        persona = decode("per", given["persona"]) if given["persona"] else None
        lists = {name: given[name] for name in _LISTS}
        return {name: given[name] for name in named} | lists | {"persona_id": persona}

    def changes(self, row: Series) -> dict[str, Any]:
        """What it says otherwise than the series: what that names and is gone meanwhile stays, and isn't judged anew."""
        return {
            name: value
            for name, value in self.values().items()
            if (set(value) != set(getattr(row, name)) if name in _LISTS else value != getattr(row, name))
        }

    def take_newest(self, version: int) -> None:
        super().take_newest(version)
        del self.errors["__all__"]
        message = _("Edited since you opened it. Save again to overwrite, or cancel to see it.")
        self.add_error(None, message)

    def field_of(self, path: str) -> str:
        return super().field_of(path.partition("[")[0])


def _others(
    kept: Sequence[str], offered: choices.Choices, rows: QuerySet[Any], prefix: str, unknown: str
) -> choices.Choices:
    """What a series names beside what is offered: saving its form must not drop it unseen, or it would take all."""
    missing = [one for one in kept if one not in dict(offered)]
    if not missing:
        return []
    there = rows.filter(pk__in=[key for one in missing if (key := decode(prefix, one))])
    names = {
        encode(prefix, key): name if deleted_at is None else _("%(name)s (deleted)") % {"name": name}
        for key, name, deleted_at in there.values_list("id", "name", "deleted_at")
    }
    return [(one, names.get(one) or unknown) for one in missing]


def values_of(series: Series) -> dict[str, Any]:
    """What the form of a series that is there begins with."""
    named = (
        *("name", "timezone", "on_gap", "on_overlap", "version"),
        *("window_days", "items_least", "items_most", "sources", "outlets"),
    )
    persona = encode("per", series.persona_id) if series.persona_id else ""
    return {**{name: getattr(series, name) for name in named}, **by_day(series.slots), "persona": persona}
