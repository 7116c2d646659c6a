"""Derives the data of an article from its words: slug, headings, reading time, and JSON-LD."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.plain_text import plain_text
from pipeline.text.prose.verbatim_edits import collapse, count_words, is_clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

WORDS_PER_MINUTE: Final = 230
MAX_SLUG_CHARACTERS: Final = 60
EXCERPT: Final = "excerpt"
"""The `form` of an article that only quotes its source."""

_FOLDED: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "þ": "th", "ð": "d"}
)
# Languages that write some letters out; in others only the accent is dropped.
_NORDIC: Final = str.maketrans({"ø": "oe", "å": "aa"})
_WRITTEN_OUT: Final = {
    "de": str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"}),
    "da": _NORDIC,
    "no": _NORDIC,
    "nb": _NORDIC,
    "nn": _NORDIC,
}
# The mark in "Jo's".
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019](?=\w)")
_NOT_SLUG: Final = re.compile(r"[\W_]+")
_LATIN: Final = re.compile(r"[a-z]")
_MAX_HEADING_CHARACTERS: Final = 90
_MAX_HEADING_WORDS: Final = 14
_MIN_PARAGRAPH_CHARACTERS: Final = 80
"""The least length of the paragraph below a heading, which is longer than the lines of a list."""

# Lines without a blank line between them.
_BLOCK: Final = re.compile(r"[^\n]+(?:\n(?!\s*\n)[^\n]+)*")
# "## ".
_MARKS: Final = re.compile(r"\s*#{1,6}\s+")
# The beginning of an entry, a table row, code or a time stamp: "- ", "3. ", "| ", "[00:12".
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
_NOT_HEADING_END: Final = ".!:;,\u2026\u3002\uff01\uff1a\u061b\u060c"


def slug_of(title: str, language: str = "") -> str:
    """Return the title as the last part of an address; Latin letters lose their accents, other scripts stay.

    It is cut to `MAX_SLUG_CHARACTERS`, at a word's end if that keeps more than half.
    """
    written_out = _WRITTEN_OUT.get(language.partition("-")[0].lower(), {})
    casefolded = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", title).casefold())
    folded = casefolded.translate(written_out).translate(_FOLDED)
    if _LATIN.search(folded):
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = "".join(character for character in decomposed if not unicodedata.combining(character))
    slug = _NOT_SLUG.sub("-", folded).strip("-")
    if len(slug) <= MAX_SLUG_CHARACTERS:
        return slug
    head = slug[:MAX_SLUG_CHARACTERS]
    whole_words = head if slug[MAX_SLUG_CHARACTERS] == "-" else head.rpartition("-")[0]
    return (whole_words if len(whole_words) > MAX_SLUG_CHARACTERS // 2 else head).strip("-")


def reading_minutes(words: int) -> int:
    """Return how many minutes it takes to read this many words, at least 1."""
    return max(1, round(words / WORDS_PER_MINUTE))


def with_article_data(
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
    """Return the content with `reading_minutes`, and with `json_ld` as schema.org's Article.

    `published_json_ld` adds the data that is known only at publication: the picture's address and the day.
    """
    count = count_words(plain_text(body, body_format))
    minutes = reading_minutes(count)
    author_data = {"@type": "Organization", "name": author, "url": author_url}
    data = {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": title,
        "description": content.get("meta_description", ""),
        "inLanguage": language,
        "author": {name: value for name, value in author_data.items() if value} if author else "",
        "keywords": list(content.get("tags", ())),
        "wordCount": count,
        "timeRequired": f"PT{minutes}M",
        "mainEntityOfPage": content.get("canonical_url", ""),
        "isBasedOn": source_url,
    }
    filled_data = {name: value for name, value in data.items() if value}
    return {**content, "reading_minutes": minutes, "json_ld": filled_data}


def published_json_ld(
    content: Mapping[str, Any], *, title: str, image: str = "", published_at: datetime | None = None
) -> dict[str, Any]:
    """Return `json_ld` with the title, picture and moment of publication, or `{}` if the content has none."""
    json_ld = content.get("json_ld")
    if not isinstance(json_ld, dict) or not json_ld:
        return {}
    published_on = published_at.isoformat().replace("+00:00", "Z") if published_at else ""
    added = {"headline": title, "image": image, "datePublished": published_on}
    return {**json_ld, **{name: value for name, value in added.items() if value}}


def refresh_article_data(
    content: Mapping[str, Any],
    former: Mapping[str, Any],
    *,
    title: str,
    body: str,
    body_format: str,
    language: str,
) -> dict[str, Any]:
    """Return the content with its derived data recomputed from edited words, if the `former` content had any.

    Form, author and source stay as they were.
    """
    json_ld = former.get("json_ld")
    if not isinstance(json_ld, dict):
        return dict(content)
    author = json_ld.get("author")
    author_data = author if isinstance(author, dict) else {}
    form_field = {"form": former["form"]} if "form" in former else {}
    return with_article_data(
        {**content, **form_field},
        title=title,
        body=body,
        body_format=body_format,
        language=language,
        author=str(author_data.get("name", "")),
        author_url=str(author_data.get("url", "")),
        source_url=str(json_ld.get("isBasedOn", "")),
    )


def find_headings(text: str, *, title: str = "") -> tuple[tuple[int, int], ...]:
    """Return the span of each heading, `text[start:end]`; the title itself isn't one.

    A heading is a short line without a full stop, the first of its block, over a paragraph. A text of such lines
    alone, such as a poem, has none. If it has one, others may stand over a short sentence or a list.
    """
    title_words = collapse(title).casefold()
    spans: list[tuple[int, int]] = []
    is_over_paragraph = False
    blocks = list(_BLOCK.finditer(text))
    for number, block in enumerate(blocks, 1):
        marker = _MARKS.match(block.group())
        start = block.start() + (marker.end() if marker else 0)
        first, _, rest = text[start : block.end()].partition("\n")
        line = first.strip()
        start = text.index(line, start)
        if not _can_be_heading(line) or collapse(line).casefold() == title_words:
            continue
        below = rest or "".join(following.group() for following in blocks[number : number + 1])
        is_long = not rest and len(below) >= _MIN_PARAGRAPH_CHARACTERS
        is_short = _LIST.match(below) if rest else _LIST.match(below) or below.rstrip()[-1:] in _SENTENCE_END
        if is_long or (below and is_short):
            is_over_paragraph |= is_long
            spans.append((start, start + len(line)))
    return tuple(spans) if is_over_paragraph else ()


def _can_be_heading(line: str) -> bool:
    """Return whether the line can be a heading by its form."""
    return (
        0 < len(line) <= _MAX_HEADING_CHARACTERS
        and len(line.split()) <= _MAX_HEADING_WORDS
        and line[-1] not in _NOT_HEADING_END
        and not line[0].islower()
        and _LETTER.search(line) is not None
        and _LIST.match(line) is None
        and _BYLINE.search(line) is None
        and is_clean(line)
    )
