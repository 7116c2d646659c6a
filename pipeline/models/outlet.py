"""A workspace's account on a platform."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils import timezone

from accounts.tenancy import WorkspaceRow
from config.ground.sealed import SealedJSONField
from pipeline.models.generated_item import unguessable


class Outlet(WorkspaceRow):
    platform = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    config = models.JSONField(default=dict)
    credentials = SealedJSONField(null=True)
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    """The unguessable part of the workspace feed's address."""
    status = models.CharField(max_length=20, default="ok")
    last_error = models.JSONField(null=True)
    is_default = models.BooleanField(default=False)
    is_simulated = models.BooleanField(default=False)
    """Reaches nobody; the only outlets that a test token's items may go to."""
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta(WorkspaceRow.Meta):
        db_table = "outlet"
        indexes: ClassVar = [models.Index(fields=["workspace", "-id"], name="outlet_list")]  # GET /outlets
