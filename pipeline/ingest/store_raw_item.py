"""Stores raw content with its runs and their items, or matches it to the raw item already there."""

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
from pipeline.generate.generation_plan import NOTHING_TO_MAKE, Acceptance, GenerationPlan
from pipeline.holds.source_changes import hold_derived_items
from pipeline.ingest.near_duplicates import fingerprint_of, note_near_duplicates, update_fingerprint
from pipeline.ingest.raw_content import (
    ContentToStore,
    Outcome,
    RawContent,
    Skip,
    build_rows,
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
class PushResult:
    """The result of a push."""

    raw_item: RawItem
    outcome: Outcome
    items: tuple[GeneratedItem, ...] | None = None
    """The items to be made of a new raw item, or `None` if it was there already."""

    def as_json(self) -> dict[str, Any]:
        """Return the raw item as the API shows it, with its outcomes."""
        if self.items is None:
            return raw_item_outcomes.serialize_raw_item(self.raw_item)
        return raw_item_outcomes.serialize_new_raw_item(self.raw_item, self.items)


@dataclass(frozen=True)
class PreparedItem:
    """A raw item that is ready to be stored, with the plan of its runs."""

    content: RawContent
    row: RawItem
    body: RawBody
    fingerprint: RawPrint
    plan: GenerationPlan


def push(
    workspace: Workspace,
    source: Source,
    content: RawContent,
    *,
    defaults: WorkspaceDefaults,
    when_short: Literal["refuse", "wait"] = "refuse",
    skip: Skip | None = None,
    on_stored: Callable[[UUID, Outcome], None] | None = None,
    now: datetime | None = None,
) -> PushResult:
    """Store a raw item with its runs and their items, or match the raw item that is there already.

    One transaction writes the item, its body, a generation per engine with its generated items, the event, and
    last the reservation of credits. With `skip` the item is stored as `skipped`, and nothing is made. `on_stored`
    gets the id of the raw item and the outcome, and writes further rows before the balance of credits is locked.
    With too few credits and `when_short="wait"` the item is stored as `waiting_quota`. Raises `QuotaExceeded` for
    too few credits with "refuse", `EngineUnavailable` if a named engine can't run here, and `Invalid` if the
    media names an unknown upload or the body with its transcript is too long.
    """
    now = now or utc_now()
    availability.refuse_engines(content.engines or ())
    prepared = prepare(workspace, source, [ContentToStore(content, skip)], defaults=defaults, now=now)[0]
    row, body, fingerprint = prepared.row, prepared.body, prepared.fingerprint
    items: list[GeneratedItem] = []
    with transaction.atomic():
        note_near_duplicates([(row, fingerprint)], now)
        # The constraint decides between two pushes of the same content, so no query comes first.
        if not insert_or_ignore(row):
            return _match_known(workspace, row, body, now, on_stored)
        if not insert_or_ignore(fingerprint):
            if content.is_fetched:
                pushed = _yield_to_other_source(row, fingerprint)
                if on_stored is not None:
                    on_stored(pushed.raw_item.pk, "duplicate")
                return pushed
            fingerprint.second_key = None
            insert([fingerprint])
        insert([body])
        uploads.mark_used(workspace.pk, uploads.upload_ids_in(row.media), raw_item=row, now=now)
        if on_stored is not None:
            on_stored(row.pk, "new")
        if row.status == RawItemStatus.QUEUED:
            to_make = ToMake(workspace, source, row, prepared.plan, defaults)
            items = start_runs(to_make, when_short=when_short, now=now)
        else:
            events.write(facts_of_new(row, (), now))
        crash_point("push.stored")
    crash_point("push.committed")
    return PushResult(row, "new", tuple(items))


def prepare(
    workspace: Workspace,
    source: Source,
    contents: Sequence[ContentToStore],
    *,
    defaults: WorkspaceDefaults,
    now: datetime,
) -> list[PreparedItem]:
    """Build and plan the raw items of these contents. Stores nothing.

    It may take some milliseconds for each, so call it before the transaction.
    """
    acceptance = Acceptance(workspace)
    prepared = []
    for each in contents:
        row, body = build_rows(workspace, source, each.content, defaults, now)
        text = source_text(row, body)
        # A skipped entry isn't planned: if a person has it made after all, it is planned then.
        plan = GenerationPlan()
        if each.skip is None:
            plan = acceptance.plan(row.engines, row.variants, text, persona_id=row.persona_id)
        _mark_skipped(row, plan, each.skip)
        fingerprint = fingerprint_of(row, text.text, second_key_of(source, each.content, row))
        prepared.append(PreparedItem(each.content, row, body, fingerprint, plan))
    return prepared


def push_all(
    workspace: Workspace,
    source: Source,
    contents: Sequence[RawContent],
    *,
    defaults: WorkspaceDefaults,
    now: datetime | None = None,
) -> list[PushResult]:
    """Push all contents in one transaction. Raises the error of `push` for the first that is refused."""
    with transaction.atomic():
        return [push(workspace, source, content, defaults=defaults, now=now) for content in contents]


def push_portion(
    workspace: Workspace,
    source: Source,
    portion: Sequence[PreparedItem],
    *,
    defaults: WorkspaceDefaults,
    on_stored: Callable[[Sequence[UUID]], None],
    now: datetime,
) -> None:
    """Store several new raw items with few statements; see `push`.

    `on_stored` gets the ids of all of them in their order, and writes as in `push`. The caller holds the
    transaction. Raises `IntegrityError` if another source stored one of them first, and `QuotaExceeded` if the
    credits don't suffice for all; after either the caller pushes them one by one.
    """
    generations: list[Generation] = []
    items: list[GeneratedItem] = []
    facts: list[Event] = []
    note_near_duplicates([(prepared.row, prepared.fingerprint) for prepared in portion], now)
    for prepared in portion:
        new_items: list[GeneratedItem] = []
        if prepared.row.status == RawItemStatus.QUEUED:
            runs, new_items = rows_of_runs(
                ToMake(workspace, source, prepared.row, prepared.plan, defaults), now
            )
            generations += runs
            items += new_items
        facts += facts_of_new(prepared.row, new_items, now)
    RawItem.everywhere.bulk_create([prepared.row for prepared in portion])
    RawPrint.everywhere.bulk_create([prepared.fingerprint for prepared in portion])
    RawBody.everywhere.bulk_create([prepared.body for prepared in portion])
    Generation.everywhere.bulk_create(generations)
    GeneratedItem.everywhere.bulk_create(items)
    events.write(facts)
    on_stored([prepared.row.pk for prepared in portion])
    if generations:
        dispatcher.wake()
    reserve(workspace, generations, now)


def _mark_skipped(row: RawItem, plan: GenerationPlan, skip: Skip | None) -> None:
    """Store the plan's skips in the row, and mark it as skipped if nothing is to be made. Saves nothing."""
    row.skipped = [each.as_json() for each in plan.skipped]
    if skip is None and plan.shares:
        return
    reason = skip or Skip(NOTHING_TO_MAKE, " ".join(plan.why_not))
    row.reason = reason_of_skip(reason.code, reason.message)
    states.begin(row, "skipped")


def _yield_to_other_source(row: RawItem, fingerprint: RawPrint) -> PushResult:
    """Delete the row and return the raw item of the same page that another source stored a moment ago."""
    RawItem.everywhere.filter(pk=row.pk).delete()
    holder = RawPrint.everywhere.filter(
        workspace_id=row.workspace_id, test=row.test, second_key=fingerprint.second_key
    )
    return PushResult(RawItem.everywhere.get(pk=holder.values("pk")[:1]), "duplicate")


def _match_known(
    workspace: Workspace,
    pushed: RawItem,
    body: RawBody,
    now: datetime,
    on_stored: Callable[[UUID, Outcome], None] | None,
) -> PushResult:
    """Match the item with the same key: other content is its next version, unless it was erased, else a duplicate."""
    row = (
        RawItem.everywhere.select_for_update(of=("self",))
        .select_related("source")
        .get(workspace=workspace, test=pushed.test, dedup_key=pushed.dedup_key)
    )
    outcome: Outcome = (
        "duplicate" if row.deleted_at is not None or row.content_hash == pushed.content_hash else "revised"
    )
    if on_stored is not None:
        on_stored(row.pk, outcome)
    if outcome == "duplicate":
        return PushResult(row, outcome)
    body.raw_item = row
    body.number = row.content_version + 1
    body.save(force_insert=True)
    changes = {
        "title": pushed.title,
        "url": pushed.url or row.url,
        "author": pushed.author or row.author,
        **_next_language(pushed, row),
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
        uploads.mark_used(workspace.pk, uploads.upload_ids_in(pushed.media), raw_item=row, now=now)
    hold_derived_items(row, "source_changed", now)
    update_fingerprint(row, seen_text(body.body, body.body_format))
    if row.status == RawItemStatus.SKIPPED and (row.reason or {}).get("code") == NOTHING_TO_MAKE:
        # The first version had nothing to work with; this one may have.
        replan(row, workspace, when_short="wait", now=now)
    return PushResult(row, "revised")


def _next_language(pushed: RawItem, row: RawItem) -> dict[str, Any]:
    """Return the language fields of the next version: a stated language is never replaced by a guess."""
    preferred = row if pushed.language_guessed and row.language and not row.language_guessed else pushed
    chosen = preferred if preferred.language else row
    return {"language": chosen.language, "language_guessed": chosen.language_guessed}
