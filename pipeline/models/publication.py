"""One item on one outlet, and every call that was made for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes
from pipeline import limits
from pipeline.models.outlet import EMPTY

if TYPE_CHECKING:
    from datetime import datetime


LATENESS_MINUTES: Final = 60
"""How late is too late where nobody says."""
LATENESS_MINUTES_MOST: Final = 60 * 24 * 30


class PublicationStatus(models.TextChoices):
    SCHEDULED = "scheduled", _("Scheduled")
    PUBLISHING = "publishing", _("Publishing")
    PUBLISHED = "published", _("Published")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")
    CANCELLED = "cancelled", _("Cancelled")
    REMOVED = "removed", _("Removed")


class LatePolicy(models.TextChoices):
    """What becomes of a publication that could not go out in time."""

    PUBLISH = "publish", _("Publish anyway")
    NEXT_SLOT = "next_slot", _("Move to next free slot")
    HOLD = "hold", _("Hold for rescheduling")


class PublicationStep(models.TextChoices):
    """The part of its sending that comes next, or the last one."""

    PREPARE = "prepare", _("Prepare")
    POLL = "poll", _("Poll")
    COMMIT = "commit", _("Commit")
    FINISH = "finish", _("Finish")
    REMOVE = "remove", _("Remove")
    DONE = "done", _("Done")
    BY_HAND = "by_hand", _("Manual")


class GapChoice(models.TextChoices):
    """A time that the clocks skip, where a moment was asked for."""

    SHIFT = "shift", _("Move forward")
    REJECT = "reject", _("Reject")


class OverlapChoice(models.TextChoices):
    """A time that comes twice."""

    FIRST = "first", _("Use the first")
    SECOND = "second", _("Use the second")


class AttemptStatus(models.TextChoices):
    STARTED = "started", _("Started")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")


class PublicationQuerySet(models.QuerySet[Any]):
    """The notions of a publication that pages, metrics, mails and doctor share."""

    def live(self) -> Self:
        """Without those of test tokens."""
        return self.filter(test=False)

    def scheduled(self) -> Self:
        return self.filter(status=PublicationStatus.SCHEDULED)

    def unsent(self) -> Self:
        """Promised and not out: scheduled, or on their way, or waiting for a person to post them."""
        return self.filter(status__in=[PublicationStatus.PUBLISHING, PublicationStatus.SCHEDULED])

    def by_platform(self) -> Self:
        """Without what was handed over: that waits for a person, and is late by nobody's clock but theirs."""
        return self.exclude(step=PublicationStep.BY_HAND)

    def by_hand(self) -> Self:
        return self.filter(step=PublicationStep.BY_HAND)

    def due(self, now: datetime) -> Self:
        """Scheduled for a moment that is past."""
        return self.scheduled().filter(due_at__lt=now)

    def late(self, now: datetime) -> Self:
        """Later than the seconds for which everything that is due waits for a worker."""
        return self.unsent().by_platform().filter(due_at__lt=now - limits.LATE_AFTER)

    def coming(self, now: datetime) -> Self:
        """Promised to a platform, and not late."""
        return self.unsent().by_platform().filter(due_at__gte=now - limits.LATE_AFTER)

    def overdue(self, now: datetime) -> Self:
        """So late that people are told."""
        return self.unsent().by_platform().filter(due_at__lt=now - limits.OVERDUE_TOLD_AFTER)

    def published(self) -> Self:
        return self.filter(status=PublicationStatus.PUBLISHED)

    def unknown(self) -> Self:
        return self.filter(status=PublicationStatus.UNKNOWN)

    def unresolved(self) -> Self:
        """Failed, or of unknown outcome: what nothing takes up again by itself."""
        return self.filter(status__in=[PublicationStatus.FAILED, PublicationStatus.UNKNOWN])

    def open(self) -> Self:
        """Not ended yet: something of it is still to be done."""
        return self.filter(
            status__in=[PublicationStatus.PUBLISHING, PublicationStatus.SCHEDULED, PublicationStatus.UNKNOWN]
        )

    def standing(self) -> Self:
        """An item has one of these on an outlet at most: those that were neither cancelled nor removed."""
        return self.exclude(status__in=[PublicationStatus.CANCELLED, PublicationStatus.REMOVED])


class OwnPublications(WorkspaceQuerySet[Any], PublicationQuerySet):  # type: ignore[override]
    """The same of one workspace."""


class Publication(WorkspaceRow, DueModel):
    """`due_at` is when it was promised; `wake_at` when the next call, or the next look-up, is made."""

    BY_HAND: ClassVar = "by_hand"
    """The step of one that was handed over to a person: nothing wakes it, and its promise was kept."""

    test = models.BooleanField(default=False)
    item = models.ForeignKey("pipeline.GeneratedItem", on_delete=models.PROTECT, related_name="publications")
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.PROTECT, related_name="publications")
    platform = models.CharField(max_length=40)
    status = models.CharField(max_length=12, choices=PublicationStatus, default=PublicationStatus.SCHEDULED)
    revision = models.PositiveIntegerField()
    """The revision that is to be sent, or was."""
    version = models.PositiveIntegerField(default=1)
    overrides = models.JSONField(default=dict)
    """`{"title", "body", "settings"}` for this outlet."""
    late_policy = models.CharField(max_length=10, choices=LatePolicy, default=LatePolicy.PUBLISH)
    max_lateness_minutes = models.PositiveIntegerField(null=True)
    local_time = models.CharField(max_length=19, blank=True, default="", db_default="")
    """The time on the clocks of `zone` that was asked for, `YYYY-MM-DDTHH:MM:SS`; empty where a moment was."""
    zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    on_gap = models.CharField(max_length=6, choices=GapChoice, blank=True, default="", db_default="")
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, blank=True, default="", db_default="")
    queue = models.ForeignKey(
        "pipeline.PublishQueue", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    """Whose slot `due_at` is; None where it is none."""
    waits_for = models.JSONField(null=True)
    """Why it goes out later than promised, `{"code", "message", "until"}`; None where it doesn't."""
    step = models.CharField(max_length=10, choices=PublicationStep, default=PublicationStep.PREPARE)
    step_state = models.JSONField(default=dict)
    attempt_count = models.PositiveIntegerField(default=0)
    """Calls that may have made it public; a look-up is not one."""
    lookups = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)
    details = models.JSONField(default=dict, db_default=EMPTY)
    """What its platform answered and later calls need, such as the address of a record."""
    external_id = models.CharField(max_length=300, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    unknown_since = models.DateTimeField(null=True)
    unknown_told_at = models.DateTimeField(null=True)
    overdue_told_at = models.DateTimeField(null=True)
    published_at = models.DateTimeField(null=True)
    metrics = models.JSONField(null=True)
    """The newest numbers that its platform gave, by metric; None until the first."""
    requested_by = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    # Read along by the tasks that send it; no columns.
    is_on_hold: bool
    attempts_before: int

    everywhere: ClassVar = PublicationQuerySet.as_manager()
    objects: ClassVar = OwnPublications.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "publication"
        constraints: ClassVar = [
            # An item is on an outlet once: a second request at the same moment meets the first one's row.
            models.UniqueConstraint(
                fields=["item", "outlet"],
                condition=~models.Q(status__in=["cancelled", "removed"]),
                name="publication_once",
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("publication"),
            models.Index(fields=["workspace", "test", "-id"], name="publication_list"),  # GET /publications
            # The workspace's own feed reads its newest.
            models.Index(fields=["outlet", "-published_at"], name="publication_of_outlet"),
            # What stands in line on an outlet, what is under way there, and which of its slots are taken.
            models.Index(
                fields=["outlet", "due_at", "id"],
                name="publication_line",
                condition=models.Q(status__in=["publishing", "scheduled", "unknown"]),
            ),
            # Times on a clock are looked up anew, because the rules of time zones change.
            models.Index(
                fields=["id"],
                name="publication_clock",
                condition=models.Q(status="scheduled") & ~models.Q(local_time=""),
            ),
            # The operator's pages, the doctor and the metrics count what nothing takes up again by itself.
            models.Index(
                fields=["workspace", "-id"],
                name="publication_dead",
                condition=models.Q(status__in=["failed", "unknown"]),
            ),
            # The first page: what is promised and late, what failed, what came out.
            models.Index(
                fields=["workspace", "due_at"],
                name="publication_promised",
                condition=models.Q(status__in=["publishing", "scheduled"], test=False),
            ),
            models.Index(
                fields=["workspace", "-updated_at"],
                name="publication_failed",
                condition=models.Q(status__in=["failed", "unknown"], test=False),
            ),
            models.Index(
                fields=["workspace", "-published_at"],
                name="publication_done",
                condition=models.Q(status="published", test=False),
            ),
        ]


class AttemptQuerySet(models.QuerySet[Any]):
    def open(self) -> Self:
        """Nobody knows yet what came of it."""
        return self.filter(status__in=[AttemptStatus.STARTED, AttemptStatus.UNKNOWN])


class OwnAttempts(WorkspaceQuerySet[Any], AttemptQuerySet):  # type: ignore[override]
    """The same of one workspace."""


class Attempt(WorkspaceRow):
    """A call that may make a publication public; committed before the call, so that a kill leaves its trace."""

    publication = models.ForeignKey(Publication, on_delete=models.CASCADE, related_name="attempts_made")
    number = models.PositiveIntegerField()
    revision = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=AttemptStatus, default=AttemptStatus.STARTED)
    error = models.JSONField(null=True)
    receipt = models.JSONField(null=True)
    """What was handed to the platform, as it was fitted for it."""
    late_answer = models.JSONField(null=True)
    """That the platform has it, as it said when the attempt was closed already: `{"external_id", "url", "details", "at"}`."""
    started_at = models.DateTimeField(default=utc_now)
    finished_at = models.DateTimeField(null=True)

    # The deadline of its call by `monotonic()`, for the task that makes it; no column.
    ends: float

    everywhere: ClassVar = AttemptQuerySet.as_manager()
    objects: ClassVar = OwnAttempts.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "attempt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["publication", "number"], name="attempt_once")
        ]


class SimulatedPost(WorkspaceRow):
    """A call that the simulated platform's server received; each is a row, so that a second publication can't hide."""

    outlet_id = models.UUIDField()
    ref = models.CharField(max_length=100)
    """The client's own reference; the server doesn't refuse a second post with the same one."""
    answer = models.CharField(max_length=30)
    """The word of the script that was played."""
    is_accepted = models.BooleanField()
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "simulated_post"
        indexes: ClassVar = [
            models.Index(fields=["ref"], name="simulated_post_ref")
        ]  # the reconciling look-up
