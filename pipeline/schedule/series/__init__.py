"""Creates and changes series of digests, selects what the next digest contains, and makes it at its time."""

from pipeline.schedule.series.crud import KEPT, change, create, delete, forget, next_slots, restore
from pipeline.schedule.series.digest_items import SeriesSelection, select_items
from pipeline.schedule.series.make_issue import give_up, make_now, run_series

__all__ = [
    "KEPT",
    "SeriesSelection",
    "change",
    "create",
    "delete",
    "forget",
    "give_up",
    "make_now",
    "next_slots",
    "restore",
    "run_series",
    "select_items",
]
