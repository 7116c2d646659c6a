"""Edits a workspace's defaults: persona, formats, outlets, and what happens to late posts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from pipeline.models import LatePolicy
from pipeline.models.publication import MAX_LATENESS_MINUTES
from pipeline.pages import form_choices
from pipeline.workspace import defaults as stage

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import Workspace


class DefaultsForm(forms.Form):
    """The defaults of new content, and how late a post may be published."""

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
        fields["persona"].choices = form_choices.persona_choices(workspace)
        fields["engines"].choices = form_choices.engine_choices()
        fields["outlets"].choices = form_choices.outlet_choices(workspace)


@workspace_page("edit")
def defaults(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the form, and save it on POST; items that exist already don't change."""
    current = stage.read(place.workspace)
    initial = {
        "persona": current.persona,
        "engines": list(current.engines),
        "outlets": list(current.outlets),
        "late_policy": current.late_policy,
        "max_lateness_minutes": current.max_lateness_minutes,
    }
    form = kept_forms.form_for(request, DefaultsForm, workspace=place.workspace, initial=initial)
    if request.method == "POST" and form.is_valid():
        new_defaults = stage.Defaults(
            persona=form.cleaned_data["persona"],
            engines=_keep_order(current.engines, form.cleaned_data["engines"]),
            outlets=_keep_order(current.outlets, form.cleaned_data["outlets"]),
            late_policy=form.cleaned_data["late_policy"] or LatePolicy.PUBLISH,
            max_lateness_minutes=form.cleaned_data["max_lateness_minutes"],
        )
        with report_errors(request, form):
            stage.change(place.workspace, new_defaults, actor=place.user.email)
            messages.success(request, _("Saved. Applies to new content."))
            return redirect(place.url_of("defaults"))
    return render(request, "pages/defaults.html", {"form": form})


def _keep_order(before: tuple[str, ...], chosen: list[str]) -> tuple[str, ...]:
    """Return the chosen values: first those that were stored before, in their order, then the new ones.

    The stored order is kept because checkboxes can't express one.
    """
    return (
        *(value for value in before if value in chosen),
        *(value for value in chosen if value not in before),
    )
