"""What is said in a film is spoken before it is filmed: once, and kept with its times before anything else is done."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings

from config.ground import limits
from config.ground.crash import crash_point
from pipeline.plugins import TryLater
from pipeline.stages import speaking
from pipeline.stages.generate.storing import store
from pipeline.stages.model_account import LostLease

if TYPE_CHECKING:
    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.models import GeneratedItem, Generation
    from pipeline.stages.speaking import Voiced

SPEECH: Final = "speech"
"""Where a run keeps what was spoken, by variant."""
UNSPOKEN: Final = "unspoken"
"""Where it keeps how often no voice had the time."""
SPEAK_AGAIN: Final = timedelta(seconds=30)
"""After a voice was too slow for the first time; twice that after the second, and so on."""


class NotSpokenYet(TryLater):
    """The voices were too slow; the words are kept meanwhile."""


def voice(
    generation: Generation, item: GeneratedItem, engine: Engine, draft: Draft, persona: PersonaCard
) -> Voiced:
    """What the engine's script sounds like; no transaction is open meanwhile.

    Raises `NotSpokenYet` where the voices were too slow and may do better another time, and `LostLease`.
    """
    script = engine.script(draft, persona)
    if script is None:
        return speaking.UNVOICED
    place = str(item.variant_index)
    spoken = dict(generation.answers.get(SPEECH, {}))
    kept = spoken.get(place)
    if kept is None or not speaking.is_kept(kept, script):
        if not generation.renew_lease(speaking.longest() + timedelta(seconds=settings.LEASE_SECONDS)):
            raise LostLease
        try:
            kept = speaking.keep(item, script)
        except TryLater as late:
            times = generation.answers.get(UNSPOKEN, 0) + 1
            if times < limits.GENERATION_TRIES:
                store(generation, generation.stage, **{UNSPOKEN: times})
                raise NotSpokenYet(late.message, code=late.code, after=times * SPEAK_AGAIN) from late
            kept = speaking.silence(script, late.message)
        store(generation, generation.stage, **{SPEECH: {**spoken, place: kept}})
        crash_point("generate.spoken")
    return speaking.voiced(kept)
