"""Stores workspaces, their plans, members and invitations, and their requests for access."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
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
    # An operator's overrides of the plan, or `None` if the plan's value applies.
    credits_per_month = models.PositiveIntegerField(null=True, blank=True)
    active_sources_most = models.PositiveIntegerField(null=True, blank=True)
    poll_interval_minutes_least = models.PositiveIntegerField(null=True, blank=True)
    is_unlimited = models.BooleanField(default=False)
    """No rate limit and no quota; the audit log says who lifted them."""
    whitelisted_at = models.DateTimeField(null=True, blank=True)
    delisted_at = models.DateTimeField(null=True, blank=True)
    """When an operator revoked its access, or `None` if it has access or was never approved."""
    requires_approval = models.BooleanField(default=False)
    """`True` if an item must be approved before it is published; else publishing it approves it."""
    model_key = ClosedTextField(null=True, blank=True)
    """The workspace's own key for the model, decrypted only for a call, or `None` if the operator's is used."""
    # A database default too, so that the previous release can still create workspaces.
    model_key_last_four = models.CharField(max_length=4, blank=True, default="", db_default="")
    """Lets people recognize the key."""
    model_cap_micro_usd = models.PositiveBigIntegerField(null=True, blank=True)
    """The cap of its model calls' cost in a month, in millionths of a US dollar, or `None` for no cap."""
    samples = models.CharField(
        max_length=10, choices=Samples, default=Samples.NONE, db_default=Samples.NONE, blank=True
    )
    """How far its sample data is filled in or removed; see `accounts.samples`."""
    created_at = models.DateTimeField(default=now)
    deletes_at = models.DateTimeField(null=True, blank=True)
    """When it will be deleted, unless somebody undoes that; until then it is paused."""
    deleted_at = models.DateTimeField(null=True, blank=True)
    """When it was deleted: from then on nobody can open it, and its data is being erased."""
    erased_at = models.DateTimeField(null=True, blank=True)
    """When the erasure ended: only this row, the ledger and the audit log are left."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "workspace"
        base_manager_name = "everywhere"
        indexes: ClassVar = [
            # Read once a minute: is there a workspace to delete or to continue erasing?
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
    def is_in_sandbox(self) -> bool:
        """Whether the workspace was never approved, and isn't being deleted.

        It then makes items without the operator's model, and publishes only to its feed and its test channel.
        """
        return not (self.whitelisted_at or self.delisted_at or self.deletes_at or self.deleted_at)

    @property
    def is_at_work(self) -> bool:
        """Whether its tokens are accepted, its sources run and its items are published."""
        return self.is_whitelisted and self.deletes_at is None

    @property
    def model_key_label(self) -> str:
        """The key's label for people, with its last four characters."""
        if self.model_key is None:
            return str(_("No own key"))
        return str(_("Own key ending in %s") % self.model_key_last_four)


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
    """Marks sample data, which is removed as a whole."""
    created_at = models.DateTimeField(default=now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["Membership"].as_manager()

    class Meta:
        db_table = "membership"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "user"], name="membership_once"),
        ]


class Plan(models.Model):
    """The monthly credits and the limits of workspaces."""

    name = models.CharField(max_length=60, unique=True)
    credits_per_month = models.PositiveIntegerField(default=5000)
    active_sources_most = models.PositiveIntegerField(default=20)
    poll_interval_minutes_least = models.PositiveIntegerField(default=15)
    is_default = models.BooleanField(default=False)

    class Meta:
        db_table = "plan"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["is_default"], condition=models.Q(is_default=True), name="plan_one_default"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class WhitelistRequest(models.Model):
    """A workspace's request for access, and the operator's answer."""

    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        APPROVED = "approved", _("approved")
        REFUSED = "refused", _("refused")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="whitelist_requests")
    message = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    reason = models.CharField(max_length=1000, blank=True)
    """The operator's reason for a refusal, which the workspace's owners get."""
    asked_by = models.CharField(max_length=200)
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["WhitelistRequest"].as_manager()

    class Meta:
        db_table = "whitelist_request"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            # Two requests at once leave one entry in the operator's queue.
            models.UniqueConstraint(
                fields=["workspace"],
                condition=models.Q(status="pending"),
                name="whitelist_request_one_pending",
            ),
        ]

    def __str__(self) -> str:
        return self.workspace.name


class Invitation(models.Model):
    """An invitation of an address to a workspace, open until it is accepted or withdrawn."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=Membership.Role)
    digest = models.BinaryField(max_length=32, unique=True)
    """SHA-256 of the newest link's token: it has full entropy, so a slow hash would add nothing."""
    link: str = ""
    """The address at which it is accepted, set only while it is mailed; it isn't a column."""
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    sends = models.PositiveIntegerField(default=1)
    """The number of mails with it; the audit log says when each was sent."""
    sent_at = models.DateTimeField(default=utc_now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["Invitation"].as_manager()

    class Meta:
        db_table = "invitation"
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            # Two owners who invite the same person at once send one invitation.
            models.UniqueConstraint(
                "workspace",
                Lower("email"),
                condition=models.Q(accepted_at=None, withdrawn_at=None),
                name="invitation_one_pending",
            ),
        ]

    def __str__(self) -> str:
        return self.email

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= utc_now()
