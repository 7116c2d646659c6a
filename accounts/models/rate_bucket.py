"""Where a workspace's token bucket stands, for the SQL form of the limiter."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models

from accounts.models.workspace import Workspace


class RateBucket(models.Model):
    workspace = models.OneToOneField(Workspace, primary_key=True, on_delete=models.CASCADE, related_name="+")
    arrival_micros = models.BigIntegerField()
    """The theoretical arrival time of GCRA, in microseconds since 1970."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "rate_bucket"
