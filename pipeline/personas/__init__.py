"""The Brand Prompt Lane: personas, their topics, and what is made of both without a source document."""

from pipeline.generate.topics.eligibility import unavailable
from pipeline.personas.lane_slots import KIND, bring_forward, settle
from pipeline.personas.lane_task import give_up, run_slot

__all__ = ["KIND", "bring_forward", "give_up", "run_slot", "settle", "unavailable"]
