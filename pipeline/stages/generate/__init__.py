"""Make generated items: brief, draft, check, draw, write; every stored answer is kept until the run is over."""

from pipeline.stages.generate.picks import hand_on
from pipeline.stages.generate.reading import draft_of, persona_card, text_of
from pipeline.stages.generate.turns import HANDS
from pipeline.stages.generate.working import give_up, work, writer_for
from pipeline.stages.generate.writing import excerpt_of

__all__ = [
    "HANDS",
    "draft_of",
    "excerpt_of",
    "give_up",
    "hand_on",
    "persona_card",
    "text_of",
    "work",
    "writer_for",
]
