"""The page that edits a workspace's defaults: persona, formats, outlets, and what becomes of late posts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from pipeline.models import LatePolicy
from pipeline.models.publication import MAX_LATENESS_MINUTES
from pipeline.pages import choices
from pipeline.workspace import defaults as stage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import Workspace


class DefaultsForm(forms.Form):
    persona = forms.ChoiceField(
        label=gettext_lazy("Persona"),
        help_text=gettext_lazy("Default persona"),
    )
    engines = forms.MultipleChoiceField(
        label=gettext_lazy("Formats"),
        help_text=gettext_lazy("Formats for new content, with their price"),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one.")},
    )
    outlets = forms.MultipleChoiceField(
        label=gettext_lazy("Outlets"),
        required=False,
        help_text=gettext_lazy("Outlets used when none are selected"),
        widget=forms.CheckboxSelectMultiple,
    )

    late_policy = forms.ChoiceField(
        label=gettext_lazy("Late posts"),
        required=False,
        choices=LatePolicy.choices,
        help_text=gettext_lazy("When a post misses its time"),
    )
    max_lateness_minutes = forms.IntegerField(
        label=gettext_lazy("Late after (minutes)"),
        required=False,
        min_value=1,
        max_value=MAX_LATENESS_MINUTES,
        help_text=gettext_lazy("Leave empty for 60"),
    )

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["persona"].choices = choices.personas(workspace)
        fields["engines"].choices = choices.engines()
        fields["outlets"].choices = choices.outlets(workspace)


@page("edit")
def defaults(request: HttpRequest, place: Place) -> HttpResponse:
    now = stage.read(place.workspace)
    initial = {
        "persona": now.persona,
        "engines": list(now.engines),
        "outlets": list(now.outlets),
        "late_policy": now.late_policy,
        "max_lateness_minutes": now.max_lateness_minutes,
    }
    form = form_recovery.form_for(request, DefaultsForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and form.is_valid():
        wanted = stage.Defaults(
            persona=form.cleaned_data["persona"],
            engines=_in_order(now.engines, form.cleaned_data["engines"]),
            outlets=_in_order(now.outlets, form.cleaned_data["outlets"]),
            late_policy=form.cleaned_data["late_policy"] or LatePolicy.PUBLISH,
            max_lateness_minutes=form.cleaned_data["max_lateness_minutes"],
        )
        with report_errors(request, form):
            stage.change(place.workspace, wanted, actor=place.user.email)
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.address("defaults"))
    return render(request, "pages/defaults.html", {"form": form})


def _in_order(before: tuple[str, ...], chosen: list[str]) -> tuple[str, ...]:
    """Those that stay keep their places, new ones come behind: boxes can't say an order."""
    return (*(one for one in before if one in chosen), *(one for one in chosen if one not in before))
