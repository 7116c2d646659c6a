"""What is done with a source by a click: pause, resume, poll now, delete, take that back, admit one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.pages import undo
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline.ingest import collect, push
from pipeline.models import RawItem
from pipeline.pages.sources.detail import find_source

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit", methods=("POST",))
def source_pause(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Pauses, and resumes with `active=yes`."""
    row = find_source(place, src)
    is_active = request.POST.get("active") == "yes"
    changes = {"status": "active" if is_active else "paused"}
    try:
        collect.change(row, changes, workspace=place.workspace, now=utc_now())
    except AppError as error:
        messages.error(request, str(error))
    else:
        said = _("%(name)s is on again.") if is_active else _("%(name)s is paused.")
        messages.success(request, said % {"name": row.name})
    return redirect(place.address("source_page", src=src))


@page("edit", methods=("POST",))
def source_poll(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    try:
        collect.poll_now(row, now=utc_now())
    except AppError as error:
        messages.error(request, str(error))
    else:
        said = (
            _("It is picking a topic; look again in a few seconds.")
            if row.type == "brand"
            else _("It is being polled; look again in a few seconds.")
        )
        messages.success(request, said)
    return redirect(place.address("source_page", src=src))


@page("edit", methods=("POST",))
def source_delete(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src)
    try:
        collect.delete(row, now=utc_now())
    except AppError as error:
        messages.error(request, str(error))
    else:
        said = _("%(name)s is deleted. What was made from it stays.") % {"name": row.name}
        undo.offer(request, said, place.address("source_restore", src=src))
    return redirect(place.address("sources_page"))


@page("edit", methods=("POST",))
def source_restore(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    row = find_source(place, src, deleted=True)
    try:
        restored = collect.restore(row, workspace=place.workspace, now=utc_now())
    except AppError as error:
        messages.error(request, str(error))
        return redirect(place.address("sources_page"))
    said = _("%(name)s is there again.") % {"name": restored.name}
    if restored.inbound_token:
        said += " " + _("Its inbound address is a new one.")
    messages.success(request, said)
    return redirect(place.address("source_page", src=src))


@page("edit", methods=("POST",))
def source_admit(request: HttpRequest, place: Place, src: UUID, raw: UUID) -> HttpResponse:
    """Have an entry made that was kept without being worked on."""
    row = find_source(place, src)
    kept = RawItem.objects.of(place.workspace).filter(pk=raw, source=row, deleted_at=None).first()
    if kept is None:
        raise Http404
    try:
        push.retry(kept, workspace=place.workspace, now=utc_now())
    except AppError as error:
        messages.error(request, str(error))
        return redirect(place.address("source_page", src=src))
    return redirect(place.address("made", raw=raw))
