"""What a film shows of a video is looked at under a lease that lasts as long as that may take, and only once."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings

from config.ground.crash import crash_point
from pipeline.render.video import looking
from pipeline.stages.generate.storing import store
from pipeline.stages.model_account import LostLease

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.models import Generation
    from pipeline.render.video.material import Shot, Span

SHOTS: Final = "shots"
"""Where a run keeps what was seen, by video and span."""


class Looker:
    """The shots of a span; no transaction is open meanwhile.

    `hold` keeps the lease for so long, and answers False where it is lost. Raises `LostLease`, and what
    `render.video.looking.look` raises.
    """

    def __init__(self, generation: Generation, hold: Callable[[timedelta], bool]) -> None:
        self._generation, self._hold = generation, hold

    def __call__(self, path: Path, span: Span) -> tuple[Shot, ...]:
        seen = dict(self._generation.answers.get(SHOTS, {}))
        place = f"{span.name} {span.start} {span.end}"
        if place not in seen:
            if not self._hold(timedelta(seconds=looking.longest(span) + settings.LEASE_SECONDS)):
                raise LostLease
            seen[place] = [asdict(shot) for shot in looking.look(path, span)]
            store(self._generation, self._generation.stage, **{SHOTS: seen})
            crash_point("generate.looked")
        return looking.shots_from(seen[place])
