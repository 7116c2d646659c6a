"""Edits the sections of a persona, lists its versions, and restores one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors, show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.models.persona import VERSIONED_FIELDS
from pipeline.pages.personas.forms import PersonaForm, values_of
from pipeline.pages.personas.parts import CHANGED_MEANWHILE, find_persona, persona_head
from pipeline.personas import crud as stage

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Persona, PersonaVersion

_FIELD_LABELS: Final = {
    "name": gettext_lazy("name"),
    "handle": gettext_lazy("handle"),
    "language": gettext_lazy("language"),
    "links": gettext_lazy("links"),
    "brand": gettext_lazy("brand kit"),
    "who_you_are": gettext_lazy("identity"),
    "voice": gettext_lazy("voice"),
    "banned_words": gettext_lazy("banned words"),
    "required_structures": gettext_lazy("required structures"),
    "reference_posts": gettext_lazy("reference posts"),
    "approved_lines": gettext_lazy("approved lines"),
}


@workspace_page("edit")
def persona(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Show the editor, and save the persona as its next version on POST."""
    row = find_persona(place, per)
    form = kept_forms.form_for(request, PersonaForm, initial=values_of(row))
    if request.method == "POST" and form.is_valid():
        try:
            saved = stage.change(
                row,
                form.values(),
                by=place.user.email,
                now=utc_now(),
                expected_version=form.cleaned_data["version"],
            )
        except Overtaken:
            messages.error(request, CHANGED_MEANWHILE)
            return redirect(place.url_of("persona", per=per))
        except AppError as error:
            show_at_fields(form, error)
        else:
            offer_undo_of_version(request, place, saved, row.version)
            return redirect(place.url_of("persona", per=per))
    return render(request, "pages/personas/detail.html", {**persona_head(place, row, "editor"), "form": form})


def offer_undo_of_version(request: HttpRequest, place: Place, row: Persona, former_version: int) -> None:
    """Add a message about the saved version, with an undo to the former one; none if no version was made."""
    if row.version == former_version:
        return
    message = _("Saved as version %(number)d. Applies to new items.") % {"number": row.version}
    fields = {"number": str(former_version), "version": str(row.version)}
    offer_undo(request, message, place.url_of("persona_back", per=row.pk), fields)


@workspace_page("edit", methods=("GET",))
def persona_versions(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """List the versions, the newest first, with what each one changed."""
    row = find_persona(place, per)
    versions = stage.versions(row)
    rows = [
        {
            "version": version,
            "changed": _changed_fields(version, versions[index + 1 :]),
            "is_newest": index == 0,
        }
        for index, version in enumerate(versions)
    ]
    return render(
        request, "pages/personas/versions.html", {**persona_head(place, row, "versions"), "rows": rows}
    )


def _changed_fields(version: PersonaVersion, older: list[PersonaVersion]) -> str:
    """Return the labels of the fields that differ from the version before, or an empty text for the first one."""
    if not older:
        return ""
    before = older[0].content
    return ", ".join(
        str(_FIELD_LABELS[name]) for name in VERSIONED_FIELDS if version.content.get(name) != before.get(name)
    )


@workspace_page("edit", methods=("POST",))
def persona_back(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Restore a version as the newest one, with an undo; malformed numbers change nothing."""
    row = find_persona(place, per)
    number, version = (request.POST.get(name, "") for name in ("number", "version"))
    if number.isdecimal() and version.isdecimal():
        with report_errors(request, overtaken=CHANGED_MEANWHILE):
            changed = stage.restore_version(
                row, int(number), by=place.user.email, now=utc_now(), expected_version=int(version)
            )
            offer_undo_of_version(request, place, changed, row.version)
    return redirect(place.url_of("persona_versions", per=per))
