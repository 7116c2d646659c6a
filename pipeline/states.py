"""Defines the moves between the statuses of each model, groups of statuses, and `derive_status`.

A table maps each status to the statuses that may follow it; `states.move` refuses every other move. A
generated item is moved up to `ready`, `rejected` and `failed`; its publishing statuses are derived from its
publications.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SOURCE: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"paused", "failing", "gone"}),
    # Only a person pauses a source, or resumes it.
    "paused": frozenset({"active"}),
    "failing": frozenset({"active", "paused", "gone"}),
    # A gone source that a person switches on again is polled at once.
    "gone": frozenset({"active", "paused"}),
}

RAW_ITEM: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"processing", "processed", "failed", "waiting_quota"}),
    "processing": frozenset({"processed", "failed"}),
    "waiting_quota": frozenset({"queued", "skipped"}),
    # It was retried, or was revised with content from which something can be generated.
    "processed": frozenset({"queued", "waiting_quota"}),
    "failed": frozenset({"queued", "waiting_quota"}),
    "skipped": frozenset({"queued", "waiting_quota"}),
}

GENERATION: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"running", "failed"}),
    "running": frozenset({"done", "failed"}),
    "done": frozenset(),
    "failed": frozenset(),
}

GENERATED_ITEM: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"generating", "failed"}),
    "generating": frozenset({"ready", "failed"}),
    "failed": frozenset({"queued", "generating"}),
    "ready": frozenset({"rejected", "generating"}),
    "rejected": frozenset({"ready"}),
    # From here on the status is derived; nothing moves it.
    "scheduled": frozenset(),
    "publishing": frozenset(),
    "published": frozenset(),
    "partially_published": frozenset(),
    "publish_failed": frozenset(),
    "removed": frozenset(),
}

PUBLICATION: Final[Mapping[str, frozenset[str]]] = {
    # It becomes unknown after a restore, because nobody knows what was sent after the backup.
    # It becomes published, also from failed, if the platform answers a call that was given up.
    "scheduled": frozenset({"publishing", "failed", "cancelled", "unknown", "published"}),
    "publishing": frozenset({"published", "scheduled", "failed", "unknown"}),
    "unknown": frozenset({"published", "scheduled", "failed"}),
    "published": frozenset({"removed"}),
    "failed": frozenset({"scheduled", "cancelled", "published"}),
    "cancelled": frozenset(),
    "removed": frozenset(),
}

ATTEMPT: Final[Mapping[str, frozenset[str]]] = {
    "started": frozenset({"succeeded", "failed", "unknown"}),
    "unknown": frozenset({"succeeded", "failed"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
}

OUTLET: Final[Mapping[str, frozenset[str]]] = {
    "ok": frozenset({"needs_reconnect", "disabled"}),
    "needs_reconnect": frozenset({"ok", "disabled"}),
    "disabled": frozenset({"ok"}),
}

# A hub may verify late, or again; an ended subscription starts again with the next poll.
WEBSUB_SUBSCRIPTION: Final[Mapping[str, frozenset[str]]] = {
    "wanted": frozenset({"asked", "active", "denied", "wanted", "ended"}),
    "asked": frozenset({"active", "wanted", "denied", "ended"}),
    "active": frozenset({"active", "renewing", "wanted", "denied", "ended"}),
    "renewing": frozenset({"active", "wanted", "denied", "ended"}),
    "denied": frozenset({"wanted", "asked", "ended"}),
    "ended": frozenset({"wanted"}),
}

_SETTLED: Final = frozenset({"taken", "duplicate", "ignored", "failed"})
"""Statuses of an inbound delivery that was processed.

A replay processes it again with the present mapping; one that failed its verification can't be replayed.
"""
INBOUND_DELIVERY: Final[Mapping[str, frozenset[str]]] = {
    "received": _SETTLED | {"refused"},
    **{status: _SETTLED - {status} for status in sorted(_SETTLED)},
    "refused": frozenset(),
}

BRAND_SLOT: Final[Mapping[str, frozenset[str]]] = {
    "waiting": frozenset({"picked", "empty", "skipped", "waiting_quota"}),
    "waiting_quota": frozenset({"picked", "empty", "skipped", "waiting"}),
    "picked": frozenset(),
    "empty": frozenset(),
    "skipped": frozenset(),
}

PERSONA_DRAFT: Final[Mapping[str, frozenset[str]]] = {
    "queued": frozenset({"running", "failed"}),
    "running": frozenset({"done", "failed"}),
    "done": frozenset(),
    "failed": frozenset({"queued"}),
}

SUBSCRIBER: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"active", "unsubscribed", "bounced", "complained"}),
    "active": frozenset({"unsubscribed", "bounced", "complained"}),
    # A person may undo unsubscribing on the page; after a bounce or complaint they must sign up again.
    "unsubscribed": frozenset({"active", "pending"}),
    "bounced": frozenset({"pending"}),
    "complained": frozenset({"pending"}),
}

MAILING: Final[Mapping[str, frozenset[str]]] = {
    "spreading": frozenset({"sending", "stopped"}),
    "sending": frozenset({"done", "stopped"}),
    # A resumed mailing first creates the missing deliveries. If its item is erased the mailing is done, so that
    # nobody can resume it.
    "stopped": frozenset({"spreading", "done"}),
    "done": frozenset(),
}

MAIL_DELIVERY: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"sending", "failed", "skipped"}),
    # It is pending again only if the server said that it didn't accept the mail, or never got the mail's end.
    "sending": frozenset({"sent", "pending", "failed", "unknown"}),
    "sent": frozenset(),
    "failed": frozenset(),
    # The server's answer came when another task had taken the row over.
    "unknown": frozenset({"sent"}),
    "skipped": frozenset(),
}

# A sent batch is sending again if the one that was found in the service's list turned out to be another one.
MODEL_BATCH: Final[Mapping[str, frozenset[str]]] = {
    "waiting": frozenset({"sending", "ended"}),
    "sending": frozenset({"sent", "ended"}),
    "sent": frozenset({"ended", "sending"}),
    "ended": frozenset(),
}

RECURRENCE: Final[Mapping[str, frozenset[str]]] = {
    "active": frozenset({"stopped"}),
    "stopped": frozenset({"active"}),
}

for _model, _table in {
    "pipeline.Source": SOURCE,
    "pipeline.RawItem": RAW_ITEM,
    "pipeline.Generation": GENERATION,
    "pipeline.GeneratedItem": GENERATED_ITEM,
    "pipeline.Publication": PUBLICATION,
    "pipeline.Attempt": ATTEMPT,
    "pipeline.Outlet": OUTLET,
    "pipeline.WebSubSubscription": WEBSUB_SUBSCRIPTION,
    "pipeline.InboundDelivery": INBOUND_DELIVERY,
    "pipeline.BrandSlot": BRAND_SLOT,
    "pipeline.PersonaDraft": PERSONA_DRAFT,
    "pipeline.ModelBatch": MODEL_BATCH,
    "pipeline.Recurrence": RECURRENCE,
    "pipeline.Subscriber": SUBSCRIBER,
    "pipeline.Mailing": MAILING,
    "pipeline.MailDelivery": MAIL_DELIVERY,
}.items():
    states.register(_model, _table)

POLLED_SOURCES: Final = frozenset({"active", "failing"})
"""Statuses of a source that is polled; a failing one is retried automatically."""
OPEN_RUNS: Final = frozenset({"queued", "running"})
"""Statuses of a generation that hasn't ended."""
OPEN_DRAFTS: Final = frozenset({"queued", "running"})
"""Statuses of a persona draft that hasn't ended."""
OPEN_SLOTS: Final = frozenset({"waiting", "waiting_quota"})
"""Statuses of a brand slot for which nothing is chosen yet; each lane has one such slot."""
PUBLISHABLE_ITEMS: Final = frozenset(
    {"ready", "scheduled", "publishing", "published", "partially_published", "publish_failed", "removed"}
)
"""Statuses of an item that may be published on a further outlet."""
EDITABLE_ITEMS: Final = frozenset({"ready", "scheduled", "partially_published", "publish_failed"})
"""Statuses in which an item may be edited: some of it may still be sent, and nothing is being sent."""
ITEMS_IN_MAKING: Final = frozenset({"queued", "generating"})
"""Statuses of an item that has no content yet."""
OPEN_PUBLICATIONS: Final = frozenset({"scheduled", "publishing", "unknown"})
"""Statuses of a publication that may still be published."""
UNSENT_PUBLICATIONS: Final = frozenset({"scheduled", "publishing"})
"""Statuses of a publication that the platform hasn't confirmed."""
PUBLICATIONS_IN_FLIGHT: Final = frozenset({"publishing", "unknown"})
"""Statuses of a publication that the platform may have received."""
WANTED_SUBSCRIBERS: Final = frozenset({"active", "pending"})
"""Statuses of a subscriber who is on the list, or may yet confirm."""
ENDED_SUBSCRIPTIONS: Final = frozenset({"ended", "denied"})
"""Statuses of a WebSub subscription for which no hub sends anything."""


_DERIVATION_RULES: Final[tuple[tuple[str, Callable[[frozenset[str]], bool]], ...]] = (
    ("ready", lambda statuses: not statuses),
    ("publishing", lambda statuses: bool(statuses & {"publishing", "unknown"})),
    ("scheduled", lambda statuses: "scheduled" in statuses),
    ("published", lambda statuses: statuses == {"published"}),
    ("partially_published", lambda statuses: "published" in statuses),
    ("publish_failed", lambda statuses: "failed" in statuses),
    ("removed", lambda statuses: "removed" in statuses),
)
"""An item's statuses with their conditions on the publications' statuses; the first that holds decides."""


def derive_status(publications: Iterable[str]) -> str:
    """Return an item's status from those of its publications, of which cancelled ones don't count."""
    statuses = frozenset(publications) - {"cancelled"}
    return next(status for status, holds in _DERIVATION_RULES if holds(statuses))
