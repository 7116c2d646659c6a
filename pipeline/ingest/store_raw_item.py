"""Take raw content in: meet what is there already, or store it with what will be made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.db import transaction

from config.core import dispatcher, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert, insert_or_ignore
from pipeline import events
from pipeline.generate import raw_item_outcomes
from pipeline.generate.acceptance import NOTHING_TO_MAKE, Acceptance, GenerationPlan
from pipeline.holds.source_changes import hold_derived_items
from pipeline.ingest.generation_plan import plan_with
from pipeline.ingest.near_duplicates import fingerprint_of, note_near_duplicates, update_fingerprint
from pipeline.ingest.raw_content import (
    Outcome,
    RawContent,
    Skip,
    Wanted,
    rows_of,
    second_key_of,
    source_text,
)
from pipeline.ingest.replan import replan
from pipeline.ingest.start_runs import ToMake, facts_of_new, reason_of_skip, reserve, rows_of_runs, start_runs
from pipeline.media import uploads
from pipeline.models import (
    GeneratedItem,
    Generation,
    RawBody,
    RawItem,
    RawItemStatus,
    RawPrint,
    WorkspaceDefaults,
)
from pipeline.switches import availability
from pipeline.text.plain_text import seen_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Event, Source


@dataclass(frozen=True)
class Pushed:
    raw_item: RawItem
    outcome: Outcome
    items: tuple[GeneratedItem, ...] | None = None
    """What is to be made of one that is new; None where it was there already."""

    def as_json(self) -> dict[str, Any]:
        """The raw item as the API shows it, with its outcomes."""
        if self.items is None:
            return raw_item_outcomes.serialize_raw_item(self.raw_item)
        return raw_item_outcomes.serialize_new_raw_item(self.raw_item, self.items)


@dataclass(frozen=True)
class PreparedItem:
    """A raw item that is ready to be stored, with what it will be made into."""

    content: RawContent
    row: RawItem
    body: RawBody
    mark: RawPrint
    plan: GenerationPlan


def push(
    workspace: Workspace,
    source: Source,
    content: RawContent,
    *,
    defaults: WorkspaceDefaults,
    when_short: Literal["refuse", "wait"] = "refuse",
    skip: Skip | None = None,
    beside: Callable[[UUID, Outcome], None] | None = None,
    now: datetime | None = None,
) -> Pushed:
    """Store a raw item with the rows of everything that will be made from it, or meet the one already there.

    One transaction: the item, its body, a generation per engine with its generated items, the event, and last
    the reservation of credits. With too few: `QuotaExceeded` and nothing stored, or with `when_short="wait"`
    the item is kept as `waiting_quota`. An engine that is named and can't be run here: `EngineUnavailable`.
    With `skip` it is kept as `skipped` and nothing is made. `beside` gets the id of the raw item and what
    became of it, and writes what belongs to it, before the balance of credits is locked.
    """
    now = now or utc_now()
    availability.refuse_engines(content.engines or ())
    prepared = prepare(workspace, source, [Wanted(content, skip)], defaults=defaults, now=now)[0]
    row, body, mark = prepared.row, prepared.body, prepared.mark
    items: list[GeneratedItem] = []
    with transaction.atomic():
        note_near_duplicates([(row, mark)], now)
        # The constraint decides between two pushes of the same thing, so that nobody has to look first.
        if not insert_or_ignore(row):
            return _meet(workspace, row, body, now, beside)
        if not insert_or_ignore(mark):
            if content.is_fetched:
                met = _step_back(row, mark)
                if beside is not None:
                    beside(met.raw_item.pk, "duplicate")
                return met
            mark.second_key = None
            insert([mark])
        insert([body])
        uploads.mark_used(workspace.pk, uploads.ids_in(row.media), raw_item=row, now=now)
        if beside is not None:
            beside(row.pk, "new")
        if row.status == RawItemStatus.QUEUED:
            to_make = ToMake(workspace, source, row, prepared.plan, defaults)
            items = start_runs(to_make, when_short=when_short, now=now)
        else:
            events.write(facts_of_new(row, (), now))
        crash_point("push.stored")
    crash_point("push.committed")
    return Pushed(row, "new", tuple(items))


def prepare(
    workspace: Workspace,
    source: Source,
    wanted: Sequence[Wanted],
    *,
    defaults: WorkspaceDefaults,
    now: datetime,
) -> list[PreparedItem]:
    """Read and plan what is to be stored, which may take some milliseconds each: before the transaction."""
    acceptance = Acceptance(workspace)
    made = []
    for one in wanted:
        row, body = rows_of(workspace, source, one.content, defaults, now)
        text = source_text(row, body)
        # What its source leaves out isn't looked at: whoever has it made all the same has it planned then.
        plan = plan_with(row, text, acceptance) if one.skip is None else GenerationPlan()
        _skip_unless_made(row, plan, one.skip)
        fingerprint = fingerprint_of(row, text.text, second_key_of(source, one.content, row))
        made.append(PreparedItem(one.content, row, body, fingerprint, plan))
    return made


def push_all(
    workspace: Workspace,
    source: Source,
    contents: Sequence[RawContent],
    *,
    defaults: WorkspaceDefaults,
    now: datetime | None = None,
) -> list[Pushed]:
    """`push` each of them, or none: raises what one of them raises."""
    with transaction.atomic():
        return [push(workspace, source, one, defaults=defaults, now=now) for one in contents]


def push_portion(
    workspace: Workspace,
    source: Source,
    portion: Sequence[PreparedItem],
    *,
    defaults: WorkspaceDefaults,
    beside: Callable[[Sequence[UUID]], None],
    now: datetime,
) -> None:
    """Store several new raw items with few statements, as `push` does one after the other; all of them or
    none.

    `beside` gets the ids of all of them in their order, and writes as in `push`. The caller holds the
    transaction, and pushes one by one after an `IntegrityError` (somebody had one of them first) or
    `QuotaExceeded` (the credits don't do for all).
    """
    generations: list[Generation] = []
    items: list[GeneratedItem] = []
    facts: list[Event] = []
    note_near_duplicates([(one.row, one.mark) for one in portion], now)
    for one in portion:
        of_runs: list[GeneratedItem] = []
        if one.row.status == RawItemStatus.QUEUED:
            runs, of_runs = rows_of_runs(ToMake(workspace, source, one.row, one.plan, defaults), now)
            generations += runs
            items += of_runs
        facts += facts_of_new(one.row, of_runs, now)
    RawItem.everywhere.bulk_create([one.row for one in portion])
    RawPrint.everywhere.bulk_create([one.mark for one in portion])
    RawBody.everywhere.bulk_create([one.body for one in portion])
    Generation.everywhere.bulk_create(generations)
    GeneratedItem.everywhere.bulk_create(items)
    events.write(facts)
    beside([one.row.pk for one in portion])
    if generations:
        dispatcher.wake()
    reserve(workspace, generations, now)


def _skip_unless_made(row: RawItem, plan: GenerationPlan, skip: Skip | None) -> None:
    row.skipped = [one.as_json() for one in plan.skipped]
    if skip is None and plan.shares:
        return
    reason = skip or Skip(NOTHING_TO_MAKE, " ".join(plan.why_not))
    row.reason = reason_of_skip(reason.code, reason.message)
    states.begin(row, "skipped")


def _step_back(row: RawItem, mark: RawPrint) -> Pushed:
    """Another source brought the same page a moment ago: its raw item stays the only one."""
    RawItem.everywhere.filter(pk=row.pk).delete()
    holder = RawPrint.everywhere.filter(
        workspace_id=row.workspace_id, test=row.test, second_key=mark.second_key
    )
    return Pushed(RawItem.everywhere.get(pk=holder.values("pk")[:1]), "duplicate")


def _meet(
    workspace: Workspace,
    pushed: RawItem,
    body: RawBody,
    now: datetime,
    beside: Callable[[UUID, Outcome], None] | None,
) -> Pushed:
    """The same identity is there already: the same content is a duplicate, other content its next version."""
    row = (
        RawItem.everywhere.select_for_update(of=("self",))
        .select_related("source")
        .get(workspace=workspace, test=pushed.test, dedup_key=pushed.dedup_key)
    )
    outcome: Outcome = (
        "duplicate" if row.deleted_at is not None or row.content_hash == pushed.content_hash else "revised"
    )
    if beside is not None:
        beside(row.pk, outcome)
    if outcome == "duplicate":
        return Pushed(row, outcome)
    body.raw_item = row
    body.number = row.content_version + 1
    body.save(force_insert=True)
    changes = {
        "title": pushed.title,
        "url": pushed.url or row.url,
        "author": pushed.author or row.author,
        **_language_of(pushed, row),
        "published_at": pushed.published_at or row.published_at,
        "media": pushed.media or row.media,
        "metadata": pushed.metadata or row.metadata,
        "content_hash": pushed.content_hash,
        "content_version": body.number,
        "version": row.version + 1,
        "updated_at": now,
    }
    RawItem.everywhere.filter(pk=row.pk).update(**changes)
    for name, value in changes.items():
        setattr(row, name, value)
    if pushed.media:
        uploads.mark_used(workspace.pk, uploads.ids_in(pushed.media), raw_item=row, now=now)
    hold_derived_items(row, "source_changed", now)
    update_fingerprint(row, seen_text(body.body, body.body_format))
    if row.status == RawItemStatus.SKIPPED and (row.reason or {}).get("code") == NOTHING_TO_MAKE:
        # The first version had nothing to work with; this one may have.
        replan(row, workspace, when_short="wait", now=now)
    return Pushed(row, "revised")


def _language_of(pushed: RawItem, row: RawItem) -> dict[str, Any]:
    """That of the next version: what was said is never followed by a guess."""
    told = row if pushed.language_guessed and row.language and not row.language_guessed else pushed
    kept = told if told.language else row
    return {"language": kept.language, "language_guessed": kept.language_guessed}
