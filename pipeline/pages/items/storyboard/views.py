"""Edits a film's storyboard: its scenes, the text on them, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.states import Overtaken
from pipeline.pages.items import display
from pipeline.pages.items.detail import find_item, item_head
from pipeline.pages.items.forms import version_in
from pipeline.pages.items.storyboard.form import StoryboardForm
from pipeline.pages.items.storyboard.scene_display import scenes_of
from pipeline.render.video import storyboard_rearrange
from pipeline.review import storyboards

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from pipeline.models import GeneratedItem


@workspace_page("edit")
def item_storyboard(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form that edits the storyboard, and save it on POST.

    If somebody else saved meanwhile, the form keeps what was typed and may be saved over the newest storyboard.
    """
    row = find_item(place, gen)
    stored = storyboards.stored_storyboard(row)
    if stored is None:
        messages.info(request, _("This item has no editable storyboard."))
        return redirect(place.url_of("item_page", gen=gen))
    form = kept_forms.form_for(request, StoryboardForm, board=stored.board, version=row.version)
    overtaken = ""
    if request.method == "POST" and form.is_valid() and form.board() is not None:
        try:
            return _save(request, place, row, form)
        except Overtaken:
            row = find_item(place, gen)
            overtaken = display.describe_newer_edit(row, place.user.email)
            stored = storyboards.stored_storyboard(row) or stored
            form = StoryboardForm(form.data, board=stored.board, version=row.version)
            form.merge_with_newest()
        except AppError as error:
            show_at_fields(form, error)
    context = {
        **item_head(place, row),
        "form": form,
        "overtaken": overtaken,
        "fixed": storyboard_rearrange.fixed_scenes_reason(stored.board),
        "scenes": form.scenes(scenes_of(stored)),
        "duration": stored.board.duration,
    }
    return render(request, "pages/items/storyboard.html", context)


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: StoryboardForm) -> HttpResponse:
    """Save the storyboard and redirect to the item, whose video is rendered again if anything was changed.

    Raises `Http404` if the form describes no storyboard or names no version, `Overtaken` if the version isn't the
    newest, and each other error of `storyboards.edit`.
    """
    edited_board = form.board()
    expected_version = version_in(request.POST)
    if edited_board is None or expected_version is None:
        raise Http404
    revision_before = row.revision
    edited = storyboards.edit(
        row, edited_board, by=place.user.email, now=utc_now(), expected_version=expected_version
    )
    if edited.revision == revision_before:
        messages.info(request, _("No changes."))
    else:
        messages.success(request, _("Saved. Rendering the video (free)."))
    return redirect(place.url_of("item_page", gen=row.pk))
