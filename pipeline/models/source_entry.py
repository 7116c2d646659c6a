"""What a source listed, and what was done with each of it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class SourceEntryDecision(models.TextChoices):
    NEW = "new", _("New")
    REVISED = "revised", _("Changed")
    UNCHANGED = "unchanged", _("Known")
    WITHDRAWN = "withdrawn", _("Withdrawn")
    TOO_OLD = "too_old", _("Too old")
    OVER_BURST = "over_burst", _("Too many at once")
    BEFORE_FIRST_POLL = "before_first_poll", _("There before")
    FILTERED = "filtered", _("Left out")
    MALFORMED = "malformed", _("Broken")


class DecidedBy(models.TextChoices):
    """By what an entry was recognised, or that the source itself said so."""

    EXTERNAL_ID = "external_id", _("by its id")
    URL = "url", _("by its address")
    CONTENT = "content", _("by its words")
    SOURCE = "source", _("by the source")


class SourceEntry(WorkspaceRow):
    """One entry of a source and the last thing that was decided of it.

    It is written when a decision says something new: an entry that is merely still there changes nothing.
    """

    source = models.ForeignKey(
        "pipeline.Source", on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    key = models.CharField(max_length=600)
    """As `RawItem.dedup_key`."""
    external_id = models.CharField(max_length=512, blank=True)
    url = models.CharField(max_length=2048, blank=True)
    title = models.CharField(max_length=500, blank=True)
    published_at = models.DateTimeField(null=True)
    decision = models.CharField(max_length=20, choices=SourceEntryDecision)
    """`unchanged` only where it never was anything else, or came back."""
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
