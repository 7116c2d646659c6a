"""The jobs that are registered."""

from __future__ import annotations

from config.core import jobs


def test_jobs():
    assert [name for name in jobs.jobs() if name.startswith("webhooks.")] == [
        "webhooks.fan_out",
        "webhooks.deliver_to_endpoint",
        "webhooks.probe_endpoint",
        "webhooks.recover_deliveries",
    ]


def test_a_job_s_name_begins_with_its_queue():
    assert {job.queue for job in jobs.jobs().values()} == set(jobs.QUEUES) - {"dispatch"}
