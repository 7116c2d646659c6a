"""Accounts on platforms, how they are connected by OAuth, and the clicks and fetches that we count ourselves."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceQuerySet, WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedJSONField, ClosedTextField
from config.core.ids import uuid7
from config.core.work_queue import DueModel, claim_indexes
from pipeline.models.generated_item import unguessable

EMPTY: Final = models.Value({}, models.JSONField())
"""The default of a JSON column that is new: the release before this one doesn't write it."""


class OutletStatus(models.TextChoices):
    OK = "ok", _("Connected")
    NEEDS_RECONNECT = "needs_reconnect", _("Reconnect needed")
    DISABLED = "disabled", _("Switched off")


class OutletQuerySet(models.QuerySet[Any]):
    """The notions of an outlet that several pages share."""

    def to_reconnect(self) -> Self:
        return self.filter(status=OutletStatus.NEEDS_RECONNECT, deleted_at=None)


class OwnOutlets(WorkspaceQuerySet[Any], OutletQuerySet):  # type: ignore[override]
    """The same of one workspace."""


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

    # Read along by the tasks that publish; no column.
    is_on_hold: bool

    everywhere: ClassVar = OutletQuerySet.as_manager()
    objects: ClassVar = OwnOutlets.as_manager()

    class Meta(WorkspaceRow.Meta):
        db_table = "outlet"
        indexes: ClassVar = [
            *claim_indexes("outlet"),
            models.Index(fields=["workspace", "-id"], name="outlet_list"),  # GET /outlets
        ]


class OAuthApp(models.Model):
    """What the operator has registered at a platform; one for each, for every workspace."""

    class Review(models.TextChoices):
        NOT_SUBMITTED = "not_submitted", _("not submitted")
        IN_REVIEW = "in_review", _("in review")
        APPROVED = "approved", _("approved")
        LIMITED = "limited", _("limited")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    platform = models.CharField(_("platform"), max_length=40, unique=True)
    client_id = models.CharField(_("client id"), max_length=300)
    client_secret = ClosedTextField(_("client secret"), blank=True, default="")
    scopes = models.CharField(
        _("further scopes"),
        max_length=500,
        blank=True,
        default="",
        help_text=_("Additional to the posting scopes, separated by spaces."),
    )
    review = models.CharField(
        _("the platform's review"), max_length=20, choices=Review.choices, default=Review.NOT_SUBMITTED
    )
    note = models.TextField(_("note"), max_length=1000, blank=True, default="")
    created_at = models.DateTimeField(default=utc_now)
    updated_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "oauth_app"
        base_manager_name = "everywhere"
        verbose_name = _("application at a platform")
        verbose_name_plural = _("applications at platforms")

    def __str__(self) -> str:
        return self.platform


class OAuthAttempt(WorkspaceRow):
    """A person who was sent to a platform and may come back once; the row goes when they do."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    platform = models.CharField(max_length=40)
    outlet = models.ForeignKey("pipeline.Outlet", null=True, on_delete=models.CASCADE, related_name="+")
    """The one that is connected again; None for a new one."""
    state_hash = models.CharField(max_length=64, unique=True)
    verifier = ClosedTextField(blank=True, default="")
    """Of PKCE: whoever catches the code can't use it without."""
    expires_at = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "oauth_attempt"
        indexes: ClassVar = [
            models.Index(fields=["workspace"], name="oauth_attempt_workspace")  # erasing a workspace
        ]


class ShortLink(WorkspaceRow):
    """An address that a publication links to, under one of ours that counts who follows it."""

    code = models.CharField(max_length=16, unique=True)
    publication = models.ForeignKey(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="short_links"
    )
    target = models.TextField()
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "short_link"
        indexes: ClassVar = [models.Index(fields=["workspace"], name="short_link_of_workspace")]


class HitKind(models.TextChoices):
    CLICK = "click", _("Click")
    FETCH = "fetch", _("Fetch")


class HitCount(WorkspaceRow):
    """How often, in one quarter of an hour; nothing of who it was."""

    kind = models.CharField(max_length=5, choices=HitKind)
    test = models.BooleanField(default=False)
    key = models.UUIDField()
    """The publication of a click, the outlet of a fetch."""
    start = models.DateTimeField()
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+", db_index=False)
    publication = models.ForeignKey(
        "pipeline.Publication", null=True, on_delete=models.CASCADE, related_name="hit_counts"
    )
    count = models.PositiveIntegerField()

    class Meta(WorkspaceRow.Meta):
        db_table = "hit_count"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key", "kind", "start"], name="hit_count_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "start"], name="hit_count_read"),  # GET /analytics
            models.Index(fields=["outlet"], name="hit_count_of_outlet"),
            models.Index(fields=["start"], name="hit_count_forget"),
        ]
