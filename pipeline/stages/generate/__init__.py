"""Make generated items: brief, draft, check, draw, write; every stored answer is kept until the run is over."""

from pipeline.stages.generate.checkpoint import cost_so_far, draft_of
from pipeline.stages.generate.recheck import recheck
from pipeline.stages.generate.rendering import queue_of_rendering, turns_of_films
from pipeline.stages.generate.run import give_up, work, writer_for
from pipeline.stages.generate.topic_run import hand_on
from pipeline.stages.generate.writing import excerpt_of
from pipeline.stages.persona_cards import persona_card

__all__ = [
    "cost_so_far",
    "draft_of",
    "excerpt_of",
    "give_up",
    "hand_on",
    "persona_card",
    "queue_of_rendering",
    "recheck",
    "turns_of_films",
    "work",
    "writer_for",
]
