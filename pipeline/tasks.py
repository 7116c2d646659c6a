"""The pipeline's kinds of due rows."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from accounts import notices
from accounts.models import NoticeDigest
from config.ground import hands, limits
from pipeline.models import (
    BrandSlot,
    Generation,
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
from pipeline.stages import (
    batches,
    brand,
    collect,
    digest,
    drafting,
    generate,
    mailing,
    outlets,
    publish,
    push,
    recurring,
    series,
    websub,
)

LEASE = timedelta(seconds=settings.LEASE_SECONDS)

hands.register(
    hands.Kind(
        "pipeline.collect",
        model=Source,
        work=collect.poll,
        give_up=collect.give_up,
        lease=LEASE,
        # They mostly wait for other people's servers, of which each is asked by one of them at a time.
        side_by_side=8,
        per_workspace=4,
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "pipeline.brand",
        model=BrandSlot,
        work=brand.work,
        give_up=brand.give_up,
        lease=LEASE,
        side_by_side=2,
        per_workspace=1,
    )
)
hands.register(
    hands.Kind(
        "pipeline.series",
        model=Series,
        work=series.work,
        give_up=series.give_up,
        lease=LEASE,
        side_by_side=1,
        per_workspace=1,
    )
)
hands.register(
    hands.Kind(
        "pipeline.recurring",
        model=Recurrence,
        work=recurring.work,
        give_up=recurring.give_up,
        lease=LEASE,
        side_by_side=1,
        per_workspace=1,
    )
)
hands.register(
    hands.Kind(
        "pipeline.drafts",
        model=PersonaDraft,
        work=drafting.work,
        give_up=drafting.give_up,
        lease=LEASE,
        side_by_side=2,
        per_workspace=1,
        # It mostly waits for other people's machines: a site, then a model.
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "pipeline.waiting",
        model=RawItem,
        work=push.resume_waiting,
        give_up=push.give_up_waiting,
        lease=LEASE,
        side_by_side=1,
        per_workspace=10,
        batch=10,
    )
)
hands.register(
    hands.Kind(
        "pipeline.generate",
        model=Generation,
        work=generate.work,
        give_up=generate.give_up,
        lease=LEASE,
        max_attempts=limits.GENERATION_TRIES,
        side_by_side=generate.HANDS,
        per_workspace=max(1, settings.WORKER_THREADS // 4),
    )
)
hands.register(
    hands.Kind(
        "pipeline.batches",
        model=ModelBatch,
        work=batches.work,
        give_up=batches.give_up,
        lease=LEASE,
        side_by_side=2,
        per_workspace=1,
        # It mostly waits for the model's service.
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "pipeline.publish",
        model=Publication,
        work=publish.work,
        give_up=publish.give_up,
        lease=LEASE,
        # They mostly wait for platforms. One workspace may use three quarters of the hands: whatever hangs there, the
        # others find a free one.
        side_by_side=settings.PUBLISH_THREADS,
        per_workspace=max(1, settings.PUBLISH_THREADS * 3 // 4),
        batch=settings.PUBLISH_THREADS,
        own_threads=True,
        shares_claims=True,
    )
)
hands.register(
    hands.Batch("pipeline.clocks", work=publish.follow_zones, every_seconds=publish.ZONES_EVERY_SECONDS)
)
hands.register(
    hands.Kind(
        "pipeline.outlets",
        model=Outlet,
        work=outlets.work,
        give_up=outlets.give_up,
        lease=LEASE,
        side_by_side=2,
        per_workspace=2,
        # It mostly waits for other people's machines.
        own_threads=True,
    )
)
hands.register(
    hands.Kind(
        "pipeline.websub",
        model=WebSubSubscription,
        work=websub.work,
        give_up=websub.give_up,
        lease=LEASE,
        side_by_side=1,
        per_workspace=1,
    )
)
hands.register(
    hands.Kind(
        "pipeline.mail",
        model=MailQueue,
        work=mailing.work,
        give_up=mailing.give_up,
        lease=mailing.LEASE,
        side_by_side=4,
        per_workspace=2,
        # They mostly wait for other people's mail servers, and for the pace that those ask for.
        own_threads=True,
    )
)
# Here and not among the accounts' own, because what waits for review is counted by the pipeline.
hands.register(
    hands.Kind(
        "pipeline.digest",
        model=NoticeDigest,
        work=digest.work,
        give_up=notices.give_up_digest,
        lease=LEASE,
        side_by_side=1,
        per_workspace=1,
    )
)
