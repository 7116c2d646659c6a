"""Pictures of what was written, and of what a person has written anew."""

from __future__ import annotations

from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction

from config.ground import dispatch, due, limits, states
from config.ground.clock import utc_now
from config.ground.crash import crash_point
from pipeline import plugins
from pipeline.engines.base import Brief, Draft, Engine, PersonaCard, SourceText
from pipeline.models import GeneratedItem, Generation
from pipeline.plugins import TryLater
from pipeline.render.video import reading
from pipeline.render.video.job import RenderFailed
from pipeline.stages import pictures, speaking, videos
from pipeline.stages.generate.finishing import end, fail_item
from pipeline.stages.generate.judging import judge
from pipeline.stages.generate.looking import Looker
from pipeline.stages.generate.reading import draft_from, draft_of
from pipeline.stages.generate.starting import items_of
from pipeline.stages.generate.storing import store
from pipeline.stages.generate.voicing import voice
from pipeline.stages.model_account import LostLease
from pipeline.stages.persona_cards import persona_card

if TYPE_CHECKING:
    from datetime import date

    from pipeline.render.video.storyboard import Storyboard
    from pipeline.stages.generate.repeating import OwnWords

RENDER_AGAIN: Final = timedelta(seconds=30)
"""After a film broke for the first time; twice that after the second, and so on."""
TELL_SECONDS: Final = 2.0
"""Between two writes of how far a film is."""
BROKEN: Final = "broken_films"
"""Where a run keeps how often a film of it broke that may go well another time."""
PASSING: Final = frozenset({"render_died", "render_slow"})
"""What the next try may not meet: the system killed it for its memory, or the machine was overloaded."""


class BrokenFilm(TryLater):
    """A film broke that may go well another time; the words are kept meanwhile."""


def draw(
    generation: Generation,
    engine: Engine,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    own_words: OwnWords | None,
) -> None:
    """Draw every variant that is written next; no transaction is open meanwhile."""
    drafts = [draft_from(kept) if kept else None for kept in generation.answers["drafts"]]
    waiting = GeneratedItem.everywhere.filter(generation=generation, status="generating", deleted_at=None)
    # What a killed hand has drawn is there still.
    drawn = dict(generation.answers.get("pictures", {}))
    items = list(waiting.order_by("variant_index"))
    for place, item in enumerate(items):
        if str(item.variant_index) in drawn:
            continue
        draft = drafts[item.variant_index] if item.variant_index < len(drafts) else None
        if draft is None or any(
            check.outcome == "failed"
            for check in judge(engine, draft, brief, source, persona, own_words=own_words)
        ):
            continue
        shown_on = source.published_at.date() if source.published_at else None
        drawn[str(item.variant_index)] = _draw_one(
            generation, item, engine, draft, persona, shown_on=shown_on, share=(place, len(items))
        )
        if engine.bucket == "video":
            crash_point("generate.filmed")
            # A film takes long enough to be worth a write of its own.
            store(generation, "render", pictures=drawn)
    store(generation, "write", pictures=drawn)


def _draw_one(
    generation: Generation,
    item: GeneratedItem,
    engine: Engine,
    draft: Draft,
    persona: PersonaCard,
    *,
    shown_on: date | None,
    share: tuple[int, int],
    board: Storyboard | None = None,
) -> dict[str, Any]:
    """`share` is which of how many it is, for the progress of the whole; `board` is filmed where a person changed it."""
    if engine.bucket != "video":
        return pictures.draw(item, engine, draft, persona, shown_on=shown_on)
    if board is None:
        voiced = voice(generation, item, engine, draft, persona)
    else:
        voiced = speaking.recalled(item, board.audio.voice)
    tell = Teller(generation, item, *share)
    try:
        return videos.film(
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
            # Nobody else stops one: the lease is another hand's, or the item was deleted.
            raise LostLease from failed
        times = generation.answers.get(BROKEN, 0) + 1
        if failed.code not in PASSING or times >= limits.GENERATION_TRIES:
            return videos.failed(failed.code, failed.message)
        store(generation, generation.stage, **{BROKEN: times})
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
            is_ours = self._generation.sleep_until(due.database_now() + lease, progress=percent)
            is_wanted = GeneratedItem.everywhere.filter(pk=self._item.pk, deleted_at=None).exists()
        except (OperationalError, InterfaceError):
            # A busy database is no reason to throw the film away while nobody else can have the lease.
            dispatch.release_connections()
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


def redraw(generation: Generation) -> None:
    """Draw an item's newest words, which a person has edited; neither a writer is asked nor a credit spent."""
    if generation.status == "queued":
        states.move(generation, "running", under_lease=True)
    engine = plugins.get("engines", generation.engine, Engine)
    item = (
        GeneratedItem.everywhere.select_related("raw_item")
        .filter(generation=generation, status="generating", deleted_at=None)
        .first()
    )
    if item is not None and generation.stage == "render":
        raw = item.raw_item
        shown_on = raw.published_at.date() if raw is not None and raw.published_at else None
        persona = persona_card(generation.persona_id, generation.persona_version)
        said = generation.answers["redraw"].get("storyboard")
        drawn = _draw_one(
            generation,
            item,
            engine,
            draft_of(item),
            persona,
            shown_on=shown_on,
            share=(0, 1),
            board=None if said is None else reading.from_json(said),
        )
        store(generation, "write", pictures={str(item.variant_index): drawn})
        crash_point("generate.rendered")
    _write_redrawn(generation)
    crash_point("generate.committed")


def _write_redrawn(generation: Generation) -> None:
    """`generating → ready` again: the words stand already, and that it was made was told when it was made."""
    answers = generation.answers
    now = utc_now()
    is_broken = any(drawn["error"] for drawn in answers.get("pictures", {}).values())
    with transaction.atomic():
        end(generation, now, is_broken=is_broken)
        for item in items_of(generation):
            drawn = answers.get("pictures", {}).get(str(item.variant_index))
            if item.status != "generating" or drawn is None:
                continue
            if drawn["error"]:
                error = drawn["error"]
                fail_item(
                    generation, item, error["code"], error["message"], now, stage=error.get("stage", "")
                )
                continue
            others = [check for check in item.checks if check["code"] not in pictures.OF_FILES]
            states.move(item, "ready", checks=[*others, *drawn["checks"]], error=None, updated_at=now)
            pictures.replace_files(item, drawn, now=now, alt_texts=answers["redraw"]["alt_texts"])
        crash_point("generate.written")
