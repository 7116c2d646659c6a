"""Manages personas, their topics, and brand lanes, which make items of both without a source document."""

from pipeline.generate.topics.lane_eligibility import why_unavailable
from pipeline.personas.lane_slots import KIND, align_open_slot, bring_forward
from pipeline.personas.work_lane_slot import give_up, run_slot

__all__ = ["KIND", "align_open_slot", "bring_forward", "give_up", "run_slot", "why_unavailable"]
