"""Take raw content in: dedup, versions, the plan of what to make, the reservation of its price."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from django.db import transaction

from accounts import credits as credit_account
from config.core import dispatch, states
from config.core.api.nearest import hint
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert_unless_there
from config.core.errors import Conflict, Invalid
from config.core.ids import uuid7
from config.core.middleware import request_id
from pipeline import events, limits, plugins
from pipeline.engines.base import Engine, SourceText
from pipeline.generate import outcomes, retry_rules
from pipeline.generate.acceptance import NOTHING_TO_MAKE, Acceptance, Plan, plan_by_rules
from pipeline.generate.model import batches
from pipeline.generate.model.account import BRIEF_AWAITED, queue_of
from pipeline.holds.source_changes import hold_what_was_made
from pipeline.ingest.duplicates import forget_print, key_of, mark_near, print_again, print_of, second_key
from pipeline.media import footage, uploads
from pipeline.models import (
    GeneratedItem,
    Generation,
    InboundDelivery,
    RawBody,
    RawItem,
    RawItemStatus,
    RawPrint,
    SharedBrief,
    SourceEntry,
    SourceEntryDecision,
    WorkspaceDefaults,
)
from pipeline.switches import availability
from pipeline.text.language import LOOKED_AT, guess_language
from pipeline.text.normalization import content_hash, seen_text, title_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Event, Source

Outcome = Literal["new", "duplicate", "revised"]
_MARKUP: Final = re.compile(
    r"<(?:p|div|br|a|h[1-6]|ul|ol|li|blockquote|article|section|table|img|span|b|i|em|strong)\b",
    re.IGNORECASE,
)
QUIET_SKIPS: Final = frozenset({"before_first_poll"})
"""Skips that nobody is told of: a source's whole past would be one event each."""


@dataclass(frozen=True)
class RawContent:
    """What was pushed or fetched. `engines`, `variants` and `persona_id` are None where the source's hold."""

    external_id: str = ""
    url: str = ""
    title: str = ""
    body: str = ""
    body_format: str = ""
    language: str = ""
    author: str = ""
    published_at: datetime | None = None
    media: Sequence[Mapping[str, str]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    engines: Sequence[str] | None = None
    variants: int | None = None
    persona_id: UUID | None = None
    key: str = ""
    """The `dedup_key`, where the caller knows under which one it is there; else it is made of the content."""
    body_hash: str = ""
    """`content_hash` of title and body, where the caller has it already."""
    is_fetched: bool = False
    """Met by its second key too: another source may have brought the same page. What is pushed is taken by its key."""
    has_second_key: bool = True
    """False where other entries of the source have the same address, so that it identifies nothing."""


@dataclass(frozen=True)
class Pushed:
    raw_item: RawItem
    outcome: Outcome
    items: tuple[GeneratedItem, ...] | None = None
    """What is to be made of one that is new; None where it was there already."""

    def as_json(self) -> dict[str, Any]:
        """The raw item as the API shows it, with its outcomes."""
        if self.items is None:
            return outcomes.shown(self.raw_item)
        return outcomes.shown_new(self.raw_item, self.items)


@dataclass(frozen=True)
class Skip:
    """Why an entry is kept but not worked on."""

    code: str
    message: str


@dataclass(frozen=True)
class Wanted:
    """One of several that are pushed together."""

    content: RawContent
    skip: Skip | None = None


@dataclass(frozen=True)
class Prepared:
    """A raw item that is ready to be stored, with what it will be made into."""

    content: RawContent
    row: RawItem
    body: RawBody
    mark: RawPrint
    plan: Plan


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

    One transaction: the item, its body, a generation per engine with its generated items, the event, and last the
    reservation of credits. With too few: `QuotaExceeded` and nothing stored, or with `when_short="wait"` the item is
    kept as `waiting_quota`. An engine that is named and can't be run here: `EngineUnavailable`. With `skip` it is kept
    as `skipped` and nothing is made. `beside` gets the id of the raw item and what became of it, and writes what
    belongs to it, before the balance of credits is locked.
    """
    now = now or utc_now()
    availability.refuse_engines(content.engines or ())
    prepared = prepare(workspace, source, [Wanted(content, skip)], defaults=defaults, now=now)[0]
    row, body, mark = prepared.row, prepared.body, prepared.mark
    items: list[GeneratedItem] = []
    with transaction.atomic():
        mark_near([(row, mark)], now)
        # The constraint decides between two pushes of the same thing, so that nobody has to look first.
        if not insert_unless_there(row):
            return _meet(workspace, row, body, now, beside)
        if not insert_unless_there(mark):
            if content.is_fetched:
                met = _step_back(row, mark)
                if beside is not None:
                    beside(met.raw_item.pk, "duplicate")
                return met
            mark.second_key = None
            mark.save(force_insert=True)
        body.save(force_insert=True)
        uploads.use(workspace.pk, uploads.ids_in(row.media), raw_item=row, now=now)
        if beside is not None:
            beside(row.pk, "new")
        if row.status == RawItemStatus.QUEUED:
            to_make = _ToMake(workspace, source, row, prepared.plan, defaults)
            items = _make_rows(to_make, when_short=when_short, now=now)
        else:
            events.write(_facts_of_new(row, (), now))
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
) -> list[Prepared]:
    """Read and plan what is to be stored, which may take some milliseconds each: before the transaction."""
    acceptance = Acceptance(workspace)
    made = []
    for one in wanted:
        row, body = _rows(workspace, source, one.content, defaults, now)
        text = source_text(row, body)
        # What its source leaves out isn't looked at: whoever has it made all the same has it planned then.
        plan = _plan(row, text, acceptance) if one.skip is None else Plan()
        _skip_unless_made(row, plan, one.skip)
        mark = print_of(row, text.text, _second_key(source, one.content, row))
        made.append(Prepared(one.content, row, body, mark, plan))
    return made


def push_portion(
    workspace: Workspace,
    source: Source,
    portion: Sequence[Prepared],
    *,
    defaults: WorkspaceDefaults,
    beside: Callable[[Sequence[UUID]], None],
    now: datetime,
) -> None:
    """Store several new raw items with few statements, as `push` does one after the other; all of them or none.

    `beside` gets the ids of all of them in their order, and writes as in `push`. The caller holds the transaction, and
    pushes one by one after an `IntegrityError` (somebody had one of them first) or `QuotaExceeded` (the credits don't
    do for all).
    """
    generations: list[Generation] = []
    items: list[GeneratedItem] = []
    facts: list[Event] = []
    mark_near([(one.row, one.mark) for one in portion], now)
    for one in portion:
        of_runs: list[GeneratedItem] = []
        if one.row.status == RawItemStatus.QUEUED:
            runs, of_runs = _to_generate(_ToMake(workspace, source, one.row, one.plan, defaults), now)
            generations += runs
            items += of_runs
        facts += _facts_of_new(one.row, of_runs, now)
    RawItem.everywhere.bulk_create([one.row for one in portion])
    RawPrint.everywhere.bulk_create([one.mark for one in portion])
    RawBody.everywhere.bulk_create([one.body for one in portion])
    Generation.everywhere.bulk_create(generations)
    GeneratedItem.everywhere.bulk_create(items)
    events.write(facts)
    beside([one.row.pk for one in portion])
    if generations:
        dispatch.wake()
    _reserve(workspace, generations, now)


def _skip_unless_made(row: RawItem, plan: Plan, skip: Skip | None) -> None:
    row.skipped = [one.as_json() for one in plan.skipped]
    if skip is None and plan.shares:
        return
    reason = skip or Skip(NOTHING_TO_MAKE, " ".join(plan.why_not))
    row.reason = _reason_of_skip(reason.code, reason.message)
    states.begin(row, "skipped")


def _reason_of_skip(code: str, message: str) -> dict[str, str]:
    return {"code": code, "message": message, "stage": "push"}


def _second_key(source: Source, content: RawContent, row: RawItem) -> int | None:
    # By its content only what was fetched is met: who pushes the same words under two ids means two things.
    if not content.has_second_key or not (content.url or content.is_fetched):
        return None
    return second_key(source.pk, url=content.url, body_hash=row.content_hash)


def _step_back(row: RawItem, mark: RawPrint) -> Pushed:
    """Another source brought the same page a moment ago: its raw item stays the only one."""
    RawItem.everywhere.filter(pk=row.pk).delete()
    holder = RawPrint.everywhere.filter(
        workspace_id=row.workspace_id, test=row.test, second_key=mark.second_key
    )
    return Pushed(RawItem.everywhere.get(pk=holder.values("pk")[:1]), "duplicate")


def format_of(body: str) -> str:
    """That of a body whose sender doesn't say it: HTML where it has tags, else Markdown."""
    return "html" if _MARKUP.search(body) else "markdown"


def source_text(row: RawItem, body: RawBody) -> SourceText:
    """What an engine is told of it."""
    return SourceText(
        title=body.title,
        text=seen_text(body.body, body.body_format),
        url=row.url,
        author=row.author,
        language=row.language,
        published_at=row.published_at,
        material=footage.material_of(row) if _is_filmed(row) else None,
    )


def _is_filmed(row: RawItem) -> bool:
    """Whether it came with files, and one of its engines shows videos."""
    return bool(row.media) and any("video" in engine_named(name).made_from for name in row.engines)


def plan_for(row: RawItem, body: RawBody, workspace: Workspace) -> Plan:
    """The engines that can make something of it, with how many variants; for the others, why not."""
    return _plan(row, source_text(row, body), Acceptance(workspace))


def body_of(row: RawItem) -> RawBody:
    """Its content as it is now; earlier versions stay beside it."""
    body: RawBody = RawBody.everywhere.get(raw_item=row, number=row.content_version)
    return body


def _plan(row: RawItem, text: SourceText, acceptance: Acceptance) -> Plan:
    engines = [engine_named(name) for name in row.engines]
    return acceptance.plan(engines, row.variants, text, persona_id=row.persona_id)


def refuse_unmakeable(raw: RawItem, item: GeneratedItem, workspace: Workspace, *, index: int) -> None:
    """Raises `Conflict` where a push would skip variant `index` of `item` now, with the same code and sentence."""
    engines = [engine_named(item.engine_output)]
    text = source_text(raw, body_of(raw))
    plan = Acceptance(workspace).plan(engines, index + 1, text, persona_id=item.persona_id)
    for skipped in plan.skipped:
        if skipped.variant == index:
            raise Conflict.because(code=skipped.code, message=skipped.message)


def engine_named(name: str) -> Engine:
    """The engine of that name (`Short Post`); raises `Invalid` naming those there are."""
    engines = plugins.every("engines", Engine)
    for engine in engines:
        if engine.name == name:
            return engine
    message = f"There is no engine output {name!r}. {hint(name, [engine.name for engine in engines])}"
    raise Invalid.one(field="engines", code="unknown_engine", message=message)


def estimate(
    workspace: Workspace, source: Source, content: RawContent, *, defaults: WorkspaceDefaults, now: datetime
) -> Plan:
    """What pushing this would make and cost; stores nothing, spends nothing. Raises `EngineUnavailable` as `push`."""
    availability.refuse_engines(content.engines or ())
    row, body = _rows(workspace, source, content, defaults, now)
    return plan_for(row, body, workspace)


def estimate_any(
    workspace: Workspace, source: Source, content: RawContent, *, defaults: WorkspaceDefaults, now: datetime
) -> Plan:
    """What an item of this source would cost of which every engine of words can make something; as `estimate`."""
    row, body = _rows(workspace, source, content, defaults, now)
    text = source_text(row, body)
    engines = [engine_named(name) for name in row.engines]
    return plan_by_rules(engines, row.variants, text)


def dedup_key(source_id: UUID, content: RawContent, body_hash: str) -> str:
    """The first identity that is known: the source's own id, else the canonical address, else the content."""
    return content.key or key_of(
        source_id, external_id=content.external_id, url=content.url, body_hash=body_hash
    )


def retry(raw_item: RawItem, *, workspace: Workspace, now: datetime) -> RawItem:
    """Make again what could not be made: a failed, skipped or waiting raw item. Raises `Conflict`, `QuotaExceeded`."""
    with transaction.atomic():
        row = _locked(raw_item.pk)
        if row.deleted_at is not None:
            message = "This raw item was deleted; push it again under another identity."
            raise Conflict.because(code="deleted", message=message)
        states.refuse_unless_allowed(row, "queued")
        if row.status == RawItemStatus.PROCESSED:
            message = "Everything that could be made from it was made; regenerate a generated item instead."
            raise Conflict.because(code="nothing_to_retry", message=message)
        if row.status == RawItemStatus.FAILED:
            retry_rules.refuse_final(outcomes.current_reasons(workspace, [row])[row.pk])
        # Before the reservation: the balance of credits is locked last.
        SourceEntry.everywhere.filter(raw_item=row, source=row.source_id).exclude(
            decision=SourceEntryDecision.NEW
        ).update(decision="new", code="admitted", message="Somebody had it made.", decided_at=now)
        _replan(row, workspace, when_short="refuse", now=now)
    return row


def resume_waiting(row: RawItem) -> None:
    """Work a raw item whose wait for credits is over: plan again, or wait for the next month."""
    now = utc_now()
    with transaction.atomic():
        fresh = _locked(row.pk)
        if fresh.status != RawItemStatus.WAITING_QUOTA or fresh.lease_token != row.lease_token:
            return
        if fresh.deleted_at is not None:
            fresh.sleep_until(None)
            return
        _replan(fresh, fresh.workspace, when_short="wait", now=now)


def give_up_waiting(row: RawItem) -> None:
    """A wait that failed again and again ends where a person sees it."""
    reason = {"code": "gave_up", "message": "It could not be planned; retry it.", "stage": "push"}
    with transaction.atomic():
        states.move(row, "skipped", under_lease=True, reason=reason, wake_at=None)
        events.write(_facts_of(row, (), utc_now(), was_told=False, skipped_before=row.skipped))


def erase(raw_item: RawItem, *, now: datetime) -> None:
    """Erase the content; the row stays as a tombstone, so that the same thing isn't taken in again."""
    with transaction.atomic():
        # What was sent is its content too. Before the raw item is locked, as a delivery on its way does it.
        InboundDelivery.everywhere.filter(raw_item=raw_item).update(body=None, made=None)
        row = RawItem.everywhere.select_for_update().get(pk=raw_item.pk)
        if row.deleted_at is not None:
            return
        RawBody.everywhere.filter(raw_item=row).delete()
        # What a writer found in it is content too.
        Generation.everywhere.ended().filter(raw_item=row).update(answers={})
        SharedBrief.everywhere.filter(raw_item=row).delete()
        batches.let_go(Generation.everywhere.filter(raw_item=row).values("pk"))
        # Who sleeps until the model has answered learns at once that nothing will come of it.
        asleep = Generation.everywhere.filter(raw_item=row)
        batches.wake(asleep, codes=(batches.AWAITED, BRIEF_AWAITED))
        SourceEntry.everywhere.filter(raw_item=row).update(title="", url="", message="")
        forget_print(row)
        uploads.let_go(raw_item=row, now=now)
        RawItem.everywhere.filter(pk=row.pk).update(
            title="",
            url="",
            author="",
            media=[],
            metadata={},
            deleted_at=now,
            wake_at=None,
            version=row.version + 1,
            lease_token=row.lease_token + 1,
            updated_at=now,
        )
        hold_what_was_made(row, "source_withdrawn", now)
        # What could not be made has no words of its own, only the title of this.
        GeneratedItem.everywhere.filter(raw_item=row, revision=0).exclude(title="").update(title="")


# --- Inside ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ToMake:
    """A raw item and all that its generations are made of."""

    workspace: Workspace
    source: Source
    row: RawItem
    plan: Plan
    defaults: WorkspaceDefaults


def _locked(pk: UUID) -> RawItem:
    """The raw item, locked before the items made from it, everywhere; its source and workspace are only read."""
    row: RawItem = (
        RawItem.everywhere.select_for_update(of=("self",))
        .select_related("source", "workspace__plan")
        .get(pk=pk)
    )
    return row


def _rows(
    workspace: Workspace, source: Source, content: RawContent, defaults: WorkspaceDefaults, now: datetime
) -> tuple[RawItem, RawBody]:
    spoken = footage.body_with_words(workspace.pk, content.media, content.body, content.body_format)
    if spoken is not None:
        content = replace(content, body=spoken, body_format="text", body_hash="")
    body_format = content.body_format or format_of(content.body)
    body_hash = content.body_hash or content_hash(content.title, content.body)
    # What a source calls its entry is the source's: a page's heading may be its site's name.
    title = content.title or ("" if content.is_fetched else title_in(content.body, body_format))
    persona_id = content.persona_id or source.persona_id or defaults.persona_id
    language = content.language or _guessed(content, body_format)
    engines = content.engines if content.engines is not None else (source.engines or defaults.engines)
    row = RawItem(
        id=uuid7(),
        workspace=workspace,
        test=source.test,
        source=source,
        dedup_key=dedup_key(source.pk, content, body_hash),
        external_id=content.external_id,
        url=content.url,
        title=title[: limits.TITLE_CHARACTERS],
        language=language,
        language_guessed=bool(language) and not content.language,
        author=content.author[:200],
        published_at=content.published_at,
        media=[dict(one) for one in content.media],
        metadata=dict(content.metadata),
        engines=list(dict.fromkeys(engines)),
        variants=content.variants or source.variants,
        persona_id=persona_id,
        content_hash=body_hash,
        request_id=request_id(),
        created_at=now,
        updated_at=now,
    )
    body = RawBody(
        workspace=workspace,
        raw_item=row,
        number=1,
        title=row.title,
        body=content.body,
        body_format=body_format,
        content_hash=body_hash,
        created_at=now,
    )
    return row, body


def _guessed(content: RawContent, body_format: str) -> str:
    """Of the words at its beginning; markup that is cut there does no harm."""
    said = seen_text(content.body[: 4 * LOOKED_AT], body_format)
    return guess_language(f"{content.title}\n{said}")


def _make_rows(
    to_make: _ToMake, *, when_short: Literal["refuse", "wait"], now: datetime
) -> list[GeneratedItem]:
    """The generations, then the events, then the reservation: the balance's row is locked as shortly as can be.

    Returns the items that are to be made; none where they wait for credits.
    """
    row = to_make.row
    if when_short == "refuse" or row.test:
        # Somebody has just asked for it, and waits.
        generations, items = _generation_rows(to_make, now, may_wait=False)
        events.write(_facts_of_new(row, items, now))
        _reserve(to_make.workspace, generations, now)
        return items
    try:
        with transaction.atomic():
            generations, items = _generation_rows(to_make, now)
            events.write(_facts_of_new(row, items, now))
            _reserve(to_make.workspace, generations, now)
    except credit_account.QuotaExceeded as error:
        wait_for_credits(row, now)
        events.write(_facts_of_new(row, (), now))
        balance = error.balance
        credit_account.tell_used_up(to_make.workspace, balance.period_start, balance.granted, now=now)
        return []
    return items


def _generation_rows(
    to_make: _ToMake, now: datetime, *, may_wait: bool = True
) -> tuple[list[Generation], list[GeneratedItem]]:
    generations, items = _to_generate(to_make, now, may_wait=may_wait)
    Generation.everywhere.bulk_create(generations)
    GeneratedItem.everywhere.bulk_create(items)
    dispatch.wake()
    return generations, items


def _to_generate(
    to_make: _ToMake, now: datetime, *, may_wait: bool = True
) -> tuple[list[Generation], list[GeneratedItem]]:
    """The runs, one for each engine, and their items, one for each variant."""
    workspace, source, row, plan = to_make.workspace, to_make.source, to_make.row, to_make.plan
    queue = queue_of(workspace)
    generations = [
        Generation(
            workspace=workspace,
            test=row.test,
            engine=share.engine.kind,
            raw_item=row,
            raw_version=row.content_version,
            persona_id=row.persona_id,
            variants=share.variants,
            credits_reserved=0 if row.test else share.engine.credits * share.variants,
            due_at=now,
            wake_at=now,
            queue=queue,
            request_id=row.request_id,
            batch_until=batches.patience(source.config, now) if may_wait else None,
            created_at=now,
        )
        for share in plan.shares
    ]
    defaults = to_make.defaults
    outlets = source.outlets or (defaults.test_outlets if row.test else defaults.outlets)
    items = [
        GeneratedItem(
            workspace=workspace,
            test=row.test,
            generation=generation,
            source=source,
            raw_item=row,
            persona_id=row.persona_id,
            bucket=share.engine.bucket,
            engine_output=share.engine.name,
            engine_version=share.engine.version,
            variant_group=generation.pk,
            variant_index=index,
            outlets=outlets,
            is_sample=source.is_sample,
            approval_required=workspace.requires_approval,
            created_at=now,
            updated_at=now,
        )
        for share, generation in zip(plan.shares, generations, strict=True)
        for index in range(share.variants)
    ]
    return generations, items


def _reserve(workspace: Workspace, generations: Sequence[Generation], now: datetime) -> None:
    """The last statement of the transaction, so that the balance's row is locked for as short as can be."""
    amounts = {one.pk: one.credits_reserved for one in generations if one.credits_reserved}
    if amounts:
        credit_account.reserve(workspace, amounts, now=now)


def wait_for_credits(row: RawItem, now: datetime, **changes: Any) -> None:
    resets_at = credit_account.next_month(credit_account.month_of(now))
    reason = {
        "code": "quota_exceeded",
        "message": "It waits for the credits of the next month.",
        "stage": "push",
    }
    states.move(
        row,
        "waiting_quota",
        reason=reason,
        due_at=resets_at,
        wake_at=resets_at,
        version=row.version,
        **changes,
    )


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
        uploads.use(workspace.pk, uploads.ids_in(pushed.media), raw_item=row, now=now)
    hold_what_was_made(row, "source_changed", now)
    print_again(row, seen_text(body.body, body.body_format))
    if row.status == RawItemStatus.SKIPPED and (row.reason or {}).get("code") == NOTHING_TO_MAKE:
        # The first version had nothing to work with; this one may have.
        _replan(row, workspace, when_short="wait", now=now)
    return Pushed(row, "revised")


def _language_of(pushed: RawItem, row: RawItem) -> dict[str, Any]:
    """That of the next version: what was said is never followed by a guess."""
    told = row if pushed.language_guessed and row.language and not row.language_guessed else pushed
    kept = told if told.language else row
    return {"language": kept.language, "language_guessed": kept.language_guessed}


def _replan(
    row: RawItem, workspace: Workspace, *, when_short: Literal["refuse", "wait"], now: datetime
) -> None:
    """Plan a raw item that was skipped, failed or waited; the row is locked by the caller."""
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    plan = plan_for(row, body_of(row), workspace)
    if not plan.shares:
        _nothing_to_make(row, plan, when_short=when_short, now=now)
        return
    to_make = _ToMake(workspace, row.source, row, plan, defaults)
    if when_short == "refuse":
        _requeue(to_make, now)
        return
    was_told = _was_told(row)
    try:
        with transaction.atomic():
            _requeue(to_make, now)
    except credit_account.QuotaExceeded:
        # The instance is as the row was to become.
        row.refresh_from_db(
            fields=[
                "status",
                "lease_token",
                "reason",
                "skipped",
                "version",
                "due_at",
                "wake_at",
                "attempts",
                "updated_at",
            ]
        )
        if row.status == RawItemStatus.WAITING_QUOTA:
            later = credit_account.next_month(credit_account.month_of(now))
            RawItem.everywhere.filter(pk=row.pk).update(due_at=later, wake_at=later, attempts=0)
        else:
            before = list(row.skipped)
            row.skipped = [one.as_json() for one in plan.skipped]
            wait_for_credits(row, now, skipped=row.skipped)
            events.write(_facts_of(row, (), now, was_told=was_told, skipped_before=before))


def _nothing_to_make(
    row: RawItem, plan: Plan, *, when_short: Literal["refuse", "wait"], now: datetime
) -> None:
    message = " ".join(plan.why_not)
    if when_short == "refuse":
        raise Conflict.because(code=NOTHING_TO_MAKE, message=message)
    reason = _reason_of_skip(NOTHING_TO_MAKE, message)
    skipped = [one.as_json() for one in plan.skipped]
    if row.status == RawItemStatus.WAITING_QUOTA:
        # It waited for nothing: whatever could be made of it when it came in no longer can.
        states.move(
            row,
            "skipped",
            reason=reason,
            skipped=skipped,
            wake_at=None,
            due_at=None,
            attempts=0,
            updated_at=now,
        )
        events.write(_facts_of_new(row, (), now))
    elif row.status == RawItemStatus.SKIPPED:
        # It is told again why, of the words that it has now.
        RawItem.everywhere.filter(pk=row.pk).update(reason=reason, skipped=skipped)
        row.reason, row.skipped = reason, skipped


def _requeue(to_make: _ToMake, now: datetime) -> None:
    row = to_make.row
    was_told, before = _was_told(row), list(row.skipped)
    states.move(
        row,
        "queued",
        reason=None,
        skipped=[one.as_json() for one in to_make.plan.skipped],
        wake_at=None,
        due_at=None,
        attempts=0,
        lease_token=row.lease_token + 1,
        updated_at=now,
    )
    generations, items = _generation_rows(to_make, now)
    events.write(_facts_of(row, items, now, was_told=was_told, skipped_before=before))
    _reserve(to_make.workspace, generations, now)


def _was_told(row: RawItem) -> bool:
    """Whether `raw.ingested` went out already: what was skipped at the door enters the queue only now."""
    return row.status != RawItemStatus.SKIPPED or (row.reason or {}).get("code") == "gave_up"


def _facts_of_new(row: RawItem, items: Iterable[GeneratedItem], now: datetime) -> list[Event]:
    """What is told of a raw item that came in: that it did, or why nothing is made of it; and what was left out."""
    if row.status == RawItemStatus.SKIPPED and (row.reason or {})["code"] in QUIET_SKIPS:
        return []
    return _facts_of(row, items, now, was_told=False, skipped_before=())


def _facts_of(
    row: RawItem,
    items: Iterable[GeneratedItem],
    now: datetime,
    *,
    was_told: bool,
    skipped_before: Sequence[Mapping[str, Any]],
) -> list[Event]:
    """`skipped_before` was told already. The raw item has what `items` make pending."""
    shown = outcomes.shown_new(row, items)
    news = {(one["engine_output"], one["variant"]) for one in row.skipped if one not in skipped_before}
    told: list[tuple[str, dict[str, Any]]] = (
        [] if was_told else [("raw.skipped" if row.status == RawItemStatus.SKIPPED else "raw.ingested", {})]
    )
    told += [
        ("engine.skipped", {"outcome": one})
        for one in shown["outcomes"]
        if (one["engine_output"], one["variant"]) in news
    ]
    return [
        events.compose(
            event_type,
            workspace_id=row.workspace_id,
            test=row.test,
            data={"raw_item": shown, **more},
            raw_item_id=row.pk,
            source_id=row.source_id,
            request=row.request_id,
            now=now,
        )
        for event_type, more in told
    ]
