"""Requests persona drafts from a site or past posts, shows their state, and saves them as a persona."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors, show_at_fields
from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for, polling_fragment
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.models import PersonaDraft, PersonaDraftStatus
from pipeline.pages.personas.editor import offer_undo_of_version
from pipeline.pages.personas.forms import DraftForm, PersonaForm, values_of_draft
from pipeline.pages.personas.parts import CHANGED_MEANWHILE, find_persona
from pipeline.personas import crud as stage
from pipeline.personas import drafts
from pipeline.states import OPEN_DRAFTS

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import Persona

_POLL_SECONDS: Final = 2
_PART: Final = "draft"


@workspace_page("edit")
def persona_draft_ask(request: HttpRequest, place: Place) -> HttpResponse:
    """Request a draft of a new persona."""
    return _request_draft(request, place, None)


@workspace_page("edit")
def persona_draft_for(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Request a draft of new sections for the persona."""
    return _request_draft(request, place, find_persona(place, per))


def _request_draft(request: HttpRequest, place: Place, persona: Persona | None) -> HttpResponse:
    """Show the form, and request the draft on its first POST; a double click requests one."""
    form = kept_forms.form_for(request, DraftForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("personas"))
        values = form.cleaned_data
        with report_errors(request, form):
            draft = drafts.request(
                place.workspace,
                persona=persona,
                url=values["url"],
                posts=values["posts"],
                by=place.user.email,
                now=utc_now(),
            )
            return redirect(place.url_of("persona_draft", pdr=draft.pk))
    return render(request, "pages/personas/draft_ask.html", {"form": form, "persona": persona})


@workspace_page("edit")
def persona_draft(request: HttpRequest, place: Place, pdr: UUID) -> HttpResponse:
    """Show the state of the draft, which polls until the draft ends, and then the editor's form with the draft.

    A POST saves the form. A poll after the draft's end makes the browser reload the page.
    """
    draft = _find_draft(place, pdr)
    is_open = draft.status in OPEN_DRAFTS
    if not is_open and is_poll_for(request, _PART):
        # The form and the retry button of a draft that has ended are outside of the fragment that polls.
        return HttpResponse(headers={"HX-Refresh": "true"})
    form = None
    if draft.status == PersonaDraftStatus.DONE and draft.sections is not None:
        form = kept_forms.form_for(
            request, PersonaForm, initial=values_of_draft(draft.sections, draft.persona)
        )
        if request.method == "POST" and form.is_valid():
            save_response = _save_draft(request, place, draft, form)
            if save_response is not None:
                return save_response
    context = {"draft": draft, "persona": draft.persona, "form": form}
    fragment = polling_fragment(
        request,
        _PART,
        "pages/personas/draft_state.html",
        context,
        interval_seconds=_POLL_SECONDS if is_open else 0,
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    ask_again_url = (
        place.url_of("persona_draft_for", per=draft.persona_id)
        if draft.persona_id
        else place.url_of("persona_draft_ask")
    )
    return render(
        request, "pages/personas/draft.html", {**context, "live": fragment, "ask_again": ask_again_url}
    )


def _save_draft(
    request: HttpRequest, place: Place, draft: PersonaDraft, form: PersonaForm
) -> HttpResponse | None:
    """Save the form as a new persona, or as the next version of the draft's persona, and redirect to it.

    If somebody else saved meanwhile, redirects to the draft with an error message. Returns `None` if saving failed for
    another reason, which becomes an error of the form.
    """
    persona, now, by = draft.persona, utc_now(), place.user.email
    if persona is None and not kept_forms.is_first_sending(request):
        return redirect(place.url_of("personas"))
    try:
        if persona is None:
            saved = stage.create(place.workspace, form.values(), by=by, now=now)
            messages.success(request, _("%(name)s created.") % {"name": saved.name})
        else:
            expected = form.cleaned_data["version"]
            saved = stage.change(persona, form.values(), by=by, now=now, expected_version=expected)
            offer_undo_of_version(request, place, saved, persona.version)
    except Overtaken:
        kept_forms.allow_sending_again(request)
        messages.error(request, CHANGED_MEANWHILE)
        return redirect(place.url_of("persona_draft", pdr=draft.pk))
    except AppError as error:
        kept_forms.allow_sending_again(request)
        show_at_fields(form, error)
        return None
    return redirect(place.url_of("persona", per=saved.pk))


@workspace_page("edit", methods=("POST",))
def persona_draft_retry(request: HttpRequest, place: Place, pdr: UUID) -> HttpResponse:
    """Run a failed draft again."""
    draft = _find_draft(place, pdr)
    with report_errors(request):
        drafts.retry(draft, now=utc_now())
    return redirect(place.url_of("persona_draft", pdr=pdr))


def _find_draft(place: Place, pdr: UUID) -> PersonaDraft:
    """Return the draft; raises `Http404` if there is none, or if its persona was deleted."""
    rows = PersonaDraft.objects.of(place.workspace).select_related("persona")
    draft: PersonaDraft | None = rows.filter(pk=pdr).first()
    if draft is None or (draft.persona is not None and draft.persona.deleted_at is not None):
        raise Http404
    return draft
