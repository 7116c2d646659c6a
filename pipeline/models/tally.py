"""What the hands of all processes did, as sums that only rise."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Tally(models.Model):
    name = models.CharField(max_length=40)
    kind = models.CharField(max_length=60)
    value = models.FloatField(default=0)

    everywhere: ClassVar[models.Manager[Tally]] = models.Manager()

    class Meta:
        db_table = "tally"
        base_manager_name = "everywhere"
        constraints: ClassVar = [models.UniqueConstraint(fields=["name", "kind"], name="tally_once")]
