"""Writes an article as Markdown from plain text, which can't become markup, and parses it for the checks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.text.language_detection import value_for_language
from pipeline.text.plain_text import plain_text
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, is_balanced

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.engines.base import Claim

BREAK: Final = "\n\n"
_MARKUP: Final = re.compile(r"[\\`*\[\]<>]|(?<![^\W_])_|_(?![^\W_])|~~|&(?=#?\w+;)")
"""Characters that are markup anywhere in a line; an underscore within a word, as in "a_b", isn't."""
_AT_LINE_START: Final = re.compile(
    r"^(\s*)(#{1,6}(?=\s)|[-+](?=\s)|=+\s*$|-+\s*$|\|)|^(\s*\d{1,9})([.)])(?=\s)"
)
"""Markup at the beginning of a line, such as "## ", "- ", "---" or "12. "."""
_BULLET: Final = re.compile(r"^[-*\u2022]\s+")
_ADDRESS: Final = str.maketrans({"(": "%28", ")": "%29", "<": "%3C", ">": "%3E", " ": "%20", "\\": "%5C"})
_MAX_LINK_CHARACTERS: Final = 60
"""A claim of more characters isn't made a link within its sentence."""
_FINAL: Final = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\u0964]+$")
_HEADING: Final = re.compile(r"^## (.+)$", re.MULTILINE)
_ITEM: Final = re.compile(r"^- (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Phrases:
    """The few words that an article has besides its own text."""

    in_short: str
    sources: str
    excerpt: str
    """The first line of an excerpt; `{source}` stands for the source's title, or its site."""
    read_on: str
    """The last line of an excerpt; `{place}` stands for the source's site."""


_PHRASES: Final[Mapping[str, Phrases]] = {
    "en": Phrases(
        "In short",
        "Sources",
        "An excerpt: these sentences are taken word for word from {source}.",
        "Read all of it on {place}",
    ),
    "de": Phrases(
        "Kurz gesagt",
        "Quellen",
        "Ein Auszug: Diese Sätze stehen wörtlich in {source}.",
        "Alles lesen auf {place}",
    ),
    "fr": Phrases(
        "En bref",
        "Sources",
        "Un extrait : ces phrases sont reprises mot pour mot de {source}.",
        "Tout lire sur {place}",
    ),
    "es": Phrases(
        "En resumen",
        "Fuentes",
        "Un extracto: estas frases están tomadas palabra por palabra de {source}.",
        "Leer todo en {place}",
    ),
    "it": Phrases(
        "In breve",
        "Fonti",
        "Un estratto: queste frasi sono tratte parola per parola da {source}.",
        "Leggi tutto su {place}",
    ),
    "pt": Phrases(
        "Em resumo",
        "Fontes",
        "Um excerto: estas frases foram retiradas palavra por palavra de {source}.",
        "Ler tudo em {place}",
    ),
    "nl": Phrases(
        "Kort gezegd",
        "Bronnen",
        "Een uittreksel: deze zinnen staan woord voor woord in {source}.",
        "Lees alles op {place}",
    ),
    "da": Phrases(
        "Kort fortalt",
        "Kilder",
        "Et uddrag: disse sætninger er taget ord for ord fra {source}.",
        "Læs det hele på {place}",
    ),
    "nb": Phrases(
        "Kort fortalt",
        "Kilder",
        "Et utdrag: disse setningene er hentet ord for ord fra {source}.",
        "Les alt på {place}",
    ),
    "pl": Phrases(
        "W skrócie",
        "Źródła",
        "Fragment: te zdania są przytoczone słowo w słowo z {source}.",
        "Przeczytaj całość na {place}",
    ),
    "ru": Phrases(
        "Коротко",
        "Источники",
        "Отрывок: эти предложения взяты дословно из {source}.",
        "Читать полностью на {place}",
    ),
    "sv": Phrases(
        "I korthet",
        "Källor",
        "Ett utdrag: de här meningarna är hämtade ord för ord från {source}.",
        "Läs allt på {place}",
    ),
    "cs": Phrases(
        "Stručně", "Zdroje", "Úryvek: tyto věty jsou doslova převzaty z {source}.", "Celý text na {place}"
    ),
    "fi": Phrases(
        "Lyhyesti",
        "Lähteet",
        "Ote: nämä virkkeet ovat sanasta sanaan lähteestä {source}.",
        "Lue kaikki: {place}",
    ),
    "uk": Phrases(
        "Коротко", "Джерела", "Уривок: ці речення дослівно взято з {source}.", "Читати повністю на {place}"
    ),
    "tr": Phrases(
        "Kısaca",
        "Kaynaklar",
        "Alıntı: bu cümleler kelimesi kelimesine şuradan alınmıştır: {source}.",
        "Tamamını oku: {place}",
    ),
    "ar": Phrases(
        "باختصار", "المصادر", "مقتطف: هذه الجمل منقولة حرفيًا من {source}.", "اقرأ النص كاملًا على {place}"
    ),
    "he": Phrases(
        "בקצרה", "מקורות", "קטע: המשפטים האלה לקוחים מילה במילה מתוך {source}.", "לקריאה המלאה ב-{place}"
    ),
    "ja": Phrases(
        "要点", "出典", "抜粋：以下の文は{source}からそのまま引用しています。", "全文を読む：{place}"
    ),
    "zh": Phrases("要点", "来源", "节选：以下句子逐字摘自{source}。", "阅读全文：{place}"),
    "zh-hant": Phrases("重點", "來源", "節錄：以下句子逐字摘自{source}。", "閱讀全文：{place}"),
    "el": Phrases(
        "Με λίγα λόγια",
        "Πηγές",
        "Απόσπασμα: οι προτάσεις αυτές προέρχονται κατά λέξη από: {source}.",
        "Διαβάστε ολόκληρο το κείμενο: {place}",
    ),
    "hu": Phrases(
        "Röviden",
        "Források",
        "Részlet: ezek a mondatok szó szerint innen származnak: {source}.",
        "A teljes szöveg itt olvasható: {place}",
    ),
    "ro": Phrases(
        "Pe scurt",
        "Surse",
        "Un extras: aceste propoziții sunt preluate cuvânt cu cuvânt din {source}.",
        "Citiți tot textul pe {place}",
    ),
    "ko": Phrases(
        "요약", "출처", "발췌: 아래 문장은 {source}에서 그대로 옮긴 것입니다.", "전문 읽기: {place}"
    ),
    "hi": Phrases("संक्षेप में", "स्रोत", "अंश: ये वाक्य शब्दशः {source} से लिए गए हैं।", "पूरा लेख पढ़ें: {place}"),
    "th": Phrases("สรุปสั้น ๆ", "แหล่งที่มา", "บางส่วน: ประโยคเหล่านี้คัดมาคำต่อคำจาก {source}", "อ่านทั้งหมดที่ {place}"),
}


@dataclass(frozen=True)
class ArticleSection:
    """One section of an article, as a model's answer has it."""

    heading: str
    text: str
    """Plain text; a blank line separates paragraphs, lines that begin with a hyphen are a list."""


@dataclass(frozen=True)
class ParsedArticle:
    """An article split into its parts, as plain text."""

    headings: tuple[str, ...]
    """The headings, except that of the list of sources."""
    points: tuple[str, ...]
    """The bullets under "In short"."""
    words: str
    """The article's text, except the list of sources."""
    has_sources: bool
    """Whether a list of sources ends the article."""


def phrases_in(language: str) -> Phrases:
    """Return the phrases of the language, or the English ones for a language without phrases."""
    return value_for_language(_PHRASES, language) or _PHRASES["en"]


def escape_markdown(words: str) -> str:
    """Return plain text as Markdown that shows exactly that text."""
    lines = (_escape_line(line) for line in words.split("\n"))
    return "\n".join(lines)


def format_link(words: str, url: str) -> str:
    """Return a Markdown link with the words on one line."""
    return f"[{escape_markdown(collapse(words))}]({url.translate(_ADDRESS)})"


def site_of(url: str) -> str:
    """Return the address's host without "www.", as people call the site."""
    return (urlsplit(url).hostname or "").removeprefix("www.")


def bullet_list(items: Iterable[str]) -> str:
    """Return the items, which are Markdown already, as a list."""
    return "\n".join(f"- {item}" for item in items)


def compose_body(
    introduction: str,
    points: Sequence[str],
    sections: Sequence[ArticleSection],
    claims: Sequence[Claim],
    *,
    source: tuple[str, str],
    language: str,
) -> str:
    """Return the article's body; `source` is (title, address).

    The opening and each section link to the source at the first claim that they make. Without an address
    there are no links and no list of sources.
    """
    phrases = phrases_in(language)
    title, url = source
    blocks: list[str] = []
    if introduction.strip():
        blocks.append(_compose_blocks(introduction, claims, url, is_opening=True))
    if points:
        blocks += [f"**{phrases.in_short}**", bullet_list(escape_markdown(point) for point in points)]
    for section in sections:
        blocks += [f"## {escape_markdown(section.heading)}", _compose_blocks(section.text, claims, url)]
    if url:
        blocks += [f"## {phrases.sources}", bullet_list([format_link(title or site_of(url), url)])]
    return BREAK.join(block for block in blocks if block)


def parse_article(body: str, language: str) -> ParsedArticle:
    """Return the article's parts from its Markdown body."""
    phrases = phrases_in(language)
    before_sources, separator, _ = body.rpartition(f"{BREAK}## {phrases.sources}{BREAK}")
    article = before_sources if separator else body
    opening = article.partition("\n## ")[0]
    summary = opening.partition(f"**{phrases.in_short}**")[2]
    return ParsedArticle(
        headings=tuple(_to_plain_text(heading) for heading in _HEADING.findall(article)),
        points=tuple(_to_plain_text(item) for item in _ITEM.findall(summary)),
        words=plain_text(article, "markdown"),
        has_sources=bool(separator),
    )


def list_entries(body: str) -> tuple[str, ...]:
    """Return the words of every list entry, as readers see them."""
    return tuple(_to_plain_text(item) for item in _ITEM.findall(body))


def _to_plain_text(markdown: str) -> str:
    return collapse(plain_text(markdown, "markdown"))


def _escape_line(line: str) -> str:
    marked = _MARKUP.sub(lambda match: "\\" + "\\".join(match.group()), line)
    return _AT_LINE_START.sub(_escape_line_start, marked)


def _escape_line_start(match: re.Match[str]) -> str:
    if match[4]:
        return f"{match[3]}\\{match[4]}"
    return f"{match[1]}\\{match[2]}"


def _compose_blocks(text: str, claims: Sequence[Claim], url: str, *, is_opening: bool = False) -> str:
    """Return paragraphs and lists as Markdown, with one link to the source, at the first claim in a paragraph.

    The first claim of few words is the link. In the opening, or if no claim is short, the site's name is the
    link, after the sentence of the first claim.
    """
    blocks: list[str] = []
    is_linked = not url
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = [collapse(line) for line in block.splitlines() if line.strip()]
        if lines and all(_BULLET.match(line) for line in lines):
            blocks.append(bullet_list(escape_markdown(_BULLET.sub("", line)) for line in lines))
            continue
        paragraph = " ".join(lines)
        spans = [] if is_linked else _claim_spans(paragraph, claims)
        short = next((span for span in spans if span[1] - span[0] <= _MAX_LINK_CHARACTERS), None)
        if not spans:
            blocks.append(escape_markdown(paragraph))
            continue
        if is_opening or short is None:
            blocks.append(_add_site_link(paragraph, spans[0], url))
        else:
            blocks.append(_link_span(paragraph, short, url))
        is_linked = True
    return BREAK.join(block for block in blocks if block)


def _claim_spans(paragraph: str, claims: Sequence[Claim]) -> list[tuple[int, int]]:
    """Return the start and end of each claim that the paragraph makes in the claim's words, in order."""
    folded = paragraph.casefold()
    # Folding may lengthen a text, as "ß" to "ss", and then its offsets aren't those of the paragraph.
    if len(folded) != len(paragraph):
        return []
    spans = []
    for claim in claims:
        words = collapse(claim.text).casefold().rstrip(" .,;:")
        start = folded.find(words) if words else -1
        if start != -1:
            spans.append((start, start + len(words)))
    return sorted(spans)


def _link_span(paragraph: str, span: tuple[int, int], url: str) -> str:
    start, end = span
    before = escape_markdown(paragraph[:start])
    return f"{before}{format_link(paragraph[start:end], url)}{_escape_inline(paragraph[end:])}"


def _add_site_link(paragraph: str, span: tuple[int, int], url: str) -> str:
    """Add the site's name as a link after the sentence in which the claim ends, before the full stop."""
    # Never inside a quotation, whose words have to stay as they are.
    ends = (end for _, end in split_sentences(paragraph) if end >= span[1] and is_balanced(paragraph[:end]))
    end = next(ends, len(paragraph))
    sentence = paragraph[:end]
    final = _FINAL.search(sentence)
    cut = final.start() if final else len(sentence)
    site_link = format_link(site_of(url), url)
    return f"{escape_markdown(sentence[:cut])} ({site_link}){_escape_inline(paragraph[cut:])}"


def _escape_inline(words: str) -> str:
    """Escape text that doesn't begin a line: the letter before it, removed again, prevents escapes of line starts."""
    return escape_markdown(f"x{words}")[1:]
