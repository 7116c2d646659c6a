"""Reads what is shown of items that repeat: on the item's page, and in the list next to the series."""

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

MAX_LISTED: Final = 250
"""The most recurrences that are listed: all that may be active at once, and the newest of the stopped ones."""
_MAX_TURNS_SHOWN: Final = 3
"""The most repetitions that the item's page shows."""


def recurrence_context(place: Place, item: GeneratedItem) -> dict[str, Any] | None:
    """Return what the item's page shows of its recurrence.

    For a repetition, that is the item that repeats. Returns `None` if there is nothing to show and the person can't
    let the item repeat.
    """
    row = Recurrence.objects.of(place.workspace).filter(item=item).first()
    if row is not None:
        newest = row.turns.select_related("item").order_by("-id")[:_MAX_TURNS_SHOWN]
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
    """Return the active recurrences by their next time, then the stopped ones, with two SQL queries."""
    newest = RecurrenceTurn.everywhere.filter(recurrence=OuterRef("pk")).order_by("-id")
    rows = (
        Recurrence.objects.of(place.workspace)
        .filter(test=False)
        .select_related("item")
        .annotate(last_turn=Subquery(newest.values("pk")[:1]))
        .order_by("status", "due_at", "-updated_at", "id")
    )
    recurrences = list(rows[:MAX_LISTED])
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
    """Return what is shown of one repetition; its item is `None` if that was deleted."""
    item = turn.item if turn.item is not None and turn.item.deleted_at is None else None
    return {"turn": turn, "decision": labels.RECURRENCE_TURNS[turn.decision], "item": item}
