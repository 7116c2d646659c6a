"""Whose turn it is at a host."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class HostSlot(models.Model):
    """One row for each host that sources are fetched from, whoever's they are: one fetch at a time."""

    host = models.CharField(max_length=255, primary_key=True)
    free_at = models.DateTimeField()
    """When the next fetch may begin. While one runs, the end of its lease: a killed one blocks no longer."""
    holder = models.UUIDField(null=True)
    """The source that is being fetched."""

    everywhere: ClassVar[models.Manager[HostSlot]] = models.Manager()

    class Meta:
        db_table = "host_slot"
        base_manager_name = "everywhere"
        indexes: ClassVar = [models.Index(fields=["free_at"], name="host_slot_free")]  # Read by retention.
