"""Schedules ready items into free slots: a week's plan with one undo, one item, or one post that is moved."""

from pipeline.schedule.planning.commit_plan import PlanCommit, PlanEntry, Refusal, commit
from pipeline.schedule.planning.move_publication import Moved, move, move_back, to_next_slot
from pipeline.schedule.planning.proposal import (
    APPROVE_FIRST,
    DAYS,
    LeftOut,
    PlanRequest,
    Proposal,
    Proposed,
    propose,
)
from pipeline.schedule.planning.take_slot import NextSlots, next_slots, take_day, take_slot
from pipeline.schedule.planning.undo_plan import PlanUndo, forget, undo

__all__ = [
    "APPROVE_FIRST",
    "DAYS",
    "LeftOut",
    "Moved",
    "NextSlots",
    "PlanCommit",
    "PlanEntry",
    "PlanRequest",
    "PlanUndo",
    "Proposal",
    "Proposed",
    "Refusal",
    "commit",
    "forget",
    "move",
    "move_back",
    "next_slots",
    "propose",
    "take_day",
    "take_slot",
    "to_next_slot",
    "undo",
]
