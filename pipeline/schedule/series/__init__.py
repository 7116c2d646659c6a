"""Series of digests: keep one, choose what its next digest tells, make it once when its time comes."""

from pipeline.schedule.series.crud import KEPT, change, create, delete, forget, next_slots, restore
from pipeline.schedule.series.make_issue import give_up, make_now, run_series
from pipeline.schedule.series.select import SeriesSelection, select_items

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
