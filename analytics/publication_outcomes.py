"""Counts how publications ended, from their events, and starts their measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics import rollup
from analytics.measure import measuring_ages
from analytics.models import Measuring, Outcome
from config.core import dispatcher
from pipeline.events import count_batch
from pipeline.models import Publication

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Event

_UPDATED_FIELDS: Final = (
    "workspace",
    "test",
    "event_id",
    "publication_id",
    "is_published",
    "at",
    "outlet",
    "content_type",
    "source",
    "engine_output",
    "persona",
)


def count_events() -> int:
    """Count one batch of events that weren't counted yet, and return how many there were."""
    return count_batch(write_outcomes)


def write_outcomes(events: Sequence[Event]) -> None:
    """Store under each publication's id how it ended, as far as its events tell, and start to measure it.

    Only a success and a failure without another try count. A success outweighs every failure, and of several
    failures the newest stands. So a publication that failed because nobody knew its outcome, and is found
    published later, counts as published and no longer as failed, and one that fails again after a person's retry
    counts once. The result is the same however often and in whatever order the events come. Call it in the
    transaction that marks the events; a publication that was erased meanwhile is skipped.
    """
    final_events = [event for event in events if event.publication_id is not None and _is_final(event)]
    if not final_events:
        return
    publications = _lock_publications(
        {event.publication_id for event in final_events if event.publication_id}
    )
    outcomes: dict[UUID, Outcome] = Outcome.everywhere.in_bulk(list(publications))
    old_outcomes = dict(outcomes)
    changed: dict[UUID, Outcome] = {}
    for event in final_events:
        # The publication may have been erased while its event waited; then there is nothing to count.
        publication = publications.get(event.publication_id) if event.publication_id else None
        if publication is None:
            continue
        outcome = _build_outcome(event, publication)
        current = outcomes.get(publication.pk)
        if current is None or _precedence(outcome) > _precedence(current):
            outcomes[publication.pk] = changed[publication.pk] = outcome
    superseded = [old for key in changed if (old := old_outcomes.get(key)) is not None]
    rollup.mark(
        (outcome.workspace_id, outcome.test, outcome.at) for outcome in (*superseded, *changed.values())
    )
    Outcome.everywhere.bulk_create(
        changed.values(), update_conflicts=True, unique_fields=["id"], update_fields=_UPDATED_FIELDS
    )
    _start_measuring(
        (outcome, publications[key].outlet.is_simulated)
        for key, outcome in changed.items()
        if outcome.is_published
    )


def _is_final(event: Event) -> bool:
    return event.type == "published.success" or (
        event.type == "published.failed" and event.will_retry is False
    )


def _lock_publications(ids: set[UUID]) -> dict[UUID, Publication]:
    """Return the publications with outlet and item, locked.

    Without the lock two counters with events of one publication would not see each other's outcome. The
    weaker lock lets foreign keys refer to the rows; the order of ids prevents deadlocks.
    """
    rows = (
        Publication.everywhere.filter(pk__in=ids)
        .select_related("item", "outlet")
        .only(
            "workspace_id",
            "published_at",
            "outlet__is_simulated",
            "item__bucket",
            "item__source_id",
            "item__engine_output",
            "item__persona_id",
        )
        .select_for_update(of=("self",), no_key=True)
        .order_by("pk")
    )
    return {publication.pk: publication for publication in rows}


def _build_outcome(event: Event, publication: Publication) -> Outcome:
    """Return the unsaved outcome that a final event tells."""
    is_published = event.type == "published.success"
    item = publication.item
    return Outcome(
        id=publication.pk,
        workspace_id=publication.workspace_id,
        test=event.test,
        event_id=event.pk,
        publication_id=publication.pk,
        is_published=is_published,
        at=(publication.published_at if is_published else None) or event.created_at,
        outlet_id=publication.outlet_id,
        content_type=item.bucket,
        source_id=item.source_id,
        engine_output=item.engine_output,
        persona_id=item.persona_id,
    )


def _precedence(outcome: Outcome) -> tuple[bool, datetime, UUID]:
    return outcome.is_published, outcome.at, outcome.event_id


def _start_measuring(published: Iterable[tuple[Outcome, bool]]) -> None:
    """Schedule the first measurement; each published outcome comes with whether its outlet is simulated."""
    rows = []
    for outcome, is_simulated in published:
        first_at = outcome.at + measuring_ages(is_simulated=is_simulated)[0]
        rows.append(
            Measuring(
                workspace_id=outcome.workspace_id,
                test=outcome.test,
                publication_id=outcome.publication_id,
                due_at=first_at,
                wake_at=first_at,
            )
        )
    # A publication that is already being measured keeps its schedule.
    Measuring.everywhere.bulk_create(rows, ignore_conflicts=True)
    if rows:
        dispatcher.wake()
