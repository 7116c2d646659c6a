"""Defines what a Mastodon server accepts in one post, and how it counts.

The default limits are those of docs.joinmastodon.org/entities/Instance and /user/posting, the counting that of
app/validators of mastodon/mastodon (read 2026-11-20). The limits that a server states replace them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import regex

from pipeline.platforms.rules import BucketRule, MediaRule, graphemes, with_links_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.engines.base import Bucket

DEFAULT_MAX_CHARACTERS: Final = 500
DEFAULT_LINK_CHARACTERS: Final = 23
MAX_THREAD_POSTS: Final = 50
"""Our own limit: the server names none of a thread, but takes only 300 calls in five minutes."""

_IMAGES_RULE: Final = MediaRule(
    ("image/jpeg", "image/png", "image/gif", "image/webp"),
    most=4,
    max_bytes=16_777_216,
    max_pixels=33_177_600,
    alt_max=1500,
)
_VIDEO_RULE: Final = MediaRule(
    ("video/mp4", "video/webm", "video/quicktime"),
    most=1,
    max_bytes=103_809_024,
    max_pixels=8_294_400,
    alt_max=1500,
)


@cache
def _mention_pattern() -> regex.Pattern[str]:
    return regex.compile(r"(?<![=/:\w])@(\w+(?:[\w.-]+\w+)?)@\w+(?:[.-]+\w+)*")


def without_domains(text: str) -> str:
    """Return the text with `@name` for `@name@elsewhere.example`, as it is counted and shown."""
    return _mention_pattern().sub(r"@\1", text)


def make_counter(link_characters: int, warning: str) -> Callable[[str], int]:
    """Return a function that counts a post's characters with its content warning, each link as `link_characters`."""
    warning_length = graphemes(warning)

    def count_plain(text: str) -> int:
        return graphemes(without_domains(text))

    count_with_links = with_links_at(link_characters, count_plain)
    return lambda text: count_with_links(text) + warning_length


_TEXT_RULE: Final = BucketRule(
    DEFAULT_MAX_CHARACTERS,
    count=make_counter(DEFAULT_LINK_CHARACTERS, ""),
    parts_most=MAX_THREAD_POSTS,
    images=_IMAGES_RULE,
)
RULES: Final[Mapping[Bucket, BucketRule]] = {
    "text": _TEXT_RULE,
    "image": replace(_TEXT_RULE, needs_text=False, needs="image"),
    "video": replace(_TEXT_RULE, needs_text=False, needs="video", images=None, video=_VIDEO_RULE),
}


def rule_of(bucket: Bucket, limits: Mapping[str, Any], warning: str) -> BucketRule | None:
    """Return the default rule of a bucket with the limits that the account's server states, or `None` without one."""
    rule = RULES.get(bucket)
    if rule is None:
        return None

    def limit_or(name: str, default: int) -> int:
        value = limits.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default

    return replace(
        rule,
        text_max=limit_or("max_characters", DEFAULT_MAX_CHARACTERS),
        count=make_counter(limit_or("characters_reserved_per_url", DEFAULT_LINK_CHARACTERS), warning),
        images=rule.images and _media_rule(rule.images, "image", limits, limit_or),
        video=rule.video and _media_rule(rule.video, "video", limits, limit_or),
    )


def _media_rule(
    rule: MediaRule, kind: str, limits: Mapping[str, Any], limit_or: Callable[[str, int], int]
) -> MediaRule:
    """Return the rule for one kind of file, `image` or `video`, with the limits that the server states."""
    types = limits.get("supported_mime_types")
    stated_types = (
        tuple(name for name in types if isinstance(name, str) and name.startswith(f"{kind}/"))
        if isinstance(types, list)
        else ()
    )
    max_files = rule.most if kind == "video" else limit_or("max_media_attachments", rule.most)
    return replace(
        rule,
        mime_types=stated_types or rule.mime_types,
        most=max_files,
        max_bytes=limit_or(f"{kind}_size_limit", rule.max_bytes),
        max_pixels=limit_or(f"{kind}_matrix_limit", rule.max_pixels or 0),
        alt_max=limit_or("description_limit", rule.alt_max or 0),
    )


def limits_in(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits in an instance's description of either version, by the server's names."""
    limits: dict[str, Any] = {}
    configuration = instance.get("configuration")
    for group in ("statuses", "media_attachments"):
        values = configuration.get(group) if isinstance(configuration, dict) else None
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, int | list):
                limits[str(name)] = value
    # Pleroma and older servers state this limit at the top level.
    max_characters = instance.get("max_toot_chars")
    if isinstance(max_characters, int):
        limits.setdefault("max_characters", max_characters)
    return limits
