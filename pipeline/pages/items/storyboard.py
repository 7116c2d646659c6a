"""A film's storyboard by page: its scenes with what stands on them, and what somebody makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.pages import typed
from accounts.pages.place import Place, page
from config.ground.errors import AppError
from config.ground.states import Overtaken
from pipeline.pages.items.forms import version_in
from pipeline.pages.items.one import find_item, head
from pipeline.pages.items.scenes import scenes_of
from pipeline.pages.items.storyboard_form import StoryboardForm
from pipeline.render.video import editing
from pipeline.stages import storyboards

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import GeneratedItem


@page("edit")
def item_storyboard(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Who was overtaken keeps what they typed, and may save it over what there is now."""
    row = find_item(place, gen)
    kept = storyboards.kept(row)
    if kept is None:
        messages.info(request, _("There is no film of it whose storyboard could be changed."))
        return redirect(place.address("item_page", gen=gen))
    form = typed.form_for(request, StoryboardForm, board=kept.board, version=row.version)
    overtaken = False
    if request.method == "POST" and form.is_valid():
        changed = form.board()
        if changed is not None:
            try:
                return _save(request, place, row, form)
            except Overtaken:
                overtaken = True
                row = find_item(place, gen)
                kept = storyboards.kept(row) or kept
                form = StoryboardForm(form.data, board=kept.board, version=row.version)
                form.take_over()
            except AppError as error:
                form.blame(error)
    context = {
        **head(place, row),
        "form": form,
        "overtaken": overtaken,
        "fixed": editing.why_fixed(kept.board),
        "scenes": form.scenes(scenes_of(kept)),
        "duration": kept.board.duration,
    }
    return render(request, "pages/item_storyboard.html", context)


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: StoryboardForm) -> HttpResponse:
    changed = form.board()
    expected = version_in(request.POST)
    if changed is None or expected is None:
        raise Http404
    before = row.revision
    edited = storyboards.edit(
        row, changed, by=place.user.email, now=timezone.now(), expected_version=expected
    )
    if edited.revision == before:
        messages.info(request, _("Nothing was changed."))
    else:
        messages.success(request, _("Saved. It is filmed again; no model is asked, and it costs no credits."))
    return redirect(place.address("item_page", gen=row.pk))
