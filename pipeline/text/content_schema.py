"""The typed `content` of a generated item, by bucket: what may be in it and what kind each value is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from config.core.errors import Detail, Invalid
from pipeline.limits import BODY_CHARACTERS
from pipeline.text import article, newsletter_sections
from pipeline.text.content_buckets import NUMBER, OBJECT, TEXT, TEXTS, TRAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

MEMBERS_MOST: Final = 50
PARTS_BETWEEN: Final = "\n\n"
"""What stands between the parts of a text where they are shown as one body."""


def refuse_unless_typed(bucket: str, content: Mapping[str, Any]) -> None:
    """Raises `Invalid` naming every member that this bucket's content doesn't have, or has as another kind."""
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
    if not isinstance(value, list) or len(value) > MEMBERS_MOST:
        return False
    if kind == TEXTS:
        return all(isinstance(one, str) and len(one) <= BODY_CHARACTERS for one in value)
    return all(isinstance(one, dict) for one in value)


@dataclass(frozen=True)
class ItemWords:
    """The words of an item as they are, before a change."""

    body: str
    body_format: str = "text"
    title: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    language: str = ""


# An address after the words, as engines put it there.
_ADDRESS_AFTER: Final = re.compile(r"\s+https?://\S+\s*|")


def follower(bucket: str, said: ItemWords) -> str:
    """The text of the content that says the body's words by itself, empty where none does.

    A film's `script`; a picture's `caption` that is the body, with an address after it or without.
    """
    name = TRAITS[bucket].follows_body
    words = said.content.get(name)
    if not said.body or not isinstance(words, str) or not words.startswith(said.body):
        return ""
    rest = words[len(said.body) :]
    is_same = _ADDRESS_AFTER.fullmatch(rest) is not None if name == "caption" else not rest
    return name if is_same else ""


def in_step(bucket: str, said: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Where body and content say the same words, whichever was changed, the other follows; what `content` leaves out stays.

    A text item has its `parts`, a newsletter in Markdown its `sections`; an article what follows from its words, a film
    its script and a picture its caption. Raises `Invalid` where both are given and say something different.
    """
    if bucket == "text" and changes.keys() & {"body", "content"}:
        return _text_in_step(said, changes)
    if bucket == "newsletter" and said.body_format == "markdown":
        return _newsletter_in_step(said, changes)
    if "content" in changes:
        changes = {**changes, "content": {**said.content, **changes["content"]}}
    if bucket == "blog" and changes.keys() & {"title", "body", "content"}:
        return _article_in_step(said, changes)
    if "body" in changes and (name := follower(bucket, said)):
        return _follower_in_step(name, said, changes)
    return dict(changes)


def _text_in_step(said: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    parts = changes.get("content", {}).get("parts")
    if parts is None:
        body = changes.get("body", said.body)
        former = said.content.get("parts") or [said.body]
        if body == said.body:
            return {**changes, "content": {"parts": former}}
        if len(former) == 1:
            return {**changes, "content": {"parts": [body]}}
        parts = [part for part in body.split(PARTS_BETWEEN) if part.strip()] or [body]
        return {**changes, "body": PARTS_BETWEEN.join(parts), "content": {"parts": parts}}
    body = PARTS_BETWEEN.join(parts)
    if changes.get("body", body) != body:
        message = "The parts say something else than the body; give one of them, the other follows."
        raise Invalid.one(field="content.parts", code="differs_from_body", message=message)
    _refuse_too_long("content.parts", "parts", body)
    return {**changes, "body": body}


def _follower_in_step(name: str, said: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What is given for it as something else than it was is a text of its own from then on."""
    content = changes.get("content", said.content)
    old = said.content[name]
    if content.get(name, old) != old:
        return dict(changes)
    return {**changes, "content": {**content, name: changes["body"] + old[len(said.body) :]}}


def _newsletter_in_step(said: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A new title is the headline of the one story that had the old one."""
    title = changes.get("title", said.title)
    kept = {**said.content, **changes.get("content", {})}
    if "sections" in changes.get("content", {}):
        sections = newsletter_sections.with_safe_links(newsletter_sections.from_content(kept))
        body = newsletter_sections.body_of(title, sections, language=said.language)
        if (
            changes.get("body", body) != body
            and newsletter_sections.sections_of(title, changes["body"]) != sections
        ):
            message = "The sections say something else than the body; give one of them, the other follows."
            raise Invalid.one(field="content.sections", code="differs_from_body", message=message)
        _refuse_too_long("content.sections", "sections", body)
        written = newsletter_sections.as_content(sections)
        return {**changes, "body": body, "content": {**kept, "sections": written}}
    if not changes.keys() & {"body", "content", "title"}:
        return dict(changes)
    sections = newsletter_sections.sections_of(title, changes.get("body", said.body))
    return {**changes, "content": {**kept, "sections": newsletter_sections.as_content(sections)}}


def _refuse_too_long(name: str, what: str, body: str) -> None:
    if len(body) > BODY_CHARACTERS:
        message = f"Together the {what} have {len(body)} characters; {BODY_CHARACTERS} are the most."
        raise Invalid.one(field=name, code="too_long", message=message)


def _article_in_step(said: ItemWords, changes: Mapping[str, Any]) -> dict[str, Any]:
    content = article.renewed(
        changes.get("content", said.content),
        said.content,
        title=changes.get("title", said.title),
        body=changes.get("body", said.body),
        body_format=said.body_format,
        language=said.language,
    )
    return {**changes, "content": content}
