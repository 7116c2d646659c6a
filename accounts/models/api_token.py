"""Stores the tokens of a workspace's API."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.workspace import Workspace
from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class ApiToken(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=120)
    digest = models.BinaryField(max_length=32, unique=True)
    """SHA-256 of the whole token: it has full entropy, so a slow hash would add nothing."""
    prefix = models.CharField(max_length=16)
    last_four = models.CharField(max_length=4)
    scopes = models.JSONField(default=list)
    is_test = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.GenericIPAddressField(null=True, blank=True)
    rotated_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["ApiToken"].as_manager()

    class Meta:
        db_table = "api_token"
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        base_manager_name = "everywhere"
        indexes: ClassVar = [
            # The list of a workspace's keys in the settings pages and the admin.
            models.Index(fields=["workspace", "-created_at"], name="api_token_list"),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…{self.last_four}"
