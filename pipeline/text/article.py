"""What follows from an article's words: its slug, its headings, how long it takes to read, what search engines are told."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.plain_text import plain_text
from pipeline.text.prose.verbatim_edits import collapse, count_words, is_clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

WORDS_A_MINUTE: Final = 230
SLUG_CHARACTERS: Final = 60
EXCERPT: Final = "excerpt"
"""The `form` of an article that only quotes its source; any other is one of its own words."""

_FOLDED: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "þ": "th", "ð": "d"}
)
# Where a language writes its letters out, beside `_FOLDED`; elsewhere only the accent goes.
_NORDIC: Final = str.maketrans({"ø": "oe", "å": "aa"})
_WRITTEN_OUT: Final = {
    "de": str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"}),
    "da": _NORDIC,
    "no": _NORDIC,
    "nb": _NORDIC,
    "nn": _NORDIC,
}
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019](?=\w)")
_NOT_SLUG: Final = re.compile(r"[\W_]+")
_LATIN: Final = re.compile(r"[a-z]")
_LONGEST: Final = 90
_MOST_WORDS: Final = 14
_LEAST_PARAGRAPH: Final = 80
"""What a heading stands over is no list of short lines."""

_BLOCK: Final = re.compile(r"[^\n]+(?:\n(?!\s*\n)[^\n]+)*")
_MARKS: Final = re.compile(r"\s*#{1,6}\s+")
_LIST: Final = re.compile(
    r"\s*(?:[|`\[]|[-*\u2022\u25aa\u2013\u2014\u00b7]\s|\d{1,3}[.)]\s|\[?\(?\d{1,2}:\d{2})"
)
_LETTER: Final = re.compile(r"[^\W\d_]")
# "By Jo O'Hara | 3 min read | 12 comments".
_BYLINE: Final = re.compile(
    r"\s\|\s|(?i:\d\s?min(?:ute[ns]?)?\.?[ -](?:read|lesezeit|de lecture|de lectura|di lettura|leestijd))"
    r"|^(?:By|Von|Par|Por|Di|Door)(?: [^\W\d_a-z][^\s,]*){2,4}(?:,.*)?$"
)
_SENTENCE_END: Final = ".!?\u2026\u3002\uff01\uff1f\u061f\u0964"
_UNENDING: Final = ".!:;,\u2026\u3002\uff01\uff1a\u061b\u060c"


def slug_of(title: str, language: str = "") -> str:
    """The title as the last part of an address: accents go from Latin letters, other scripts stay as they are."""
    written_out = _WRITTEN_OUT.get(language.partition("-")[0].lower(), {})
    plain = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", title).casefold())
    folded = plain.translate(written_out).translate(_FOLDED)
    if _LATIN.search(folded):
        bare = unicodedata.normalize("NFKD", folded)
        folded = "".join(sign for sign in bare if not unicodedata.combining(sign))
    slug = _NOT_SLUG.sub("-", folded).strip("-")
    if len(slug) <= SLUG_CHARACTERS:
        return slug
    head = slug[:SLUG_CHARACTERS]
    # Whole words, where that leaves most of it.
    whole = head if slug[SLUG_CHARACTERS] == "-" else head.rpartition("-")[0]
    return (whole if len(whole) > SLUG_CHARACTERS // 2 else head).strip("-")


def reading_minutes(words: int) -> int:
    return max(1, round(words / WORDS_A_MINUTE))


def with_data(
    content: Mapping[str, Any],
    *,
    title: str,
    body: str,
    body_format: str,
    language: str,
    author: str = "",
    author_url: str = "",
    source_url: str = "",
) -> dict[str, Any]:
    """The content with what follows from the words: `reading_minutes`, and `json_ld` as schema.org has an Article.

    What only the place where it is published knows (the picture's address, the days) is put in there.
    """
    count = count_words(plain_text(body, body_format))
    minutes = reading_minutes(count)
    by = {"@type": "Organization", "name": author, "url": author_url}
    data = {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": title,
        "description": content.get("meta_description", ""),
        "inLanguage": language,
        "author": {name: value for name, value in by.items() if value} if author else "",
        "keywords": list(content.get("tags", ())),
        "wordCount": count,
        "timeRequired": f"PT{minutes}M",
        "mainEntityOfPage": content.get("canonical_url", ""),
        "isBasedOn": source_url,
    }
    kept = {name: value for name, value in data.items() if value}
    return {**content, "reading_minutes": minutes, "json_ld": kept}


def as_published(
    content: Mapping[str, Any], *, title: str, image: str = "", published_at: datetime | None = None
) -> dict[str, Any]:
    """`json_ld` with what only the place of publication knows; empty for content that has none."""
    known = content.get("json_ld")
    if not isinstance(known, dict) or not known:
        return {}
    day = published_at.isoformat().replace("+00:00", "Z") if published_at else ""
    added = {"headline": title, "image": image, "datePublished": day}
    return {**known, **{name: value for name, value in added.items() if value}}


def renewed(
    content: Mapping[str, Any],
    former: Mapping[str, Any],
    *,
    title: str,
    body: str,
    body_format: str,
    language: str,
) -> dict[str, Any]:
    """After an edit: what follows from the words follows from the new ones; who wrote it and of what it was made stays."""
    known = former.get("json_ld")
    if not isinstance(known, dict):
        return dict(content)
    author = known.get("author")
    by = author if isinstance(author, dict) else {}
    form = {"form": former["form"]} if "form" in former else {}
    return with_data(
        {**content, **form},
        title=title,
        body=body,
        body_format=body_format,
        language=language,
        author=str(by.get("name", "")),
        author_url=str(by.get("url", "")),
        source_url=str(known.get("isBasedOn", "")),
    )


def find_headings(text: str, *, title: str = "") -> tuple[tuple[int, int], ...]:
    """Where each heading stands, as `text[start:end]`; the title isn't one of them.

    A heading is a line by itself between blank lines, short and without a full stop, over a paragraph. A text of
    such lines alone, as poems and captions are, has none. Where it has one, others may stand over less: over a short
    sentence, or right over a list.
    """
    wanted = collapse(title).casefold()
    found: list[tuple[int, int]] = []
    is_over_paragraph = False
    blocks = list(_BLOCK.finditer(text))
    for place, block in enumerate(blocks, 1):
        marks = _MARKS.match(block.group())
        start = block.start() + (marks.end() if marks else 0)
        first, _, rest = text[start : block.end()].partition("\n")
        line = first.strip()
        start = text.index(line, start)
        if not _is_line(line) or collapse(line).casefold() == wanted:
            continue
        below = rest or "".join(one.group() for one in blocks[place : place + 1])
        is_long = not rest and len(below) >= _LEAST_PARAGRAPH
        is_short = _LIST.match(below) if rest else _LIST.match(below) or below.rstrip()[-1:] in _SENTENCE_END
        if is_long or (below and is_short):
            is_over_paragraph |= is_long
            found.append((start, start + len(line)))
    return tuple(found) if is_over_paragraph else ()


def _is_line(line: str) -> bool:
    return (
        0 < len(line) <= _LONGEST
        and len(line.split()) <= _MOST_WORDS
        and line[-1] not in _UNENDING
        and not line[0].islower()
        and _LETTER.search(line) is not None
        and _LIST.match(line) is None
        and _BYLINE.search(line) is None
        and is_clean(line)
    )
