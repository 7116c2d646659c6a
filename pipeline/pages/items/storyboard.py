"""A film's storyboard by page: its scenes with what stands on them, and what somebody makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.pages.items import display
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import version_in
from pipeline.pages.items.scene_display import scenes_of
from pipeline.pages.items.storyboard_form import StoryboardForm
from pipeline.render.video import storyboard_rearrange
from pipeline.review import storyboards

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem


@page("edit")
def item_storyboard(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Who was overtaken keeps what they typed, and may save it over what there is now."""
    row = find_item(place, gen)
    kept = storyboards.stored_storyboard(row)
    if kept is None:
        messages.info(request, _("This item has no editable storyboard."))
        return redirect(place.address("item_page", gen=gen))
    form = form_recovery.form_for(request, StoryboardForm, board=kept.board, version=row.version)
    overtaken = ""
    if request.method == "POST" and form.is_valid() and form.board() is not None:
        try:
            return _save(request, place, row, form)
        except Overtaken:
            row = find_item(place, gen)
            overtaken = display.overtaken_by(row, place.user.email)
            kept = storyboards.stored_storyboard(row) or kept
            form = StoryboardForm(form.data, board=kept.board, version=row.version)
            form.merge_with_newest()
        except AppError as error:
            show_at_fields(form, error)
    context = {
        **item_head(place, row),
        "form": form,
        "overtaken": overtaken,
        "fixed": storyboard_rearrange.fixed_scenes_reason(kept.board),
        "scenes": form.scenes(scenes_of(kept)),
        "duration": kept.board.duration,
    }
    return render(request, "pages/items/storyboard.html", context)


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: StoryboardForm) -> HttpResponse:
    changed = form.board()
    expected = version_in(request.POST)
    if changed is None or expected is None:
        raise Http404
    before = row.revision
    edited = storyboards.edit(row, changed, by=place.user.email, now=utc_now(), expected_version=expected)
    if edited.revision == before:
        messages.info(request, _("No changes."))
    else:
        messages.success(request, _("Saved. Rendering the video (free)."))
    return redirect(place.address("item_page", gen=row.pk))
