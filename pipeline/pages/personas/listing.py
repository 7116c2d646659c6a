"""Lists, creates, deletes and restores the personas of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline.models import Persona, WorkspaceDefaults
from pipeline.pages.personas.forms import NewPersonaForm
from pipeline.pages.personas.parts import find_persona
from pipeline.personas import crud as stage

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("look", methods=("GET",))
def personas(request: HttpRequest, place: Place) -> HttpResponse:
    """List the personas by name, and mark the default one."""
    active_personas = Persona.objects.of(place.workspace).filter(deleted_at=None).order_by("name", "id")
    defaults = WorkspaceDefaults.objects.of(place.workspace).first()
    context = {
        "rows": list(active_personas),
        "default": defaults.persona_id if defaults else None,
    }
    return render(request, "pages/personas/list.html", context)


@workspace_page("edit")
def persona_create(request: HttpRequest, place: Place) -> HttpResponse:
    """Create a persona and redirect to its editor; a double click creates one."""
    form = kept_forms.form_for(request, NewPersonaForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("personas"))
        with report_errors(request, form):
            created = stage.create(place.workspace, form.cleaned_data, by=place.user.email, now=utc_now())
            messages.success(request, _("%(name)s created. Describe its identity.") % {"name": created.name})
            return redirect(place.url_of("persona", per=created.pk))
    return render(request, "pages/personas/create.html", {"form": form})


@workspace_page("edit", methods=("POST",))
def persona_delete(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Delete a persona, with an undo."""
    persona = find_persona(place, per)
    with report_errors(request):
        stage.delete(persona, by=place.user.email, now=utc_now())
        message = _("%(name)s deleted. Existing items stay.") % {"name": persona.name}
        offer_undo(request, message, place.url_of("persona_restore", per=per))
        return redirect(place.url_of("personas"))
    return redirect(place.url_of("persona", per=per))


@workspace_page("edit", methods=("POST",))
def persona_restore(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Restore a deleted persona."""
    persona = find_persona(place, per, deleted=True)
    with report_errors(request):
        stage.restore(persona, by=place.user.email, now=utc_now())
        messages.success(request, _("%(name)s restored.") % {"name": persona.name})
    return redirect(place.url_of("persona", per=per))
