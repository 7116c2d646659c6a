"""Labels endpoints and deliveries for people: events, states, outcomes, times."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from pipeline.events import TYPES
from webhooks.models import EVERY_EVENT, DeliveryStatus, EndpointStatus

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from django.utils.safestring import SafeString

    from webhooks.models import Delivery, Endpoint

Text = str | Promise

EVENTS: Final[Mapping[str, Text]] = {
    "raw.ingested": gettext_lazy("A new raw item entered the queue."),
    "generated.ready": gettext_lazy("A variant is ready for review; once per item."),
    "published.success": gettext_lazy("The item was published on one outlet."),
    "published.failed": gettext_lazy("One attempt failed; it says whether another follows."),
    "raw.failed": gettext_lazy("Nothing could be made from a raw item."),
    "raw.skipped": gettext_lazy(
        "A raw item is stored but nothing is made from it; its reason says why. A new one emits this "
        "instead of raw.ingested."
    ),
    "generated.failed": gettext_lazy("A variant failed; the error says why."),
    "engine.skipped": gettext_lazy("A requested format can't be made from a raw item; its reason says why."),
    "source.failing": gettext_lazy("A source could not be read several times in a row, or is gone."),
    "outlet.needs_reconnect": gettext_lazy("An outlet's permission has expired."),
    "published.overdue": gettext_lazy(
        "A publication is still waiting 15 minutes after its scheduled time. Sent once per scheduled time."
    ),
}
"""Each type of event with a sentence about it."""
_SOON: Final = timedelta(seconds=30)
"""A page polls a delivery that is retried within this time."""
_STUCK_AFTER: Final = timedelta(seconds=30)
"""How long a delivery may be due before its page says that no worker takes it."""


@dataclass(frozen=True)
class DeliveryOutcome:
    """A delivery's status for people, with the badge's tone and icon."""

    tone: str
    icon: str
    label: str
    is_under_way: bool = False
    """Whether it is being sent, is due, or waits for its first attempt."""
    is_live: bool = False
    """Whether something will change within seconds, so that the page polls."""
    is_stuck: bool = False
    """Whether no worker has taken it for `_STUCK_AFTER`."""


def outcome_of(delivery: Delivery, *, now: datetime) -> DeliveryOutcome:
    """Return the delivery's outcome at `now`."""
    if delivery.status == DeliveryStatus.DELIVERED:
        return DeliveryOutcome("good", "circle-check", _("Delivered"))
    if delivery.status == DeliveryStatus.FAILED:
        return DeliveryOutcome("bad", "circle-alert", _("Failed"))
    if delivery.status == DeliveryStatus.HELD:
        return DeliveryOutcome("", "circle-pause", _("Held"))
    # `attempts` is above 0 from the claim until the result is written.
    is_claimed = delivery.attempts > 0
    is_due = delivery.wake_at is not None and delivery.wake_at <= now
    if is_claimed or is_due or delivery.attempt_count == 0:
        due_at = delivery.due_at or delivery.created_at
        is_stuck = not is_claimed and now - due_at > _STUCK_AFTER
        return DeliveryOutcome(
            "info", "send", _("Sending"), is_under_way=True, is_live=True, is_stuck=is_stuck
        )
    is_soon = delivery.wake_at is not None and delivery.wake_at - now < _SOON
    return DeliveryOutcome("warn", "rotate-cw", _("Retrying"), is_live=is_soon)


def state_of(endpoint: Endpoint) -> str:
    """Return the endpoint's state as a name that templates translate.

    It is `paused` by a person, `disabled` by the service, `failing`, `active`, or `new` before the first success.
    """
    if not endpoint.is_on:
        return "paused"
    if endpoint.status == EndpointStatus.DISABLED:
        return "disabled"
    if endpoint.failures:
        return "failing"
    return "active" if endpoint.last_success_at else "new"


def events_of(endpoint: Endpoint) -> str:
    """Return which events the endpoint gets, in short."""
    if not endpoint.events:
        return _("Default events")
    if EVERY_EVENT in endpoint.events:
        return _("All events")
    count = len(endpoint.events)
    if count <= 2:
        return ", ".join(endpoint.events)
    return ngettext("%(count)d event", "%(count)d events", count) % {"count": count}


def types_of(endpoint: Endpoint) -> list[str]:
    """Return the types of events that the endpoint gets."""
    if not endpoint.events:
        return [name for name, is_default in TYPES.items() if is_default]
    return list(TYPES) if EVERY_EVENT in endpoint.events else list(endpoint.events)


def name_of(endpoint: Endpoint) -> str:
    return endpoint.description or endpoint.address


def status_line(code: int | None) -> str:
    """Return the status with its name, such as `404 Not Found`, or an empty text without an answer."""
    if code is None:
        return ""
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def format_exact_time(moment: datetime, zone: str) -> SafeString:
    """Return the time in HTML, with seconds: the first attempts are seconds apart."""
    local = moment.astimezone(ZoneInfo(zone))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        f"{local:%Y-%m-%d %H:%M:%S} {zone}",
        f"{local.day} {local:%b %Y, %H:%M:%S}",
    )


def format_duration(milliseconds: int | None) -> str:
    """Return the duration as text, or an empty text for `None`."""
    if milliseconds is None:
        return ""
    if milliseconds < 1000:
        return _("%(count)d ms") % {"count": milliseconds}
    return _("%(count).1f s") % {"count": milliseconds / 1000}
