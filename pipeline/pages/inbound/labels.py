"""What people read about deliveries to a webhook source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from pipeline.models import InboundDeliveryStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

Text = str | Promise


@dataclass(frozen=True)
class Result:
    tone: str
    icon: str
    label: Text


_LOOKS: Final[Mapping[str, tuple[str, str]]] = {
    "received": ("", "clock"),
    "taken": ("good", "circle-check"),
    "duplicate": ("info", "copy"),
    "ignored": ("", "info"),
    "failed": ("bad", "circle-alert"),
    "refused": ("warn", "lock"),
}
RESULTS: Final = {value: Result(*_LOOKS[value], label) for value, label in InboundDeliveryStatus.choices}
FIELDS: Final[Mapping[str, Text]] = {
    "title": _("Title"),
    "body": _("Body"),
    "url": _("Address"),
    "external_id": _("The sender’s own id"),
    "author": _("Author"),
    "published_at": _("Published at"),
    "language": _("Language"),
    "media": _("Media"),
    "tags": _("Tags"),
    "metadata": _("Metadata"),
    "body_format": _("Format of the body"),
}
