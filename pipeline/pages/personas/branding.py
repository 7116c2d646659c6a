"""Shows and saves a persona's branding: colours, portrait and voice, next to samples made with them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, cast

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import decode
from config.core.middleware import body_limit
from config.core.states import Overtaken
from pipeline import limits
from pipeline.media import uploads
from pipeline.models import Upload
from pipeline.pages.personas.editor import offer_undo_of_version
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
_DEFAULT_PRIMARY: Final = "#1f3a5f"
_DEFAULT_ACCENT: Final = "#d9663b"


@body_limit(limits.UPLOAD_IMAGE_BYTES + 64 * 1024)
@workspace_page("edit")
def persona_look(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Show the branding and samples of it, and save it on POST.

    A POST with `try` saves nothing, and makes the samples of the entered text.
    """
    persona = find_persona(place, per)
    is_trial = request.method == "POST" and "try" in request.POST
    trial = TryPersonaForm(request.POST) if is_trial else TryPersonaForm(initial={"words": SAMPLE})
    form = LookForm(initial=_initial_values(persona)) if is_trial else _branding_form(request, persona)
    if not is_trial and request.method == "POST" and form.is_valid():
        changed = _save_branding(request, place, persona, form)
        if changed is not None:
            return redirect(place.url_of("persona_look", per=per))
    sample_text = str(SAMPLE)
    if is_trial:
        sample_text = trial.cleaned_data["words"] if trial.is_valid() else ""
    samples = stage.make_samples(persona, sample_text) if sample_text else []
    context = {
        **persona_head(place, persona, "look"),
        "form": form,
        "trial": trial,
        "samples": [_sample_context(sample) for sample in samples],
        "portrait": _portrait_url(place, persona),
    }
    return render(request, "pages/personas/branding.html", context)


def _branding_form(request: HttpRequest, persona: Persona) -> LookForm:
    """Return the form with what was posted, or with what the persona has."""
    files = {"files": request.FILES} if request.method == "POST" else {}
    return kept_forms.form_for(request, LookForm, initial=_initial_values(persona), **files)


def _initial_values(persona: Persona) -> dict[str, Any]:
    """Return the form's initial values, with default colours if the persona has none."""
    return {
        "own_colours": bool(persona.brand.get("primary") or persona.brand.get("accent")),
        "primary": persona.brand.get("primary", _DEFAULT_PRIMARY),
        "accent": persona.brand.get("accent", _DEFAULT_ACCENT),
        "voice_rate": persona.brand.get("voice_rate", ""),
        "voice_pitch": persona.brand.get("voice_pitch", ""),
        "version": persona.version,
    }


def _save_branding(request: HttpRequest, place: Place, persona: Persona, form: LookForm) -> Persona | None:
    """Save the persona and return it, or return `None` if that failed; the errors are added to the form's fields.

    If somebody else saved meanwhile, nothing is saved: the persona is returned unchanged, with an error message.
    """
    values = form.cleaned_data
    file: UploadedFile[Any] | None = values["portrait"]
    portrait = None
    if file:
        portrait = uploads.ReceivedFile(cast("BinaryIO", file.file), file.size or 0, file.name or "")
    brand_choices = stage.BrandChoices(
        primary=values["primary"] if values["own_colours"] else "",
        accent=values["accent"] if values["own_colours"] else "",
        portrait=portrait,
        without_portrait=values["without_portrait"],
        voice_rate=values["voice_rate"],
        voice_pitch=values["voice_pitch"],
    )
    try:
        changed = stage.change_brand(
            persona,
            brand_choices,
            workspace=place.workspace,
            by=place.user.email,
            now=utc_now(),
            expected_version=values["version"],
        )
    except Overtaken:
        messages.error(request, CHANGED_MEANWHILE)
        return persona
    except AppError as error:
        show_at_fields(form, error)
        return None
    offer_undo_of_version(request, place, changed, persona.version)
    return changed


def _portrait_url(place: Place, persona: Persona) -> str:
    """Return the portrait's path on this site, or an empty text if the persona has none."""
    key = decode("upl", str(persona.brand.get("portrait") or ""))
    if key is None:
        return ""
    secret = Upload.objects.of(place.workspace).filter(pk=key).values_list("secret", flat=True).first()
    return f"/media/{secret}/image" if secret else ""


def _sample_context(sample: stage.EngineSample) -> dict[str, Any]:
    """Return the template's context of a sample; `picture` is a data URL, or empty without a picture."""
    base64_data = base64.b64encode(sample.picture).decode() if sample.picture else ""
    return {"tried": sample, "picture": f"data:image/png;base64,{base64_data}" if base64_data else ""}
