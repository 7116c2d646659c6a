"""Converts the sections of a newsletter to data and to one Markdown body, and a changed body back to sections.

Sites and feeds show the body; a mail and the API's `content` are made of the sections.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.language_detection import value_for_language
from pipeline.text.plain_text import markdown_to_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

READ_MORE: Final[Mapping[str, str]] = {
    "en": "Read more",
    "ar": "اقرأ المزيد",
    "cs": "Číst dál",
    "da": "Læs mere",
    "de": "Weiterlesen",
    "el": "Διαβάστε περισσότερα",
    "es": "Leer más",
    "fi": "Lue lisää",
    "fr": "Lire la suite",
    "he": "להמשך קריאה",
    "hi": "और पढ़ें",
    "hu": "Tovább olvasom",
    "it": "Continua a leggere",
    "ja": "続きを読む",
    "ko": "더 읽기",
    "nb": "Les mer",
    "nl": "Lees verder",
    "pl": "Czytaj dalej",
    "pt": "Ler mais",
    "ro": "Citiți mai mult",
    "ru": "Читать далее",
    "sv": "Läs mer",
    "th": "อ่านต่อ",
    "tr": "Devamını oku",
    "uk": "Читати далі",
    "zh": "阅读全文",
    "zh-hant": "閱讀全文",
}
"""Labels of the link to the full story, by primary language; English is for all others."""

# Characters that are markup anywhere in a line, and an ampersand only before an entity: "&amp;".
_MARKDOWN_CHARACTERS: Final = re.compile(r"([\\`*_\[\]<>~|]|&(?=#?\w+;))")
# Markup at the beginning of a line: "# ", "- ", "12. ".
_LINE_MARKUP: Final = re.compile(r"^(\s{0,3})([#+=-]|\d{1,9}(?=[.)](?:\s|$)))", re.MULTILINE)
_HEADING: Final = re.compile(r"^ {0,3}##(?!#)[ \t]+(\S.*)$", re.MULTILINE)
# "[Read more](https://…)" or "[Read more](<https://…>)".
_LINK: Final = re.compile(r"\[(?P<label>[^\[\]\n]{1,80})\]\((?:<(?P<held>[^<>\s]+)>|(?P<bare>[^<>\s()]+))\)")
_SAFE: Final = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_BLANK: Final = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class NewsletterSection:
    """One story of a newsletter, with its headline and link.

    `text` is Markdown with a blank line between paragraphs; `link` leads to the full story, or is "".
    """

    headline: str
    text: str
    link: str = ""


def escape_markdown(text: str) -> str:
    """Return plain text as Markdown that shows it unchanged."""
    escaped = _MARKDOWN_CHARACTERS.sub(r"\\\1", text)
    return _LINE_MARKUP.sub(
        lambda match: f"{match[1]}{match[2]}\\" if match[2].isdigit() else f"{match[1]}\\{match[2]}",
        escaped,
    )


def as_content(sections: Iterable[NewsletterSection]) -> list[dict[str, str]]:
    """Return the sections as an item's content stores them."""
    return [
        {"headline": section.headline, "text": section.text, "link": section.link} for section in sections
    ]


def is_safe_link(link: str) -> bool:
    """Return whether a mail may link the address, because any scheme but http(s) and mailto could be a script."""
    return _SAFE.match(link) is not None


def from_content(content: Mapping[str, Any]) -> tuple[NewsletterSection, ...]:
    """Return the sections of an item's `content`; a value that isn't text becomes ""."""
    stored = content.get("sections")
    rows = [row for row in stored if isinstance(row, dict)] if isinstance(stored, list) else []
    return tuple(
        NewsletterSection(
            **{name: value if isinstance(value := row.get(name), str) else "" for name in _FIELD_NAMES}
        )
        for row in rows
    )


def with_safe_links(sections: Iterable[NewsletterSection]) -> tuple[NewsletterSection, ...]:
    """Return the sections without the links that a mail may not have."""
    return tuple(section if is_safe_link(section.link) else replace(section, link="") for section in sections)


_FIELD_NAMES: Final = ("headline", "text", "link")


def body_of(title: str, sections: Sequence[NewsletterSection], *, language: str = "") -> str:
    """Return the sections as one Markdown body.

    A first section whose headline is the item's title gets no heading.
    """
    label = read_more(language)
    return "\n\n".join(
        part
        for index, section in enumerate(sections)
        for part in _section_parts(section, title if not index else "", label)
    )


def read_more(language: str) -> str:
    """Return the label of the link to the full story, in English for an unknown language."""
    return value_for_language(READ_MORE, language) or READ_MORE["en"]


def sections_of(title: str, body: str) -> tuple[NewsletterSection, ...]:
    """Return the sections of a Markdown body, one for each heading of the second rank, and one for the text before.

    A link that is the last paragraph of a section becomes its link, unless a mail may not have it. Without
    headings the whole text is the story of the title; else the text before them has no headline.
    """
    sections: list[NewsletterSection] = []
    headings = list(_HEADING.finditer(body))
    before = body[: headings[0].start()] if headings else body
    if before.strip():
        sections.append(_parse_section("" if headings else title, before))
    ends = [heading.start() for heading in headings[1:]] + [len(body)] * bool(headings)
    sections += [
        _parse_section(markdown_to_text(f"# {heading[1]}"), body[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    ]
    return tuple(sections)


def _section_parts(section: NewsletterSection, title: str, label: str) -> Iterable[str]:
    if section.headline and section.headline != title:
        yield f"## {escape_markdown(section.headline)}"
    if section.text:
        yield section.text
    if section.link:
        is_bare = not re.search(r"[()<>\s]", section.link)
        yield f"[{label}]({section.link})" if is_bare else f"[{label}](<{section.link}>)"


def _parse_section(headline: str, text: str) -> NewsletterSection:
    blocks = [block.strip() for block in _BLANK.split(text.strip("\n"))]
    link = _LINK.fullmatch(blocks[-1]) if blocks else None
    if link is None or not is_safe_link(link["held"] or link["bare"]):
        return NewsletterSection(headline, text.strip())
    return NewsletterSection(headline, "\n\n".join(blocks[:-1]), link["held"] or link["bare"])
