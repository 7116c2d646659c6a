"""A machine whose clock is wrong beside a database whose clock is right, and a clock that is set back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from config.core import ids, task_runner
from pipeline.models import Publication, SimulatedPost
from pipeline.publish import steps as publish_steps
from tests import claims

AWAY = pytest.mark.parametrize("minutes", [-10, 10])


@pytest.mark.postgres
@pytest.mark.django_db
@AWAY
def test_a_worker_whose_clock_is_wrong_publishes_on_time_and_once(alice, minutes):
    """Leases and due rows go by the database's clock; the worker's own decides nothing that another has to keep."""
    item = alice.ready()
    soon = alice.ready()
    alice.publish(item, {"outlets": [alice.simulated]}, work=False)
    at = (datetime.now(UTC) + timedelta(minutes=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
    alice.publish(soon, {"outlets": [alice.simulated], "publish_at": at}, work=False)
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=minutes)):
        # One claim: where the row was put off into the past, a loop would find it again and again.
        rows = claims.begun(Publication, limit=5, per_workspace=5, lease=timedelta(seconds=60))
        assert [row.item_id for row in rows] == [ids.decode("gen", item["id"])]
        # By the lease of the first, nobody takes it meanwhile.
        assert claims.begun(Publication, limit=5, per_workspace=5, lease=timedelta(seconds=60)) == []
        publish_steps.advance_publication(rows[0])
        assert claims.begun(Publication, limit=5, per_workspace=5, lease=timedelta(seconds=60)) == []
    shown = [alice.api.read(f"/generated/{one['id']}")["status"] for one in (item, soon)]
    assert shown == ["published", "scheduled"]
    assert SimulatedPost.everywhere.filter(is_accepted=True).count() == 1


@pytest.mark.usefixtures("no_rate")
def test_a_clock_that_is_set_back_loses_nothing_and_repeats_nothing(alice):
    """Keys, idempotency and due times that an hour ahead has written, ten minutes before it."""
    now = datetime.now(UTC)
    with time_machine.travel(now + timedelta(minutes=10)):
        key = alice.client()
        body = alice.content()
        first = key.post("/raw", body, headers={"Idempotency-Key": "once"})
        assert first.status_code == 202
    with time_machine.travel(now):
        # A key that will be made in ten minutes is one all the same.
        again = key.post("/raw", body, headers={"Idempotency-Key": "once"})
        assert (again.status_code, again.json()) == (202, first.json())
        other = key.post("/raw", alice.content(), headers={"Idempotency-Key": "once"})
        assert (other.status_code, other.json()["error"]) == (422, "idempotency_key_reused")
    with time_machine.travel(now + timedelta(minutes=11)):
        task_runner.work_all_due("generate.run_item")
        assert len(key.read(f"/generated?raw_item={first.json()['id']}")["data"]) == 1
