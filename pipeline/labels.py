"""Defines the badges of statuses, by model, and the labels of other values that pages show.

A badge has the label of the model's choice, unless pages need another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from pipeline.models import (
    BrandPickDecision,
    BrandSlotStatus,
    GeneratedItemStatus,
    GenerationStage,
    InboundDeliveryStatus,
    MailingStatus,
    PublicationStatus,
    PublicationStep,
    RecurrenceDecision,
    SeriesIssueDecision,
    SourceEntryDecision,
    SubscriberStatus,
)
from pipeline.models.raw_item import PASTED_PREFIX, UPLOADED_PREFIX
from pipeline.text.bucket_traits import TRAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import TextChoices
    from django.utils.functional import _StrOrPromise, _StrPromise

    from pipeline.models import GeneratedItem


class Badge(NamedTuple):
    """`tone` is a class of `static/css/app.css`, `icon` a file of `static/icons/`; either may be empty."""

    tone: str
    icon: str
    label: _StrOrPromise


class HealthBadge(NamedTuple):
    """A badge with a sentence about the reason, or about what to do."""

    tone: str
    icon: str
    label: str
    sentence: str


def _badges(
    choices: type[TextChoices], tones: Mapping[str, str], icons: Mapping[str, str] | None = None
) -> Mapping[str, Badge]:
    """Return a badge for each choice; a choice without an icon has an empty one."""
    return {value: Badge(tones[value], (icons or {}).get(value, ""), text) for value, text in choices.choices}


NO_BADGE: Final = Badge("", "", "")

# --- Formats ---------------------------------------------------------------------------------------------------------

FORMATS: Final[Mapping[str, _StrPromise]] = {
    "short_post": gettext_lazy("One idea with a link, at most 280 characters"),
    "thread": gettext_lazy("Three to eight short posts in a row"),
    "linkedin_post": gettext_lazy("One point in short paragraphs, up to 1,500 characters"),
    "persona_tweet": gettext_lazy("A picture of a post by the persona"),
    "quote_graphic": gettext_lazy("A picture with one sentence of the source"),
    "carousel": gettext_lazy("Four to ten slides, as pictures and a PDF"),
    "template_short": gettext_lazy("A silent video of 6 to 20 seconds: title, three points, end card"),
    "persona_short": gettext_lazy("A video of 20 to 45 seconds in which the persona tells the story"),
    "clipped_short": gettext_lazy("One passage cut from your video, upright, with captions"),
    "composite_short": gettext_lazy("A video of 20 to 60 seconds, told over your own clips and pictures"),
    "blog_article": gettext_lazy("An article of 700 to 1,400 words with headings and a picture"),
    "newsletter_issue": gettext_lazy("One story as a mail with a subject and a link"),
    "newsletter_digest": gettext_lazy("Three to seven stories in one mail"),
}
"""One line about the content that an engine makes, by its kind; engines of installed plug-ins have none."""

# --- Generated items -------------------------------------------------------------------------------------------------

ANGLES: Final[Mapping[str, _StrPromise]] = {
    "number": gettext_lazy("number"),
    "contrast": gettext_lazy("contrast"),
    "question": gettext_lazy("question"),
    "story": gettext_lazy("story"),
    "how-to": gettext_lazy("how-to"),
    "myth": gettext_lazy("myth"),
    "warning": gettext_lazy("warning"),
}
SPREADING: Final = frozenset({"publishing", "scheduled", "partially_published"})
"""Statuses of an item that may be published on some of its outlets and not yet on others."""
GENERATED_ITEMS: Final = _badges(
    GeneratedItemStatus,
    {
        "queued": "info",
        "generating": "info",
        "ready": "good",
        "failed": "bad",
        "rejected": "",
        "scheduled": "info",
        "publishing": "info",
        "published": "good",
        "partially_published": "warn",
        "publish_failed": "bad",
        "removed": "",
    },
    {
        "queued": "clock",
        "generating": "zap",
        "ready": "circle-check",
        "failed": "circle-alert",
        "rejected": "x",
        "scheduled": "calendar",
        "publishing": "send",
        "published": "circle-check",
        "partially_published": "circle-alert",
        "publish_failed": "circle-alert",
        "removed": "x",
    },
)
TO_REVIEW: Final = Badge("", "inbox", gettext_lazy("To review"))
HELD: Final = Badge("warn", "circle-pause", gettext_lazy("On hold"))
APPROVED: Final = Badge("good", "check", gettext_lazy("Approved"))
"""The badges of ready items: without a decision, on hold, and approved."""
EDITED_SINCE: Final = Badge("warn", "pencil", gettext_lazy("Edited since approval"))
"""Replaces `APPROVED` if an item is about to be scheduled and its newest revision isn't approved."""


def of_status(status: str, *, is_approved: bool, is_held: bool) -> Badge:
    """Return the badge of an item's status; that of a ready item is on hold, approved or to review."""
    if status != GeneratedItemStatus.READY:
        return GENERATED_ITEMS[status]
    return HELD if is_held else APPROVED if is_approved else TO_REVIEW


def of_item(item: GeneratedItem) -> Badge:
    """Return the badge of an item, with the percentage while its video is rendered."""
    badge = of_status(item.status, is_approved=item.is_approved, is_held=bool(item.held))
    percent = item.generation.progress if item.status == GeneratedItemStatus.GENERATING else 0
    return badge._replace(label=_("Generating: %(percent)s %%") % {"percent": percent}) if percent else badge


def of_promise(item: GeneratedItem) -> Badge:
    """Return the badge of an item that is about to be scheduled: only its newest revision's approval counts."""
    is_edited_since = item.is_approved and not item.is_approved_as_it_is
    return EDITED_SINCE if is_edited_since else of_item(item)


def of_spread(badge: Badge, status: str, spread: Mapping[str, int]) -> Badge:
    """Return the badge of an item whose outlets differ, or `badge`.

    `spread` is the number of its publications by status, from `publications.count_by_status`.
    """
    published_count, count = spread.get("published", 0), sum(spread.values())
    needs_action = any(spread.get(name) for name in ("failed", "unknown", "by_hand"))
    if status in SPREADING and 0 < published_count < count:
        tone, icon = ("warn", "circle-alert") if needs_action else (badge.tone, badge.icon)
        return Badge(
            tone, icon, _("Published to %(out)d of %(count)d") % {"out": published_count, "count": count}
        )
    if status == GeneratedItemStatus.PUBLISHING and not spread.get("publishing") and needs_action:
        label = POST_MANUALLY.label if spread.get("by_hand") else PUBLICATIONS["unknown"].label
        return Badge("warn", "circle-alert", label)
    return badge


HOLDS: Final[Mapping[str, _StrPromise]] = {
    "approval_stale": gettext_lazy("Edited after approval. Approve it again."),
    "source_changed": gettext_lazy("Source changed. Check it, then approve."),
    "source_withdrawn": gettext_lazy("Source withdrawn. Approve to publish anyway."),
    "instructions_in_source": gettext_lazy(
        "Possible prompt injection in the source. Check it, then approve."
    ),
}
"""Why an item is on hold, by the reason's code."""

FLAGS: Final[Mapping[str, _StrPromise]] = {
    "source_changed": gettext_lazy(
        "Source edited after publishing. Compare, correct the post if needed, then approve to clear this notice."
    ),
    "source_withdrawn": gettext_lazy(
        "Source withdrawn after publishing. Decide whether to delete the post. This notice clears if the source lists it "
        "again."
    ),
}
"""The advice about a published item whose source has changed, by the reason's code."""
HOLDS_AT_RELEASE: Final[Mapping[str, _StrPromise]] = {
    "approval_stale": gettext_lazy("Edited after approval. Approve to publish."),
    "source_changed": gettext_lazy("Source changed. Approve to publish."),
    "source_withdrawn": gettext_lazy("Source withdrawn. Approve to publish."),
    "instructions_in_source": gettext_lazy(
        "Possible prompt injection in the source. Check it, then approve."
    ),
}
"""`HOLDS` for the list of publications that are sent when a workspace's hold ends."""
BUCKET_ICONS: Final[Mapping[str, str]] = {bucket: traits.icon for bucket, traits in TRAITS.items()}
BUCKETS: Final[Mapping[str, _StrPromise]] = {
    bucket: gettext_lazy(traits.plural) for bucket, traits in TRAITS.items()
}
"""The plural names of the buckets."""
STAGES: Final[Mapping[str, _StrPromise]] = {
    GenerationStage.BRIEF: gettext_lazy("Reading source"),
    GenerationStage.DRAFT: gettext_lazy("Writing"),
    GenerationStage.RENDER: gettext_lazy("Rendering"),
    GenerationStage.WRITE: gettext_lazy("Assembling"),
}
"""The label of a run, by its stage."""
CHECKS: Final[Mapping[str, _StrPromise]] = {
    "numbers": gettext_lazy("Numbers"),
    "quotations": gettext_lazy("Quotations"),
    "names": gettext_lazy("Names"),
    "claims": gettext_lazy("Claims"),
    "content": gettext_lazy("Content"),
    "length": gettext_lazy("Length"),
    "characters": gettext_lazy("Characters"),
    "link_origin": gettext_lazy("Links"),
    "link_count": gettext_lazy("Number of links"),
    "hashtags": gettext_lazy("Hashtags"),
    "mentions": gettext_lazy("Mentions"),
    "contacts": gettext_lazy("Contacts"),
    "instructions": gettext_lazy("Prompt injection"),
    "thread_mark": gettext_lazy("Thread marker"),
    "banned_words": gettext_lazy("Banned words"),
    "repetition": gettext_lazy("Repetition"),
    "portrait": gettext_lazy("Portrait"),
    "photo": gettext_lazy("Photo"),
    "film": gettext_lazy("Film"),
    "derived": gettext_lazy("Derived numbers"),
    "attribution": gettext_lazy("Attribution"),
    "support": gettext_lazy("Statements"),
    "language": gettext_lazy("Language"),
    "gate_persona": gettext_lazy("Autopilot: persona"),
    "gate_facts": gettext_lazy("Autopilot: facts"),
    "gate_platform": gettext_lazy("Autopilot: format"),
    "gate_safety": gettext_lazy("Autopilot: safety"),
}
"""The names of checks, by code."""

# --- Publications ----------------------------------------------------------------------------------------------------

PUBLICATIONS: Final = _badges(
    PublicationStatus,
    {
        "scheduled": "info",
        "publishing": "info",
        "published": "good",
        "failed": "bad",
        "unknown": "warn",
        "cancelled": "",
        "removed": "",
    },
)
POST_MANUALLY: Final = Badge("warn", "", gettext_lazy("Post manually"))
"""The badge of a publication that a person has to post."""


def of_publication(status: str, step: str) -> Badge:
    """Return the badge of a publication; one that was handed over to a person isn't being published."""
    is_by_hand = status == PublicationStatus.PUBLISHING and step == PublicationStep.BY_HAND
    return POST_MANUALLY if is_by_hand else PUBLICATIONS[status]


ATTEMPTS: Final[Mapping[str, Badge]] = {
    "started": PUBLICATIONS["publishing"],
    "succeeded": PUBLICATIONS["published"],
    "failed": PUBLICATIONS["failed"],
    "unknown": PUBLICATIONS["unknown"],
}
"""An attempt has the badge of a publication in the corresponding status."""
CALENDAR: Final[Mapping[str, Badge]] = {
    "scheduled": Badge("", "", gettext_lazy("Scheduled")),
    "publishing": Badge("info", "", gettext_lazy("Publishing")),
    "published": Badge("good", "", gettext_lazy("Published")),
    "failed": Badge("bad", "", gettext_lazy("Failed")),
    "unknown": Badge("warn", "", gettext_lazy("Unknown")),
    "held": Badge("warn", "", gettext_lazy("On hold")),
    "late": Badge("warn", "", gettext_lazy("Late")),
}
"""The badges of publications in the calendar, whose cards are narrow."""


def of_calendar(status: str, step: str, *, is_held: bool, is_late: bool) -> Badge:
    """Return the badge of a publication in the calendar."""
    badge = of_publication(status, step)
    return badge if badge is POST_MANUALLY else CALENDAR["held" if is_held else "late" if is_late else status]


AT_RELEASE: Final[Mapping[str, Badge]] = {
    "publishes": Badge("info", "", gettext_lazy("Publishes now")),
    "waits": Badge("", "", gettext_lazy("At its time")),
    "next_slot": Badge("warn", "", gettext_lazy("Moves to next slot")),
    "held": Badge("warn", "", gettext_lazy("Stays unpublished")),
}
"""The effect of the end of a workspace's hold on a publication, by `ComingPublication.what`."""
FAILURE_CLASSES: Final[Mapping[str, Badge]] = {
    "retry": Badge("warn", "", gettext_lazy("Retrying")),
    "account": Badge("bad", "", gettext_lazy("Account")),
    "content": Badge("bad", "", gettext_lazy("Content")),
    "unknown": Badge("warn", "", gettext_lazy("Unknown")),
}
"""The badge of a failure, by its `class`."""

# --- The rest --------------------------------------------------------------------------------------------------------

SOURCE_ENTRIES: Final = _badges(
    SourceEntryDecision,
    {
        "new": "good",
        "revised": "info",
        "unchanged": "",
        "withdrawn": "warn",
        "too_old": "",
        "over_burst": "warn",
        "before_first_poll": "",
        "filtered": "",
        "malformed": "bad",
    },
)
INBOUND_DELIVERIES: Final = _badges(
    InboundDeliveryStatus,
    {"received": "", "taken": "good", "duplicate": "info", "ignored": "", "failed": "bad", "refused": "warn"},
    {
        "received": "clock",
        "taken": "circle-check",
        "duplicate": "copy",
        "ignored": "info",
        "failed": "circle-alert",
        "refused": "lock",
    },
)
BRAND_SLOTS: Final = _badges(
    BrandSlotStatus,
    {"waiting": "info", "waiting_quota": "warn", "picked": "good", "empty": "warn", "skipped": ""},
)
BRAND_PICKS: Final = _badges(
    BrandPickDecision, {"taken": "info", "used": "good", "too_near": "warn", "failed": "bad"}
)
SERIES_ISSUES: Final = _badges(SeriesIssueDecision, {"made": "good", "too_few": "warn", "no_credits": "bad"})
RECURRENCE_TURNS: Final = _badges(
    RecurrenceDecision,
    {"made": "good", "still_waiting": "warn", "source_paused": "warn", "no_credits": "bad"},
)
SUBSCRIBERS: Final = _badges(
    SubscriberStatus,
    {"active": "good", "pending": "", "unsubscribed": "", "bounced": "warn", "complained": "bad"},
)
MAILINGS: Final = _badges(
    MailingStatus, {"spreading": "accent", "sending": "accent", "stopped": "warn", "done": "good"}
)
DASHBOARD: Final[Mapping[str, Badge]] = {
    "queued": Badge("", "", gettext_lazy("Queued")),
    "processing": Badge("info", "", gettext_lazy("Generating")),
    "waiting_quota": Badge("warn", "", gettext_lazy("Waiting for credits")),
    "skipped": Badge("", "", gettext_lazy("Skipped")),
    "failed": Badge("bad", "", gettext_lazy("Failed")),
    "deleted": Badge("", "", gettext_lazy("Deleted")),
    "unknown": Badge("warn", "", gettext_lazy("Outcome unknown")),
    "publishing": Badge("info", "", gettext_lazy("Publishing")),
    "failing": Badge("warn", "", gettext_lazy("Failing")),
    "gone": Badge("bad", "", gettext_lazy("Gone")),
}
"""The badges of the first page, for all models; a status that the heading names already has none."""


def origin_of(source_name: str, external_id: str, *, is_push: bool) -> str:
    """Return the name of a raw item's source, or the way in which a person made it at Create."""
    if not is_push or not external_id.startswith(PASTED_PREFIX):
        return source_name
    return str(_("Uploaded") if external_id.startswith(UPLOADED_PREFIX) else _("Pasted"))


def origin_of_row(row: Mapping[str, Any]) -> str:
    """Return `origin_of` for a row of items with these columns; empty if the item has no source."""
    external_id, is_push = row["raw_item__external_id"] or "", bool(row["source__is_push"])
    return origin_of(row["source__name"] or "", external_id, is_push=is_push)


def source_name_of(name: str, *, is_push: bool) -> str:
    """Return the name of a source; the push source, which also serves Create, has a fixed name."""
    return str(_("Create and API")) if is_push else name
