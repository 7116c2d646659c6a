"""What holds for every set of outcomes and measurements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from analytics import queries, rollup
from analytics.aggregate import METRICS
from analytics.calendar_periods import Period
from analytics.models import Measurement, Outcome, RollupDay
from analytics.queries import DIMENSIONS
from config.core.ids import uuid7
from pipeline.outlets import hit_counts
from pipeline.platforms.base import METRICS as MEASURED
from tests import claims
from tests.analytics import factories
from tests.sizes import size

START = datetime(2026, 10, 20, tzinfo=UTC)
END = START + timedelta(days=14)
MOMENTS = st.integers(0, 14 * 24 * 60 - 1).map(lambda minutes: START + timedelta(minutes=minutes))
ADDITIVE = ("published", "failed", *MEASURED, "engagements")
RISES = st.none() | st.integers(-5, 1000)
FACTS = st.lists(
    st.tuples(MOMENTS, MOMENTS, st.booleans(), st.booleans(), st.lists(RISES, min_size=6, max_size=6)),
    max_size=12,
)


class TestSums(TestCase):
    @given(
        facts=FACTS,
        tz=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Apia"]),
        interval=st.sampled_from(["hour", "day", "week", "month"]),
        attribution=st.sampled_from(["received", "published"]),
    )
    @settings(max_examples=size(15, 120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_rows_add_up_to_totals(self, facts, tz, interval, attribution):
        workspace = factories.make_workspace()
        ask = factories.Ask(workspace)
        outlets = [factories.make_outlet(workspace, name=name) for name in ("One", "Two")]
        for published_at, measured_at, is_published, is_first, rises in facts:
            outlet = outlets[0] if is_first else outlets[1]
            publication = factories.make_publication(outlet, published_at=published_at)
            shared = {
                "workspace": workspace,
                "outlet": outlet,
                "content_type": "text",
                "engine_output": "Short Post",
            }
            Outcome.everywhere.create(
                id=publication.pk,
                publication_id=publication.pk,
                event_id=uuid7(),
                is_published=is_published,
                at=published_at,
                **shared,
            )
            if is_published:
                Measurement.everywhere.create(
                    publication=publication,
                    number=1,
                    at=measured_at,
                    published_at=published_at,
                    availability={
                        metric: "delayed"
                        for metric, rise in zip(MEASURED, rises, strict=True)
                        if rise is None
                    },
                    **{f"{metric}_delta": rise for metric, rise in zip(MEASURED, rises, strict=True)},
                    **dict(zip(MEASURED, rises, strict=True)),
                    **shared,
                )

        answer = ask(start=START, end=END, tz=tz, interval=interval, attribution=attribution)

        for metric in ADDITIVE:
            known = [value for row in answer.rows if (value := row.figures.metrics[metric]) is not None]
            if metric in {"published", "failed"} or known:
                assert answer.totals.metrics[metric] == sum(known)
            else:
                assert answer.totals.metrics[metric] is None
        assert answer.totals.metrics["published"] == sum(fact[2] for fact in facts)
        for place, metric in enumerate(MEASURED):
            rises = [fact[4][place] for fact in facts if fact[2] and fact[4][place] is not None]
            assert answer.totals.metrics[metric] == (sum(rises) if rises else None)
        for figures in (answer.totals, *(row.figures for row in answer.rows)):
            assert set(figures.availability) == {name for name in METRICS if figures.metrics[name] is None}
            assert figures.coverage is None or 0 <= figures.coverage <= 1
        # However the rows are cut, the totals are the same.
        for cut in ((), ("date",), ("outlet", "content_type"), ("source", "persona")):
            other = ask(start=START, end=END, tz=tz, interval=interval, attribution=attribution, group_by=cut)
            assert other.totals == answer.totals


ZONES = st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe"])
PUBLISHED = st.tuples(
    MOMENTS,
    st.integers(0, 1),
    st.sampled_from(["video", "text"]),
    st.integers(0, 1),
    st.sampled_from(["Short Post", "Thread"]),
    st.integers(0, 1),
    # What the platform said at each age: values may fall, be missing, and come days late.
    st.lists(st.tuples(st.integers(0, 10 * 24 * 60), st.none() | st.integers(0, 500)), max_size=4),
)


class TestEveryCut(TestCase):
    """Against a count in plain Python, over both changes of clocks of October and whatever the order of arrival."""

    @given(
        told=st.lists(PUBLISHED, max_size=8),
        tz=ZONES,
        interval=st.sampled_from(["hour", "day", "week", "month"]),
        attribution=st.sampled_from(["received", "published"]),
        cut=st.sets(st.sampled_from(DIMENSIONS)),
        shuffled=st.randoms(use_true_random=False),
        is_rolled=st.booleans(),
    )
    @settings(max_examples=size(15, 120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_views_are_those_of_a_count_by_hand(
        self, told, tz, interval, attribution, cut, shuffled, is_rolled
    ):
        workspace = factories.make_workspace()
        outlets = [factories.make_outlet(workspace, name=name) for name in ("One", "Two")]
        sources = [factories.make_source(workspace, name) for name in ("Blog", "Wire")]
        personas = [factories.make_persona(workspace, name) for name in ("Ada", "Bea")]
        group_by = tuple(name for name in DIMENSIONS if name in cut)
        expected: dict[tuple[object, ...], int] = {}
        rows, days = [], set()
        for published_at, outlet, bucket, source, engine, persona, values in told:
            publication = factories.make_publication(
                outlets[outlet],
                published_at=published_at,
                bucket=bucket,
                source=sources[source],
                engine_output=engine,
                persona=personas[persona],
            )
            last = 0
            for number, (minutes, value) in enumerate(values, start=1):
                at = published_at + timedelta(minutes=minutes)
                rise = None if value is None else value - last
                last = last if value is None else value
                row = Measurement(
                    workspace=workspace,
                    publication=publication,
                    number=number,
                    at=at,
                    published_at=published_at,
                    outlet=outlets[outlet],
                    content_type=bucket,
                    source=sources[source],
                    engine_output=engine,
                    persona=personas[persona],
                    views=value,
                    views_delta=rise,
                    availability={},
                )
                rows.append(row)
                days |= {at, published_at}
                moment = at if attribution == "received" else published_at
                if rise is None or not START <= moment < END:
                    continue
                said = {
                    "outlet": outlets[outlet].name,
                    "content_type": bucket,
                    "date": _bucket_of(moment, tz, interval),
                    "source": sources[source].pk,
                    "engine_output": engine,
                    "persona": personas[persona].pk,
                }
                key = tuple(said[name] for name in group_by)
                expected[key] = expected.get(key, 0) + rise
        shuffled.shuffle(rows)
        Measurement.everywhere.bulk_create(rows)
        if is_rolled:
            # Half of the days, so that an answer comes from both.
            some = sorted({moment.date() for moment in days})[::2]
            rollup.mark((workspace.pk, False, moment) for moment in days if moment.date() in some)
            for day in claims.begun(
                RollupDay,
                limit=99,
                per_workspace=99,
                lease=rollup.LEASE,
                now=timezone.now() + 2 * rollup.WAIT,
            ):
                rollup.roll_up(day)

        question = queries.Question(
            workspace_id=workspace.pk,
            test=False,
            period=Period(START, END, interval, ZoneInfo(tz)),
            group_by=group_by,
            attribution=attribution,
        )
        answer = queries.answer(question)

        found = {}
        for row in answer.rows:
            said = {**vars(row.dimensions)}
            if row.dimensions.outlet:
                said["outlet"] = row.dimensions.outlet.name
            if row.figures.metrics["views"] is not None:
                found[tuple(said[name] for name in group_by)] = row.figures.metrics["views"]
        assert found == expected


HITS = st.lists(
    st.tuples(MOMENTS, st.integers(0, 1), st.sampled_from(["video", "text", None]), st.integers(1, 9)),
    max_size=8,
)


class TestHits(TestCase):
    """What the service counts itself, from its counts, from their sums and from both."""

    @given(
        told=HITS,
        late=HITS,
        tz=ZONES,
        interval=st.sampled_from(["hour", "day", "week", "month"]),
        cut=st.sets(st.sampled_from(("outlet", "content_type", "date", "engine_output"))),
        some=st.integers(1, 3),
    )
    @settings(max_examples=size(12, 80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_hits_are_those_of_a_count_by_hand(self, told, late, tz, interval, cut, some):
        workspace = factories.make_workspace()
        outlets = [factories.make_outlet(workspace, name=name) for name in ("One", "Two")]
        publications = {
            (outlet, bucket): factories.make_publication(outlets[outlet], bucket=bucket)
            for outlet in (0, 1)
            for bucket in ("video", "text")
        }
        group_by = tuple(name for name in DIMENSIONS if name in cut)
        come(told, publications)
        waiting = RollupDay.everywhere.order_by("day")[::some]
        for day in waiting:
            day.lease_token += 1
            RollupDay.everywhere.filter(pk=day.pk).update(lease_token=day.lease_token)
            rollup.roll_up(day)
        come(late, publications)

        question = queries.Question(
            workspace_id=workspace.pk,
            test=False,
            period=Period(START, END, interval, ZoneInfo(tz)),
            group_by=group_by,
        )
        answer = queries.answer(question)
        found = {
            (name, *(_named(row.dimensions, dimension) for dimension in group_by)): count
            for row in answer.rows
            for name, count in row.figures.first_party.items()
            if count is not None
        }
        expected: dict[tuple[object, ...], int] = {}
        for at, outlet, bucket, count in (*told, *late):
            if bucket or not cut & {"content_type", "engine_output"}:
                said = {
                    "outlet": outlets[outlet].name,
                    "content_type": bucket,
                    "date": _bucket_of(at.replace(minute=at.minute // 15 * 15), tz, interval),
                    "engine_output": "Short Post",
                }
                key = ("clicks" if bucket else "feed_fetches", *(said[name] for name in group_by))
                expected[key] = expected.get(key, 0) + count
        assert found == expected


def come(told, publications):
    for at, outlet, bucket, count in told:
        publication = publications[outlet, bucket or "text"]
        for _ in range(count):
            if bucket:
                link = SimpleNamespace(workspace_id=publication.workspace_id, publication=publication)
                hit_counts.count_click(link, at)
            else:
                hit_counts.count_fetch(publication.outlet, at)
    hit_counts.flush()


def _named(dimensions, name):
    value = getattr(dimensions, name)
    return value.name if name == "outlet" else value


def _bucket_of(moment, tz, interval):
    """The label of its bucket, by the clock on the wall alone."""
    local = moment.astimezone(ZoneInfo(tz))
    if interval == "hour":
        first = local.replace(minute=0, second=0, microsecond=0)
        # After a change by half an hour the rest of the hour is a bucket of its own.
        if first.astimezone(UTC).astimezone(ZoneInfo(tz)).utcoffset() != local.utcoffset():
            first = local.replace(minute=30, second=0)
        return first.isoformat(timespec="seconds")
    day = local.date()
    if interval == "week":
        day -= timedelta(days=day.weekday())
    return (day.replace(day=1) if interval == "month" else day).isoformat()
