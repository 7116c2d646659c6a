"""The operator's stops of publishing or of calls to models, for the instance or a workspace."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class Switch(models.Model):
    """Stops publishing or calls to models while the row exists.

    The audit log keeps who stopped and resumed them.
    """

    class What(models.TextChoices):
        PUBLISHING = "publishing", _("publishing")
        MODEL_CALLS = "model_calls", _("model calls")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    what = models.CharField(max_length=20, choices=What.choices)
    platform = models.CharField(max_length=40, blank=True)
    """Empty for every platform."""
    workspace = models.ForeignKey(
        "accounts.Workspace", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    """`None` for the whole instance."""
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
            # Two constraints, because a unique constraint treats all nulls as different.
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
        scope = str(_("on the whole instance"))
        if self.workspace is not None:
            scope = self.workspace.name
        return f"{what}: {scope}{f', {self.platform}' if self.platform else ''}."
