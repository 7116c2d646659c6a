"""The operator's page of what is being done now, for whom, and by which worker."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from config.core import jobs, work_leases, work_queue
from config.core.ids import encode
from config.operations import needs_attention, running_tasks
from pipeline.models import Source, Worker
from tests.factories import UserFactory, WorkspaceFactory

pytestmark = pytest.mark.django_db


def call(person, address):
    client = Client()
    client.force_login(person)
    return client.get(address)


@pytest.fixture
def worker():
    work_leases.start_worker()
    work_leases.note_worker("worker@one", {"ingest": 8, "publish": 24})
    return work_leases.worker_id()


def due_source(name="Harbour news", ago=1):
    now = work_queue.database_now()
    return Source.everywhere.create(
        workspace=WorkspaceFactory(name="Harbour Desk"),
        name=name,
        type="rss",
        wake_at=now - timedelta(seconds=ago),
    )


def queue(source, *, begins):
    job, now = jobs.jobs()["ingest.poll_source"], work_queue.database_now()
    (claimed,) = work_queue.claim(Source, limit=1, per_workspace=1, lease=work_leases.QUEUED)
    lease = work_leases.QueuedTask(claimed.pk, claimed.token, owner=source.workspace_id)
    work_leases.add(job.name, job.queue, [lease], now=now)
    if begins:
        work_leases.begin(lease.subject, lease.token, now=now)


def test_it_names_task_row_workspace_and_worker(operator, worker):
    source = due_source()
    queue(source, begins=True)
    shown = call(operator, reverse("admin_tasks")).content.decode()
    for text in ("ingest.poll_source", encode("src", source.pk), "Harbour Desk", "worker@one", "Running"):
        assert text in shown


def test_counts_of_a_queue(operator, worker):
    queue(due_source(), begins=False)
    due_source()
    now = work_queue.database_now()
    (ingest,) = [one for one in running_tasks.job_queues(now) if one.name == "ingest"]
    assert (ingest.slots, ingest.running, ingest.queued, ingest.due) == (8, 0, 1, 1)
    assert not ingest.is_unserved


def test_a_queue_that_no_worker_takes_is_told(operator, worker):
    Worker.everywhere.all().delete()
    due_source(ago=20)
    (need,) = [one for one in needs_attention.visible_needs(operator) if one.page == reverse("admin_tasks")]
    assert need.text == "No worker takes the queue ingest, in which 1 are due"
    assert "No worker for this queue" in call(operator, reverse("admin_tasks")).content.decode()


def test_nothing_to_do_and_no_worker(operator):
    shown = call(operator, reverse("admin_tasks")).content.decode()
    assert "No running tasks." in shown
    assert "No workers running." in shown


def test_others_may_not_see_it(db):
    stranger = UserFactory(is_staff=True)
    assert call(stranger, reverse("admin_tasks")).status_code == 403
