"""The choices of generated items and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Bucket(models.TextChoices):
    """The kind of content that an engine makes and that an outlet takes."""

    VIDEO = "video", _("Video")
    IMAGE = "image", _("Image")
    TEXT = "text", _("Text")
    BLOG = "blog", _("Article")
    NEWSLETTER = "newsletter", _("Newsletter")


def bucket_choices() -> list[tuple[str, _StrPromise]]:
    """Return the choices of a column that holds a bucket.

    Migrations name this function and not the buckets, so that a new bucket needs no migration.
    """
    return Bucket.choices


class BodyFormat(models.TextChoices):
    TEXT = "text", _("Text")
    MARKDOWN = "markdown", _("Markdown")
    HTML = "html", _("HTML")


class GeneratedItemStatus(models.TextChoices):
    QUEUED = "queued", _("Queued")
    GENERATING = "generating", _("Generating")
    READY = "ready", _("To review or approved")
    FAILED = "failed", _("Failed")
    REJECTED = "rejected", _("Rejected")
    SCHEDULED = "scheduled", _("Scheduled")
    PUBLISHING = "publishing", _("Publishing")
    PUBLISHED = "published", _("Published")
    PARTIALLY_PUBLISHED = "partially_published", _("Partly published")
    PUBLISH_FAILED = "publish_failed", _("Publishing failed")
    REMOVED = "removed", _("Removed")


class HoldReason(models.TextChoices):
    """Why nothing of an item is sent though it is due."""

    APPROVAL_STALE = "approval_stale", _("Edited after approval")
    SOURCE_CHANGED = "source_changed", _("Source changed")
    SOURCE_WITHDRAWN = "source_withdrawn", _("Source withdrawn")
    INSTRUCTIONS_IN_SOURCE = "instructions_in_source", _("Prompt injection")


class FlagReason(models.TextChoices):
    """The change of an item's source after the item was published."""

    SOURCE_CHANGED = "source_changed", _("Source changed")
    SOURCE_WITHDRAWN = "source_withdrawn", _("Source withdrawn")


class Angle(models.TextChoices):
    NUMBER = "number", _("a number")
    CONTRAST = "contrast", _("a contrast")
    QUESTION = "question", _("a question")
    STORY = "story", _("a story")
    HOW_TO = "how-to", _("a how-to")
    MYTH = "myth", _("a myth")
    WARNING = "warning", _("a warning")


class AssetKind(models.TextChoices):
    IMAGE = "image", _("Image")
    VIDEO = "video", _("Video")
    AUDIO = "audio", _("Audio")
    DOCUMENT = "document", _("Document")
