"""Makes generated items in steps: brief, draft, check, draw, save.

Every stored answer is kept until the run is over.
"""

from pipeline.generate.persona_cards import persona_card
from pipeline.generate.recheck import material_of, recheck
from pipeline.generate.rendering import queue_of_rendering
from pipeline.generate.run import writer_for
from pipeline.generate.run_state import cost_so_far, draft_of
from pipeline.generate.save import derived_words
from pipeline.generate.topics.topic_run import copy_pick

__all__ = [
    "copy_pick",
    "cost_so_far",
    "derived_words",
    "draft_of",
    "material_of",
    "persona_card",
    "queue_of_rendering",
    "recheck",
    "writer_for",
]
