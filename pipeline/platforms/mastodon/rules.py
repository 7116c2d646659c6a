"""What a Mastodon server takes of one post, and how it counts.

Usual limits: docs.joinmastodon.org/entities/Instance and /user/posting; how it counts: app/validators of
mastodon/mastodon (read 2026-11-20). What a server says of itself takes their place.
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

CHARACTERS: Final = 500
CHARACTERS_OF_A_LINK: Final = 23
MOST_PARTS: Final = 50
"""Of a thread; the server names no limit, but takes 300 calls in five minutes."""

_IMAGES: Final = MediaRule(
    ("image/jpeg", "image/png", "image/gif", "image/webp"),
    most=4,
    max_bytes=16_777_216,
    max_pixels=33_177_600,
    alt_max=1500,
)
_VIDEO: Final = MediaRule(
    ("video/mp4", "video/webm", "video/quicktime"),
    most=1,
    max_bytes=103_809_024,
    max_pixels=8_294_400,
    alt_max=1500,
)


@cache
def _mention() -> regex.Pattern[str]:
    return regex.compile(r"(?<![=/:\w])@(\w+(?:[\w.-]+\w+)?)@\w+(?:[.-]+\w+)*")


def without_domains(text: str) -> str:
    """The text with `@name` for `@name@elsewhere.example`, as it is counted and shown."""
    return _mention().sub(r"@\1", text)


def counter(of_a_link: int, warning: str) -> Callable[[str], int]:
    """A content warning counts with each post that it stands before."""
    of_warning = graphemes(warning)

    def plain(text: str) -> int:
        return graphemes(without_domains(text))

    with_links = with_links_at(of_a_link, plain)
    return lambda text: with_links(text) + of_warning


_TEXT: Final = BucketRule(
    CHARACTERS, count=counter(CHARACTERS_OF_A_LINK, ""), parts_most=MOST_PARTS, images=_IMAGES
)
RULES: Final[Mapping[Bucket, BucketRule]] = {
    "text": _TEXT,
    "image": replace(_TEXT, needs_text=False, needs="image"),
    "video": replace(_TEXT, needs_text=False, needs="video", images=None, video=_VIDEO),
}


def rule_of(bucket: Bucket, limits: Mapping[str, Any], warning: str) -> BucketRule | None:
    """The usual rule with what the account's own server says of itself, as far as it does."""
    rule = RULES.get(bucket)
    if rule is None:
        return None

    def number(name: str, usual: int) -> int:
        value = limits.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else usual

    return replace(
        rule,
        text_max=number("max_characters", CHARACTERS),
        count=counter(number("characters_reserved_per_url", CHARACTERS_OF_A_LINK), warning),
        images=rule.images and _media(rule.images, "image", limits, number),
        video=rule.video and _media(rule.video, "video", limits, number),
    )


def _media(
    rule: MediaRule, kind: str, limits: Mapping[str, Any], number: Callable[[str, int], int]
) -> MediaRule:
    types = limits.get("supported_mime_types")
    named = (
        tuple(one for one in types if isinstance(one, str) and one.startswith(f"{kind}/"))
        if isinstance(types, list)
        else ()
    )
    most = rule.most if kind == "video" else number("max_media_attachments", rule.most)
    return replace(
        rule,
        mime_types=named or rule.mime_types,
        most=most,
        max_bytes=number(f"{kind}_size_limit", rule.max_bytes),
        max_pixels=number(f"{kind}_matrix_limit", rule.max_pixels or 0),
        alt_max=number("description_limit", rule.alt_max or 0),
    )


def limits_in(instance: Mapping[str, Any]) -> dict[str, Any]:
    """The limits in an instance's description, of either version, in the server's own names."""
    found: dict[str, Any] = {}
    configuration = instance.get("configuration")
    for group in ("statuses", "media_attachments"):
        values = configuration.get(group) if isinstance(configuration, dict) else None
        for name, value in values.items() if isinstance(values, dict) else ():
            if isinstance(value, int | list):
                found[str(name)] = value
    # Pleroma and older servers say it beside.
    most = instance.get("max_toot_chars")
    if isinstance(most, int):
        found.setdefault("max_characters", most)
    return found
