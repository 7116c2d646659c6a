"""The sections of a newsletter: as data, as one body in Markdown, and read back from a body that a person has changed.

The body is what sites and feeds show, the sections are what a mail and the API's `content` are made of; they say the
same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from pipeline.text.language_detection import for_language
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
"""By primary language; English for the others."""

_SIGNS: Final = re.compile(r"([\\`*_\[\]<>~|]|&(?=#?\w+;))")
_OPENING: Final = re.compile(r"^(\s{0,3})([#+=-]|\d{1,9}(?=[.)](?:\s|$)))", re.MULTILINE)
_HEADING: Final = re.compile(r"^ {0,3}##(?!#)[ \t]+(\S.*)$", re.MULTILINE)
_LINK: Final = re.compile(r"\[(?P<label>[^\[\]\n]{1,80})\]\((?:<(?P<held>[^<>\s]+)>|(?P<bare>[^<>\s()]+))\)")
_SAFE: Final = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_BLANK: Final = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class NewsletterSection:
    """One story. `text` is Markdown, paragraphs a blank line apart; `link` leads to the whole of it, or is empty."""

    headline: str
    text: str
    link: str = ""


def escape_markdown(words: str) -> str:
    """Plain words as Markdown that shows them as they are."""
    escaped = _SIGNS.sub(r"\\\1", words)
    return _OPENING.sub(
        lambda match: f"{match[1]}{match[2]}\\" if match[2].isdigit() else f"{match[1]}\\{match[2]}",
        escaped,
    )


def as_content(sections: Iterable[NewsletterSection]) -> list[dict[str, str]]:
    return [{"headline": one.headline, "text": one.text, "link": one.link} for one in sections]


def leads_somewhere(link: str) -> bool:
    """Whether it is an address that a mail may lead to; any other scheme could be a script."""
    return _SAFE.match(link) is not None


def from_content(content: Mapping[str, Any]) -> tuple[NewsletterSection, ...]:
    """The sections of an item's `content`; what isn't text in them is left out."""
    found = content.get("sections")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    return tuple(
        NewsletterSection(
            **{name: value if isinstance(value := row.get(name), str) else "" for name in _NAMES}
        )
        for row in rows
    )


def with_safe_links(sections: Iterable[NewsletterSection]) -> tuple[NewsletterSection, ...]:
    """Without the links that lead nowhere."""
    return tuple(one if leads_somewhere(one.link) else replace(one, link="") for one in sections)


_NAMES: Final = ("headline", "text", "link")


def body_of(title: str, sections: Sequence[NewsletterSection], *, language: str = "") -> str:
    """The sections as one Markdown body. The one that has the item's title for its headline has none of its own."""
    label = read_more(language)
    return "\n\n".join(
        part for place, one in enumerate(sections) for part in _parts(one, title if not place else "", label)
    )


def read_more(language: str) -> str:
    """What stands on the link to the whole story."""
    return for_language(READ_MORE, language) or READ_MORE["en"]


def sections_of(title: str, body: str) -> tuple[NewsletterSection, ...]:
    """The sections that a Markdown body holds: one for each heading of the second rank, and one for what stands before.

    A link that is the last paragraph of a section is the section's; one that a mail can't lead to stays a word. Words before the first heading are the story of
    the title where there is no other, and else an introduction without a headline.
    """
    found: list[NewsletterSection] = []
    headings = list(_HEADING.finditer(body))
    before = body[: headings[0].start()] if headings else body
    if before.strip():
        found.append(_section("" if headings else title, before))
    ends = [heading.start() for heading in headings[1:]] + [len(body)] * bool(headings)
    found += [
        _section(markdown_to_text(f"# {heading[1]}"), body[heading.end() : end])
        for heading, end in zip(headings, ends, strict=True)
    ]
    return tuple(found)


def _parts(section: NewsletterSection, title: str, label: str) -> Iterable[str]:
    if section.headline and section.headline != title:
        yield f"## {escape_markdown(section.headline)}"
    if section.text:
        yield section.text
    if section.link:
        is_bare = not re.search(r"[()<>\s]", section.link)
        yield f"[{label}]({section.link})" if is_bare else f"[{label}](<{section.link}>)"


def _section(headline: str, words: str) -> NewsletterSection:
    blocks = [block.strip() for block in _BLANK.split(words.strip("\n"))]
    last = _LINK.fullmatch(blocks[-1]) if blocks else None
    if last is None or not leads_somewhere(last["held"] or last["bare"]):
        return NewsletterSection(headline, words.strip())
    return NewsletterSection(headline, "\n\n".join(blocks[:-1]), last["held"] or last["bare"])
