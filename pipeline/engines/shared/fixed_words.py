"""What carousels and films say by themselves, in the language of the post; and the checks that films share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.engines.base import Check, judged
from pipeline.engines.checks.allow_list import is_allowed, strange_addresses
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import list_characters, missing
from pipeline.render.typography.typeset import typeset
from pipeline.render.video.storyboard import outside, storyboard_faults
from pipeline.render.video.templates.parts import Cast
from pipeline.text.language_detection import for_language
from pipeline.text.links import ascii_url, find_links
from pipeline.text.verbatim_edits import (
    collapse,
    drawn_length,
    drop_asides,
    first_words,
    is_clean,
    is_wide,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.render.video.storyboard import Storyboard

_SOURCE: Final = {
    "ar": "المصدر",
    "cs": "Zdroj",
    "da": "Kilde",
    "de": "Quelle",
    "el": "Πηγή",
    "es": "Fuente",
    "fi": "Lähde",
    "fr": "Source",
    "he": "מקור",
    "hi": "स्रोत",
    "hu": "Forrás",
    "it": "Fonte",
    "ja": "出典",
    "ko": "출처",
    "nl": "Bron",
    "nb": "Kilde",
    "pl": "Źródło",
    "pt": "Fonte",
    "ro": "Sursa",
    "ru": "Источник",
    "sv": "Källa",
    "th": "ที่มา",
    "tr": "Kaynak",
    "uk": "Джерело",
    "zh": "来源",
    "zh-hant": "來源",
}
TITLE_MOST: Final = 90
TAGS_MOST: Final = 5
_TAG: Final = re.compile(r"#?[^\W_][\w]{0,39}")
FROM_SHORT_POST: Final = frozenset(
    {
        *("link_origin", "hashtags", "mentions", "contacts"),
        *("characters", "numbers", "quotations", "claims", "instructions"),
    }
)


@dataclass(frozen=True)
class Fixed:
    """`follow` takes the persona's handle."""

    swipe: str
    recap: str
    read_on: str
    follow: str


_ENGLISH: Final = Fixed("Swipe", "In short", "Read the whole story", "Follow {}")
_BY_LANGUAGE: Final[Mapping[str, Fixed]] = {
    "en": _ENGLISH,
    "de": Fixed("Weiter", "Kurz gesagt", "Die ganze Geschichte lesen", "{} folgen"),
    "fr": Fixed("Suite", "En bref", "Lire tout l\u2019article", "Suivez {}"),
    "es": Fixed("Desliza", "En resumen", "Lee la historia completa", "Sigue a {}"),
    "it": Fixed("Scorri", "In breve", "Leggi tutta la storia", "Segui {}"),
    "pt": Fixed("Deslize", "Em resumo", "Leia a hist\u00f3ria completa", "Siga {}"),
    "nl": Fixed("Veeg verder", "In het kort", "Lees het hele verhaal", "Volg {}"),
    "pl": Fixed("Przesu\u0144", "W skr\u00f3cie", "Przeczytaj ca\u0142o\u015b\u0107", "Obserwuj {}"),
    "sv": Fixed("Svep", "I korthet", "Läs hela artikeln", "Följ {}"),
    "da": Fixed("Swipe", "Kort sagt", "Læs hele historien", "Følg {}"),
    "nb": Fixed("Sveip", "Kort sagt", "Les hele saken", "Følg {}"),
    "cs": Fixed("Dále", "Stručně", "Přečtěte si celý text", "Sledujte {}"),
    "fi": Fixed("Pyyhkäise", "Lyhyesti", "Lue koko juttu", "Seuraa: {}"),
    "ru": Fixed("Листайте", "Коротко", "Читать полностью", "Подписывайтесь: {}"),
    "uk": Fixed("Гортайте", "Коротко", "Читати повністю", "Підписуйтесь: {}"),
    "tr": Fixed("Kaydır", "Kısaca", "Haberin tamamını oku", "Takip et: {}"),
    "el": Fixed("Σύρετε", "Με λίγα λόγια", "Διαβάστε όλο το άρθρο", "Ακολουθήστε: {}"),
    "hu": Fixed("Lapozz", "Röviden", "Olvasd el a teljes cikket", "Kövesd: {}"),
    "ro": Fixed("Glisați", "Pe scurt", "Citiți tot articolul", "Urmăriți: {}"),
    "ja": Fixed("スワイプ", "要点", "全文を読む", "{} をフォロー"),
    "zh": Fixed("滑动", "要点", "阅读全文", "关注 {}"),
    "zh-hant": Fixed("滑動", "重點", "閱讀全文", "追蹤 {}"),
    "ko": Fixed("넘기기", "요약", "전문 읽기", "{} 팔로우"),
    "hi": Fixed("आगे बढ़ें", "संक्षेप में", "पूरी खबर पढ़ें", "फ़ॉलो करें: {}"),
    "th": Fixed("เลื่อน", "สรุปสั้น ๆ", "อ่านเรื่องเต็ม", "ติดตาม {}"),
    "ar": Fixed(
        "\u0627\u0633\u062d\u0628",
        "\u0628\u0627\u062e\u062a\u0635\u0627\u0631",
        "\u0627\u0642\u0631\u0623 \u0627\u0644\u0642\u0635\u0629 \u0643\u0627\u0645\u0644\u0629",
        "\u062a\u0627\u0628\u0639\u0648\u0627 {}",
    ),
    "he": Fixed(
        "\u05d4\u05d7\u05dc\u05d9\u05e7\u05d5",
        "\u05d1\u05e7\u05e6\u05e8\u05d4",
        "\u05dc\u05e1\u05d9\u05e4\u05d5\u05e8 \u05d4\u05de\u05dc\u05d0",
        "\u05e2\u05e7\u05d1\u05d5 \u05d0\u05d7\u05e8\u05d9 {}",
    ),
}


def fixed_words(language: str) -> Fixed:
    """English for a language that isn't known."""
    return known_words(language) or _ENGLISH


def known_words(language: str) -> Fixed | None:
    return for_language(_BY_LANGUAGE, language)


def source_word(language: str) -> str:
    """“Source” in the language of a tag; in English where nobody has told us."""
    return for_language(_SOURCE, language) or "Source"


def caption_of(answer: Mapping[str, Any]) -> str:
    """The text under the film, line by line, as a model answered it."""
    return "\n".join(line for one in answer["description"].splitlines() if (line := collapse(one)))


def tags_of(answer: Mapping[str, Any]) -> list[str]:
    """Without their marks; empty ones are left out."""
    return [tag for one in answer["tags"] if (tag := one.strip().lstrip("#"))]


def clips_in(draft: Draft) -> Sequence[Any]:
    """What the content says that the film shows, whatever stands there."""
    found = draft.content.get("clips")
    return found if isinstance(found, list | tuple) else ()


def is_span(one: object) -> bool:
    """Whether it names a video with two of its seconds."""
    return (
        isinstance(one, dict)
        and isinstance(one.get("upload"), str)
        and all(isinstance(one.get(name), int | float) for name in ("start", "end"))
        and 0 <= one["start"] < one["end"]
    )


def alt_text_of(draft: Draft) -> str:
    return paragraph_of(line.strip() for line in draft.body.splitlines() if line.strip())[:1000]


def title_from(brief: Brief, persona: PersonaCard, sentences: Sequence[str], *, most: int) -> str | None:
    """The source's title; where it is too long or isn't there, the first of the sentences that is short enough.

    Where none is, the first words of the title or of the first sentence; None where there is nothing to take them from.
    """
    whole = collapse(brief.title.replace("\n", " "))
    # What leads away isn't taken for an aside.
    is_harmless = is_clean(whole) and not find_links(whole) and is_allowed(whole, brief, persona)
    titles = [
        title
        for title in ((whole, drop_asides(whole)) if is_harmless else ())
        if title and not missing(typeset(title, brief.language))
    ]
    short = (one for one in (*titles, *sentences) if drawn_length(one) <= most)
    cut = (first_words(one, most // 2 if is_wide(one) else most) for one in (*titles[:1], *sentences[:1]))
    return next(chain(short, cut), None)


def end_of(brief: Brief, persona: PersonaCard, language: str) -> str:
    """“Source: …” with the site's name; without a source the persona's own name."""
    host = (urlsplit(ascii_url(brief.url)).hostname or "").removeprefix("www.")
    if host:
        return f"{source_word(language)}: {host}"
    bare = persona.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else collapse(persona.name) or collapse(brief.title)


def credit_of(credit: str, persona: PersonaCard, language: str) -> str:
    """“Source: …” with whose picture it is; the persona's own handle where nobody is named."""
    if credit.strip():
        return f"{source_word(language)}: {credit.strip()}"
    bare = persona.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else persona.name.strip()


def captioned(title: str, story: str, persona: PersonaCard) -> str:
    """The title, and the story too where the persona's rules ask for more than it says."""
    return title if not missing_in(title, persona) else f"{title}\n{story}"


def cast_of(persona: PersonaCard, *, has_portrait: bool) -> Cast:
    return Cast(
        name=persona.name,
        handle=persona.handle,
        primary=persona.brand.get("primary"),
        accent=persona.brand.get("accent"),
        has_portrait=has_portrait,
    )


def check_content(
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    what: str,
    holds: str = "a caption, tags and a script",
) -> Check:
    fault = None
    caption, tags = draft.content.get("caption"), draft.content.get("tags")
    if not isinstance(caption, str) or not isinstance(tags, list):
        fault = f"The content of a {what} is {holds}."
    elif len(draft.title) > TITLE_MOST:
        fault = f"The title has {len(draft.title)} characters; {TITLE_MOST} are the most."
    elif len(tags) > TAGS_MOST:
        fault = f"The film has {len(tags)} tags; {TAGS_MOST} are the most."
    elif any(_TAG.fullmatch(str(tag)) is None for tag in tags):
        fault = "A tag is one word."
    elif strange_addresses(caption, brief, persona, url=source.url):
        fault = "The caption has a link that is neither the source's nor the persona's."
    return judged("content", "The film has a title, a caption and at most five tags.", fault)


def check_film_links(words: str) -> Check:
    found = [link.url for link in find_links(words) if link.has_scheme]
    fault = f"Nobody can follow a link in a film: {', '.join(found[:3])}." if found else None
    return judged("links_in_film", "The words on the screen hold no link.", fault)


def check_glyphs(draft: Draft, persona: PersonaCard) -> Check:
    return judge_glyphs(f"{typeset(draft.body, draft.language)} {persona.name} {persona.handle}")


def check_fits(film: Callable[[], Storyboard], *, told_elsewhere: frozenset[str]) -> Check:
    """Whether what `film` makes can be filmed; refusals of those codes are told by checks of their own."""
    fault = None
    try:
        board = film()
    except Refused as refused:
        fault = None if refused.code in told_elsewhere else refused.message
    else:
        beyond = outside(board)
        if beyond:
            fault = f"These words stand where an app covers them: “{beyond[0]}”."
        elif found := storyboard_faults(board):
            fault = found[0]
    return judged("fits", "The words fit into their places, inside of what every app leaves free.", fault)


def judge_glyphs(words: str) -> Check:
    """Of words as they are set."""
    absent = missing(words)
    fault = f"The fonts for films have no glyphs for {list_characters(absent)}." if absent else None
    return judged("glyphs", "The bundled fonts draw every character.", fault)
