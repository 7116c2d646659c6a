"""Evergreen items: one comes back every so many days as a fresh variant, and stops where its source is gone."""

from pipeline.stages.recurring.keeping import KEPT, begin, change, forget
from pipeline.stages.recurring.standing import Over, why_over
from pipeline.stages.recurring.working import give_up, work

__all__ = ["KEPT", "Over", "begin", "change", "forget", "give_up", "why_over", "work"]
