"""Maps the bodies of known senders if the source has no mapping.

Each preset is a mapping that a person could have written; `docs/guides/webhook-sources.md` shows how.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.base import Note
from pipeline.sources.webhook.expressions import Budget, ExpressionFailed, compile_expression

if TYPE_CHECKING:
    from collections.abc import Mapping

GITHUB_EVENT: Final = "x-github-event"


@dataclass(frozen=True)
class Preset:
    """The mapping of a known sender.

    `condition` is an expression that must hold for the body; `event` is the name in GitHub's header, empty
    for other senders.
    """

    name: str
    condition: str
    mapping: Mapping[str, str]
    event: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)


PRESETS: Final = (
    Preset(
        "github_release",
        "release && (action == 'published' || action == 'edited') && !(release.draft)",
        {
            "external_id": "join(':', ['github', 'release', to_string(release.id)])",
            "url": "release.html_url",
            "title": "join(' ', [repository.full_name, not_null(release.name, release.tag_name)])",
            "body": "release.body",
            "author": "release.author.login",
            "published_at": "release.published_at",
            "metadata": "{repository: repository.full_name, tag: release.tag_name, prerelease: release.prerelease}",
        },
        event="release",
        defaults={"body_format": "markdown"},
    ),
    Preset(
        "github_discussion",
        "discussion && (action == 'created' || action == 'edited')",
        {
            "external_id": "join(':', ['github', 'discussion', to_string(discussion.id)])",
            "url": "discussion.html_url",
            "title": "discussion.title",
            "body": "discussion.body",
            "author": "discussion.user.login",
            "published_at": "discussion.created_at",
            "metadata": "{repository: repository.full_name, category: discussion.category.name}",
        },
        event="discussion",
        defaults={"body_format": "markdown"},
    ),
    Preset(
        "ghost_post",
        "post.current.status == 'published'",
        {
            "external_id": "post.current.id",
            "url": "post.current.url",
            "title": "post.current.title",
            "body": "post.current.html",
            "author": "post.current.primary_author.name",
            "published_at": "post.current.published_at",
            "media": "post.current.feature_image",
            "tags": "post.current.tags[].name",
        },
        defaults={"body_format": "html"},
    ),
    Preset(
        "slack_message",
        "type == 'event_callback' && event.type == 'message' && !(event.bot_id)"
        " && (!(event.subtype) || event.subtype == 'file_share' || event.subtype == 'message_changed')",
        {
            "external_id": "join(':', ['slack', event.channel, not_null(event.message.ts, event.ts)])",
            "body": "event.message.text || event.text",
            "author": "event.message.user || event.user",
            "published_at": "not_null(event.message.ts, event.ts)",
            "metadata": "{team: team_id, channel: event.channel}",
        },
        defaults={"body_format": "text"},
    ),
    Preset(
        "standard_webhooks",
        "timestamp && type && (data.title || data.body || data.url)",
        {
            "external_id": "data.external_id",
            "url": "data.url",
            "title": "data.title",
            "body": "data.body",
            "author": "data.author",
            "language": "data.language",
            "published_at": "data.published_at",
            "media": "data.media",
            "tags": "data.tags",
            "metadata": "data.metadata",
        },
    ),
)


def preset_for(payload: Mapping[str, Any], headers: Mapping[str, str], budget: Budget) -> Preset | None:
    """Return the preset whose condition holds for the body, or `None` if there is none."""
    event = headers.get(GITHUB_EVENT, "")
    for preset in PRESETS:
        if preset.event == event and _holds(preset.condition, payload, budget):
            return preset
    return None


def why_ignored(payload: Mapping[str, Any], headers: Mapping[str, str]) -> Note | None:
    """Return why a known sender's body makes no item, or `None` for a body of another sender."""
    event = headers.get(GITHUB_EVENT, "")
    if event:
        event_name = f"{event[:40]} {str(payload.get('action') or '')[:40]}".strip()
        return _ignored(f"GitHub's event `{event_name}` makes nothing without a mapping.")
    if payload.get("type") == "event_callback" and isinstance(payload.get("event"), dict):
        inner = payload["event"]
        event_name = f"{inner.get('type') or ''} {inner.get('subtype') or ''}".strip()[:80]
        return _ignored(f"Slack's event `{event_name}` makes nothing without a mapping.")
    if isinstance(payload.get("post") or payload.get("page"), dict) and "current" in (
        payload.get("post") or payload.get("page") or {}
    ):
        event_name = str(payload.get("event") or "of something that isn't published")[:80]
        return _ignored(f"Ghost's event `{event_name}` makes nothing without a mapping.")
    return None


def _ignored(message: str) -> Note:
    """Return the note on a body that is ignored."""
    return Note("no_preset", message)


def _holds(condition: str, payload: Mapping[str, Any], budget: Budget) -> bool:
    """Return whether JMESPath takes the condition's value for true.

    All values are true but null, false, and empty texts, lists and objects. A condition that fails is false.
    Raises `TooCostly` if it exceeds the budget.
    """
    try:
        value = compile_expression(condition).evaluate(payload, budget)
    except ExpressionFailed:
        return False
    return not (value is None or value is False or value in ("", [], {}))
