"""The first answer to an Idempotency-Key."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from accounts.models.workspace import Workspace
from config.core.clock import utc_now
from config.core.ids import uuid7


class IdempotencyKey(models.Model):
    """Written in the transaction of the effect: there is never an effect without its stored answer."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    test = models.BooleanField(default=False)
    key = models.CharField(max_length=255)
    request_digest = models.BinaryField(max_length=32)
    """SHA-256 of method, path and body."""
    status = models.PositiveSmallIntegerField()
    body = models.BinaryField()
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "idempotency_key"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["workspace", "test", "key"], name="idempotency_key_once"),
        ]
        indexes: ClassVar = [
            # The retention job deletes by age.
            models.Index(fields=["created_at"], name="idempotency_key_age"),
        ]
