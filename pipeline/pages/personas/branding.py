"""How a persona looks: its colours and portrait, beside what it would make of some words."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import decode
from config.core.middleware import body_limit
from config.core.states import Overtaken
from pipeline import limits
from pipeline.media import uploads
from pipeline.models import Upload
from pipeline.pages.personas.editor import offer_way_back
from pipeline.pages.personas.forms import LookForm, TryPersonaForm
from pipeline.pages.personas.parts import CHANGED_MEANWHILE, find_persona, persona_head
from pipeline.personas import branding as stage

if TYPE_CHECKING:
    from typing import BinaryIO
    from uuid import UUID

    from django.core.files.uploadedfile import UploadedFile
    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Persona

SAMPLE: Final = _(
    "From Monday on, the harbour ferries run every ten minutes. The first boat leaves at six in the morning. "
    "Bicycles travel free of charge until the end of March."
)
_GROUND: Final = "#1f3a5f"
_ACCENT: Final = "#d9663b"


@body_limit(limits.UPLOAD_IMAGE_BYTES + 64 * 1024)
@page("edit")
def persona_look(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    row = find_persona(place, per)
    is_trial = request.method == "POST" and "try" in request.POST
    trial = TryPersonaForm(request.POST) if is_trial else TryPersonaForm(initial={"words": SAMPLE})
    form = LookForm(initial=_initial(row)) if is_trial else _look_form(request, row)
    if not is_trial and request.method == "POST" and form.is_valid():
        changed = _save(request, place, row, form)
        if changed is not None:
            return redirect(place.address("persona_look", per=per))
    words = str(SAMPLE)
    if is_trial:
        words = trial.cleaned_data["words"] if trial.is_valid() else ""
    context = {
        **persona_head(place, row, "look"),
        "form": form,
        "trial": trial,
        "samples": [_shown(one) for one in stage.make_samples(row, words)] if words else [],
        "portrait": _portrait(place, row),
    }
    return render(request, "pages/personas/branding.html", context)


def _look_form(request: HttpRequest, row: Persona) -> LookForm:
    files = {"files": request.FILES} if request.method == "POST" else {}
    return form_recovery.form_for(request, LookForm, initial=_initial(row), **files)


def _initial(row: Persona) -> dict[str, Any]:
    return {
        "own_colours": bool(row.brand.get("primary") or row.brand.get("accent")),
        "primary": row.brand.get("primary", _GROUND),
        "accent": row.brand.get("accent", _ACCENT),
        "voice_rate": row.brand.get("voice_rate", ""),
        "voice_pitch": row.brand.get("voice_pitch", ""),
        "version": row.version,
    }


def _save(request: HttpRequest, place: Place, row: Persona, form: LookForm) -> Persona | None:
    given = form.cleaned_data
    file: UploadedFile[Any] | None = given["portrait"]
    chosen = stage.BrandChoices(
        primary=given["primary"] if given["own_colours"] else "",
        accent=given["accent"] if given["own_colours"] else "",
        portrait=uploads.ReceivedFile(cast("BinaryIO", file.file), file.size or 0, file.name or "")
        if file
        else None,
        without_portrait=given["without_portrait"],
        voice_rate=given["voice_rate"],
        voice_pitch=given["voice_pitch"],
    )
    try:
        changed = stage.change_brand(
            row,
            chosen,
            workspace=place.workspace,
            by=place.user.email,
            now=utc_now(),
            expected_version=given["version"],
        )
    except Overtaken:
        messages.error(request, CHANGED_MEANWHILE)
        return row
    except AppError as error:
        show_at_fields(form, error)
        return None
    offer_way_back(request, place, changed, row.version)
    return changed


def _portrait(place: Place, row: Persona) -> str:
    """The portrait's address below this site's own; empty where there is none."""
    key = decode("upl", str(row.brand.get("portrait") or ""))
    if key is None:
        return ""
    secret = Upload.objects.of(place.workspace).filter(pk=key).values_list("secret", flat=True).first()
    return f"/media/{secret}/image" if secret else ""


def _shown(one: stage.EngineSample) -> dict[str, Any]:
    data = base64.b64encode(one.picture).decode() if one.picture else ""
    return {"tried": one, "picture": f"data:image/png;base64,{data}" if data else ""}
