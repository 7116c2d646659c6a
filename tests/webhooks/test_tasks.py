"""The jobs that are registered."""

from __future__ import annotations

from config.core import dispatch


def test_jobs():
    assert [name for name in dispatch.jobs() if name.startswith("webhooks.")] == [
        "webhooks.fan_out",
        "webhooks.deliver_to_endpoint",
        "webhooks.probe_endpoint",
        "webhooks.recover_deliveries",
    ]


def test_a_job_s_name_begins_with_its_queue():
    assert {job.queue for job in dispatch.jobs().values()} == set(dispatch.QUEUES) - {"dispatch"}
