"""Whose film is made next: a few at once on one machine, and workspaces take turns."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db.models import Count, Q

from config.ground import limits
from config.ground.clock import utc_now
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import Generation
from pipeline.render.video import job as jobs
from pipeline.stages import videos

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDS: Final[int] = settings.WORKER_THREADS
"""Runs that are worked at once in one process; films take half of them at most."""
_LATELY: Final = timedelta(hours=1)
_ALIVE: Final = 5 * limits.RENDER_TURN
"""Who waits looks again every `RENDER_TURN`; one that hasn't for so long has no hand, and nobody waits for it."""


@contextmanager
def turn(generation: Generation) -> Iterator[None]:
    """A place to make this run's films in, where it makes any; raises `Busy` where none is free, or another comes first."""
    if generation.engine not in _filming():
        yield
        return
    with jobs.slot(videos.root(), jobs.side_by_side(hands=HANDS)):
        if _comes_later(generation):
            raise jobs.Busy
        yield


def _filming() -> list[str]:
    return [engine.kind for engine in plugins.every("engines", Engine) if engine.bucket == "video"]


def _comes_later(generation: Generation) -> bool:
    """Whether a waiting run comes first: of the workspace that had the fewest films lately, the oldest."""
    now = utc_now()
    films = Generation.everywhere.filter(engine__in=_filming())
    # What waits was given back without a try; its hand has looked just now and looks again in a moment.
    waiting = films.filter(
        wake_at__gt=now - _ALIVE,
        wake_at__lte=now + limits.RENDER_TURN,
        attempts=0,
        stage="render",
        status__in=("queued", "running"),
    )
    others = list(waiting.exclude(pk=generation.pk).values_list("workspace_id", "created_at", "pk"))
    if not others:
        return False
    workspaces = {generation.workspace_id, *(workspace for workspace, _, _ in others)}
    lately = Q(finished_at__gt=now - _LATELY) | Q(stage="render", attempts__gt=0, wake_at__gt=now)
    counted = films.filter(lately, workspace__in=workspaces).exclude(pk=generation.pk)
    # The model's own ordering would be a part of the groups.
    had = dict(counted.order_by().values_list("workspace_id").annotate(Count("pk")))
    mine = (had.get(generation.workspace_id, 0), generation.created_at, generation.pk)
    return any((had.get(workspace, 0), created_at, key) < mine for workspace, created_at, key in others)
