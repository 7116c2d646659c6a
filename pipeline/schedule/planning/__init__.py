"""Plans a week: ready items in free slots, proposed before anything is written, with one undo for all of it."""

from pipeline.schedule.planning.commit_plan import PlanCommit, PlanEntry, Refusal, commit
from pipeline.schedule.planning.proposal import DAYS, LeftOut, PlanRequest, Proposal, Proposed, propose
from pipeline.schedule.planning.revert import Undone, forget, undo
from pipeline.schedule.planning.shift import Moved, move, move_back, to_next_slot

__all__ = [
    "DAYS",
    "LeftOut",
    "Moved",
    "PlanCommit",
    "PlanEntry",
    "PlanRequest",
    "Proposal",
    "Proposed",
    "Refusal",
    "Undone",
    "commit",
    "forget",
    "move",
    "move_back",
    "propose",
    "to_next_slot",
    "undo",
]
