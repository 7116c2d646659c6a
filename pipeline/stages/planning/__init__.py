"""Plan a week: ready items into free slots, shown before anything is written, and one undo for all of it."""

from pipeline.stages.planning.committing import Done, Entry, Refusal, commit
from pipeline.stages.planning.moving import move, to_next_slot
from pipeline.stages.planning.proposing import DAYS, Asked, Left, Proposal, Proposed, propose
from pipeline.stages.planning.undoing import Undone, forget, undo

__all__ = [
    "DAYS",
    "Asked",
    "Done",
    "Entry",
    "Left",
    "Proposal",
    "Proposed",
    "Refusal",
    "Undone",
    "commit",
    "forget",
    "move",
    "propose",
    "to_next_slot",
    "undo",
]
