"""One persona: its five sections, and its versions with a way back to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.pages import form_recovery, undo
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline.models.persona import CONTENT
from pipeline.pages.personas.forms import PersonaForm, values_of
from pipeline.pages.personas.parts import find_persona, head, tell
from pipeline.personas import crud as stage

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Persona, PersonaVersion

_TOLD: Final = {
    "name": gettext_lazy("name"),
    "handle": gettext_lazy("handle"),
    "language": gettext_lazy("language"),
    "links": gettext_lazy("links"),
    "brand": gettext_lazy("brand kit"),
    "who_you_are": gettext_lazy("who you are"),
    "voice": gettext_lazy("voice"),
    "banned_words": gettext_lazy("banned words"),
    "required_structures": gettext_lazy("required structures"),
    "reference_posts": gettext_lazy("reference posts"),
    "approved_lines": gettext_lazy("approved lines"),
}


@page("edit")
def persona(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    row = find_persona(place, per)
    form = form_recovery.form_for(request, PersonaForm, initial=values_of(row))
    if request.method == "POST" and form.is_valid():
        try:
            changed = stage.change(
                row,
                form.values(),
                by=place.user.email,
                now=utc_now(),
                expected_version=form.cleaned_data["version"],
            )
        except AppError as error:
            if error.code == "version_conflict":
                tell(request, error)
                return redirect(place.address("persona", per=per))
            blame_structure(form, error)
        else:
            offer_undo(request, place, changed, row.version)
            return redirect(place.address("persona", per=per))
    return render(request, "pages/personas/detail.html", {**head(place, row, "editor"), "form": form})


def blame_structure(form: PersonaForm, error: AppError) -> None:
    """A fault of one structure stands at its own field."""
    structures = form.values()["required_structures"]
    for detail in error.detail:
        field = (detail.field or "").split("[")[0].split(".")[0]
        if field == "required_structures" and "[" in (detail.field or ""):
            number = int((detail.field or "").split("[")[1].split("]")[0])
            field = structures[number]["kind"]
        form.add_error(field if field in form.fields else None, detail.message)


def offer_undo(request: HttpRequest, place: Place, row: Persona, before: int) -> None:
    if row.version == before:
        return
    said = _("Saved as version %(number)d. What is made from now on follows it.") % {"number": row.version}
    fields = {"number": str(before), "version": str(row.version)}
    undo.offer(request, said, place.address("persona_back", per=row.pk), fields)


@page("edit", methods=("GET",))
def persona_versions(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    row = find_persona(place, per)
    kept = stage.versions(row)
    rows = [
        {"version": one, "changed": _changed(one, kept[index + 1 :]), "is_newest": index == 0}
        for index, one in enumerate(kept)
    ]
    return render(request, "pages/personas/versions.html", {**head(place, row, "versions"), "rows": rows})


def _changed(version: PersonaVersion, older: list[PersonaVersion]) -> str:
    if not older:
        return ""
    before = older[0].content
    return ", ".join(str(_TOLD[name]) for name in CONTENT if version.content.get(name) != before.get(name))


@page("edit", methods=("POST",))
def persona_back(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    row = find_persona(place, per)
    number, version = (request.POST.get(name, "") for name in ("number", "version"))
    if number.isdecimal() and version.isdecimal():
        try:
            changed = stage.go_back_to(
                row, int(number), by=place.user.email, now=utc_now(), expected_version=int(version)
            )
        except AppError as error:
            tell(request, error)
        else:
            offer_undo(request, place, changed, row.version)
    return redirect(place.address("persona_versions", per=per))
