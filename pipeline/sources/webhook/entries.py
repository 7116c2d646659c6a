"""From a body to an entry: by the source's mapping, by a preset, or by the fields' own names.

A bridge's body is its own affair. What can be used is used, what can't is left out and said; only a body that gives
neither title nor words nor address nor file makes nothing.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from config.core.api.nearest import nearest
from pipeline import limits
from pipeline.sources.base import Entry, EntryMedia, Note
from pipeline.sources.config_fields import WebAddress
from pipeline.sources.webhook.expressions import Budget, ExpressionFailed, TooCostly, compiled
from pipeline.sources.webhook.presets import GITHUB_EVENT, preset_for, why_ignored

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGETS: Final = (
    "external_id",
    "url",
    "title",
    "body",
    "body_format",
    "author",
    "language",
    "published_at",
    "media",
    "tags",
    "metadata",
)
"""The fields of a raw item that a body can fill; `tags` are kept in its `metadata`."""
_SAYS_SOMETHING: Final = ("body", "media", "title", "url")
_OWN_NAMES: Final = frozenset(TARGETS)
_NAMED_MOST: Final = 10
"""Fields that are told not to be read."""
BODY_FORMATS: Final = ("text", "markdown", "html")
AUTHOR_CHARACTERS: Final = 200
TAGS_MOST: Final = 30
TAG_CHARACTERS: Final = 100
_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_NUMBER: Final = re.compile(r"[0-9]{9,13}(\.[0-9]{1,9})?")
_ADDRESS: Final = WebAddress("an absolute http:// or https:// address")
_NUL: Final = "\\u0000"
_LAST_SECOND: Final = 253_402_300_799


@dataclass(frozen=True)
class MappedBody:
    """What a body makes. Without an entry, `ignored` or `failed` says why; `by` names the preset that was used."""

    entry: Entry | None = None
    notes: tuple[Note, ...] = ()
    by: str = ""
    ignored: Note | None = None
    failed: Note | None = None


def read(payload: Mapping[str, Any], headers: Mapping[str, str], config: Mapping[str, Any]) -> MappedBody:
    """`headers` has lower-case names. Never raises for what was sent."""
    budget = Budget()
    try:
        return _read(payload, headers, config, budget)
    except TooCostly as error:
        return MappedBody(failed=Note("mapping_too_costly", str(error)))


def _read(
    payload: Mapping[str, Any], headers: Mapping[str, str], config: Mapping[str, Any], budget: Budget
) -> MappedBody:
    if headers.get(GITHUB_EVENT) == "ping":
        return MappedBody(ignored=Note("ping", "GitHub asked whether somebody is there."))
    mapping, defaults, by = config.get("mapping", {}), dict(config.get("defaults", {})), ""
    notes: list[Note] = []
    if mapping:
        found = _mapped(payload, mapping, budget, notes)
    else:
        preset = preset_for(payload, headers, budget)
        if preset is not None:
            found, by = _mapped(payload, preset.mapping, budget, notes), preset.name
            defaults = {**preset.defaults, **defaults}
        else:
            ignored = None if _OWN_NAMES.intersection(payload) else why_ignored(payload, headers)
            if ignored:
                return MappedBody(ignored=ignored)
            found = _by_names(payload, notes)
    fields = {**defaults, **{name: value for name, value in found.items() if has_content(value)}}
    entry = entry_of(fields, notes)
    # What a default says alone is no item: each body that gave nothing would make the same one.
    if not any(has_content(found.get(name)) for name in _SAYS_SOMETHING) or not (
        entry.title or entry.body or entry.url or entry.media
    ):
        message = "It gives none of title, body, url and media; look at what was sent and at the mapping."
        if not mapping and not by:
            message += _mapping_for(payload)
        return MappedBody(notes=tuple(notes), by=by, failed=Note("nothing_found", message))
    if not (entry.title or entry.body or entry.media):
        message = (
            "An address alone isn't fetched here. Send the page's words as body; or let a source of the type scraper "
            "read the address."
        )
        return MappedBody(notes=tuple(notes), by=by, failed=Note("address_alone", message))
    return MappedBody(entry, tuple(notes), by)


def _by_names(payload: Mapping[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The fields under their own names, or under those that other services have for them; the rest is told."""
    found = {name: payload[name] for name in TARGETS if payload.get(name) is not None}
    taken = {own: theirs for own, theirs in _meant_by(payload).items() if own not in found}
    found |= {own: payload[theirs] for own, theirs in taken.items()}
    notes += [Note("read_as", f"{theirs} is read as {own}.") for own, theirs in taken.items()]
    unread = [name for name in payload if name not in _OWN_NAMES and name not in taken.values()]
    if unread:
        named = ", ".join(name[:40] for name in unread[:_NAMED_MOST])
        more = f" and {len(unread) - _NAMED_MOST} more" if len(unread) > _NAMED_MOST else ""
        notes.append(Note("not_read", f"Not read: {named}{more}. A mapping can read them."))
    return found


def _meant_by(payload: Mapping[str, Any]) -> dict[str, str]:
    """By our names of what says something, the names of the texts in `payload` that mean it; the longest of several."""
    meant: dict[str, str] = {}
    for name, value in payload.items():
        own = nearest(name, _SAYS_SOMETHING) if isinstance(value, str) and value.strip() else None
        is_other = own and name not in _OWN_NAMES and re.fullmatch(r"[A-Za-z_]{1,40}", name)
        if own and is_other and len(value) > len(payload.get(meant.get(own, ""), "")):
            meant[own] = name
    return meant


def _mapping_for(payload: Mapping[str, Any]) -> str:
    """The mapping for a body whose fields stand within an object, or within the first of a list; empty for another."""
    for name, value in payload.items():
        inner = value[0] if isinstance(value, list) and value else value
        if not isinstance(inner, dict) or not re.fullmatch(r"[A-Za-z_]{1,40}", name):
            continue
        found = {own: own for own in _SAYS_SOMETHING if has_content(inner.get(own))}
        meant = {**_meant_by(inner), **found}
        if meant:
            before = f"{name}[0]" if isinstance(value, list) else name
            mapping = {own: f"{before}.{theirs}" for own, theirs in meant.items()}
            return f" Give the source {json.dumps({'config': {'mapping': mapping}})}."
    return ""


def _mapped(
    payload: Mapping[str, Any], mapping: Mapping[str, str], budget: Budget, notes: list[Note]
) -> dict[str, Any]:
    found = {}
    for name, expression in mapping.items():
        try:
            found[name] = compiled(expression.strip()).of(payload, budget)
        except ExpressionFailed as error:
            notes.append(Note("mapping_does_not_fit", f"{name}: {error}"))
    return found


def has_content(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def entry_of(fields: Mapping[str, Any], notes: list[Note]) -> Entry:
    """The fields as they will be kept; what can't be is left out, with a note."""
    text = {
        name: _text(fields.get(name), name, notes)
        for name in ("external_id", "url", "title", "body", "body_format", "author", "language")
    }
    metadata = _metadata(fields.get("metadata"), notes)
    tags = _tags(fields.get("tags"), notes)
    if tags:
        metadata = {**metadata, "tags": tags}
    return Entry(
        external_id=_clipped(
            text["external_id"].strip(), "external_id", limits.EXTERNAL_ID_CHARACTERS, notes
        ),
        url=_address(text["url"], "url", notes),
        title=_clipped(text["title"], "title", limits.TITLE_CHARACTERS, notes),
        body=text["body"],
        body_format=_format(text["body_format"], notes),
        author=_clipped(text["author"], "author", AUTHOR_CHARACTERS, notes),
        language=_language(text["language"], notes),
        published_at=_moment(fields.get("published_at"), notes),
        media=_media(fields.get("media"), notes),
        metadata=_small(metadata, notes),
    )


def _left_out(notes: list[Note], name: str, why: str) -> None:
    notes.append(Note("left_out", f"{name} is left out: {why}"))


def _text(value: Any, name: str, notes: list[Note]) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        # No database holds them; half a pair can come from a function that cuts texts.
        return value.replace("\x00", "").encode(errors="replace").decode()
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        _left_out(notes, name, "it isn't text.")
        return ""
    return str(value)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        # A whole number with more digits than a float can hold.
        return False


def _clipped(value: str, name: str, most: int, notes: list[Note]) -> str:
    if len(value) > most:
        notes.append(Note("cut", f"{name} is cut to {most} characters."))
    return value[:most]


def _address(value: str, name: str, notes: list[Note]) -> str:
    if not value.strip():
        return ""
    stored, problems = _ADDRESS.read(value, name)
    if problems:
        _left_out(notes, name, problems[0].message)
        return ""
    return str(stored)


def _format(value: str, notes: list[Note]) -> str:
    if value and value not in BODY_FORMATS:
        _left_out(notes, "body_format", f"it is one of {', '.join(BODY_FORMATS)}.")
        return ""
    return value


def _language(value: str, notes: list[Note]) -> str:
    value = value.strip().replace("_", "-")
    if value and (len(value) > 35 or not _LANGUAGE.fullmatch(value)):
        _left_out(notes, "language", "it is a BCP 47 tag, such as en or pt-BR.")
        return ""
    return value


def _moment(value: Any, notes: list[Note]) -> datetime | None:
    """RFC 3339, the date of a mail (RFC 5322), or seconds or milliseconds since 1970."""
    if not has_content(value):
        return None
    found = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = _since_1970(float(value)) if _is_finite(value) else None
    elif isinstance(value, str):
        text = value.strip()
        found = _since_1970(float(text)) if _NUMBER.fullmatch(text) else _iso_date(text) or _mail_date(text)
    if found is None:
        _left_out(notes, "published_at", "write it as 2026-11-20T09:30:00Z, or as seconds since 1970.")
    return found


def _since_1970(number: float) -> datetime | None:
    # Seconds of our time have ten digits before the point, milliseconds thirteen.
    seconds = number / 1000 if number >= 100_000_000_000 else number
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LAST_SECOND else None


def _iso_date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text[:40])
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _mail_date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text[:100])
        return found.astimezone(UTC) if found.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _media(value: Any, notes: list[Note]) -> tuple[EntryMedia, ...]:
    """One address, or a list of addresses or of objects with `url` and `type`."""
    if not has_content(value):
        return ()
    given = value if isinstance(value, list) else [value]
    found: list[EntryMedia] = []
    for one in given[: limits.MEDIA_PER_ITEM]:
        fields = one if isinstance(one, dict) else {"url": one}
        address, kind = fields.get("url"), fields.get("type")
        stored = _address(address, "media", notes) if isinstance(address, str) else ""
        if not isinstance(address, str):
            _left_out(notes, "media", "each is an address, or an object with url and type.")
        if stored and stored not in [other.url for other in found]:
            found.append(EntryMedia(stored, kind[:100] if isinstance(kind, str) else ""))
    if len(given) > limits.MEDIA_PER_ITEM:
        notes.append(Note("cut", f"media is cut to {limits.MEDIA_PER_ITEM} files."))
    return tuple(found)


def _tags(value: Any, notes: list[Note]) -> list[str]:
    """A list of texts, or one text with commas."""
    if not has_content(value):
        return []
    given = value if isinstance(value, list) else str(value).split(",")
    texts = [_text(one, "tags", notes).strip()[:TAG_CHARACTERS] for one in given if isinstance(one, str)]
    texts = [one for one in texts if one]
    if not texts:
        _left_out(notes, "tags", "they are a list of texts, or one text with commas.")
    return list(dict.fromkeys(texts))[:TAGS_MOST]


def _metadata(value: Any, notes: list[Note]) -> dict[str, Any]:
    if not has_content(value):
        return {}
    if not isinstance(value, dict):
        _left_out(notes, "metadata", "it is an object.")
        return {}
    return value


def _small(metadata: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    try:
        written = json.dumps(metadata, allow_nan=False)
        json.dumps(metadata, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        # An expression can make an infinite number, and half of a surrogate pair.
        written = _NUL
    if _NUL in written:
        _left_out(notes, "metadata", "it holds something that can't be kept.")
        return {}
    if len(written) > limits.METADATA_BYTES:
        _left_out(notes, "metadata", f"it may have {limits.METADATA_BYTES} bytes of JSON at most.")
        return {}
    return metadata
