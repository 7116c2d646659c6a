"""A persona's sections, drafted on request from a site or from past posts."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.work_queue import DueModel, claim_indexes


class PersonaDraftStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


class PersonaDraft(WorkspaceRow, DueModel):
    """What somebody asked for, and what came of it. It fills a form; a persona changes only when that is saved."""

    persona = models.ForeignKey(
        "pipeline.Persona", null=True, on_delete=models.CASCADE, related_name="drafts"
    )
    """Whose editor it fills; None for a persona that isn't made yet."""
    url = models.CharField(max_length=2048, blank=True)
    posts = models.JSONField(default=list)
    """Past posts as they were pasted."""
    status = models.CharField(max_length=10, choices=PersonaDraftStatus, default=PersonaDraftStatus.QUEUED)
    material = models.JSONField(null=True)
    """What was read of the site with the posts: a killed hand doesn't read it twice. Emptied at the end."""
    sections = models.JSONField(null=True)
    """The draft, by the names of the persona's fields."""
    is_offline = models.BooleanField(default=True)
    """Made without AI."""
    tries = models.PositiveSmallIntegerField(default=0)
    """Calls to a model that failed and may be made again."""
    error = models.JSONField(null=True)
    """`{"code", "message"}`: why there is none, and what to do next."""
    requested_by = models.CharField(max_length=200, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=utc_now)
    finished_at = models.DateTimeField(null=True)

    class Meta(WorkspaceRow.Meta):
        db_table = "draft"
        indexes: ClassVar = [
            *claim_indexes("draft"),
            # What is to be forgotten.
            models.Index(fields=["created_at"], name="draft_forgotten"),
        ]
