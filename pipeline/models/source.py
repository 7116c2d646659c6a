"""Sources, their entries, the fetch slots of their hosts, and the slots of brand lanes."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class SourceStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    PAUSED = "paused", _("Paused")
    FAILING = "failing", _("Failing")
    GONE = "gone", _("Gone")


class SourceQuerySet(models.QuerySet[Any]):
    """The filters of sources that pages, metrics, plans and doctor share."""

    def live(self) -> Self:
        """Return the sources that weren't made by test tokens."""
        return self.filter(test=False)

    def polled(self) -> Self:
        """Return the sources that a plan's limit counts: no push source, and neither paused nor gone."""
        return self.filter(
            is_push=False, deleted_at=None, status__in=[SourceStatus.ACTIVE, SourceStatus.FAILING]
        )

    def failing(self) -> Self:
        """Return the sources whose last polls failed, or that are gone."""
        return self.filter(status__in=[SourceStatus.FAILING, SourceStatus.GONE], deleted_at=None)


class OwnSources(WorkspaceQuerySet[Any], SourceQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class Source(WorkspaceRow, DueModel):
    """Where raw content comes from.

    `wake_at` is the next poll; `None` for a source that isn't fetched or is paused, gone or deleted.
    """

    test = models.BooleanField(default=False)
    name = models.CharField(max_length=120)
    type = models.CharField(max_length=20)
    config = models.JSONField(default=dict)
    is_push = models.BooleanField(default=False)
    """True for the workspace's source that `POST /raw` uses if the request names none."""
    engines = models.JSONField(default=list)
    """Names of engine outputs; empty for the workspace's defaults."""
    variants = models.PositiveSmallIntegerField(default=1)
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.SET_NULL, related_name="+")
    outlets = models.JSONField(default=list)
    """Public ids of outlets, in order; empty for the workspace's defaults."""
    poll_interval_minutes = models.PositiveIntegerField(null=True)
    autopilot = models.BooleanField(default=False)
    first_poll = models.JSONField(null=True)
    max_age_days = models.PositiveIntegerField(null=True)
    max_burst = models.PositiveIntegerField(null=True)
    status = models.CharField(max_length=10, choices=SourceStatus, default=SourceStatus.ACTIVE)
    last_error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last poll, or `None` if it succeeded."""
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    fetch_state = models.JSONField(default=dict)
    last_polled_at = models.DateTimeField(null=True)
    """When the last successful poll was made; `None` before the first."""
    last_new_at = models.DateTimeField(null=True)
    interval_seconds = models.PositiveIntegerField(null=True)
    """The wait between two polls, adapted to how often the source changes; `None` until the first poll."""
    notes = models.JSONField(null=True)
    """`[{"code", "message"}]` of the last successful poll: remarks about the source."""
    moved = models.JSONField(null=True)
    """`{"to", "since", "polls"}`: the target of a permanent redirect, and the number of polls in a row with it."""
    window = models.JSONField(null=True)
    """The entries that the last poll listed, for kinds that list the newest; see `ingest.collect.store`."""
    inbound_token = models.CharField(max_length=43, null=True, unique=True)
    """The unguessable part of a webhook source's address."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    version = models.PositiveIntegerField(default=1)
    request_id = models.CharField(max_length=64, blank=True)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar = SourceQuerySet.as_manager()
    objects: ClassVar = OwnSources.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "source"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["workspace", "test"], condition=models.Q(is_push=True), name="source_one_push"
            ),
        ]
        indexes: ClassVar = [
            *claim_indexes("source"),
            models.Index(fields=["workspace", "test", "-id"], name="source_list"),  # GET /sources
        ]


class SourceEntryDecision(models.TextChoices):
    NEW = "new", _("New")
    REVISED = "revised", _("Changed")
    UNCHANGED = "unchanged", _("Duplicate")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    TOO_OLD = "too_old", _("Too old")
    OVER_BURST = "over_burst", _("Over limit")
    BEFORE_FIRST_POLL = "before_first_poll", _("Older than the source")
    FILTERED = "filtered", _("Skipped")
    MALFORMED = "malformed", _("Invalid")


class DecidedBy(models.TextChoices):
    """How an entry was recognized; `source` if the source decided."""

    EXTERNAL_ID = "external_id", _("same ID")
    URL = "url", _("same URL")
    CONTENT = "content", _("same text")
    SOURCE = "source", _("by the source")


class SourceEntry(WorkspaceRow):
    """One entry of a source and the last decision about it.

    It is written only when a decision is new: an entry that is merely still listed changes nothing.
    """

    source = models.ForeignKey(
        "pipeline.Source", on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    key = models.CharField(max_length=600)
    """The same key as `RawItem.dedup_key`."""
    external_id = models.CharField(max_length=512, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    title = models.CharField(max_length=500, blank=True)
    published_at = models.DateTimeField(null=True)
    decision = models.CharField(max_length=20, choices=SourceEntryDecision)
    """`unchanged` only if it never was anything else, or came back."""
    decided_by = models.CharField(max_length=12, choices=DecidedBy)
    code = models.CharField(max_length=40, blank=True)
    message = models.CharField(max_length=500, blank=True)
    raw_item = models.ForeignKey("pipeline.RawItem", null=True, on_delete=models.SET_NULL, related_name="+")
    first_seen_at = models.DateTimeField(default=utc_now)
    decided_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "source_entry"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["source", "key"], name="source_entry_once"),
        ]
        indexes: ClassVar = [
            # Read by the erasure and the export of a workspace.
            models.Index(fields=["workspace", "id"], name="source_entry_workspace"),
            models.Index(fields=["source", "-id"], name="source_entry_list"),  # GET /sources/:id/entries
            # GET /sources/:id/entries?decision=
            models.Index(fields=["source", "decision", "-id"], name="source_entry_by_decision"),
            # Read by retention.
            models.Index(
                fields=["decided_at"], name="source_entry_old", condition=models.Q(raw_item__isnull=True)
            ),
        ]


class BrandSlotStatus(models.TextChoices):
    WAITING = "waiting", _("Upcoming")
    WAITING_QUOTA = "waiting_quota", _("Waiting for credits")
    PICKED = "picked", _("Chosen")
    EMPTY = "empty", _("No result")
    SKIPPED = "skipped", _("Skipped")


class BrandPickDecision(models.TextChoices):
    TAKEN = "taken", _("Generating")
    USED = "used", _("Created")
    TOO_NEAR = "too_near", _("Skipped: too similar")
    FAILED = "failed", _("Failed")


class BrandSlot(WorkspaceRow, DueModel):
    """One scheduled time (`due_at`) of a brand lane. An active lane has exactly one open slot."""

    test = models.BooleanField(default=False)
    source = models.ForeignKey("pipeline.Source", on_delete=models.CASCADE, related_name="slots")
    status = models.CharField(max_length=15, choices=BrandSlotStatus, default=BrandSlotStatus.WAITING)
    note = models.JSONField(null=True)
    """`{"code", "message"}`: why nothing was picked, why the slot waits, or a remark about the pick."""
    eligible = models.PositiveIntegerField(null=True)
    """The number of topics that could have been picked."""
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    ended_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "brand_slot"
        constraints: ClassVar = [
            # Two tasks, or a task and a person, can't both open the next slot.
            models.UniqueConstraint(
                fields=["source"],
                condition=models.Q(status__in=["waiting", "waiting_quota"]),
                name="brand_slot_one_open",
            )
        ]
        indexes: ClassVar = [
            *claim_indexes("brand_slot"),
            models.Index(fields=["source", "-id"], name="brand_slot_of_source"),  # the lane's log
        ]


class BrandPick(WorkspaceRow):
    """A topic and angle given to one run of a slot, and the outcome; discarded picks stay."""

    slot = models.ForeignKey(BrandSlot, on_delete=models.CASCADE, related_name="picks")
    generation = models.ForeignKey(
        "pipeline.Generation", null=True, on_delete=models.SET_NULL, related_name="picks"
    )
    item = models.ForeignKey("pipeline.GeneratedItem", null=True, on_delete=models.SET_NULL, related_name="+")
    """The first item that was made from the pick."""
    topic = models.ForeignKey("pipeline.Topic", null=True, on_delete=models.SET_NULL, related_name="picks")
    title = models.CharField(max_length=300)
    """The topic's title when it was picked."""
    angle = models.CharField(max_length=200, blank=True)
    decision = models.CharField(max_length=12, choices=BrandPickDecision, default=BrandPickDecision.TAKEN)
    reason = models.JSONField(null=True)
    """`{"code", "message"}`; for `too_near` also `likeness` from 0 to 1 and `near`, the similar item's public id."""
    words = models.TextField(blank=True)
    """The text that was discarded."""
    used_on = models.DateField()
    """The day in the lane's time zone, in which rests and monthly limits are counted."""
    created_at = models.DateTimeField(default=utc_now)
    decided_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "brand_pick"
        indexes: ClassVar = [
            # Read for rests and monthly limits.
            models.Index(fields=["topic", "-used_on"], name="brand_pick_by_topic"),
        ]


class HostSlot(models.Model):
    """The fetch slot of one host, shared by all workspaces: one fetch at a time."""

    host = models.CharField(max_length=255, primary_key=True)
    free_at = models.DateTimeField()
    """When the next fetch may begin.

    During a fetch it is the end of the lease, so that a killed fetch doesn't block the host for longer.
    """
    holder = models.UUIDField(null=True)
    """The source that is being fetched."""

    everywhere: ClassVar[models.Manager[HostSlot]] = models.Manager()

    class Meta:
        db_table = "host_slot"
        base_manager_name = "everywhere"
        indexes: ClassVar = [models.Index(fields=["free_at"], name="host_slot_free")]  # Read by retention.
