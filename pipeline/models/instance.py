"""What belongs to the whole instance: what an operator has stopped, and the folder of files."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class Switch(models.Model):
    """A row stands while something is stopped; the audit log keeps who stopped and resumed it."""

    class What(models.TextChoices):
        PUBLISHING = "publishing", _("publishing")
        MODEL_CALLS = "model_calls", _("model calls")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    what = models.CharField(max_length=20, choices=What.choices)
    platform = models.CharField(max_length=40, blank=True)
    """Empty: every platform."""
    workspace = models.ForeignKey(
        "accounts.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    """None: the whole instance."""
    reason = models.CharField(max_length=300)
    set_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["Switch"].as_manager()

    class Meta:
        db_table = "switch"
        base_manager_name = "everywhere"
        verbose_name = _("paused")
        verbose_name_plural = _("paused")
        constraints: ClassVar = [
            # Two, because nulls are all different to a unique constraint.
            models.UniqueConstraint(
                fields=["what", "platform"],
                condition=models.Q(workspace=None),
                name="switch_once_for_instance",
            ),
            models.UniqueConstraint(
                fields=["what", "platform", "workspace"],
                condition=models.Q(workspace__isnull=False),
                name="switch_once_for_workspace",
            ),
        ]

    def __str__(self) -> str:
        what = {
            self.What.PUBLISHING: _("Publishing is paused"),
            self.What.MODEL_CALLS: _("AI calls are paused"),
        }[self.What(self.what)]
        where = str(_("on the whole instance"))
        if self.workspace is not None:
            where = self.workspace.name
        return f"{what}: {where}{f', {self.platform}' if self.platform else ''}."


class MediaFolder(models.Model):
    """One row. The folder names its `instance` in a file: where the two differ, nothing takes files away."""

    number = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    instance = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(default=utc_now)
    sweep_stopped_at = models.DateTimeField(null=True)
    """Since when the sweep waits for a person; the numbers are of its last round."""
    sweep_found = models.PositiveIntegerField(null=True)
    """Files that no row names."""
    sweep_total = models.PositiveIntegerField(null=True)
    sweep_approved = models.PositiveIntegerField(null=True)
    """So many of them may go, once."""

    everywhere: ClassVar[models.Manager[MediaFolder]] = models.Manager()

    class Meta:
        db_table = "media_folder"
        base_manager_name = "everywhere"
        verbose_name = _("media folder")
        verbose_name_plural = _("media folder")
