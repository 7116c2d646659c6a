"""The topic pool, as one persona sees it: add, change, pause, delete and take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import offer_undo, report_errors, show_at_fields
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.labels import Badge
from pipeline.models import Topic
from pipeline.pages.personas.parts import CHANGED_MEANWHILE, find_persona, persona_head
from pipeline.pages.topics.forms import TopicForm, values_of
from pipeline.personas import topics as stage
from pipeline.sources.brand import is_in_season

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Persona


def _of(place: Place, persona: Persona) -> Any:
    """Those that it may speak of: its own, and everybody's; a source's own list belongs to the source."""
    mine = Q(persona=persona) | Q(persona=None)
    return Topic.objects.of(place.workspace).filter(mine, test=False, source=None)


def _find(place: Place, persona: Persona, top: UUID, *, deleted: bool = False) -> Topic:
    rows = _of(place, persona).filter(pk=top)
    row: Topic = get_object_or_404(rows if deleted else rows.filter(deleted_at=None))
    return row


@page("edit", methods=("GET",))
def topics(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    persona = find_persona(place, per)
    today = utc_now().astimezone(ZoneInfo(place.workspace.timezone)).strftime("%m-%d")
    rows = [
        {"topic": one, "state": _state(one, today)}
        for one in _of(place, persona).filter(deleted_at=None).order_by("title", "id")
    ]
    return render(request, "pages/topics/list.html", {**persona_head(place, persona, "topics"), "rows": rows})


def _state(topic: Topic, today: str) -> Badge:
    """`today` is month and day, where the workspace is."""
    if not topic.is_active:
        return Badge("", "", _("Paused"))
    if not is_in_season(today, topic.season_from, topic.season_to):
        return Badge("info", "", _("Out of season"))
    return Badge("good", "", _("Active"))


@page("edit")
def topic_add(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    persona = find_persona(place, per)
    form = form_recovery.form_for(request, TopicForm)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("topics", per=per))
        with report_errors(request, form):
            made = stage.create(place.workspace, form.values(persona), now=utc_now())
            messages.success(request, _("%(title)s added.") % {"title": made.title})
            return redirect(place.address("topics", per=per))
    return render(
        request, "pages/topics/detail.html", {**persona_head(place, persona, "topics"), "form": form}
    )


@page("edit")
def topic(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    persona = find_persona(place, per)
    row = _find(place, persona, top)
    form = form_recovery.form_for(request, TopicForm, initial=values_of(row))
    if request.method == "POST" and form.is_valid():
        try:
            stage.change(
                row,
                form.changes(persona, row),
                now=utc_now(),
                expected_version=form.cleaned_data["version"],
            )
        except Overtaken:
            messages.error(request, CHANGED_MEANWHILE)
            return redirect(place.address("topic", per=per, top=top))
        except AppError as error:
            show_at_fields(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect(place.address("topics", per=per))
    context = {**persona_head(place, persona, "topics"), "form": form, "topic": row}
    return render(request, "pages/topics/detail.html", context)


@page("edit", methods=("POST",))
def topic_pause(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    """Pauses one that is in the pool, and puts a paused one back."""
    row = _find(place, find_persona(place, per), top)
    is_active = request.POST.get("active") == "yes"
    with report_errors(request):
        stage.change(row, {"is_active": is_active}, now=utc_now())
        said = _("%(title)s resumed.") if is_active else _("%(title)s paused.")
        messages.success(request, said % {"title": row.title})
    return redirect(place.address("topics", per=per))


@page("edit", methods=("POST",))
def topic_delete(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    row = _find(place, find_persona(place, per), top)
    with report_errors(request):
        stage.delete(row, now=utc_now())
        said = _("%(title)s deleted. Existing items stay.") % {"title": row.title}
        offer_undo(request, said, place.address("topic_restore", per=per, top=top))
    return redirect(place.address("topics", per=per))


@page("edit", methods=("POST",))
def topic_restore(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    row = _find(place, find_persona(place, per), top, deleted=True)
    stage.restore(row, now=utc_now())
    messages.success(request, _("%(title)s resumed.") % {"title": row.title})
    return redirect(place.address("topics", per=per))
