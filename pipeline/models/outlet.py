"""Outlets: a workspace's accounts on the platforms that publish its items."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedJSONField
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.generated_item import unguessable

EMPTY_OBJECT: Final = models.Value({}, models.JSONField())
"""The database default of a new JSON column, which the previous release doesn't write."""


class OutletStatus(models.TextChoices):
    OK = "ok", _("Connected")
    NEEDS_RECONNECT = "needs_reconnect", _("Reconnect needed")
    DISABLED = "disabled", _("Switched off")


class OutletQuerySet(models.QuerySet[Any]):
    """The filters of outlets that several pages share."""

    def to_reconnect(self) -> Self:
        return self.filter(status=OutletStatus.NEEDS_RECONNECT, deleted_at=None)


class OwnOutlets(WorkspaceQuerySet[Any], OutletQuerySet):  # type: ignore[override]
    """The same filters, bound to one workspace."""


class Outlet(WorkspaceRow, DueModel):
    """A workspace's account on a platform.

    `due_at` is when the account is checked next: whether its credential works, and before it expires.
    """

    platform = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    config = models.JSONField(default=dict)
    credentials = ClosedJSONField(null=True)
    profile = models.JSONField(default=dict, db_default=EMPTY_OBJECT)
    """The platform's last description of the account: `{"external_id", "handle", "name", "url", "scopes", "limits", "notes"}`."""
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    """The unguessable part of its public addresses: the workspace's feed and a newsletter's sign-up form."""
    status = models.CharField(max_length=20, choices=OutletStatus, default=OutletStatus.OK)
    last_error = models.JSONField(null=True)
    """`{"code", "message", "at"}` of the last failure of the account; `None` while the account works."""
    is_default = models.BooleanField(default=False)
    """True if items that name no outlet go there; `WorkspaceDefaults.outlets` holds the same, in order."""
    is_simulated = models.BooleanField(default=False)
    """True if it reaches nobody; a test token's items may go to such outlets only."""
    connected_by = models.CharField(max_length=200, blank=True, default="", db_default="")
    """The person who connected the outlet, as the audit log names them; empty if nobody did."""
    connected_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    """When the platform last said that the account works."""
    expires_at = models.DateTimeField(null=True)
    """When the credential expires unless it is renewed; `None` if it doesn't, or if that isn't known."""
    expiry_told_at = models.DateTimeField(null=True)
    """When people were notified that the credential expires soon, which happens once."""
    rests_until = models.DateTimeField(null=True)
    """The end of the pause that the platform asked for; nothing is sent before it."""
    per_day = models.PositiveIntegerField(null=True)
    """The workspace's cap of posts in any 24 hours; the platform's cap applies too."""
    gap_minutes = models.PositiveIntegerField(null=True)
    """The workspace's minimum time between two posts; the platform's applies too."""
    queue = models.ForeignKey(
        "pipeline.PublishQueue", null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    """The queue whose slots the outlet uses; `None` for the workspace's default queue."""
    discloses_ai = models.BooleanField(default=True, db_default=True)
    """True if generated content is marked as such, provided that the platform has a field for that."""
    clicks_since = models.DateTimeField(null=True)
    """The time since which posts use short links, which count clicks; `None` if they link directly."""
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    # With database defaults, because the previous release creates outlets too.
    lease_token = models.BigIntegerField(default=0, db_default=0)
    attempts = models.PositiveIntegerField(default=0, db_default=0)
    version = models.PositiveIntegerField(default=1)
    deleted_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    # The tasks that publish annotate this; it isn't a column.
    is_on_hold: bool

    everywhere: ClassVar = OutletQuerySet.as_manager()
    objects: ClassVar = OwnOutlets.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "outlet"
        indexes: ClassVar = [
            *claim_indexes("outlet"),
            models.Index(fields=["workspace", "-id"], name="outlet_list"),  # GET /outlets
        ]
