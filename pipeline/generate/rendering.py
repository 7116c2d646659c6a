"""Pictures and films of what was written, and of what a person has written anew.

What is said in a film is spoken before it is filmed, and what it shows of a video is looked at: once, and kept with the
run before anything else is done.
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
from pipeline.generate.checkpoint import draft_from, draft_of, store_answer
from pipeline.generate.lifecycle import REDRAW, drop_said_unless_wanted, end_run, fail_item, items_of
from pipeline.generate.model.metered_client import LostLease
from pipeline.media import drawn_pictures, made_films, text_to_speech
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
    from pipeline.generate.checkpoint import Run
    from pipeline.media.text_to_speech import VoicedScript
    from pipeline.render.video.material import Shot, VideoSpan
    from pipeline.render.video.storyboard import Storyboard

SHOTS: Final = "shots"
"""Where a run keeps what was seen, by video and span."""
SPEECH: Final = "speech"
"""Where a run keeps what was spoken, by variant."""
UNSPOKEN: Final = "unspoken"
"""Where it keeps how often no voice had the time."""
SPEAK_AGAIN: Final = timedelta(seconds=30)
"""After a voice was too slow for the first time; twice that after the second, and so on."""
RENDER_AGAIN: Final = timedelta(seconds=30)
"""After a film broke for the first time; twice that after the second, and so on."""
TELL_SECONDS: Final = 2.0
"""Between two writes of how far a film is."""
BROKEN: Final = "broken_films"
"""Where a run keeps how often a film of it broke that may go well another time."""
PASSING: Final = frozenset({"render_died", "render_slow"})
"""What the next try may not meet: the system killed it for its memory, or the machine was overloaded."""


LATELY: Final = timedelta(hours=1)


class BrokenFilm(TryLater):
    """A film broke that may go well another time; the words are kept meanwhile."""


def draw_variants(run: Run) -> Run:
    """Draw every variant that is written next; no transaction is open meanwhile."""
    generation, material = run.generation, run.rests_on
    drafts = [draft_from(kept) if kept else None for kept in generation.answers["drafts"]]
    waiting = GeneratedItem.everywhere.filter(
        generation=generation, status=GeneratedItemStatus.GENERATING, deleted_at=None
    )
    # What a killed hand has drawn is there still.
    drawn = dict(generation.answers.get("pictures", {}))
    items = list(waiting.order_by("variant_index"))
    for place, item in enumerate(items):
        if str(item.variant_index) in drawn:
            continue
        draft = drafts[item.variant_index] if item.variant_index < len(drafts) else None
        if draft is None or any(check.outcome == "failed" for check in material.judge(draft)):
            continue
        published_at = material.source.published_at
        drawn[str(item.variant_index)] = _draw_one(
            run,
            item,
            draft,
            shown_on=published_at.date() if published_at else None,
            share=(place, len(items)),
        )
        if run.engine.bucket == "video":
            crash_point("generate.filmed")
            # A film takes long enough to be worth a write of its own.
            store_answer(generation, generation.stage, pictures=drawn)
    store_answer(generation, run.then, pictures=drawn)
    return run


def _draw_one(
    run: Run,
    item: GeneratedItem,
    draft: Draft,
    *,
    shown_on: date | None,
    share: tuple[int, int],
    board: Storyboard | None = None,
) -> dict[str, Any]:
    """`share` is which of how many it is, for the progress of the whole; `board` is filmed where a person changed it."""
    generation, engine, persona = run.generation, run.engine, run.persona
    if engine.bucket != "video":
        return drawn_pictures.draw_pictures(item, engine, draft, persona, shown_on=shown_on)
    if board is None:
        voiced = speak_script(generation, item, engine, draft, persona)
    else:
        voiced = text_to_speech.recall_script(item, board.audio.voice)
    tell = Teller(generation, item, *share)
    try:
        return made_films.make_film(
            item,
            engine,
            draft,
            persona,
            voiced=voiced,
            board=board,
            look=Looker(generation, tell.hold),
            on_progress=tell,
        )
    except RenderFailed as failed:
        if failed.code == "render_stopped":
            # Nobody else stops one: the lease is another task's, or the item was deleted.
            raise LostLease from failed
        times = generation.answers.get(BROKEN, 0) + 1
        if failed.code not in PASSING or times >= limits.GENERATION_TRIES:
            return made_films.failed_film(failed.code, failed.message)
        store_answer(generation, generation.stage, **{BROKEN: times})
        raise BrokenFilm(failed.message, code=failed.code, after=times * RENDER_AGAIN) from failed


class Teller:
    """Keeps how far a film is, and the lease, every few seconds; False where the lease is lost or the item deleted."""

    def __init__(self, generation: Generation, item: GeneratedItem, place: int, of: int) -> None:
        self._generation, self._item = generation, item
        self._place, self._of = place, max(of, 1)
        self._next = 0.0
        left = generation.wake_at - utc_now() if generation.wake_at else timedelta(0)
        self._held_until = monotonic() + left.total_seconds()

    def __call__(self, share: float) -> bool:
        now = monotonic()
        if now < self._next:
            return True
        self._next = now + TELL_SECONDS
        percent = min(99, int(100 * (self._place + share) / self._of))
        lease = timedelta(seconds=settings.LEASE_SECONDS)
        try:
            is_ours = self._generation.sleep_until(work_queue.database_now() + lease, progress=percent)
            is_wanted = GeneratedItem.everywhere.filter(pk=self._item.pk, deleted_at=None).exists()
        except (OperationalError, InterfaceError):
            # A busy database is no reason to throw the film away while nobody else can have the lease.
            work_queue.release_connections()
            return now < self._held_until
        self._held_until = now + lease.total_seconds()
        return is_ours and is_wanted

    def hold(self, lease: timedelta) -> bool:
        """Keep the lease for that long, while nothing is told; False where it is lost."""
        now = monotonic()
        if not self._generation.renew_lease(lease):
            return False
        self._held_until = now + lease.total_seconds()
        return True


def redraw(run: Run) -> Run:
    """Draw an item's newest words, which a person has edited; neither a writer is asked nor a credit spent."""
    generation, drawn = run.generation, {}
    item = (
        GeneratedItem.everywhere.select_related("raw_item")
        .filter(generation=generation, status=GeneratedItemStatus.GENERATING, deleted_at=None)
        .first()
    )
    if item is not None:
        raw = item.raw_item
        said = generation.answers[REDRAW].get("storyboard")
        drawn[str(item.variant_index)] = _draw_one(
            run,
            item,
            draft_of(item),
            shown_on=raw.published_at.date() if raw is not None and raw.published_at else None,
            share=(0, 1),
            board=None if said is None else storyboard_json.from_json(said),
        )
    store_answer(generation, run.then, pictures=drawn)
    return run


def write_redrawn(run: Run) -> Run:
    """`generating → ready` again: the words stand already, and that it was made was told when it was made."""
    generation, answers = run.generation, run.generation.answers
    now = utc_now()
    is_broken = any(drawn["error"] for drawn in answers.get("pictures", {}).values())
    with transaction.atomic():
        end_run(generation, now, is_broken=is_broken)
        items = items_of(generation)
        drop_said_unless_wanted(generation, items)
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
            others = [check for check in item.checks if check["code"] not in drawn_pictures.FILE_CHECKS]
            states.move(item, "ready", checks=[*others, *drawn["checks"]], error=None, updated_at=now)
            drawn_pictures.replace_files(item, drawn, now=now, alt_texts=answers[REDRAW]["alt_texts"])
        crash_point("generate.written")
    return run


class NotSpokenYet(TryLater):
    """The voices were too slow; the words are kept meanwhile."""


def speak_script(
    generation: Generation, item: GeneratedItem, engine: Engine, draft: Draft, persona: PersonaCard
) -> VoicedScript:
    """What the engine's script sounds like; no transaction is open meanwhile.

    Raises `NotSpokenYet` where the voices were too slow and may do better another time, and `LostLease`.
    """
    script = engine.script(draft, persona)
    if script is None:
        return text_to_speech.NO_VOICE
    place = str(item.variant_index)
    spoken = dict(generation.answers.get(SPEECH, {}))
    kept = spoken.get(place)
    if kept is None or not text_to_speech.is_stored(kept, script):
        if not generation.renew_lease(
            text_to_speech.max_call_time() + timedelta(seconds=settings.LEASE_SECONDS)
        ):
            raise LostLease
        try:
            kept = text_to_speech.speak_to_file(item, script)
        except TryLater as late:
            times = generation.answers.get(UNSPOKEN, 0) + 1
            if times < limits.GENERATION_TRIES:
                store_answer(generation, generation.stage, **{UNSPOKEN: times})
                raise NotSpokenYet(late.message, code=late.code, after=times * SPEAK_AGAIN) from late
            kept = text_to_speech.silent_script(script, late.message)
        store_answer(generation, generation.stage, **{SPEECH: {**spoken, place: kept}})
        crash_point("generate.spoken")
    return text_to_speech.read_script(kept)


class Looker:
    """The shots of a span; no transaction is open meanwhile.

    `hold` keeps the lease for so long, and answers False where it is lost. Raises `LostLease`, and what
    `shot_process.detect_shots` raises.
    """

    def __init__(self, generation: Generation, hold: Callable[[timedelta], bool]) -> None:
        self._generation, self._hold = generation, hold

    def __call__(self, path: Path, span: VideoSpan) -> tuple[Shot, ...]:
        seen = dict(self._generation.answers.get(SHOTS, {}))
        place = f"{span.name} {span.start} {span.end}"
        if place not in seen:
            if not self._hold(timedelta(seconds=shot_process.timeout_seconds(span) + settings.LEASE_SECONDS)):
                raise LostLease
            seen[place] = [asdict(shot) for shot in shot_process.detect_shots(path, span)]
            store_answer(self._generation, self._generation.stage, **{SHOTS: seen})
            crash_point("generate.looked")
        return shot_process.shots_from(seen[place])


# --- Whose film is made next -----------------------------------------------------------------------------------------


def queue_of_rendering(engine: Engine) -> GenerationQueue:
    return GenerationQueue.RENDER if engine.bucket == "video" else GenerationQueue.COMPUTE


def turns_of_films(workspace_ids: Collection[UUID]) -> dict[UUID, tuple[int, datetime]]:
    """Of workspaces whose films wait: how many each had within the last hour, and since when its oldest one waits."""
    films = Generation.everywhere.filter(queue=GenerationQueue.RENDER, workspace__in=workspace_ids)
    lately = Q(finished_at__gt=utc_now() - LATELY)
    waits = Q(wake_at__isnull=False)
    counted = (
        # The model's own ordering would be a part of the groups.
        films.filter(lately | waits)
        .order_by()
        .values_list("workspace_id")
        .annotate(count=Count("pk", filter=lately), since=Min("created_at", filter=waits))
    )
    return {workspace: (count, since) for workspace, count, since in counted}
