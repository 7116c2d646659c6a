"""Runs a generation from a topic, and changes to another topic if the words repeat earlier items."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from accounts.models import Workspace
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits, plugins
from pipeline.engines.base import Check, Engine, SourceText
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.run_state import EARLIER, as_json, brief_from, draft_from, store_answer
from pipeline.generate.topics import lane_eligibility, select
from pipeline.generate.topics.persona_history import PersonaHistory
from pipeline.models import (
    BrandPick,
    BrandPickDecision,
    GeneratedItem,
    Generation,
    GenerationStage,
    Source,
    Topic,
)
from pipeline.plugins import Refused
from pipeline.writers.approved_line_drafts import REPETITION
from pipeline.writers.base import Usage
from pipeline.writers.topic_and_story_briefs import brief_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.engines.base import Draft
    from pipeline.generate.run_state import Run, RunMaterial
    from pipeline.generate.topics.persona_history import NearestText
    from pipeline.writers.base import Judge

TOO_NEAR: Final = "too_near"


def find_material(run: Run) -> None:
    """Store the topic's brief, which is built without a model.

    Raises `Refused` if the topic or its persona was deleted, or if a model would have no fact to write from, and
    `LostLease` if the run is no longer this task's.
    """
    generation, writer = run.generation, run.writer
    pick = pick_of(generation)
    topic = pick.topic if pick is not None else None
    if pick is None or topic is None or topic.deleted_at is not None:
        message = "Its topic was deleted."
        raise Refused(message, code="topic_deleted")
    brief, source = brief_of(select.subject_of(topic, pick.angle, _recent_openings(generation)), run.persona)
    if not brief.facts and not writer.offline:
        message = (
            "There is nothing that may be said about this topic. Give it notes or evidence, or say in the persona who "
            "you are."
        )
        raise Refused(message, code="nothing_to_say")
    discarded_usage = generation.answers.get("spent")
    free_usage = Usage(
        provider="offline", model="", offline=writer.offline, prompt_version=writer.prompt_version
    )
    store_answer(
        generation,
        run.next_stage,
        brief=asdict(brief),
        brief_usage=discarded_usage or asdict(free_usage),
        text=source.text,
        language=source.language,
    )


def read_material(run: Run) -> RunMaterial:
    """Return the run's material, after discarding the drafts that repeat earlier items.

    If no draft is left, the run starts again with another topic, and its stage is the first one. Raises `Refused`
    if there is no further topic, and `LostLease` if the run is no longer this task's.
    """
    generation = run.generation
    brief = brief_from(generation.answers["brief"])
    source = SourceText(
        title=brief.title, text=generation.answers["text"], language=generation.answers["language"]
    )
    material = run.build_material(brief, source)
    if generation.stage != GenerationStage.DRAFT:
        if not generation.answers.get("is_new"):
            _discard_repetitions(generation)
    elif run.writer.offline:
        return replace(material, judge=_add_repetition_check(material.judge, _persona_history(generation)))
    return material


def _persona_id(generation: Generation) -> UUID:
    persona_id: UUID | None = generation.persona_id
    if persona_id is None:
        message = "Its persona was deleted."
        raise Refused(message, code="persona_deleted")
    return persona_id


def _recent_openings(generation: Generation) -> tuple[str, ...]:
    """Return the openings of the persona's newest items, so that a model doesn't begin in the same way again."""
    rows = GeneratedItem.objects.of(generation.workspace_id).filter(
        persona_id=_persona_id(generation), test=generation.test, revision__gt=0, deleted_at=None
    )
    newest = rows.order_by("-id").values_list("excerpt", flat=True)[: limits.LANE_TITLES_SHOWN]
    return tuple(" ".join(excerpt.split()[:12]) for excerpt in newest)


def _add_repetition_check(judge: Judge, history: PersonaHistory) -> Judge:
    """Add a check that fails drafts similar to recent items, so that a verbatim writer takes another line."""

    def judge_with_repetition(draft: Draft) -> tuple[Check, ...]:
        checks = judge(draft)
        nearest = history.find_nearest(draft.body)
        if nearest is None or nearest.likeness < limits.LANE_LIKENESS:
            return checks
        return (*checks, Check(REPETITION, "failed", _repetition_message(nearest)))

    return judge_with_repetition


def _persona_history(generation: Generation) -> PersonaHistory:
    pick = pick_of(generation)
    slot_id = pick.slot_id if pick is not None else None
    runs_of_slot = BrandPick.everywhere.filter(slot_id=slot_id).values_list("generation_id", flat=True)
    return PersonaHistory(
        workspace_id=generation.workspace_id,
        persona_id=_persona_id(generation),
        test=generation.test,
        without={generation.pk, *(run_id for run_id in runs_of_slot if run_id is not None)},
        now=utc_now(),
    )


def _discard_repetitions(generation: Generation) -> None:
    """Drop drafts that are too similar to earlier items; if none is left, restart with another topic.

    Every draft keeps its index, by which its item finds it, so a dropped one leaves a gap. A run for a further
    variant also holds the drafts before it; those aren't compared. Raises `Refused` after the last topic that
    the run may take, with every discard recorded.
    """
    history = _persona_history(generation)
    drafts = generation.answers["drafts"]
    items = GeneratedItem.everywhere.filter(generation=generation, deleted_at=None)
    own_indexes = [
        index for index in set(items.values_list("variant_index", flat=True)) if index < len(drafts)
    ]
    nearest_by_index = {index: history.find_nearest(draft_from(drafts[index]).body) for index in own_indexes}
    too_near = {
        index: nearest
        for index, nearest in nearest_by_index.items()
        if nearest is not None and nearest.likeness >= limits.LANE_LIKENESS
    }
    if len(too_near) < len(own_indexes) or not own_indexes:
        remaining_drafts = [None if index in too_near else draft for index, draft in enumerate(drafts)]
        store_answer(generation, generation.stage, drafts=remaining_drafts, is_new=True)
        return
    index, nearest = max(too_near.items(), key=lambda pair: pair[1].likeness)
    if not _take_another_topic(generation, drafts[index]["body"], nearest):
        message = (
            f"{_repetition_message(nearest)} No further topic gave anything new; add topics or angles, or "
            "give them more notes. Discarded drafts are in the source's log."
        )
        raise Refused(message, code=TOO_NEAR)


def _repetition_message(nearest: NearestText) -> str:
    return (
        f"It is too near to {nearest.public_id}, which the persona said in the last 90 days: "
        f"{nearest.likeness:.0%} of their runs of three words are the same."
    )


def _take_another_topic(generation: Generation, text: str, nearest: NearestText) -> bool:
    """Record the discard and restart with another topic, in one transaction; return False if there is none."""
    pick = pick_of(generation)
    if pick is None:
        return False
    now = utc_now()
    with transaction.atomic():
        # The same locks in the same order as when a slot is picked: two runs don't take one topic.
        source = Source.everywhere.select_for_update().get(pk=pick.slot.source_id)
        Workspace.everywhere.select_for_update(no_key=True).get(pk=generation.workspace_id)
        if not generation.under_lease().exists():
            raise LostLease
        BrandPick.everywhere.filter(pk=pick.pk).update(
            decision=TOO_NEAR,
            reason={
                "code": TOO_NEAR,
                "message": _repetition_message(nearest),
                "likeness": nearest.likeness,
                "near": nearest.public_id,
            },
            words=text,
            decided_at=now,
        )
        choice = _next_choice(generation, source, pick)
        if choice is not None:
            _restart_with(generation, pick, choice)
        crash_point("brand.discarded")
    return choice is not None


def _next_choice(generation: Generation, source: Source, pick: BrandPick) -> select.TopicChoice | None:
    """Return another topic that the run may take and its engine can use, or `None` if there is none."""
    tried = list(
        BrandPick.everywhere.filter(generation=generation, decision=TOO_NEAR).values_list(
            "topic_id", flat=True
        )
    )
    if len(tried) > limits.LANE_FURTHER_TOPICS:
        return None
    candidates = select.topic_candidates(source, _persona_id(generation), pick.used_on)
    engine = plugins.get("engines", generation.engine, Engine)
    without = set(tried)
    while (
        choice := select.choose_topic(candidates, seed=f"{generation.pk.hex}:{len(tried)}", without=without)
    ) is not None:
        if lane_eligibility.makeable_engines(source, [engine], choice, generation.persona_id)[0]:
            break
        without.add(choice.topic.pk)
    return choice


def _restart_with(generation: Generation, pick: BrandPick, choice: select.TopicChoice) -> None:
    """Start the run again with another topic, and keep the usage of its calls so far.

    Raises `LostLease` if the run is no longer this task's.
    """
    _repeat_pick(pick, generation, choice.topic, choice.angle)
    GeneratedItem.everywhere.filter(generation=generation, deleted_at=None).update(
        topic=choice.topic, version=F("version") + 1
    )
    earlier = {EARLIER: generation.answers[EARLIER]} if EARLIER in generation.answers else {}
    answers = {"spent": _usage_so_far(generation), **earlier}
    restart_fields = {"stage": GenerationStage.BRIEF, "topic": choice.topic}
    if not generation.under_lease().update(**restart_fields, answers=as_json(answers)):
        raise LostLease
    generation.topic = choice.topic
    generation.stage = GenerationStage.BRIEF
    generation.answers = answers


def _usage_so_far(generation: Generation) -> dict[str, Any]:
    """Return the usage for the discarded drafts, which the item's cost includes."""
    brief_usage, draft_usage = (Usage(**generation.answers[name]) for name in ("brief_usage", "draft_usage"))
    return {
        **asdict(draft_usage),
        "input_tokens": brief_usage.input_tokens + draft_usage.input_tokens,
        "output_tokens": brief_usage.output_tokens + draft_usage.output_tokens,
        "cost_micro_usd": brief_usage.cost_micro_usd + draft_usage.cost_micro_usd,
    }


# --- The topic -------------------------------------------------------------------------------------------------------


def pick_of(generation: Generation) -> BrandPick | None:
    """Return the run's open topic pick, or `None` for a run of a raw item or one that is over."""
    pick: BrandPick | None = (
        BrandPick.everywhere.filter(generation=generation, decision=BrandPickDecision.TAKEN)
        .select_related("topic", "slot")
        .order_by("-id")
        .first()
    )
    return pick


def conclude_pick(
    generation: Generation,
    made: Sequence[GeneratedItem],
    now: datetime,
    *,
    reason: Mapping[str, Any] | None = None,
) -> None:
    """Conclude the run's open topic pick, in the caller's transaction: as used, or as failed without items.

    `reason` is the error of a failed run; without one it is that no draft kept to the rules.
    """
    pick = pick_of(generation)
    if pick is None:
        return
    open_pick = BrandPick.everywhere.filter(pk=pick.pk, decision=BrandPickDecision.TAKEN)
    if made:
        open_pick.update(decision="used", item=made[0], decided_at=now)
        Topic.everywhere.filter(pk=pick.topic_id).update(last_used_at=now)
        return
    failure = reason or {
        "code": "checks_failed",
        "message": "No draft kept to the rules; its items say which.",
    }
    open_pick.update(
        decision="failed", reason={name: failure[name] for name in ("code", "message")}, decided_at=now
    )


def copy_pick(old: Generation, new: Generation, now: datetime) -> bool:
    """Give the new run the topic and angle of an earlier run of the same item.

    Return False, with nothing written, if the earlier run has no pick or its topic was deleted.
    """
    last = BrandPick.everywhere.filter(generation=old).select_related("topic").order_by("-id").first()
    if last is None or last.topic is None:
        return False
    _repeat_pick(last, new, last.topic, last.angle, created_at=now)
    return True


def _repeat_pick(pick: BrandPick, generation: Generation, topic: Topic, angle: str, **columns: Any) -> None:
    """Create a pick for the run at the slot and on the day of an earlier pick."""
    BrandPick.everywhere.create(
        workspace_id=pick.workspace_id,
        slot_id=pick.slot_id,
        generation=generation,
        topic=topic,
        title=topic.title,
        angle=angle,
        used_on=pick.used_on,
        **columns,
    )
