"""Checks the typed `content` of a generated item by bucket, and keeps it consistent with the body."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from config.core.errors import Detail, Invalid
from pipeline.limits import BODY_CHARACTERS
from pipeline.text import article_metadata, newsletter_sections
from pipeline.text.bucket_traits import NUMBER, OBJECT, TEXT, TEXTS, TRAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_MEMBERS: Final = 50
"""The most members of a list in the content."""
PARTS_BETWEEN: Final = "\n\n"
"""The separator of a text's parts in its body."""


def refuse_unless_typed(bucket: str, content: Mapping[str, Any]) -> None:
    """Raise `Invalid` if the content has fields that the bucket doesn't have, or values of another kind.

    The error names every such field.
    """
    fields = TRAITS[bucket].content
    details = []
    for name, value in content.items():
        kind = fields.get(name)
        if kind is None:
            known = ", ".join(fields)
            details.append(
                Detail(f"content.{name}", "unknown_field", f"The content of {bucket} items has: {known}.")
            )
        elif not _is_of_kind(value, kind):
            details.append(Detail(f"content.{name}", "invalid", f"Give a {kind}."))
    if details:
        raise Invalid(*details)


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind == TEXT:
        return isinstance(value, str) and len(value) <= BODY_CHARACTERS
    if kind == NUMBER:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == OBJECT:
        return isinstance(value, dict)
    if not isinstance(value, list) or len(value) > MAX_MEMBERS:
        return False
    if kind == TEXTS:
        return all(isinstance(member, str) and len(member) <= BODY_CHARACTERS for member in value)
    return all(isinstance(member, dict) for member in value)


@dataclass(frozen=True)
class ItemWords:
    """The words of an item before a change."""

    body: str
    body_format: str = "text"
    title: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    language: str = ""


# An address after the text, which engines append.
_ADDRESS_AFTER: Final = re.compile(r"\s+https?://\S+\s*|")


def text_following_body(bucket: str, item_words: ItemWords) -> str:
    """Return the name of the field of the content that repeats the body, or "" if none does.

    It is a film's `script`, or a picture's `caption` that is the body with or without an address after it.
    """
    name = TRAITS[bucket].follows_body
    text = item_words.content.get(name)
    if not item_words.body or not isinstance(text, str) or not text.startswith(item_words.body):
        return ""
    rest = text[len(item_words.body) :]
    is_same = _ADDRESS_AFTER.fullmatch(rest) is not None if name == "caption" else not rest
    return name if is_same else ""


def sync_changes(bucket: str, item_words: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes with those that keep body and content consistent: if one was changed, the other follows.

    A text item has its `parts`, a newsletter in Markdown its `sections`, an article data derived from its words, a
    film its script and a picture its caption. Fields that a changed `content` leaves out stay, except a text
    item's. Raises `Invalid` if `parts` or `sections` differ from a body that is given too, or are too long.
    """
    if bucket == "text" and changes.keys() & {"body", "content"}:
        return _sync_parts(item_words, changes)
    if bucket == "newsletter" and item_words.body_format == "markdown":
        return _sync_sections(item_words, changes)
    if "content" in changes:
        changes = {**changes, "content": {**item_words.content, **changes["content"]}}
    if bucket == "blog" and changes.keys() & {"title", "body", "content"}:
        return _sync_article_data(item_words, changes)
    if "body" in changes and (name := text_following_body(bucket, item_words)):
        return _sync_following_text(name, item_words, changes)
    return dict(changes)


def _sync_parts(item_words: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Make a post's parts and its body consistent.

    Raises `Invalid` if both are given and differ, or if the parts are too long together.
    """
    parts = changes.get("content", {}).get("parts")
    if parts is None:
        body = changes.get("body", item_words.body)
        old_parts = item_words.content.get("parts") or [item_words.body]
        if body == item_words.body:
            return {**changes, "content": {"parts": old_parts}}
        if len(old_parts) == 1:
            return {**changes, "content": {"parts": [body]}}
        parts = [part for part in body.split(PARTS_BETWEEN) if part.strip()] or [body]
        return {**changes, "body": PARTS_BETWEEN.join(parts), "content": {"parts": parts}}
    body = PARTS_BETWEEN.join(parts)
    if changes.get("body", body) != body:
        message = "The parts say something else than the body; give one of them, the other follows."
        raise Invalid.one(field="content.parts", code="differs_from_body", message=message)
    _refuse_too_long("content.parts", "parts", body)
    return {**changes, "body": body}


def _sync_following_text(name: str, item_words: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Change the text as the body was changed, unless it was changed itself."""
    content = changes.get("content", item_words.content)
    old_text = item_words.content[name]
    if content.get(name, old_text) != old_text:
        return dict(changes)
    return {**changes, "content": {**content, name: changes["body"] + old_text[len(item_words.body) :]}}


def _sync_sections(item_words: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Make sections, body and title consistent; given sections make the body, else the body makes the sections.

    The headline of a story that was the title becomes the new title. Raises `Invalid` if sections and body are
    both given and differ, or if the sections are too long together.
    """
    title = changes.get("title", item_words.title)
    merged_content = {**item_words.content, **changes.get("content", {})}
    if "sections" in changes.get("content", {}):
        sections = newsletter_sections.with_safe_links(newsletter_sections.from_content(merged_content))
        body = newsletter_sections.body_of(title, sections, language=item_words.language)
        if (
            changes.get("body", body) != body
            and newsletter_sections.sections_of(title, changes["body"]) != sections
        ):
            message = "The sections say something else than the body; give one of them, the other follows."
            raise Invalid.one(field="content.sections", code="differs_from_body", message=message)
        _refuse_too_long("content.sections", "sections", body)
        section_data = newsletter_sections.as_content(sections)
        return {**changes, "body": body, "content": {**merged_content, "sections": section_data}}
    if not changes.keys() & {"body", "content", "title"}:
        return dict(changes)
    sections = newsletter_sections.sections_of(title, changes.get("body", item_words.body))
    return {**changes, "content": {**merged_content, "sections": newsletter_sections.as_content(sections)}}


def _refuse_too_long(name: str, plural: str, body: str) -> None:
    if len(body) > BODY_CHARACTERS:
        message = f"Together the {plural} have {len(body)} characters; the maximum is {BODY_CHARACTERS}."
        raise Invalid.one(field=name, code="too_long", message=message)


def _sync_article_data(item_words: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    content = article_metadata.refresh_article_data(
        changes.get("content", item_words.content),
        item_words.content,
        title=changes.get("title", item_words.title),
        body=changes.get("body", item_words.body),
        body_format=item_words.body_format,
        language=item_words.language,
    )
    return {**changes, "content": content}
