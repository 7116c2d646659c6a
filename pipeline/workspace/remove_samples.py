"""The pipeline's part of removing sample data: all that came in through a sample source, and what was made of
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Q

from accounts import notices
from config.core import work_queue
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline import publish
from pipeline.media import uploads
from pipeline.media.files import erase_of_items
from pipeline.models import (
    BrandPick,
    BrandSlot,
    Event,
    GeneratedItem,
    Generation,
    InboundDelivery,
    Outlet,
    Persona,
    Publication,
    PublishQueue,
    RawItem,
    RawPrint,
    Recurrence,
    Series,
    SimulatedPost,
    Source,
    SourceEntry,
    Topic,
    Upload,
    UploadUse,
    WeekPlan,
    WorkspaceDefaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

_USED_BY: Final[Mapping[type[Any], tuple[tuple[type[Any], str], ...]]] = {
    Topic: ((GeneratedItem, "topic"), (Generation, "topic"), (BrandPick, "topic")),
    Outlet: ((Publication, "outlet"),),
    PublishQueue: ((Outlet, "queue"), (Publication, "queue")),
    Persona: (
        (WorkspaceDefaults, "persona"),
        (Source, "persona"),
        (Series, "persona"),
        (Topic, "persona"),
        (RawItem, "persona"),
        (Generation, "persona"),
        (GeneratedItem, "persona"),
    ),
}
"""What may still refer to them once all that was made of samples is gone: work of people, who keep what they
use."""
_NAMING_OUTLETS: Final = (
    (Source, "outlets"),
    (Series, "outlets"),
    (GeneratedItem, "outlets"),
    (WorkspaceDefaults, "outlets"),
    (WorkspaceDefaults, "test_outlets"),
)
"""Where outlets stand by their public ids."""


def remove(workspace_id: UUID, rows: int) -> int:
    """At most so many samples of one kind, and what hangs on them; 0 when nothing is left.

    What people's own work uses, a persona, topic, outlet or queue, becomes theirs: it stays and is no sample
    any more.
    """
    steps = (_stop, _items, _runs, _raw_items, _of_sources, _series, _sources, *map(_root, _USED_BY))
    return next((removed for step in steps if (removed := step(workspace_id, rows))), 0)


def _stop(workspace_id: UUID, rows: int) -> int:
    """First nothing is added to what is being removed."""
    del rows
    now = utc_now()
    rest = {"deleted_at": now, "wake_at": None, **work_queue.overtake()}
    stopped = 0
    for model in (Source, Series):
        stopped += model.everywhere.filter(workspace_id=workspace_id, is_sample=True, deleted_at=None).update(
            **rest
        )
    return stopped


def _items(workspace_id: UUID, rows: int) -> int:
    samples = Q(is_sample=True) | Q(source__is_sample=True)
    found = GeneratedItem.everywhere.filter(samples, workspace_id=workspace_id).order_by("pk")
    runs = dict(found.values_list("pk", "generation_id")[:rows])
    items = list(runs)
    if not items:
        return 0
    publications = list(Publication.everywhere.filter(item_id__in=items).values_list("pk", flat=True))
    recurrences = list(Recurrence.everywhere.filter(item_id__in=items).values_list("pk", flat=True))
    SimulatedPost.everywhere.filter(
        workspace_id=workspace_id, ref__in=[publish.key_of(Publication(pk=key)) for key in publications]
    ).delete()
    _events(workspace_id, Q(generated_item_id__in=items) | Q(publication_id__in=publications))
    notices.delete_about(workspace_id, [*items, *publications, *recurrences])
    _take_from_plans(workspace_id, {encode("gen", key) for key in items})
    erase_of_items(items)
    Publication.everywhere.filter(pk__in=publications).delete()
    GeneratedItem.everywhere.filter(pk__in=items).delete()
    Generation.everywhere.filter(pk__in=set(runs.values()), items=None).delete()
    return len(items)


def _runs(workspace_id: UUID, rows: int) -> int:
    """Runs of a sample brand lane that made no item."""
    found = Generation.everywhere.filter(workspace_id=workspace_id, picks__slot__source__is_sample=True)
    return _delete(found, rows)


def _raw_items(workspace_id: UUID, rows: int) -> int:
    found = RawItem.everywhere.filter(workspace_id=workspace_id, source__is_sample=True)
    raw_items = list(found.order_by("pk").values_list("pk", flat=True)[:rows])
    if not raw_items:
        return 0
    _events(workspace_id, Q(raw_item_id__in=raw_items))
    notices.delete_about(workspace_id, raw_items)
    RawItem.objects.of(workspace_id).filter(
        near_duplicate__raw_item__in=[encode("raw", key) for key in raw_items]
    ).update(near_duplicate=None)
    _take_from_digests(workspace_id, {key.hex for key in raw_items})
    files = _uploads_of(UploadUse.everywhere.filter(raw_item_id__in=raw_items))
    RawPrint.everywhere.filter(pk__in=raw_items).delete()
    SourceEntry.everywhere.filter(raw_item_id__in=raw_items).delete()
    RawItem.everywhere.filter(pk__in=raw_items).delete()
    _delete_unused(files)
    return len(raw_items)


def _of_sources(workspace_id: UUID, rows: int) -> int:
    for model in (InboundDelivery, SourceEntry, BrandSlot):
        removed = _delete(model.everywhere.filter(workspace_id=workspace_id, source__is_sample=True), rows)
        if removed:
            return removed
    return 0


def _series(workspace_id: UUID, rows: int) -> int:
    return _delete(Series.everywhere.filter(workspace_id=workspace_id, is_sample=True), rows)


def _root(model: type[Any]) -> Callable[[UUID, int], int]:
    def step(workspace_id: UUID, rows: int) -> int:
        samples = list(
            model.everywhere.filter(workspace_id=workspace_id, is_sample=True).order_by("pk")[:rows]
        )
        kept = [row.pk for row in samples if _is_used(row)]
        model.everywhere.filter(pk__in=kept).update(is_sample=False)
        gone = [row.pk for row in samples if row.pk not in kept]
        files = _uploads_of(UploadUse.everywhere.filter(persona_id__in=gone)) if model is Persona else []
        notices.delete_about(workspace_id, gone)
        if model is Outlet:
            SimulatedPost.everywhere.filter(workspace_id=workspace_id, outlet_id__in=gone).delete()
        model.everywhere.filter(pk__in=gone).delete()
        _delete_unused(files)
        return len(samples)

    return step


def _is_used(row: Any) -> bool:
    if any(model.everywhere.filter(**{field: row}).exists() for model, field in _USED_BY[type(row)]):
        return True
    if not isinstance(row, Outlet):
        return False
    name = encode("out", row.pk)
    return any(
        model.everywhere.filter(workspace_id=row.workspace_id, **{f"{field}__icontains": name}).exists()
        for model, field in _NAMING_OUTLETS
    )


def _sources(workspace_id: UUID, rows: int) -> int:
    found = Source.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    sources = list(found.order_by("pk").values_list("pk", flat=True)[:rows])
    _events(workspace_id, Q(source_id__in=sources))
    notices.delete_about(workspace_id, sources)
    _take_from_series(workspace_id, {encode("src", key) for key in sources})
    Source.everywhere.filter(pk__in=sources).delete()
    return len(sources)


# --- What people's own rows say of samples ---------------------------------------------------------------------------


def _take_from_plans(workspace_id: UUID, items: Collection[str]) -> None:
    for plan in WeekPlan.objects.of(workspace_id):
        entries = [
            {**one, "set_aside": [key for key in one.get("set_aside", ()) if key not in items]}
            for one in plan.entries
            if one["item"] not in items
        ]
        rows = WeekPlan.everywhere.filter(pk=plan.pk)
        if not entries:
            rows.delete()
        elif entries != plan.entries:
            rows.update(entries=entries)


def _take_from_digests(workspace_id: UUID, raw_items: Collection[str]) -> None:
    digests = GeneratedItem.objects.of(workspace_id).exclude(raw_items=[])
    for key, told in digests.values_list("pk", "raw_items"):
        left = [one for one in told if one not in raw_items]
        if left != told:
            GeneratedItem.everywhere.filter(pk=key).update(raw_items=left)


def _take_from_series(workspace_id: UUID, sources: Collection[str]) -> None:
    """A series that told samples alone is paused: without sources it would tell everything."""
    for key, told in Series.objects.of(workspace_id).exclude(sources=[]).values_list("pk", "sources"):
        left = [one for one in told if one not in sources]
        if left != told:
            rest = (
                {} if left else {"is_paused": True, "due_at": None, "wake_at": None, **work_queue.overtake()}
            )
            Series.everywhere.filter(pk=key).update(sources=left, version=F("version") + 1, **rest)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _delete(found: QuerySet[Any], rows: int) -> int:
    some = list(found.order_by("pk").values_list("pk", flat=True)[:rows])
    if some:
        found.model.everywhere.filter(pk__in=some).delete()
    return len(some)


def _events(workspace_id: UUID, about: Q) -> None:
    Event.everywhere.filter(about, workspace_id=workspace_id).delete()


def _uploads_of(uses: QuerySet[UploadUse]) -> list[UUID]:
    return list(uses.values_list("upload_id", flat=True))


def _delete_unused(keys: Sequence[UUID]) -> None:
    unused = Upload.everywhere.filter(pk__in=keys, uses=None)
    uploads.remove_files(unused.values_list("path", flat=True))
    unused.delete()
