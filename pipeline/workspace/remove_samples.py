"""Removes the pipeline's sample data: raw items of sample sources, what was made from them, and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Q

from accounts import notices
from config.core import work_queue
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline import publish
from pipeline.media import uploads
from pipeline.media.files import erase_files_of_items
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
"""The fields of members' rows that may refer to a sample after all items of samples are gone, by model."""
_FIELDS_WITH_OUTLET_IDS: Final = (
    (Source, "outlets"),
    (Series, "outlets"),
    (GeneratedItem, "outlets"),
    (WorkspaceDefaults, "outlets"),
    (WorkspaceDefaults, "test_outlets"),
)
"""Fields that hold outlets' public ids."""


def remove(workspace_id: UUID, rows: int) -> int:
    """Remove at most `rows` samples of one kind, with what depends on them.

    Returns the number of rows that the step changed, or 0 if no samples are left. A persona, topic, outlet or
    queue that a member's row uses stays, and is no sample any more.
    """
    steps = (
        _stop_sources_and_series,
        _remove_items,
        _remove_runs,
        _remove_raw_items,
        _remove_rows_of_sources,
        _remove_series,
        _remove_sources,
        *map(_remove_unused, _USED_BY),
    )
    return next((removed for step in steps if (removed := step(workspace_id, rows))), 0)


def _stop_sources_and_series(workspace_id: UUID, rows: int) -> int:
    """Mark sample sources and series as deleted, so that nothing is added while samples are removed."""
    del rows
    now = utc_now()
    stopped_values = {"deleted_at": now, "wake_at": None, **work_queue.overtake()}
    stopped = 0
    for model in (Source, Series):
        stopped += model.everywhere.filter(workspace_id=workspace_id, is_sample=True, deleted_at=None).update(
            **stopped_values
        )
    return stopped


def _remove_items(workspace_id: UUID, rows: int) -> int:
    """Remove sample items with their publications, events, notices and files."""
    samples = Q(is_sample=True) | Q(source__is_sample=True)
    sample_items = GeneratedItem.everywhere.filter(samples, workspace_id=workspace_id).order_by("pk")
    runs = dict(sample_items.values_list("pk", "generation_id")[:rows])
    items = list(runs)
    if not items:
        return 0
    publications = list(Publication.everywhere.filter(item_id__in=items).values_list("pk", flat=True))
    recurrences = list(Recurrence.everywhere.filter(item_id__in=items).values_list("pk", flat=True))
    SimulatedPost.everywhere.filter(
        workspace_id=workspace_id, ref__in=[publish.key_of(Publication(pk=row_id)) for row_id in publications]
    ).delete()
    _delete_events(workspace_id, Q(generated_item_id__in=items) | Q(publication_id__in=publications))
    notices.delete_about(workspace_id, [*items, *publications, *recurrences])
    _drop_from_plans(workspace_id, {encode("gen", row_id) for row_id in items})
    erase_files_of_items(items)
    Publication.everywhere.filter(pk__in=publications).delete()
    GeneratedItem.everywhere.filter(pk__in=items).delete()
    Generation.everywhere.filter(pk__in=set(runs.values()), items=None).delete()
    return len(items)


def _remove_runs(workspace_id: UUID, rows: int) -> int:
    """Delete runs of a sample brand lane that made no item."""
    runs = Generation.everywhere.filter(workspace_id=workspace_id, picks__slot__source__is_sample=True)
    return _delete_some(runs, rows)


def _remove_raw_items(workspace_id: UUID, rows: int) -> int:
    """Remove sample raw items with what refers to them."""
    sample_raw_items = RawItem.everywhere.filter(workspace_id=workspace_id, source__is_sample=True)
    raw_items = list(sample_raw_items.order_by("pk").values_list("pk", flat=True)[:rows])
    if not raw_items:
        return 0
    _delete_events(workspace_id, Q(raw_item_id__in=raw_items))
    notices.delete_about(workspace_id, raw_items)
    RawItem.objects.of(workspace_id).filter(
        near_duplicate__raw_item__in=[encode("raw", raw_item_id) for raw_item_id in raw_items]
    ).update(near_duplicate=None)
    _drop_from_digests(workspace_id, {raw_item_id.hex for raw_item_id in raw_items})
    upload_ids = _find_uploads(UploadUse.everywhere.filter(raw_item_id__in=raw_items))
    RawPrint.everywhere.filter(pk__in=raw_items).delete()
    SourceEntry.everywhere.filter(raw_item_id__in=raw_items).delete()
    RawItem.everywhere.filter(pk__in=raw_items).delete()
    _delete_unused(upload_ids)
    return len(raw_items)


def _remove_rows_of_sources(workspace_id: UUID, rows: int) -> int:
    for model in (InboundDelivery, SourceEntry, BrandSlot):
        removed = _delete_some(
            model.everywhere.filter(workspace_id=workspace_id, source__is_sample=True), rows
        )
        if removed:
            return removed
    return 0


def _remove_series(workspace_id: UUID, rows: int) -> int:
    return _delete_some(Series.everywhere.filter(workspace_id=workspace_id, is_sample=True), rows)


def _remove_unused(model: type[Any]) -> Callable[[UUID, int], int]:
    """Return a step that removes the model's samples; those that members use are no samples any more."""

    def step(workspace_id: UUID, rows: int) -> int:
        samples = list(
            model.everywhere.filter(workspace_id=workspace_id, is_sample=True).order_by("pk")[:rows]
        )
        used = [row.pk for row in samples if _is_used(row)]
        model.everywhere.filter(pk__in=used).update(is_sample=False)
        unused = [row.pk for row in samples if row.pk not in used]
        uses = UploadUse.everywhere.filter(persona_id__in=unused)
        upload_ids = _find_uploads(uses) if model is Persona else []
        notices.delete_about(workspace_id, unused)
        if model is Outlet:
            SimulatedPost.everywhere.filter(workspace_id=workspace_id, outlet_id__in=unused).delete()
        model.everywhere.filter(pk__in=unused).delete()
        _delete_unused(upload_ids)
        return len(samples)

    return step


def _is_used(row: Any) -> bool:
    """Return whether a row of members refers to the sample, an outlet also by its public id in a list."""
    if any(model.everywhere.filter(**{field: row}).exists() for model, field in _USED_BY[type(row)]):
        return True
    if not isinstance(row, Outlet):
        return False
    public_id = encode("out", row.pk)
    return any(
        model.everywhere.filter(workspace_id=row.workspace_id, **{f"{field}__icontains": public_id}).exists()
        for model, field in _FIELDS_WITH_OUTLET_IDS
    )


def _remove_sources(workspace_id: UUID, rows: int) -> int:
    """Remove sample sources with their events and notices."""
    sample_sources = Source.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    sources = list(sample_sources.order_by("pk").values_list("pk", flat=True)[:rows])
    _delete_events(workspace_id, Q(source_id__in=sources))
    notices.delete_about(workspace_id, sources)
    _drop_from_series(workspace_id, {encode("src", source_id) for source_id in sources})
    Source.everywhere.filter(pk__in=sources).delete()
    return len(sources)


# --- References to samples in members' own rows ----------------------------------------------------------------------


def _drop_from_plans(workspace_id: UUID, items: Collection[str]) -> None:
    """Remove the items, by public id, from plans; delete the plans that have no other entries."""
    for plan in WeekPlan.objects.of(workspace_id):
        entries = [
            {
                **entry,
                "set_aside": [item_id for item_id in entry.get("set_aside", ()) if item_id not in items],
            }
            for entry in plan.entries
            if entry["item"] not in items
        ]
        rows = WeekPlan.everywhere.filter(pk=plan.pk)
        if not entries:
            rows.delete()
        elif entries != plan.entries:
            rows.update(entries=entries)


def _drop_from_digests(workspace_id: UUID, raw_items: Collection[str]) -> None:
    """Remove the raw items, by hex id, from the digests that were made from them."""
    digests = GeneratedItem.objects.of(workspace_id).exclude(raw_items=[])
    for item_id, raw_item_ids in digests.values_list("pk", "raw_items"):
        remaining = [raw_item_id for raw_item_id in raw_item_ids if raw_item_id not in raw_items]
        if remaining != raw_item_ids:
            GeneratedItem.everywhere.filter(pk=item_id).update(raw_items=remaining)


def _drop_from_series(workspace_id: UUID, sources: Collection[str]) -> None:
    """Remove the sources, by public id, from series; pause a series that has no other sources.

    Without sources it would use the raw items of all sources.
    """
    for series_id, source_ids in (
        Series.objects.of(workspace_id).exclude(sources=[]).values_list("pk", "sources")
    ):
        remaining = [source_id for source_id in source_ids if source_id not in sources]
        if remaining != source_ids:
            changes: dict[str, Any] = {"sources": remaining, "version": F("version") + 1}
            if not remaining:
                changes |= {"is_paused": True, "due_at": None, "wake_at": None, **work_queue.overtake()}
            Series.everywhere.filter(pk=series_id).update(**changes)


# --- Helpers ---------------------------------------------------------------------------------------------------------


def _delete_some(query_set: QuerySet[Any], rows: int) -> int:
    """Delete the first rows, at most `rows`, and return their number."""
    ids = list(query_set.order_by("pk").values_list("pk", flat=True)[:rows])
    if ids:
        query_set.model.everywhere.filter(pk__in=ids).delete()
    return len(ids)


def _delete_events(workspace_id: UUID, about: Q) -> None:
    Event.everywhere.filter(about, workspace_id=workspace_id).delete()


def _find_uploads(uses: QuerySet[UploadUse]) -> list[UUID]:
    return list(uses.values_list("upload_id", flat=True))


def _delete_unused(upload_ids: Sequence[UUID]) -> None:
    """Delete the uploads that nothing uses any more, with their files."""
    unused = Upload.everywhere.filter(pk__in=upload_ids, uses=None)
    uploads.remove_files(unused.values_list("path", flat=True))
    unused.delete()
