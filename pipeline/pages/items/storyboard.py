"""A film's storyboard by page: its scenes with what stands on them, and what somebody makes of them.

What was typed can be seen as a small film before it is saved. The answer to that is the film alone, which a browser
saves as a file; `static/js/storyboard.js` shows it on the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.workspace_view import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken, refuse_other_version
from pipeline.pages.items.detail import find_item, head
from pipeline.pages.items.forms import version_in
from pipeline.pages.items.scenes import scenes_of
from pipeline.pages.items.storyboard_form import StoryboardForm
from pipeline.render.video import storyboard_edits
from pipeline.review import film_preview, storyboards

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem
    from pipeline.render.video.storyboard import Storyboard


@page("edit")
def item_storyboard(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Who was overtaken keeps what they typed, and may save it over what there is now."""
    row = find_item(place, gen)
    kept = storyboards.kept(row)
    if kept is None:
        messages.info(request, _("There is no film of it whose storyboard could be changed."))
        return redirect(place.address("item_page", gen=gen))
    form = form_recovery.form_for(request, StoryboardForm, board=kept.board, version=row.version)
    overtaken = False
    is_preview = "preview" in request.POST
    status = 422 if is_preview else 200
    if request.method == "POST" and form.is_valid():
        changed = form.board()
        if changed is not None:
            try:
                if is_preview:
                    refuse_other_version(row.version, version_in(request.POST))
                    return _preview(row, changed)
                return _save(request, place, row, form)
            except Overtaken:
                overtaken = True
                row = find_item(place, gen)
                kept = storyboards.kept(row) or kept
                form = StoryboardForm(form.data, board=kept.board, version=row.version)
                form.take_over()
            except AppError as error:
                form.blame(error)
                if isinstance(error, film_preview.NoPreview):
                    # Nothing of what was typed is wrong.
                    status = 409
    context = {
        **head(place, row),
        "form": form,
        "overtaken": overtaken,
        "fixed": storyboard_edits.why_fixed(kept.board),
        "scenes": form.scenes(scenes_of(kept)),
        "duration": kept.board.duration,
    }
    return render(request, "pages/items/storyboard.html", context, status=status)


def _preview(row: GeneratedItem, changed: Storyboard) -> HttpResponse:
    headers = {"Content-Disposition": 'attachment; filename="preview.mp4"'}
    return HttpResponse(film_preview.preview(row, changed), content_type="video/mp4", headers=headers)


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: StoryboardForm) -> HttpResponse:
    changed = form.board()
    expected = version_in(request.POST)
    if changed is None or expected is None:
        raise Http404
    before = row.revision
    edited = storyboards.edit(row, changed, by=place.user.email, now=utc_now(), expected_version=expected)
    if edited.revision == before:
        messages.info(request, _("Nothing was changed."))
    else:
        messages.success(request, _("Saved. It is filmed again; no model is asked, and it costs no credits."))
    return redirect(place.address("item_page", gen=row.pk))
