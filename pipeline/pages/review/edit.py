"""Edits an item on its review card: texts with counters, alt texts and the order of pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import show_at_fields
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import AppError, Invalid
from config.core.ids import encode
from config.core.states import Overtaken
from pipeline.pages.items import outlet_fit
from pipeline.pages.items.detail import files_of, find_item, item_head
from pipeline.pages.items.edit import copy_as_typed
from pipeline.pages.items.edit_form import ItemEditForm
from pipeline.pages.items.forms import version_in
from pipeline.pages.review.actions import is_part, note_of, offer_undo_in_list, render_toast
from pipeline.pages.review.refusals import describe_newer_state
from pipeline.review import asset_order, bulk_review

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from django.forms import BoundField
    from django.http import HttpRequest

    from pipeline.models import Asset, GeneratedItem

_POSITION_PREFIX: Final = "place_"


class CardForm(ItemEditForm):
    """The form of the item's own page, with a field for the position of each picture."""

    def __init__(self, *args: Any, item: GeneratedItem, assets: Sequence[Asset], **kwargs: Any) -> None:
        super().__init__(*args, item=item, assets=assets, **kwargs)
        self.movable_assets = {
            f"{_POSITION_PREFIX}{asset.pk.hex}": asset for asset in asset_order.movable(assets)
        }
        for number, (name, asset) in enumerate(self.movable_assets.items(), start=1):
            self.initial[name] = number
            self.fields[name] = forms.IntegerField(
                label=_("Place of %(file)s") % {"file": asset.name},
                required=False,
                min_value=1,
                max_value=len(self.movable_assets),
                widget=forms.NumberInput(attrs={"data-place": "", "inputmode": "numeric"}),
            )

    @property
    def pictures(self) -> Iterator[tuple[BoundField | None, BoundField, str, bool]]:
        """The position field, alt text field and path of each file, and whether it is a picture.

        The position field is `None` if the file can't be moved.
        """
        for field, address, is_picture in self.alt_texts:
            asset = self.described_assets[field.name]
            name = f"{_POSITION_PREFIX}{asset.pk.hex}"
            yield self[name] if name in self.movable_assets else None, field, address, is_picture

    def order(self) -> list[UUID] | None:
        """Return the pictures' ids in their new order, or `None` if the order is as before.

        Of two pictures with the same position, the one that was first before stays first.
        """
        former_order = [asset.pk for asset in self.movable_assets.values()]
        positions = {
            asset.pk: self.cleaned_data.get(name) or number
            for number, (name, asset) in enumerate(self.movable_assets.items(), start=1)
        }
        # Sorting is stable, so equal positions keep the former order.
        new_order = sorted(former_order, key=positions.__getitem__)
        return None if new_order == former_order else new_order


@workspace_page("edit")
def review_edit(request: HttpRequest, place: Place, gen: UUID) -> HttpResponse:
    """Show the form that edits the item on its card, and save it on POST.

    If somebody else saved meanwhile, the form keeps what was typed, shows the newest text, and may be saved over it.
    """
    row = find_item(place, gen)
    form = kept_forms.form_for(request, CardForm, item=row, assets=files_of(place, row))
    overtaken_message, status = "", 200
    if request.method == "POST" and form.is_valid():
        try:
            return _save(request, place, row, form)
        except Overtaken as error:
            overtaken_message, status = describe_newer_state(place, row), error.status
            row = find_item(place, gen)
            form = CardForm(form.data, item=row, assets=files_of(place, row))
            form.merge_with_newest()
        except AppError as error:
            show_at_fields(form, error)
            status = error.status
    elif request.method == "POST":
        status = 400
    context = {
        **item_head(place, row),
        "form": form,
        "overtaken": overtaken_message,
        "public_id": encode("gen", row.pk),
        "query": request.POST.get("query", request.GET.urlencode()),
        "fits": outlet_fit.read_fits(copy_as_typed(row, form), now=utc_now()),
        "is_part": is_part(request),
    }
    return render(request, "pages/review/edit.html", context, status=status if is_part(request) else 200)


def _save(request: HttpRequest, place: Place, row: GeneratedItem, form: CardForm) -> HttpResponse:
    """Save what was changed, with an undo, and redirect to the card or answer the page's script with JSON.

    Raises `Invalid` if the form names no version, `Overtaken` if the version isn't the newest, and each other error
    of `bulk_review.edit`.
    """
    changes, order = form.changes(), form.order()
    address = f"{place.url_of('review')}?{_query_at(request, row)}"
    if not changes and order is None:
        if is_part(request):
            return JsonResponse({"toast": render_toast(request, _("No changes."), is_good=True), "undo": ""})
        messages.info(request, _("No changes."))
        return redirect(address)
    expected = version_in(request.POST)
    if expected is None:
        raise Invalid.one(None, "version", _("Reload the page and try again."))
    decision = bulk_review.edit(
        row, changes, order, by=place.user.email, now=utc_now(), expected_version=expected
    )
    notes = [note_of(place, decision)]
    if is_part(request):
        toast = render_toast(request, _("Saved."), place, notes, is_good=True)
        return JsonResponse({"toast": toast, "undo": notes[0]})
    offer_undo_in_list(request, place, _("Saved."), notes)
    return redirect(address)


def _query_at(request: HttpRequest, row: GeneratedItem) -> str:
    """Return the query string of the queue at this item, with the filters of the request."""
    query = QueryDict(request.POST.get("query", ""), mutable=True)
    query["at"] = encode("gen", row.pk)
    return query.urlencode()
