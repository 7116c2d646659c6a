"""Draws pictures and films for drafts, and again for words that a person has edited.

Before a film is made, its script is spoken and its video is searched for shots. Each is done once, and stored
with the run before anything else is done.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Count, Min, Q

from config.core import states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits
from pipeline.generate.lifecycle import REDRAW, end_run, erase_redraw_without_items, fail_item, items_of
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.run_state import draft_from, draft_of, store_answer
from pipeline.media import draw_pictures, make_film, text_to_speech
from pipeline.models import GeneratedItem, GeneratedItemStatus, Generation, GenerationQueue
from pipeline.plugins import TryLater
from pipeline.render.video import shot_process, storyboard_json
from pipeline.render.video.film_process import RenderFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import date, datetime
    from pathlib import Path
    from uuid import UUID

    from pipeline.engines.base import Draft, Engine, PersonaCard
    from pipeline.generate.run_state import Run
    from pipeline.media.text_to_speech import VoicedScript
    from pipeline.render.video.material import Shot, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

SHOTS: Final = "shots"
"""Key in `answers`: the shots that were detected, by video and span."""
SPEECH: Final = "speech"
"""Key in `answers`: the spoken scripts, by variant."""
UNSPOKEN: Final = "unspoken"
"""Key in `answers`: how often every voice was too slow."""
SPEECH_RETRY_WAIT: Final = timedelta(seconds=30)
"""The wait after the voices were too slow for the first time; twice that after the second, and so on."""
RENDER_RETRY_WAIT: Final = timedelta(seconds=30)
"""The wait after a film failed for the first time; twice that after the second, and so on."""
PROGRESS_INTERVAL_SECONDS: Final = 2.0
"""The least time between two writes of a film's progress, in seconds."""
BROKEN: Final = "broken_films"
"""Key in `answers`: how often a film of the run failed for a passing reason."""
PASSING: Final = frozenset({"render_died", "render_slow"})
"""Failures that may pass: the system killed the process for its memory, or the machine was overloaded."""
FAIRNESS_WINDOW: Final = timedelta(hours=1)
"""The time over which each workspace's films are counted for fair turns."""


class BrokenFilm(TryLater):
    """Raised when a film failed for a passing reason; the words are kept meanwhile."""


def draw_variants(run: Run) -> Run:
    """Draw every variant whose draft passes its checks; no transaction is open meanwhile."""
    generation, material = run.generation, run.required_material
    drafts = [draft_from(stored) if stored else None for stored in generation.answers["drafts"]]
    waiting = GeneratedItem.everywhere.filter(
        generation=generation, status=GeneratedItemStatus.GENERATING, deleted_at=None
    )
    # Pictures that a killed task has drawn are still stored.
    drawn = dict(generation.answers.get("pictures", {}))
    items = list(waiting.order_by("variant_index"))
    for index, item in enumerate(items):
        if str(item.variant_index) in drawn:
            continue
        draft = drafts[item.variant_index] if item.variant_index < len(drafts) else None
        if draft is None or any(check.outcome == "failed" for check in material.judge(draft)):
            continue
        published_at = material.source.published_at
        drawn[str(item.variant_index)] = _draw_item(
            run,
            item,
            draft,
            shown_on=published_at.date() if published_at else None,
            position=(index, len(items)),
        )
        if run.engine.bucket == "video":
            crash_point("generate.filmed")
            # A film takes long enough to be stored on its own.
            store_answer(generation, generation.stage, pictures=drawn)
    store_answer(generation, run.next_stage, pictures=drawn)
    return run


def _draw_item(
    run: Run,
    item: GeneratedItem,
    draft: Draft,
    *,
    shown_on: date | None,
    position: tuple[int, int],
    board: Storyboard | None = None,
) -> dict[str, Any]:
    """Draw one item and return its files, checks or error, as they are stored.

    `position` is the item's index among the run's items, with their number; the run's progress follows from it.
    `board` is the storyboard if a person changed it. Raises `BrokenFilm` if a film may turn out on another try,
    `NotSpokenYet` if its voices may, and `LostLease` if the run is no longer this task's or the item was deleted.
    """
    generation, engine, persona = run.generation, run.engine, run.persona
    if engine.bucket != "video":
        return draw_pictures.draw_pictures(item, engine, draft, persona, shown_on=shown_on)
    if board is None:
        voiced_script = speak_script(generation, item, engine, draft, persona)
    else:
        voiced_script = text_to_speech.recall_script(item, board.audio.voice)
    report_progress = ProgressReporter(generation, item, *position)
    try:
        return make_film.make_film(
            item,
            engine,
            draft,
            persona,
            voiced=voiced_script,
            storyboard=board,
            find_shots=ShotFinder(generation, report_progress.hold),
            on_progress=report_progress,
        )
    except RenderFailed as failed:
        if failed.code == "render_stopped":
            # Only a lost lease or a deleted item stops a film.
            raise LostLease from failed
        failures = generation.answers.get(BROKEN, 0) + 1
        if failed.code not in PASSING or failures >= limits.GENERATION_TRIES:
            return make_film.failure_result(failed.code, failed.message)
        store_answer(generation, generation.stage, **{BROKEN: failures})
        raise BrokenFilm(failed.message, code=failed.code, after=failures * RENDER_RETRY_WAIT) from failed


class ProgressReporter:
    """Stores a film's progress and renews the lease every few seconds.

    A call returns False if the lease is lost or the item was deleted. If the database is busy it returns whether
    the lease still holds.
    """

    def __init__(self, generation: Generation, item: GeneratedItem, index: int, count: int) -> None:
        self._generation, self._item = generation, item
        self._index, self._count = index, max(count, 1)
        self._next_write = 0.0
        remaining = generation.wake_at - utc_now() if generation.wake_at else timedelta(0)
        self._held_until = monotonic() + remaining.total_seconds()

    def __call__(self, fraction: float) -> bool:
        """Store the progress, of which `fraction` is this film's, from 0 to 1; most calls come too soon and don't."""
        now = monotonic()
        if now < self._next_write:
            return True
        self._next_write = now + PROGRESS_INTERVAL_SECONDS
        percent = min(99, int(100 * (self._index + fraction) / self._count))
        lease = timedelta(seconds=settings.LEASE_SECONDS)
        try:
            is_ours = self._generation.sleep_until(work_queue.database_now() + lease, progress=percent)
            is_wanted = GeneratedItem.everywhere.filter(pk=self._item.pk, deleted_at=None).exists()
        except (OperationalError, InterfaceError):
            # A busy database is no reason to throw the film away while no other task can have the lease.
            work_queue.release_connections()
            return now < self._held_until
        self._held_until = now + lease.total_seconds()
        return is_ours and is_wanted

    def hold(self, lease: timedelta) -> bool:
        """Renew the lease for that long without storing progress; return False if it is lost."""
        now = monotonic()
        if not self._generation.renew_lease(lease):
            return False
        self._held_until = now + lease.total_seconds()
        return True


def redraw(run: Run) -> Run:
    """Draw the newest words of an item that a person has edited; no writer is asked and no credit is spent."""
    generation, drawn = run.generation, {}
    item = (
        GeneratedItem.everywhere.select_related("raw_item")
        .filter(generation=generation, status=GeneratedItemStatus.GENERATING, deleted_at=None)
        .first()
    )
    if item is not None:
        raw = item.raw_item
        board_json = generation.answers[REDRAW].get("storyboard")
        drawn[str(item.variant_index)] = _draw_item(
            run,
            item,
            draft_of(item),
            shown_on=raw.published_at.date() if raw is not None and raw.published_at else None,
            position=(0, 1),
            board=None if board_json is None else storyboard_json.from_json(board_json),
        )
    store_answer(generation, run.next_stage, pictures=drawn)
    return run


def write_redrawn(run: Run) -> Run:
    """End the run and move its item from `generating` back to `ready`, or to `failed` if it couldn't be drawn.

    Ready again records no event, because `generated.ready` was recorded when the item was first made.
    """
    generation, answers = run.generation, run.generation.answers
    now = utc_now()
    is_broken = any(drawn["error"] for drawn in answers.get("pictures", {}).values())
    with transaction.atomic():
        end_run(generation, now, is_broken=is_broken)
        items = items_of(generation)
        erase_redraw_without_items(generation, items)
        for item in items:
            drawn = answers.get("pictures", {}).get(str(item.variant_index))
            if item.status != GeneratedItemStatus.GENERATING or drawn is None:
                continue
            if drawn["error"]:
                error = drawn["error"]
                fail_item(
                    generation, item, error["code"], error["message"], now, stage=error.get("stage", "")
                )
                continue
            other_checks = [check for check in item.checks if check["code"] not in draw_pictures.FILE_CHECKS]
            states.move(item, "ready", checks=[*other_checks, *drawn["checks"]], error=None, updated_at=now)
            draw_pictures.replace_files(item, drawn, now=now, alt_texts=answers[REDRAW]["alt_texts"])
        crash_point("generate.written")
    return run


class NotSpokenYet(TryLater):
    """Raised when the voices were too slow; the words are kept meanwhile."""


def speak_script(
    generation: Generation, item: GeneratedItem, engine: Engine, draft: Draft, persona: PersonaCard
) -> VoicedScript:
    """Return the engine's script as speech, or `NO_VOICE` if it has none; no transaction is open meanwhile.

    After `GENERATION_TRIES` tries with voices that are too slow, the script stays silent. Raises `NotSpokenYet`
    if they were too slow and tries are left, and `LostLease` if the run is no longer this task's.
    """
    script = engine.script(draft, persona)
    if script is None:
        return text_to_speech.NO_VOICE
    variant_key = str(item.variant_index)
    spoken = dict(generation.answers.get(SPEECH, {}))
    stored = spoken.get(variant_key)
    if stored is None or not text_to_speech.is_stored(stored, script):
        if not generation.renew_lease(
            text_to_speech.max_call_time() + timedelta(seconds=settings.LEASE_SECONDS)
        ):
            raise LostLease
        try:
            stored = text_to_speech.speak_to_file(item, script)
        except TryLater as error:
            failures = generation.answers.get(UNSPOKEN, 0) + 1
            if failures < limits.GENERATION_TRIES:
                store_answer(generation, generation.stage, **{UNSPOKEN: failures})
                raise NotSpokenYet(
                    error.message, code=error.code, after=failures * SPEECH_RETRY_WAIT
                ) from error
            stored = text_to_speech.silent_script(script, error.message)
        store_answer(generation, generation.stage, **{SPEECH: {**spoken, variant_key: stored}})
        crash_point("generate.spoken")
    return text_to_speech.read_script(stored)


class ShotFinder:
    """Detects the shots of a video span, or reads them from the run; no transaction is open meanwhile.

    `hold` renews the lease for a duration, and returns False if it is lost. A call raises `LostLease` then, and
    lets the `Refused`, `UnusableAsset`, `RenderFailed` and `RenderBusy` of `shot_process.detect_shots` through.
    """

    def __init__(self, generation: Generation, hold: Callable[[timedelta], bool]) -> None:
        self._generation, self._hold = generation, hold

    def __call__(self, path: Path, span: VideoSpan) -> tuple[Shot, ...]:
        shots_by_span = dict(self._generation.answers.get(SHOTS, {}))
        span_key = f"{span.name} {span.start} {span.end}"
        if span_key not in shots_by_span:
            if not self._hold(timedelta(seconds=shot_process.timeout_seconds(span) + settings.LEASE_SECONDS)):
                raise LostLease
            shots_by_span[span_key] = [asdict(shot) for shot in shot_process.detect_shots(path, span)]
            store_answer(self._generation, self._generation.stage, **{SHOTS: shots_by_span})
            crash_point("generate.looked")
        return shot_process.shots_from(shots_by_span[span_key])


# --- Whose film is made next -----------------------------------------------------------------------------------------


def queue_of_rendering(engine: Engine) -> GenerationQueue:
    """Return the queue of the rendering step; films have their own."""
    return GenerationQueue.RENDER if engine.bucket == "video" else GenerationQueue.COMPUTE


def turns_of_films(workspace_ids: Collection[UUID]) -> dict[UUID, tuple[int, datetime]]:
    """Return how many films each workspace had in the last hour, and when its oldest waiting one was created.

    Workspaces with neither are left out. The dispatcher asks only about workspaces with waiting films.
    """
    films = Generation.everywhere.filter(queue=GenerationQueue.RENDER, workspace__in=workspace_ids)
    is_recent = Q(finished_at__gt=utc_now() - FAIRNESS_WINDOW)
    is_waiting = Q(wake_at__isnull=False)
    rows = (
        # Without `order_by()` the model's default ordering would become part of the groups.
        films.filter(is_recent | is_waiting)
        .order_by()
        .values_list("workspace_id")
        .annotate(count=Count("pk", filter=is_recent), since=Min("created_at", filter=is_waiting))
    )
    return {workspace: (count, since) for workspace, count, since in rows}
