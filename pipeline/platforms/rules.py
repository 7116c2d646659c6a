"""A platform's limits for one bucket, as data, how it counts, and what a payload breaks of them; no network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import regex

from pipeline.plugins import Problem
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.platforms.payload_types import Adapted, PayloadAsset

MEBIBYTE = 1024 * 1024


@cache
def _grapheme() -> regex.Pattern[str]:
    return regex.compile(r"\X")


def graphemes(text: str) -> int:
    """Extended grapheme clusters (Unicode, UAX 29): what people see as one sign."""
    return sum(1 for _ in _grapheme().finditer(text))


def utf16_units(text: str) -> int:
    """Units of UTF-16, as JavaScript, Telegram and TikTok count: 2 for everything beyond the basic plane."""
    return len(text) + sum(1 for sign in text if ord(sign) > 0xFFFF)


def utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def with_links_at(weight: int, count: Callable[[str], int]) -> Callable[[str], int]:
    """`count`, but each address that has a scheme weighs `weight`, however long it is."""

    def counted(text: str) -> int:
        total, position = 0, 0
        for link in find_links(text):
            if not link.has_scheme:
                continue
            total += count(text[position : link.start]) + weight
            position = link.end
        return total + count(text[position:])

    return counted


@dataclass(frozen=True)
class MediaRule:
    """What a platform takes of one kind of file: bytes, pixels, seconds; None where it names no limit."""

    mime_types: tuple[str, ...]
    most: int
    max_bytes: int
    max_pixels: int | None = None
    max_side: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    ratio: tuple[float, float] | None = None
    """Least and greatest width ÷ height."""
    alt_max: int | None = None
    """Characters of the alt text."""


@dataclass(frozen=True)
class BucketRule:
    """What one post of a bucket may be. `count` gives the length of a text in `unit`s, as the platform counts."""

    text_max: int | None
    count: Callable[[str], int] = len
    unit: str = "characters"
    text_max_bytes: int | None = None
    needs_text: bool = True
    title_max: int | None = None
    needs_title: bool = False
    parts_most: int = 1
    """Posts of a thread."""
    images: MediaRule | None = None
    video: MediaRule | None = None
    needs: str = ""
    """`image` or `video`: a post of this bucket is none without one."""


def problems_of(rule: BucketRule, adapted: Adapted) -> list[Problem]:
    """Everything for which the platform would refuse it, each with what to change."""
    payload = adapted.payload
    problems = _of_words(rule, adapted)
    images = images_of(payload.assets)
    videos = [one for one in payload.assets if one.mime_type.startswith("video/")]
    if rule.needs == "image" and not images:
        problems.append(Problem("assets", "no_image", "A post of this kind needs an image."))
    if rule.needs == "video" and not videos:
        problems.append(Problem("assets", "no_video", "A post of this kind needs a video."))
    for found, media in ((images, rule.images), (videos, rule.video)):
        if media is not None:
            problems += _of_media(media, found)
    return problems


UNSEEN = frozenset({"thumbnail", "alternative"})
"""Roles of pictures that aren't posted: one belongs to its video, one says the same as another in another size."""


def images_of(assets: tuple[PayloadAsset, ...]) -> list[PayloadAsset]:
    """The pictures that are shown."""
    return [one for one in assets if one.mime_type.startswith("image/") and one.role not in UNSEEN]


def unshown_files(rule: BucketRule, assets: tuple[PayloadAsset, ...]) -> list[PayloadAsset]:
    """The files that a post of this bucket doesn't show, without those that nobody would miss."""
    shown = [kind for kind, media in (("image/", rule.images), ("video/", rule.video)) if media is not None]
    return [one for one in assets if one.role not in UNSEEN and not one.mime_type.startswith(tuple(shown))]


def too_long(field: str, count: int, limit: int, unit: str) -> Problem:
    message = f"It has {count} {unit}; {limit} are the most here. Shorten it for this outlet."
    return Problem(field, "too_long", message)


def _of_words(rule: BucketRule, adapted: Adapted) -> list[Problem]:
    problems = []
    title = adapted.payload.title.strip()
    if rule.needs_title and not title:
        problems.append(Problem("title", "required", "A post of this kind needs a title."))
    if rule.title_max is not None and len(title) > rule.title_max:
        problems.append(too_long("title", len(title), rule.title_max, "characters"))
    if rule.needs_text and not any(part.strip() for part in adapted.parts):
        problems.append(Problem("body", "empty", "There are no words to publish."))
    if len(adapted.parts) > rule.parts_most:
        message = f"It has {len(adapted.parts)} posts; {rule.parts_most} are the most here."
        problems.append(Problem("content.parts", "too_many_parts", message))
    for index, part in enumerate(adapted.parts):
        field = "body" if len(adapted.parts) == 1 else f"content.parts[{index}]"
        if len(adapted.parts) > 1 and not part.strip():
            problems.append(Problem(field, "empty_part", "This post of the thread has no words."))
        count = rule.count(part)
        size = len(part.encode("utf-8", "surrogatepass"))
        if rule.text_max is not None and count > rule.text_max:
            problems.append(too_long(field, count, rule.text_max, rule.unit))
        elif rule.text_max_bytes is not None and size > rule.text_max_bytes:
            problems.append(too_long(field, size, rule.text_max_bytes, "bytes"))
    return problems


def _of_media(rule: MediaRule, files: list[PayloadAsset]) -> list[Problem]:
    problems = []
    if len(files) > rule.most:
        message = f"It has {len(files)} files of this kind; {rule.most} are the most here."
        problems.append(Problem("assets", "too_many_files", message))
    for index, one in enumerate(files):
        problems += [
            Problem(f"assets[{index}]", code, message) for code, message in _of_file(rule, one) if message
        ]
    return problems


def _of_file(rule: MediaRule, one: PayloadAsset) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def refuse(code: str, *, when: bool, message: str) -> None:
        if when:
            found.append((code, message))

    takes = ", ".join(rule.mime_types)
    refuse(
        "type_not_taken",
        when=one.mime_type not in rule.mime_types,
        message=f"{one.mime_type} isn't taken here; {takes} are.",
    )
    refuse(
        "file_too_large",
        when=one.bytes > rule.max_bytes,
        message=f"The file has {one.bytes:,} bytes; {rule.max_bytes:,} are the most here.",
    )
    seconds = one.duration
    if seconds is not None:
        refuse(
            "too_short",
            when=rule.min_seconds is not None and seconds < rule.min_seconds,
            message=f"It lasts {seconds:g} s; {rule.min_seconds:g} s are the least here."
            if rule.min_seconds
            else "",
        )
        refuse(
            "too_long",
            when=rule.max_seconds is not None and seconds > rule.max_seconds,
            message=f"It lasts {seconds:g} s; {rule.max_seconds:g} s are the most here."
            if rule.max_seconds
            else "",
        )
    found += _of_size(rule, one)
    if rule.alt_max is not None:
        refuse(
            "alt_text_too_long",
            when=len(one.alt_text) > rule.alt_max,
            message=f"The alt text has {len(one.alt_text)} characters; {rule.alt_max} are the most here.",
        )
    return found


def _of_size(rule: MediaRule, one: PayloadAsset) -> list[tuple[str, str]]:
    if not one.width or not one.height:
        return []
    found = []
    pixels, longest, ratio = one.width * one.height, max(one.width, one.height), one.width / one.height
    if rule.max_pixels is not None and pixels > rule.max_pixels:
        found.append(("too_many_pixels", f"It has {pixels:,} pixels; {rule.max_pixels:,} are the most here."))
    if rule.max_side is not None and longest > rule.max_side:
        found.append(
            ("too_large", f"Its longer side has {longest} pixels; {rule.max_side} are the most here.")
        )
    if rule.ratio is not None and not rule.ratio[0] <= ratio <= rule.ratio[1]:
        least, greatest = rule.ratio
        message = f"Its width is {ratio:.2f} times its height; between {least:.2f} and {greatest:.2f} is taken here."
        found.append(("wrong_ratio", message))
    return found


def as_json(rule: BucketRule) -> dict[str, Any]:
    """As `GET /v1/outlets` shows it."""
    return {
        "text": {"max": rule.text_max, "unit": rule.unit},
        "title": {"max": rule.title_max},
        "parts": rule.parts_most,
        "images": _media_as_json(rule.images),
        "video": _media_as_json(rule.video),
    }


def _media_as_json(rule: MediaRule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    return {
        "max": rule.most,
        "mime_types": list(rule.mime_types),
        "max_bytes": rule.max_bytes,
        "max_seconds": rule.max_seconds,
    }
