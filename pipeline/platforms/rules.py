"""Defines a platform's limits for a bucket and the ways to count, and finds the limits that a payload breaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import regex

from pipeline.plugins import Problem
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.platforms.payload_types import Adapted, Payload, PayloadAsset

MEBIBYTE = 1024 * 1024


@cache
def _grapheme_pattern() -> regex.Pattern[str]:
    return regex.compile(r"\X")


def graphemes(text: str) -> int:
    """Count extended grapheme clusters (Unicode, UAX 29): what people see as one character."""
    return sum(1 for _ in _grapheme_pattern().finditer(text))


def utf16_units(text: str) -> int:
    """Count UTF-16 units, as JavaScript, Telegram and TikTok do: 2 for a character beyond the basic plane."""
    return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)


def utf8_bytes(text: str) -> int:
    """Count bytes of UTF-8; a lone surrogate counts as 3."""
    return len(text.encode("utf-8", "surrogatepass"))


def with_links_at(weight: int, count: Callable[[str], int]) -> Callable[[str], int]:
    """Return `count` changed so that each address with a scheme weighs `weight`, however long it is."""

    def count_weighted(text: str) -> int:
        total, counted_to = 0, 0
        for link in find_links(text):
            if not link.has_scheme:
                continue
            total += count(text[counted_to : link.start]) + weight
            counted_to = link.end
        return total + count(text[counted_to:])

    return count_weighted


@dataclass(frozen=True)
class MediaRule:
    """The files of one kind that a platform accepts: bytes, pixels, seconds; `None` is no limit."""

    mime_types: tuple[str, ...]
    most: int
    """The most files of one post."""
    max_bytes: int
    max_pixels: int | None = None
    max_side: int | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    ratio: tuple[float, float] | None = None
    """The least and greatest width ÷ height."""
    alt_max: int | None = None
    """The most characters of an alt text."""


@dataclass(frozen=True)
class BucketRule:
    """The limits of a post of one bucket; `None` is no limit.

    `count` returns the length of a text in `unit`s, as the platform counts. `title_max` is in characters.
    """

    text_max: int | None
    count: Callable[[str], int] = len
    unit: str = "characters"
    text_max_bytes: int | None = None
    needs_text: bool = True
    title_max: int | None = None
    needs_title: bool = False
    parts_most: int = 1
    """The most posts of a thread."""
    images: MediaRule | None = None
    video: MediaRule | None = None
    needs: str = ""
    """`image` or `video` if a post of this bucket must have one, or an empty string."""


def problems_of(rule: BucketRule, adapted: Adapted) -> list[Problem]:
    """Return a problem for each limit that the post breaks."""
    payload = adapted.payload
    problems = _text_problems(rule, adapted)
    images = images_of(payload.assets)
    videos = [file for file in payload.assets if file.mime_type.startswith("video/")]
    if rule.needs == "image" and not images:
        problems.append(Problem("assets", "no_image", "A post of this kind needs an image."))
    if rule.needs == "video" and not videos:
        problems.append(Problem("assets", "no_video", "A post of this kind needs a video."))
    for files, media in ((images, rule.images), (videos, rule.video)):
        if media is not None:
            problems += _media_problems(media, files)
    return problems


HIDDEN_ROLES = frozenset({"thumbnail", "alternative"})
"""The roles of pictures that aren't posted: a video's thumbnail, and the same picture in another size."""


def find_empty(payload: Payload) -> tuple[Problem, ...]:
    """Return the problem of a post without title, text and files, or none."""
    if payload.title.strip() or payload.body.strip() or payload.assets:
        return ()
    return (Problem("body", "empty", "There is nothing to publish: no title, no words, no file."),)


def images_of(assets: tuple[PayloadAsset, ...]) -> list[PayloadAsset]:
    """Return the pictures that are shown."""
    return [file for file in assets if file.mime_type.startswith("image/") and file.role not in HIDDEN_ROLES]


def unshown_files(rule: BucketRule, assets: tuple[PayloadAsset, ...]) -> list[PayloadAsset]:
    """Return the files that a post of this bucket doesn't show, except those of `HIDDEN_ROLES`."""
    kinds = (("image/", rule.images), ("video/", rule.video))
    shown_prefixes = tuple(prefix for prefix, media in kinds if media is not None)
    return [
        file
        for file in assets
        if file.role not in HIDDEN_ROLES and not file.mime_type.startswith(shown_prefixes)
    ]


def too_long(field: str, count: int, limit: int, unit: str) -> Problem:
    """Return the problem of a field that is too long."""
    message = f"It has {count} {unit}; the maximum here is {limit}. Shorten it for this outlet."
    return Problem(field, "too_long", message)


def _text_problems(rule: BucketRule, adapted: Adapted) -> list[Problem]:
    """Return the problems of title, texts and number of parts."""
    problems = []
    title = adapted.payload.title.strip()
    if rule.needs_title and not title:
        problems.append(Problem("title", "required", "A post of this kind needs a title."))
    if rule.title_max is not None and len(title) > rule.title_max:
        problems.append(too_long("title", len(title), rule.title_max, "characters"))
    if rule.needs_text and not any(part.strip() for part in adapted.parts):
        problems.append(Problem("body", "empty", "There are no words to publish."))
    if len(adapted.parts) > rule.parts_most:
        message = f"It has {len(adapted.parts)} posts; the maximum here is {rule.parts_most}."
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


def _media_problems(rule: MediaRule, files: list[PayloadAsset]) -> list[Problem]:
    """Return the problems of the files of one kind."""
    problems = []
    if len(files) > rule.most:
        message = f"It has {len(files)} files of this kind; the maximum here is {rule.most}."
        problems.append(Problem("assets", "too_many_files", message))
    for index, file in enumerate(files):
        problems += [
            Problem(f"assets[{index}]", code, message)
            for code, message in _file_problems(rule, file)
            if message
        ]
    return problems


def _file_problems(rule: MediaRule, file: PayloadAsset) -> list[tuple[str, str]]:
    """Return the code and message of each limit that the file breaks."""
    problems: list[tuple[str, str]] = []

    def refuse(code: str, *, when: bool, message: str) -> None:
        if when:
            problems.append((code, message))

    accepted_types = ", ".join(rule.mime_types)
    refuse(
        "type_not_taken",
        when=file.mime_type not in rule.mime_types,
        message=f"{file.mime_type} isn't taken here; {accepted_types} are.",
    )
    refuse(
        "file_too_large",
        when=file.bytes > rule.max_bytes,
        message=f"The file has {file.bytes:,} bytes; the maximum here is {rule.max_bytes:,}.",
    )
    seconds = file.duration
    if seconds is not None:
        refuse(
            "too_short",
            when=rule.min_seconds is not None and seconds < rule.min_seconds,
            message=f"It lasts {seconds:g} s; the minimum here is {rule.min_seconds:g} s."
            if rule.min_seconds
            else "",
        )
        refuse(
            "too_long",
            when=rule.max_seconds is not None and seconds > rule.max_seconds,
            message=f"It lasts {seconds:g} s; the maximum here is {rule.max_seconds:g} s."
            if rule.max_seconds
            else "",
        )
    problems += _size_problems(rule, file)
    if rule.alt_max is not None:
        refuse(
            "alt_text_too_long",
            when=len(file.alt_text) > rule.alt_max,
            message=f"The alt text has {len(file.alt_text)} characters; the maximum here is {rule.alt_max}.",
        )
    return problems


def _size_problems(rule: MediaRule, file: PayloadAsset) -> list[tuple[str, str]]:
    """Return the code and message of each limit in pixels that the file breaks, or none if its size isn't known."""
    if not file.width or not file.height:
        return []
    problems = []
    pixels, longest, ratio = file.width * file.height, max(file.width, file.height), file.width / file.height
    if rule.max_pixels is not None and pixels > rule.max_pixels:
        problems.append(
            ("too_many_pixels", f"It has {pixels:,} pixels; the maximum here is {rule.max_pixels:,}.")
        )
    if rule.max_side is not None and longest > rule.max_side:
        problems.append(
            ("too_large", f"Its longer side has {longest} pixels; the maximum here is {rule.max_side}.")
        )
    if rule.ratio is not None and not rule.ratio[0] <= ratio <= rule.ratio[1]:
        narrowest, widest = rule.ratio
        message = f"Its width is {ratio:.2f} times its height; between {narrowest:.2f} and {widest:.2f} is taken here."
        problems.append(("wrong_ratio", message))
    return problems


def as_json(rule: BucketRule) -> dict[str, Any]:
    """Return the rule as `GET /v1/outlets` shows it."""
    return {
        "text": {"max": rule.text_max, "unit": rule.unit},
        "title": {"max": rule.title_max},
        "parts": rule.parts_most,
        "images": _media_rule_as_json(rule.images),
        "video": _media_rule_as_json(rule.video),
    }


def _media_rule_as_json(rule: MediaRule | None) -> dict[str, Any] | None:
    """Return the rule of one kind of file as JSON, or `None` if it isn't accepted."""
    if rule is None:
        return None
    return {
        "max": rule.most,
        "mime_types": list(rule.mime_types),
        "max_bytes": rule.max_bytes,
        "max_seconds": rule.max_seconds,
    }
