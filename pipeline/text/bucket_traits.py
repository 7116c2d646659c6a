"""Defines the traits of each bucket: the fields of its `content`, how it is read, and whether it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

BucketName = Literal["video", "image", "text", "blog", "newsletter"]
BUCKETS: Final[tuple[BucketName, ...]] = get_args(BucketName)

TEXT: Final = "text"
TEXTS: Final = "list of text"
OBJECTS: Final = "list of objects"
OBJECT: Final = "object"
NUMBER: Final = "number"


@dataclass(frozen=True)
class BucketTraits:
    """The traits that set the items of one bucket apart from those of others."""

    plural: str
    """The name of several of its items on pages."""
    icon: str
    """The name of the icon of its items, in `static/icons`."""
    content: Mapping[str, str]
    """The kind of each field that `content` may have, by the field's name."""
    follows_body: str = ""
    """The field of `content` that may repeat the body, or "" if there is none."""
    is_posted: bool = False
    """Whether it is posted to a timeline; other items are read on a page or in a mail."""
    has_headline: bool = False
    """Whether readers see its title."""
    is_drawn: bool = False
    """Whether its words are drawn, so that they are limited to characters of the bundled fonts."""


TRAITS: Final[Mapping[str, BucketTraits]] = {
    "video": BucketTraits(
        "Videos",
        "video",
        {"caption": TEXT, "tags": TEXTS, "script": TEXT, "clips": OBJECTS},
        follows_body="script",
        is_posted=True,
        has_headline=True,
        is_drawn=True,
    ),
    "image": BucketTraits(
        "Images",
        "image",
        {"caption": TEXT, "slides": OBJECTS},
        follows_body="caption",
        is_posted=True,
        is_drawn=True,
    ),
    "text": BucketTraits("Short texts", "type", {"parts": TEXTS}, is_posted=True),
    "blog": BucketTraits(
        "Articles",
        "file-text",
        {
            "slug": TEXT,
            "meta_description": TEXT,
            "tags": TEXTS,
            "canonical_url": TEXT,
            "form": TEXT,
            "reading_minutes": NUMBER,
            "json_ld": OBJECT,
        },
        has_headline=True,
    ),
    "newsletter": BucketTraits(
        "Newsletters",
        "mail",
        {"subject": TEXT, "preheader": TEXT, "sections": OBJECTS},
        has_headline=True,
    ),
}
"""A new bucket is added here, with its name above, and to the model's choices."""
