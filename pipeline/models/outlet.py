"""A workspace's account on a platform."""

from __future__ import annotations

from typing import ClassVar, Final

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedJSONField
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.generated_item import unguessable

EMPTY: Final = models.Value({}, models.JSONField())
"""The default of a JSON column that is new: the release before this one doesn't write it."""


class OutletStatus(models.TextChoices):
    OK = "ok", _("Works")
    NEEDS_RECONNECT = "needs_reconnect", _("Has to be reconnected")
    DISABLED = "disabled", _("Switched off")


class Outlet(WorkspaceRow, DueModel):
    """`due_at` is when its account is to be looked at next: whether its credential works, and before that ends."""

    platform = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    config = models.JSONField(default=dict)
    credentials = ClosedJSONField(null=True)
    profile = models.JSONField(default=dict, db_default=EMPTY)
    """What the platform said of the account last: `{"external_id", "handle", "name", "url", "scopes", "limits", "notes"}`."""
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    """The unguessable part of the workspace feed's address."""
    status = models.CharField(max_length=20, choices=OutletStatus, default=OutletStatus.OK)
    last_error = models.JSONField(null=True)
    is_default = models.BooleanField(default=False)
    is_simulated = models.BooleanField(default=False)
    """Reaches nobody; the only outlets that a test token's items may go to."""
    connected_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    connected_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    """When the platform last said that the account works."""
    expires_at = models.DateTimeField(null=True)
    """When the credential ends unless it is renewed; None where it doesn't, or nobody knows."""
    expiry_told_at = models.DateTimeField(null=True)
    rests_until = models.DateTimeField(null=True)
    """Until when the platform asked to be left alone; nothing is sent before."""
    per_day = models.PositiveIntegerField(null=True)
    """The workspace's own cap for any 24 hours; the platform's holds beside it."""
    gap_minutes = models.PositiveIntegerField(null=True)
    """The workspace's own least time between two posts."""
    queue = models.ForeignKey(
        "pipeline.PublishQueue", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    """Whose slots are its; None: the workspace's default queue."""
    discloses_ai = models.BooleanField(default=True, db_default=True)
    """Tells the platform of generated content where it has a field for that."""
    clicks_since = models.DateTimeField(null=True)
    """Since when its posts link through addresses of ours that count clicks; None: they link straight."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    # With defaults of the database's own, because the release before this one makes outlets too.
    lease_token = models.BigIntegerField(default=0, db_default=0)
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    # Read along by the hands that publish; no column.
    is_on_hold: bool

    class Meta(WorkspaceRow.Meta):
        db_table = "outlet"
        indexes: ClassVar = [
            *claim_indexes("outlet"),
            models.Index(fields=["workspace", "-id"], name="outlet_list"),  # GET /outlets
        ]
