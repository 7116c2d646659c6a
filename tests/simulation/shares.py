"""How many tasks each workspace has at once: none takes all slots from the others."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from config.core import dispatcher
from config.core.jobs import RowJob, jobs

if TYPE_CHECKING:
    from uuid import UUID

    from tests.simulation.world import World


class Shares:
    def __init__(self, world: World, slots: int) -> None:
        self.world = world
        self.slots = slots
        self.at_once: Counter[tuple[str, UUID | None]] = Counter()

    def begun(self, name: str, owner: UUID | None) -> None:
        self.at_once[name, owner] += 1
        job = jobs()[name]
        if not isinstance(job, RowJob) or job.computes or self.world.has_faults:
            return
        most = job.per_workspace or math.ceil(self.slots * dispatcher.WORKSPACE_SHARE)
        if self.at_once[name, owner] > most:
            self.world.broken(f"a workspace has {self.at_once[name, owner]} tasks of {name} at once")

    def ended(self, name: str, owner: UUID | None) -> None:
        self.at_once[name, owner] -= 1
