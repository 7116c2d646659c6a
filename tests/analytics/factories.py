"""Rows for the tests of analytics, with nothing in them that a test doesn't ask for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from accounts.models import Plan, Workspace
from analytics import publication_outcomes, queries
from analytics.calendar_periods import Period
from analytics.models import Measurement, Measuring, Outcome
from pipeline.models import Event, Outlet, Persona, Publication, Source
from pipeline.platforms.base import METRICS
from tests.factories import OutletFactory, PersonaFactory, PublicationFactory, SourceFactory

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
"""A Monday."""


def make_workspace(name: str = "Alice's newsroom") -> Workspace:
    plan, _ = Plan.objects.get_or_create(name="Standard", defaults={"is_default": True})
    return Workspace.everywhere.create(name=name, plan=plan, whitelisted_at=NOON)


def make_outlet(workspace: Workspace, **given: Any) -> Outlet:
    return OutletFactory(workspace=workspace, **given)


def make_source(workspace: Workspace, name: str = "Blog") -> Source:
    return SourceFactory(workspace=workspace, name=name)


def make_persona(workspace: Workspace, name: str = "Ada") -> Persona:
    return PersonaFactory(workspace=workspace, name=name)


def make_publication(
    outlet: Outlet,
    *,
    bucket: str = "text",
    engine_output: str = "Short Post",
    source: Source | None = None,
    persona: Persona | None = None,
    published_at: datetime | None = NOON,
    test: bool = False,
    **given: Any,
) -> Publication:
    values = {
        "status": "published" if published_at else "failed",
        "external_id": "post-1",
        "url": "https://simulated.invalid/post-1",
        **given,
    }
    return PublicationFactory(
        outlet=outlet,
        item__bucket=bucket,
        item__engine_output=engine_output,
        item__source=source,
        item__persona=persona,
        item__test=test,
        published_at=published_at,
        test=test,
        **values,
    )


def make_event(
    publication: Publication,
    event_type: str = "published.success",
    *,
    will_retry: bool | None = None,
    created_at: datetime = NOON,
) -> Event:
    return Event.everywhere.create(
        workspace=publication.workspace,
        test=publication.test,
        type=event_type,
        publication_id=publication.pk,
        generated_item_id=publication.item_id,
        will_retry=will_retry,
        created_at=created_at,
    )


def make_failure(publication: Publication, *, created_at: datetime = NOON) -> Event:
    return make_event(publication, "published.failed", will_retry=False, created_at=created_at)


def make_published(outlet: Outlet, at: datetime = NOON, **given: Any) -> Publication:
    """Published and counted; its measuring waits."""
    publication = make_publication(outlet, published_at=at, **given)
    publication_outcomes.write_outcomes([make_event(publication, created_at=at)])
    return publication


def make_failed(outlet: Outlet, at: datetime = NOON, **given: Any) -> Publication:
    publication = make_publication(outlet, published_at=None, **given)
    publication_outcomes.write_outcomes([make_failure(publication, created_at=at)])
    return publication


def make_measurement(
    publication: Publication, at: datetime, availability: dict[str, str] | None = None, **deltas: int | None
) -> Measurement:
    """`deltas` are what each metric rose by; those left out weren't given, for the reason in `availability`."""
    item = publication.item
    reasons = {metric: "unsupported" for metric in METRICS if deltas.get(metric) is None}
    return Measurement.everywhere.create(
        workspace=publication.workspace,
        test=publication.test,
        publication=publication,
        number=Measurement.everywhere.filter(publication=publication).count() + 1,
        at=at,
        published_at=publication.published_at,
        outlet=publication.outlet,
        content_type=item.bucket,
        source=item.source,
        engine_output=item.engine_output,
        persona=item.persona,
        availability={**reasons, **(availability or {})},
        **deltas,
        **{f"{metric}_delta": value for metric, value in deltas.items()},
    )


def waiting(publication: Publication) -> Measuring:
    return Measuring.everywhere.get(publication=publication)


def outcome(publication: Publication) -> Outcome:
    return Outcome.everywhere.get(publication_id=publication.pk)


@dataclass(frozen=True)
class Ask:
    """Asks for one workspace's analytics of November 2026 in UTC, unless told otherwise."""

    workspace: Workspace

    def __call__(
        self,
        *,
        start: datetime = datetime(2026, 11, 1, tzinfo=UTC),
        end: datetime = datetime(2026, 12, 1, tzinfo=UTC),
        interval: str = "day",
        tz: str = "UTC",
        test: bool = False,
        **rest: Any,
    ) -> queries.AnalyticsAnswer:
        period = Period(start.astimezone(UTC), end.astimezone(UTC), interval, ZoneInfo(tz))
        return queries.answer(
            queries.Question(workspace_id=self.workspace.pk, test=test, period=period, **rest)
        )


def after(**age: float) -> datetime:
    """A moment that long after `NOON`."""
    return NOON + timedelta(**age)
