"""Publications (one item on one outlet) and the calls that may have made them public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes
from pipeline import limits
from pipeline.models.outlet import EMPTY_OBJECT

if TYPE_CHECKING:
    from datetime import datetime


DEFAULT_LATENESS_MINUTES: Final = 60
"""A publication that is later than this is too late, unless another limit is set."""
MAX_LATENESS_MINUTES: Final = 60 * 24 * 30
"""The greatest limit that may be set."""


class PublicationStatus(models.TextChoices):
    SCHEDULED = "scheduled", _("Scheduled")
    PUBLISHING = "publishing", _("Publishing")
    PUBLISHED = "published", _("Published")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")
    CANCELLED = "cancelled", _("Cancelled")
    REMOVED = "removed", _("Removed")


class LatePolicy(models.TextChoices):
    """The rule for a publication that could not be sent in time."""

    PUBLISH = "publish", _("Publish anyway")
    NEXT_SLOT = "next_slot", _("Move to next free slot")
    HOLD = "hold", _("Hold for rescheduling")


class PublicationStep(models.TextChoices):
    """The part of the publishing that comes next, or came last."""

    PREPARE = "prepare", _("Prepare")
    POLL = "poll", _("Poll")
    COMMIT = "commit", _("Commit")
    FINISH = "finish", _("Finish")
    REMOVE = "remove", _("Remove")
    DONE = "done", _("Done")
    BY_HAND = "by_hand", _("Manual")


class GapChoice(models.TextChoices):
    """The rule for a local time that the clocks skip."""

    SHIFT = "shift", _("Move forward")
    REJECT = "reject", _("Reject")


class OverlapChoice(models.TextChoices):
    """Which moment a local time means that occurs twice."""

    FIRST = "first", _("Use the first")
    SECOND = "second", _("Use the second")


class AttemptStatus(models.TextChoices):
    STARTED = "started", _("Started")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    UNKNOWN = "unknown", _("Outcome unknown")


class PublicationQuerySet(models.QuerySet[Any]):
    """The filters of publications that pages, metrics, mails and doctor share."""

    def live(self) -> Self:
        """Return the publications that weren't made by test tokens."""
        return self.filter(test=False)

    def scheduled(self) -> Self:
        return self.filter(status=PublicationStatus.SCHEDULED)

    def unsent(self) -> Self:
        """Return those that aren't out yet: scheduled, being sent, or waiting for a person to post them."""
        return self.filter(status__in=[PublicationStatus.PUBLISHING, PublicationStatus.SCHEDULED])

    def by_platform(self) -> Self:
        """Leave out the publications handed over to a person, because no delay is counted for them."""
        return self.exclude(step=PublicationStep.BY_HAND)

    def by_hand(self) -> Self:
        return self.filter(step=PublicationStep.BY_HAND)

    def due(self, now: datetime) -> Self:
        """Return the scheduled publications whose time has passed."""
        return self.scheduled().filter(due_at__lt=now)

    def late(self, now: datetime) -> Self:
        """Return the unsent publications later than `limits.LATE_AFTER`, except those handed over to a person."""
        return self.unsent().by_platform().filter(due_at__lt=now - limits.LATE_AFTER)

    def coming(self, now: datetime) -> Self:
        """Return the unsent publications that aren't late, except those handed over to a person."""
        return self.unsent().by_platform().filter(due_at__gte=now - limits.LATE_AFTER)

    def overdue(self, now: datetime) -> Self:
        """Return the late publications of which people are notified."""
        return self.unsent().by_platform().filter(due_at__lt=now - limits.OVERDUE_TOLD_AFTER)

    def published(self) -> Self:
        return self.filter(status=PublicationStatus.PUBLISHED)

    def failed(self) -> Self:
        return self.filter(status=PublicationStatus.FAILED)

    def unknown(self) -> Self:
        return self.filter(status=PublicationStatus.UNKNOWN)

    def unresolved(self) -> Self:
        """Return those that failed or whose outcome is unknown."""
        return self.filter(status__in=[PublicationStatus.FAILED, PublicationStatus.UNKNOWN])

    def open(self) -> Self:
        """Return those that may still be published, or may have been."""
        return self.filter(
            status__in=[PublicationStatus.PUBLISHING, PublicationStatus.SCHEDULED, PublicationStatus.UNKNOWN]
        )

    def standing(self) -> Self:
        """Return those that were neither cancelled nor removed; an item has at most one per outlet."""
        return self.exclude(status__in=[PublicationStatus.CANCELLED, PublicationStatus.REMOVED])


class OwnPublications(WorkspaceQuerySet[Any], PublicationQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class Publication(WorkspaceRow, DueModel):
    """One item on one outlet.

    `due_at` is the scheduled time, and `wake_at` the time of the next call or lookup.
    """

    BY_HAND: ClassVar = "by_hand"
    """The step of a publication handed over to a person: nothing wakes it, and it never counts as late."""

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
    """The requested local time in `zone`, as `YYYY-MM-DDTHH:MM:SS`; empty if a moment was requested."""
    zone = models.CharField(max_length=64, blank=True, default="", db_default="")
    on_gap = models.CharField(max_length=6, choices=GapChoice, blank=True, default="", db_default="")
    on_overlap = models.CharField(max_length=6, choices=OverlapChoice, blank=True, default="", db_default="")
    queue = models.ForeignKey(
        "pipeline.PublishQueue", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    """The queue that gave the slot at `due_at`; `None` if `due_at` isn't a slot."""
    waits_for = models.JSONField(null=True)
    """`{"code", "message", "until"}` if it is sent later than scheduled, else `None`."""
    step = models.CharField(max_length=10, choices=PublicationStep, default=PublicationStep.PREPARE)
    step_state = models.JSONField(default=dict)
    attempt_count = models.PositiveIntegerField(default=0)
    """The number of calls that may have made it public; lookups don't count."""
    lookups = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    error = models.JSONField(null=True)
    details = models.JSONField(default=dict, db_default=EMPTY_OBJECT)
    """The parts of the platform's answers that later calls need, such as the address of a record."""
    external_id = models.CharField(max_length=300, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    unknown_since = models.DateTimeField(null=True)
    unknown_told_at = models.DateTimeField(null=True)
    overdue_told_at = models.DateTimeField(null=True)
    published_at = models.DateTimeField(null=True)
    metrics = models.JSONField(null=True)
    """The platform's newest values by metric; `None` until the first measurement."""
    requested_by = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    # The tasks that send annotate these; they aren't columns.
    is_on_hold: bool
    attempts_before: int

    everywhere: ClassVar = PublicationQuerySet.as_manager()
    objects: ClassVar = OwnPublications.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "publication"
        constraints: ClassVar = [
            # An item is on an outlet once: a second request at the same moment conflicts with the first.
            models.UniqueConstraint(
                fields=["item", "outlet"],
                condition=~models.Q(status__in=["cancelled", "removed"]),
                name="publication_once",
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("publication"),
            models.Index(fields=["workspace", "test", "-id"], name="publication_list"),  # GET /publications
            # The workspace's own feed reads the newest.
            models.Index(fields=["outlet", "-published_at"], name="publication_of_outlet"),
            # Finds the publications that wait for an outlet or are being sent there, and the slots in use.
            models.Index(
                fields=["outlet", "due_at", "id"],
                name="publication_line",
                condition=models.Q(status__in=["publishing", "scheduled", "unknown"]),
            ),
            # Local times are recomputed, because the rules of time zones change.
            models.Index(
                fields=["id"],
                name="publication_clock",
                condition=models.Q(status="scheduled") & ~models.Q(local_time=""),
            ),
            # The operator's pages, the doctor and the metrics count these.
            models.Index(
                fields=["workspace", "-id"],
                name="publication_dead",
                condition=models.Q(status__in=["failed", "unknown"]),
            ),
            # The first page counts what is scheduled or late, and with the next two what failed and was published.
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

    @property
    def is_handed_over(self) -> bool:
        """True if the publication was handed over to a person who hasn't reported the outcome yet."""
        return self.status == PublicationStatus.PUBLISHING and self.step == self.BY_HAND


class AttemptQuerySet(models.QuerySet[Any]):
    def open(self) -> Self:
        """Return the attempts whose outcome isn't known yet."""
        return self.filter(status__in=[AttemptStatus.STARTED, AttemptStatus.UNKNOWN])


class OwnAttempts(WorkspaceQuerySet[Any], AttemptQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class Attempt(WorkspaceRow):
    """A call that may make a post public; committed before the call, so that a killed worker leaves a trace."""

    publication = models.ForeignKey(Publication, on_delete=models.CASCADE, related_name="attempts_made")
    number = models.PositiveIntegerField()
    revision = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=AttemptStatus, default=AttemptStatus.STARTED)
    error = models.JSONField(null=True)
    receipt = models.JSONField(null=True)
    """The content as it was sent, adapted to the platform."""
    late_answer = models.JSONField(null=True)
    """`{"external_id", "url", "details", "at"}` of a success answer that came after the attempt was closed."""
    started_at = models.DateTimeField(default=utc_now)
    finished_at = models.DateTimeField(null=True)

    # The deadline of the call by `monotonic()`, in seconds, for the task that makes it; not a column.
    ends: float

    everywhere: ClassVar = AttemptQuerySet.as_manager()
    objects: ClassVar = OwnAttempts.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "attempt"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["publication", "number"], name="attempt_once")
        ]


class SimulatedPost(WorkspaceRow):
    """A call that the simulated platform received. Each call is a row, so that a repeated one is seen."""

    outlet_id = models.UUIDField()
    ref = models.CharField(max_length=100)
    """The client's reference; the simulated platform doesn't refuse a second post with the same one."""
    answer = models.CharField(max_length=30)
    """The step of the script that was played."""
    is_accepted = models.BooleanField()
    title = models.CharField(max_length=500, blank=True)
    body = models.TextField(blank=True)
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "simulated_post"
        indexes: ClassVar = [
            models.Index(fields=["ref"], name="simulated_post_ref")
        ]  # read by the lookup that reconciles
