"""Stores answers to repeat, allowances of requests, and counts of tries, which all limit requests."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from accounts.models.workspace import Workspace
from config.core.clock import utc_now
from config.core.ids import uuid7


class IdempotencyKey(models.Model):
    """A stored answer, written in the transaction of its effect: neither exists alone."""

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


class RateBucket(models.Model):
    """A workspace's allowance of requests as a token bucket, for the SQL form of the limiter."""

    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.CASCADE, related_name="+")
    arrival_micros = models.BigIntegerField()
    """The theoretical arrival time of GCRA, in microseconds since 1970."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "rate_bucket"


class GuardCount(models.Model):
    """An entry of `DatabaseCounterCache` in `accounts/access/counter_caches.py`; only its time ends it."""

    key = models.CharField(max_length=250, primary_key=True)
    value = models.TextField()
    """JSON; a count is a number in it."""
    ends_micros = models.BigIntegerField()
    """When the entry ends, in microseconds since 1970."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "guard_count"
        indexes: ClassVar = [
            # The retention job deletes by age.
            models.Index(fields=["ends_micros"], name="guard_count_age"),
        ]
