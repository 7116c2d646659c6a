"""A tenant, its plan, who belongs to it or is invited, and its request to be let in."""

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
    # An operator's override of the plan; None where the plan holds.
    credits_per_month = models.PositiveIntegerField(null=True, blank=True)
    active_sources_most = models.PositiveIntegerField(null=True, blank=True)
    poll_interval_minutes_least = models.PositiveIntegerField(null=True, blank=True)
    is_unlimited = models.BooleanField(default=False)
    """No rate limit and no quota; the audit log says who lifted them."""
    whitelisted_at = models.DateTimeField(null=True, blank=True)
    delisted_at = models.DateTimeField(null=True, blank=True)
    """When an operator took its access away; None where it has it, and where it was never approved."""
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
    def is_in_sandbox(self) -> bool:
        """Whether it is new and not approved yet.

        Until then it makes items without the operator's model, and publishes to its feed and its test channel alone.
        """
        return not (self.whitelisted_at or self.delisted_at or self.deletes_at or self.deleted_at)

    @property
    def is_at_work(self) -> bool:
        """Its tokens are taken, its sources run and its items are published."""
        return self.is_whitelisted and self.deletes_at is None

    @property
    def model_key_label(self) -> str:
        """The key in words, by its last four characters."""
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


class Plan(models.Model):
    """What a workspace may use in a month."""

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
    """A workspace's request to be let in, and what the operator said."""

    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        APPROVED = "approved", _("approved")
        REFUSED = "refused", _("refused")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="whitelist_requests")
    message = models.TextField(blank=True)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.PENDING)
    reason = models.CharField(max_length=1000, blank=True)
    """What the workspace's owners were told with a refusal."""
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
            # Two askings at once leave one entry in the operator's queue.
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
    link: str = ""
    """Its address, for whoever has just made it; stored nowhere."""
    """SHA-256 of the newest link's token: it has full entropy, so a slow hash would add nothing."""
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    sends = models.PositiveIntegerField(default=1)
    """How often it was mailed; the audit log says when."""
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
