"""Short links, and the counts of their clicks and of fetches of feeds."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.tenancy import WorkspaceRow
from config.core.clock import utc_now


class ShortLink(WorkspaceRow):
    """An address of the service that counts clicks and redirects to the `target` of a publication's link."""

    code = models.CharField(max_length=16, unique=True)
    publication = models.ForeignKey(
        "pipeline.Publication", on_delete=models.CASCADE, related_name="short_links"
    )
    target = models.TextField()
    created_at = models.DateTimeField(default=utc_now)

    class Meta(WorkspaceRow.Meta):
        db_table = "short_link"
        indexes: ClassVar = [models.Index(fields=["workspace"], name="short_link_of_workspace")]


class HitKind(models.TextChoices):
    CLICK = "click", _("Click")
    FETCH = "fetch", _("Fetch")


class HitCount(WorkspaceRow):
    """How often a link was followed or a feed fetched in a quarter of an hour; nothing about visitors."""

    kind = models.CharField(max_length=5, choices=HitKind)
    test = models.BooleanField(default=False)
    key = models.UUIDField()
    """The id of the publication for a click, of the outlet for a fetch."""
    start = models.DateTimeField()
    """The start of the quarter of an hour."""
    outlet = models.ForeignKey("pipeline.Outlet", on_delete=models.CASCADE, related_name="+", db_index=False)
    publication = models.ForeignKey(
        "pipeline.Publication", null=True, on_delete=models.CASCADE, related_name="hit_counts"
    )
    count = models.PositiveIntegerField()

    class Meta(WorkspaceRow.Meta):
        db_table = "hit_count"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["key", "kind", "start"], name="hit_count_once")
        ]
        indexes: ClassVar = [
            models.Index(fields=["workspace", "test", "start"], name="hit_count_read"),  # GET /analytics
            models.Index(fields=["outlet"], name="hit_count_of_outlet"),
            models.Index(fields=["start"], name="hit_count_forget"),
        ]
