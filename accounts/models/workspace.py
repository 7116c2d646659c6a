"""A tenant, and who belongs to it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.tenancy import WorkspaceQuerySet
from config.core.encrypted_fields import ClosedTextField
from config.core.ids import encode, uuid7


class Workspace(models.Model):
    class Samples(models.TextChoices):
        NONE = ""
        FILLING = "filling"
        FILLED = "filled"
        REMOVING = "removing"
        REMOVED = "removed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=120)
    timezone = models.CharField(max_length=64, default="UTC")
    plan = models.ForeignKey("accounts.Plan", on_delete=models.PROTECT, related_name="workspaces")
    # An operator's override of the plan; None where the plan holds.
    credits_per_month = models.PositiveIntegerField(null=True, blank=True)
    active_sources_most = models.PositiveIntegerField(null=True, blank=True)
    poll_interval_minutes_least = models.PositiveIntegerField(null=True, blank=True)
    is_unlimited = models.BooleanField(default=False)
    """No rate limit and no quota; the audit log says who lifted them."""
    whitelisted_at = models.DateTimeField(null=True, blank=True)
    requires_approval = models.BooleanField(default=False)
    """True: publishing is not itself the approval; somebody has to approve first."""
    model_key = ClosedTextField(null=True, blank=True)
    """The workspace's own key for the model; None where the operator's holds. Opened where a call is made."""
    # The database's default too, so that the release before can still make workspaces.
    model_key_last_four = models.CharField(max_length=4, blank=True, default="", db_default="")
    """What people recognise the key by."""
    model_cap_micro_usd = models.PositiveBigIntegerField(null=True, blank=True)
    """What its calls to the model may cost in a month, in millionths of a US dollar; None for no cap."""
    samples = models.CharField(
        max_length=10, choices=Samples, default=Samples.NONE, db_default=Samples.NONE, blank=True
    )
    """How far its sample data is; see `accounts.samples`."""
    created_at = models.DateTimeField(default=now)
    deletes_at = models.DateTimeField(null=True, blank=True)
    """When it will be deleted, if nobody undoes that; until then it rests."""
    deleted_at = models.DateTimeField(null=True, blank=True)
    """From here on it is gone for everybody, and what it held is being erased."""
    erased_at = models.DateTimeField(null=True, blank=True)
    """Nothing is left but this row, the ledger and the audit log."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "workspace"
        base_manager_name = "everywhere"
        indexes: ClassVar = [
            # Read once a minute: is there a workspace to delete or to go on erasing?
            models.Index(
                fields=["deletes_at"],
                name="workspace_to_erase",
                condition=models.Q(deletes_at__isnull=False, erased_at__isnull=True),
            ),
            # Read once a second: are there samples to remove?
            models.Index(fields=["id"], name="workspace_to_clear", condition=models.Q(samples="removing")),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def public_id(self) -> str:
        return encode("ws", self.pk)

    @property
    def is_whitelisted(self) -> bool:
        return self.whitelisted_at is not None and self.deleted_at is None

    @property
    def is_at_work(self) -> bool:
        """Its tokens are taken, its sources run and its items are published."""
        return self.is_whitelisted and self.deletes_at is None

    @property
    def model_key_told(self) -> str:
        """What people are told of the key."""
        if self.model_key is None:
            return str(_("None of its own."))
        return str(_("Its own, which ends in %s.") % self.model_key_last_four)


class Membership(models.Model):
    class Role(models.TextChoices):
        OWNER = "owner"
        EDITOR = "editor"
        VIEWER = "viewer"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    is_sample = models.BooleanField(default=False, db_default=False)
    """Part of the sample data, which is removed as a whole."""
    created_at = models.DateTimeField(default=now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["Membership"].as_manager()

    class Meta:
        db_table = "membership"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),
        ]
