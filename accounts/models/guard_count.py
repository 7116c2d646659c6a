"""Counts that several processes share: tries at a log-in, codes that were used, guesses."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models


class GuardCount(models.Model):
    """An entry of the cache in `accounts/access/counts.py`; nothing but its time ends it."""

    key = models.CharField(max_length=250, primary_key=True)
    value = models.TextField()
    """JSON; a count is a number in it."""
    ends_micros = models.BigIntegerField()
    """In microseconds since 1970."""

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "guard_count"
        indexes: ClassVar = [
            # The retention job deletes by age.
            models.Index(fields=["ends_micros"], name="guard_count_age"),
        ]
