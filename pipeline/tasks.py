"""Registers the pipeline's jobs: each is a Celery task."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.conf import settings

from accounts import notices
from accounts.models import NoticeDigest
from config.core import jobs
from pipeline import limits, mailing, outlets, personas
from pipeline.generate import rendering, run
from pipeline.generate.model import batches
from pipeline.ingest import collect, replan, websub
from pipeline.models import (
    BrandSlot,
    Generation,
    GenerationQueue,
    MailQueue,
    ModelBatch,
    Outlet,
    PersonaDraft,
    Publication,
    RawItem,
    Recurrence,
    Series,
    Source,
    WebSubSubscription,
)
from pipeline.personas import drafts
from pipeline.publish import steps as publish_steps
from pipeline.publish.timing import reschedule
from pipeline.review import rewrite_run
from pipeline.schedule import recurring, series
from pipeline.workspace import daily_digest

_LEASE: Final = timedelta(seconds=settings.LEASE_SECONDS)

jobs.register(
    jobs.RowJob(
        name="ingest.poll_source", model=Source, work=collect.poll, give_up=collect.give_up, lease=_LEASE
    )
)
jobs.register(
    jobs.RowJob(
        name="ingest.fill_brand_slot",
        model=BrandSlot,
        work=personas.run_slot,
        give_up=personas.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="ingest.resume_raw_item",
        model=RawItem,
        work=replan.resume_waiting,
        give_up=replan.give_up_waiting,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="ingest.subscribe_feed",
        model=WebSubSubscription,
        work=websub.advance_subscription,
        give_up=websub.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
# Four jobs take the same rows: the row's `queue` is the one that its next step needs.
_RUN_OPTIONS: Final[dict[str, Any]] = {
    "model": Generation,
    "give_up": run.give_up,
    "lease": _LEASE,
    "max_attempts": limits.GENERATION_TRIES,
    # Each call to a model, and each second of a video, renews the lease.
    "max_duration": timedelta(hours=1),
}
jobs.register(
    jobs.RowJob(
        name="generate.run_item",
        work=partial(run.run_generation, queue=GenerationQueue.GENERATE),
        where={"queue": GenerationQueue.GENERATE.value},
        **_RUN_OPTIONS,
    )
)
jobs.register(
    jobs.RowJob(
        name="compute.run_item",
        work=partial(run.run_generation, queue=GenerationQueue.COMPUTE),
        where={"queue": GenerationQueue.COMPUTE.value},
        computes=True,
        # A text takes some thirty milliseconds: so many rows keep a slot busy until the next round.
        ahead=8,
        **_RUN_OPTIONS,
    )
)
jobs.register(
    jobs.RowJob(
        name="render.render_film",
        work=partial(run.run_generation, queue=GenerationQueue.RENDER),
        where={"queue": GenerationQueue.RENDER.value},
        computes=True,
        # A video takes minutes: none is queued before a slot is free, so that the workspace that comes first is
        # chosen only then.
        ahead=0,
        read_shares=rendering.turns_of_films,
        late_after=timedelta(hours=1),
        **{**_RUN_OPTIONS, "max_duration": limits.RENDER_FOLDERS_KEPT},
    )
)
jobs.register(
    jobs.RowJob(
        name="generate.rewrite_item",
        work=rewrite_run.run_rewrite,
        where={"queue": GenerationQueue.REWRITE.value},
        **{**_RUN_OPTIONS, "give_up": rewrite_run.give_up},
    )
)
jobs.register(
    jobs.RowJob(
        name="generate.draft_persona",
        model=PersonaDraft,
        work=drafts.make_draft,
        give_up=drafts.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="generate.poll_model_batch",
        model=ModelBatch,
        work=batches.advance_batch,
        give_up=batches.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="generate.make_series_issue",
        model=Series,
        work=series.run_series,
        give_up=series.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="publish.send_publication",
        model=Publication,
        work=publish_steps.advance_publication,
        read=publish_steps.PUBLICATION,
        give_up=publish_steps.give_up,
        lease=_LEASE,
        # Hundreds may be due in one second, and each mostly waits for its platform.
        ahead=16,
        is_promised=True,
    )
)
jobs.register(
    jobs.RowJob(
        name="publish.repeat_item",
        model=Recurrence,
        work=recurring.run_recurrence,
        give_up=recurring.give_up,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.RowJob(
        name="publish.check_outlet",
        model=Outlet,
        work=outlets.maintain_outlet,
        give_up=outlets.give_up,
        lease=_LEASE,
        per_workspace=2,
    )
)
jobs.register(
    jobs.RowJob(
        name="mail.send_letters",
        model=MailQueue,
        work=mailing.send_mails,
        give_up=mailing.give_up,
        lease=mailing.LEASE,
        per_workspace=2,
    )
)
# This job is registered here and not in accounts, because the pipeline counts what waits for review.
jobs.register(
    jobs.RowJob(
        name="mail.send_digest",
        model=NoticeDigest,
        work=daily_digest.send_digest,
        give_up=notices.give_up_digest,
        lease=_LEASE,
        per_workspace=1,
    )
)
jobs.register(
    jobs.BatchJob(
        name="housekeeping.follow_time_zones",
        work=reschedule.follow_zones,
        every_seconds=reschedule.ZONES_EVERY_SECONDS,
    )
)
