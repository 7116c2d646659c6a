"""Series of digests: keep one, choose what its next digest tells, make it once when its time comes."""

from pipeline.stages.series.choosing import Choice, choose
from pipeline.stages.series.keeping import KEPT, change, create, delete, forget, next_slots, restore
from pipeline.stages.series.making import make_now
from pipeline.stages.series.working import give_up, work

__all__ = [
    "KEPT",
    "Choice",
    "change",
    "choose",
    "create",
    "delete",
    "forget",
    "give_up",
    "make_now",
    "next_slots",
    "restore",
    "work",
]
