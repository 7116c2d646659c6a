"""What holds for every set of outcomes and measurements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from analytics.folding import METRICS
from analytics.models import Measurement, Outcome
from config.ground.ids import uuid7
from pipeline.platforms.base import METRICS as MEASURED
from tests.analytics import factories

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
    @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
