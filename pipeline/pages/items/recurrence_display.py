"""Reads what is shown of an item that repeats: on its own page, and in the list beside the series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import OuterRef, Subquery

from pipeline import labels
from pipeline.models import Recurrence, RecurrenceTurn
from pipeline.pages.items import display
from pipeline.states import PUBLISHABLE_ITEMS

if TYPE_CHECKING:
    from accounts.pages.page_access import Place
    from pipeline.models import GeneratedItem

LISTED: Final = 250
"""The most recurrences listed: all that may be active at once, and the newest of those that have stopped."""
_TURNS_SHOWN: Final = 3


def recurrence_of(place: Place, item: GeneratedItem) -> dict[str, Any] | None:
    """Return what the item's page shows of its recurrence;
    None where it can't repeat and there is nothing to show.
    """
    row = Recurrence.objects.of(place.workspace).filter(item=item).first()
    if row is not None:
        newest = row.turns.select_related("item").order_by("-id")[:_TURNS_SHOWN]
        return {"row": row, "turns": [_turn_context(newest_turn) for newest_turn in newest]}
    if item.raw_item_id is None:
        return None
    turns = RecurrenceTurn.objects.of(place.workspace).filter(item=item)
    turn = turns.select_related("recurrence__item").first()
    if turn is not None:
        origin = turn.recurrence.item
        return {"origin": origin, "origin_title": display.title_of(origin)}
    can_begin = place.may_edit and item.status in PUBLISHABLE_ITEMS
    return {"row": None} if can_begin else None


def list_recurrences(place: Place) -> list[dict[str, Any]]:
    """Return the active recurrences by their next time, then the stopped ones; always with two statements."""
    newest = RecurrenceTurn.everywhere.filter(recurrence=OuterRef("pk")).order_by("-id")
    rows = (
        Recurrence.objects.of(place.workspace)
        .filter(test=False)
        .select_related("item")
        .annotate(last_turn=Subquery(newest.values("pk")[:1]))
        .order_by("status", "due_at", "-updated_at", "id")
    )
    recurrences = list(rows[:LISTED])
    keys = [row.last_turn for row in recurrences if row.last_turn is not None]
    turns = RecurrenceTurn.objects.of(place.workspace).select_related("item").in_bulk(keys)
    return [
        {
            "row": row,
            "title": display.title_of(row.item),
            "is_erased": row.item.deleted_at is not None,
            "last": _turn_context(turns[row.last_turn]) if row.last_turn in turns else None,
        }
        for row in recurrences
    ]


def _turn_context(turn: RecurrenceTurn) -> dict[str, Any]:
    """Return what is shown of one repetition; its item is None where that was deleted."""
    item = turn.item if turn.item is not None and turn.item.deleted_at is None else None
    return {"turn": turn, "decision": labels.RECURRENCE_TURNS[turn.decision], "item": item}
