"""Files that people and programs hand over, and what uses each of them."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now
from pipeline.models.generated_item import unguessable


class UploadKind(models.TextChoices):
    """What a file is, by its bytes."""

    IMAGE = "image", _("Image")
    AUDIO = "audio", _("Audio")
    VIDEO = "video", _("Video")
    TEXT = "text", _("Text")


class Upload(WorkspaceRow):
    """A file that was handed over. Until something uses it, it is kept to `expires_at`; what is used has none."""

    test = models.BooleanField(default=False)
    kind = models.CharField(max_length=10, choices=UploadKind)
    mime_type = models.CharField(max_length=60)
    name = models.CharField(max_length=120, blank=True)
    """What the sender called it: shown to people, trusted for nothing."""
    path = models.CharField(max_length=300)
    secret = models.CharField(max_length=32, unique=True, default=unguessable)
    bytes = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    width = models.PositiveIntegerField(null=True)
    height = models.PositiveIntegerField(null=True)
    seconds = models.FloatField(null=True)
    """How long a sound or video is; unknown of those that came before this was kept."""
    created_by = models.CharField(max_length=200, blank=True)
    expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "upload"
        indexes: ClassVar = [
            # What nobody uses: how much of a workspace, and what is to be forgotten.
            models.Index(
                fields=["workspace", "expires_at"],
                name="upload_unused",
                condition=models.Q(expires_at__isnull=False),
            ),
            models.Index(
                fields=["expires_at"],
                name="upload_forgotten",
                condition=models.Q(expires_at__isnull=False),
            ),
        ]


class UploadUse(WorkspaceRow):
    """One thing that needs an upload: a raw item, or a persona for its portrait."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE, related_name="uses")
    raw_item = models.ForeignKey(
        "pipeline.RawItem", null=True, on_delete=models.CASCADE, related_name="upload_uses"
    )
    persona = models.ForeignKey("pipeline.Persona", null=True, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "upload_use"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(raw_item__isnull=False) ^ models.Q(persona__isnull=False),
                name="upload_use_of_one",
            )
        ]
