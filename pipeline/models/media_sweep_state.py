"""The media folder, as the database knows it."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from config.core.clock import utc_now


class MediaFolder(models.Model):
    """The one row that names the media folder.

    The folder holds the `instance` in a file too. If the two differ, nothing deletes files.
    """

    number = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    instance = models.UUIDField(default=uuid.uuid4)
    created_at = models.DateTimeField(default=utc_now)
    sweep_stopped_at = models.DateTimeField(null=True)
    """The time since which the sweep waits for a person; `sweep_found` and `sweep_total` are of its last round."""
    sweep_found = models.PositiveIntegerField(null=True)
    """The number of files that no row names."""
    sweep_total = models.PositiveIntegerField(null=True)
    """The number of all files."""
    sweep_approved = models.PositiveIntegerField(null=True)
    """The number of unnamed files that a person has allowed the sweep to delete, once."""

    everywhere: ClassVar[models.Manager[MediaFolder]] = models.Manager()

    class Meta:
        db_table = "media_folder"
        base_manager_name = "everywhere"
        verbose_name = _("media folder")
        verbose_name_plural = _("media folder")
