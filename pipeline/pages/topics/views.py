"""Lists, adds, edits, pauses, deletes and restores the topics of one persona."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import Q
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import offer_undo, report_errors, show_at_fields
from accounts.pages.page_access import Place, workspace_page
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


def _topics_of(place: Place, persona: Persona) -> Any:
    """Return the topics that the persona may use: the persona's and those for all personas.

    A source's own topics are left out, because only that source uses them.
    """
    usable = Q(persona=persona) | Q(persona=None)
    return Topic.objects.of(place.workspace).filter(usable, test=False, source=None)


def _find_topic(place: Place, persona: Persona, top: UUID, *, deleted: bool = False) -> Topic:
    """Return a topic of the persona, also a deleted one with `deleted`; raises `Http404` if there is none."""
    rows = _topics_of(place, persona).filter(pk=top)
    topic: Topic = get_object_or_404(rows if deleted else rows.filter(deleted_at=None))
    return topic


@workspace_page("edit", methods=("GET",))
def topics(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """List the topics by title, with their state today in the workspace's time zone."""
    persona = find_persona(place, per)
    today = utc_now().astimezone(ZoneInfo(place.workspace.timezone)).strftime("%m-%d")
    rows = [
        {"topic": row, "state": _state_badge(row, today)}
        for row in _topics_of(place, persona).filter(deleted_at=None).order_by("title", "id")
    ]
    return render(request, "pages/topics/list.html", {**persona_head(place, persona, "topics"), "rows": rows})


def _state_badge(topic: Topic, today: str) -> Badge:
    """Return the badge of a topic: paused, out of season or active; `today` is MM-DD in the workspace's zone."""
    if not topic.is_active:
        return Badge("", "", _("Paused"))
    if not is_in_season(today, topic.season_from, topic.season_to):
        return Badge("info", "", _("Out of season"))
    return Badge("good", "", _("Active"))


@workspace_page("edit")
def topic_add(request: HttpRequest, place: Place, per: UUID) -> HttpResponse:
    """Add a topic; a double click adds one."""
    persona = find_persona(place, per)
    form = kept_forms.form_for(request, TopicForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("topics", per=per))
        with report_errors(request, form):
            created = stage.create(place.workspace, form.values(persona), now=utc_now())
            messages.success(request, _("%(title)s added.") % {"title": created.title})
            return redirect(place.url_of("topics", per=per))
    return render(
        request, "pages/topics/detail.html", {**persona_head(place, persona, "topics"), "form": form}
    )


@workspace_page("edit")
def topic(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    """Show the form of a topic, and save it on POST; a change of somebody else isn't overwritten."""
    persona = find_persona(place, per)
    row = _find_topic(place, persona, top)
    form = kept_forms.form_for(request, TopicForm, initial=values_of(row))
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
            return redirect(place.url_of("topic", per=per, top=top))
        except AppError as error:
            show_at_fields(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect(place.url_of("topics", per=per))
    context = {**persona_head(place, persona, "topics"), "form": form, "topic": row}
    return render(request, "pages/topics/detail.html", context)


@workspace_page("edit", methods=("POST",))
def topic_pause(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    """Pause a topic, or resume it with `active=yes`."""
    row = _find_topic(place, find_persona(place, per), top)
    is_active = request.POST.get("active") == "yes"
    with report_errors(request):
        stage.change(row, {"is_active": is_active}, now=utc_now())
        message = _("%(title)s resumed.") if is_active else _("%(title)s paused.")
        messages.success(request, message % {"title": row.title})
    return redirect(place.url_of("topics", per=per))


@workspace_page("edit", methods=("POST",))
def topic_delete(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    """Delete a topic, with an undo."""
    row = _find_topic(place, find_persona(place, per), top)
    with report_errors(request):
        stage.delete(row, now=utc_now())
        message = _("%(title)s deleted. Existing items stay.") % {"title": row.title}
        offer_undo(request, message, place.url_of("topic_restore", per=per, top=top))
    return redirect(place.url_of("topics", per=per))


@workspace_page("edit", methods=("POST",))
def topic_restore(request: HttpRequest, place: Place, per: UUID, top: UUID) -> HttpResponse:
    """Restore a deleted topic."""
    row = _find_topic(place, find_persona(place, per), top, deleted=True)
    stage.restore(row, now=utc_now())
    messages.success(request, _("%(title)s restored.") % {"title": row.title})
    return redirect(place.url_of("topics", per=per))
