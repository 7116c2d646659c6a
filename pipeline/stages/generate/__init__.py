"""Make generated items: brief, draft, check, draw, write; every stored answer is kept until the run is over."""

from pipeline.stages.generate.picks import hand_on
from pipeline.stages.generate.reading import draft_of
from pipeline.stages.generate.recheck import recheck
from pipeline.stages.generate.storing import cost_so_far
from pipeline.stages.generate.turns import HANDS
from pipeline.stages.generate.working import give_up, work, writer_for
from pipeline.stages.generate.writing import excerpt_of
from pipeline.stages.persona_cards import persona_card

__all__ = [
    "HANDS",
    "cost_so_far",
    "draft_of",
    "excerpt_of",
    "give_up",
    "hand_on",
    "persona_card",
    "recheck",
    "work",
    "writer_for",
]
