"""What people read about deliveries to a webhook source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from collections.abc import Mapping

Text = str | Promise


@dataclass(frozen=True)
class Result:
    tone: str
    icon: str
    label: Text


RESULTS: Final[Mapping[str, Result]] = {
    "received": Result("", "clock", _("Received")),
    "taken": Result("good", "circle-check", _("Taken in")),
    "duplicate": Result("info", "copy", _("There already")),
    "ignored": Result("", "info", _("Ignored")),
    "failed": Result("bad", "circle-alert", _("Made nothing")),
    "refused": Result("warn", "lock", _("Not verified")),
}
PROOFS: Final[Mapping[str, Text]] = {
    "address": _("Whoever knows the address"),
    "header": _("A secret in a header"),
    "bearer": _("A bearer token"),
    "standard_webhooks": _("Standard Webhooks"),
    "github": _("GitHub’s signature"),
    "slack": _("Slack’s signature"),
    "stripe": _("Stripe’s signature"),
    "ghost": _("Ghost’s signature"),
}
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
