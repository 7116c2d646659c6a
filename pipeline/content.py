"""The typed `content` of a generated item, by bucket: what may be in it and what kind each value is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.ground.errors import Detail, Invalid
from config.ground.limits import BODY_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT: Final = "text"
TEXTS: Final = "list of text"
OBJECTS: Final = "list of objects"

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "text": {"parts": TEXTS},
    "image": {"caption": TEXT, "slides": OBJECTS},
    "video": {"caption": TEXT, "tags": TEXTS, "script": TEXT},
    "blog": {"slug": TEXT, "meta_description": TEXT, "tags": TEXTS, "canonical_url": TEXT},
    "newsletter": {"subject": TEXT, "preheader": TEXT, "sections": OBJECTS},
}
MEMBERS_MOST: Final = 50
PARTS_BETWEEN: Final = "\n\n"
"""What stands between the parts of a text where they are shown as one body."""


def refuse_unless_typed(bucket: str, content: Mapping[str, Any]) -> None:
    """Raises `Invalid` naming every member that this bucket's content doesn't have, or has as another kind."""
    fields = FIELDS[bucket]
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
    if not isinstance(value, list) or len(value) > MEMBERS_MOST:
        return False
    if kind == TEXTS:
        return all(isinstance(one, str) and len(one) <= BODY_CHARACTERS for one in value)
    return all(isinstance(one, dict) for one in value)


def in_step(bucket: str, body: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """A text item's body and parts say the same: whichever was changed, the other follows.

    `body` is the one that is there. Raises `Invalid` where both are given and say something different.
    """
    if bucket != "text" or not changes.keys() & {"body", "content"}:
        return dict(changes)
    parts = changes.get("content", {}).get("parts")
    if parts is None:
        said = changes.get("body", body)
        return {**changes, "content": {"parts": [said]}}
    said = PARTS_BETWEEN.join(parts)
    if changes.get("body", said) != said:
        message = "The parts say something else than the body; give one of them, the other follows."
        raise Invalid.one(field="content.parts", code="differs_from_body", message=message)
    if len(said) > BODY_CHARACTERS:
        message = f"Together the parts have {len(said)} characters; {BODY_CHARACTERS} are the most."
        raise Invalid.one(field="content.parts", code="too_long", message=message)
    return {**changes, "body": said}
