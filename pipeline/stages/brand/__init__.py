"""The Brand Prompt Lane: personas, their topics, and what is made of both without a source document."""

from pipeline.stages.brand.eligibility import unavailable
from pipeline.stages.brand.slots import KIND, bring_forward, settle
from pipeline.stages.brand.working import give_up, work

__all__ = ["KIND", "bring_forward", "give_up", "settle", "unavailable", "work"]
