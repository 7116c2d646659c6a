"""The operator's OAuth apps at platforms, and the attempts to connect an outlet that are under way."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from config.core.encrypted_fields import ClosedTextField
from config.core.ids import uuid7


class OAuthApp(models.Model):
    """The app that the operator has registered at a platform; one per platform, for every workspace."""

    class AppReview(models.TextChoices):
        """The state of the platform's review of the app."""

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
        _("the platform's review"), max_length=20, choices=AppReview.choices, default=AppReview.NOT_SUBMITTED
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
    """A person who was sent to a platform and may come back once; the row is deleted when they do."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    platform = models.CharField(max_length=40)
    outlet = models.ForeignKey("pipeline.Outlet", null=True, on_delete=models.CASCADE, related_name="+")
    """The outlet that is connected again; `None` for a new one."""
    state_hash = models.CharField(max_length=64, unique=True)
    verifier = ClosedTextField(blank=True, default="")
    """The PKCE verifier, without which an intercepted code can't be used."""
    expires_at = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "oauth_attempt"
        indexes: ClassVar = [
            # Read when a workspace is erased.
            models.Index(fields=["workspace"], name="oauth_attempt_workspace"),
        ]
