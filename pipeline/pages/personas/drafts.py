"""A persona drafted from a site or past posts: asked for, watched, and put into the editor's form to be
saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors, show_at_fields
from accounts.pages.page_access import Place, page
from accounts.pages.polling import is_poll_for, polling_fragment
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.models import PersonaDraft, PersonaDraftStatus
from pipeline.pages.personas.editor import offer_way_back
from pipeline.pages.personas.forms import DraftForm, PersonaForm, values_of_draft
from pipeline.pages.personas.parts import CHANGED_MEANWHILE, find_persona
from pipeline.personas import crud as stage
from pipeline.personas import drafts
from pipeline.states import OPEN_DRAFTS

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import Persona

_LIVE_SECONDS: Final = 2
_PART: Final = "draft"


@page("edit")
def persona_draft_ask(request: HttpRequest, place: Place) -> HttpResponse:
    return _ask(request, place, None)


@page("edit")
def persona_draft_for(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    return _ask(request, place, find_persona(place, per))


def _ask(request: HttpRequest, place: Place, persona: Persona | None) -> HttpResponse:
    form = form_recovery.form_for(request, DraftForm)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("personas"))
        given = form.cleaned_data
        with report_errors(request, form):
            draft = drafts.request(
                place.workspace,
                persona=persona,
                url=given["url"],
                posts=given["posts"],
                by=place.user.email,
                now=utc_now(),
            )
            return redirect(place.address("persona_draft", pdr=draft.pk))
    return render(request, "pages/personas/draft_ask.html", {"form": form, "persona": persona})


@page("edit")
def persona_draft(request: HttpRequest, place: Place, pdr: UUID) -> HttpResponse:
    draft = _find(place, pdr)
    is_open = draft.status in OPEN_DRAFTS
    if not is_open and is_poll_for(request, _PART):
        # What is there now is more than the part that looks again: the form, or the way on.
        return HttpResponse(headers={"HX-Refresh": "true"})
    form = None
    if draft.status == PersonaDraftStatus.DONE and draft.sections is not None:
        form = form_recovery.form_for(
            request, PersonaForm, initial=values_of_draft(draft.sections, draft.persona)
        )
        if request.method == "POST" and form.is_valid():
            saved = _save(request, place, draft, form)
            if saved is not None:
                return saved
    context = {"draft": draft, "persona": draft.persona, "form": form}
    part = polling_fragment(
        request,
        _PART,
        "pages/personas/draft_state.html",
        context,
        interval_seconds=_LIVE_SECONDS if is_open else 0,
    )
    if isinstance(part, HttpResponse):
        return part
    again = (
        place.address("persona_draft_for", per=draft.persona_id)
        if draft.persona_id
        else place.address("persona_draft_ask")
    )
    return render(request, "pages/personas/draft.html", {**context, "live": part, "ask_again": again})


def _save(request: HttpRequest, place: Place, draft: PersonaDraft, form: PersonaForm) -> HttpResponse | None:
    """The persona that the form makes, or its next version; None where the form has to be shown again."""
    row, now, by = draft.persona, utc_now(), place.user.email
    if row is None and not form_recovery.is_first_sending(request):
        return redirect(place.address("personas"))
    try:
        if row is None:
            saved = stage.create(place.workspace, form.values(), by=by, now=now)
            messages.success(request, _("%(name)s created.") % {"name": saved.name})
        else:
            expected = form.cleaned_data["version"]
            saved = stage.change(row, form.values(), by=by, now=now, expected_version=expected)
            offer_way_back(request, place, saved, row.version)
    except Overtaken:
        form_recovery.allow_sending_again(request)
        messages.error(request, CHANGED_MEANWHILE)
        return redirect(place.address("persona_draft", pdr=draft.pk))
    except AppError as error:
        form_recovery.allow_sending_again(request)
        show_at_fields(form, error)
        return None
    return redirect(place.address("persona", per=saved.pk))


@page("edit", methods=("POST",))
def persona_draft_retry(request: HttpRequest, place: Place, pdr: UUID) -> HttpResponse:
    draft = _find(place, pdr)
    with report_errors(request):
        drafts.retry(draft, now=utc_now())
    return redirect(place.address("persona_draft", pdr=pdr))


def _find(place: Place, pdr: UUID) -> PersonaDraft:
    rows = PersonaDraft.objects.of(place.workspace).select_related("persona")
    found: PersonaDraft | None = rows.filter(pk=pdr).first()
    if found is None or (found.persona is not None and found.persona.deleted_at is not None):
        raise Http404
    return found
