"""Template Short: a title, three points and an end card on the screen, 6 to 20 seconds, without a voice."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.engines.allow_list import is_allowed, strange_addresses
from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, variant_schema
from pipeline.engines.persona_rules import missing_in
from pipeline.engines.short_post import ShortPost
from pipeline.links import ascii_url, find_links
from pipeline.plugins import Refused
from pipeline.render.clusters import missing, named
from pipeline.render.typeset import typeset
from pipeline.render.video import points
from pipeline.render.video.points import POINTS, SLOTS, Cast, Values
from pipeline.render.video.storyboard import SIZE, faults, outside
from pipeline.sentences import split_sentences
from pipeline.wording import collapse, drop_asides, is_clean, is_self_contained, trim_conjunction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText
    from pipeline.render.plan import Media
    from pipeline.render.video.storyboard import Storyboard

SECONDS: Final = (6.0, 20.0)
TITLE_MOST: Final = 90
TAGS_MOST: Final = 5
_LIKENESS: Final = 0.5
"""Two sentences that share this much of their words are one point twice."""
_WORD: Final = re.compile(r"\w+")
_TAG: Final = re.compile(r"#?[^\W_][\w]{0,39}")
_SOURCE: Final = {
    "ar": "المصدر",
    "cs": "Zdroj",
    "da": "Kilde",
    "de": "Quelle",
    "es": "Fuente",
    "fi": "Lähde",
    "fr": "Source",
    "he": "מקור",
    "it": "Fonte",
    "nl": "Bron",
    "no": "Kilde",
    "pl": "Źródło",
    "pt": "Fonte",
    "ru": "Источник",
    "sv": "Källa",
    "tr": "Kaynak",
    "uk": "Джерело",
}
_FROM_SHORT_POST: Final = frozenset(
    {
        *("link_origin", "hashtags", "mentions", "contacts"),
        *("characters", "numbers", "quotations", "claims", "instructions"),
    }
)
_RULES: Final = f"""\
A Template Short is a silent film of about 15 seconds: a title, three points that come one after the other, an end card.
- The title: at most {SLOTS["title"].characters - 12} characters. It says what happened or why it matters; no question that the points don't answer.
- Exactly {POINTS} points, each at most {SLOTS["point"].characters - 15} characters, better 40 to 80: each is read in four seconds. Each is one whole sentence, understood without the others, and says one thing.
- The description: one or two sentences for the text under the film.
- At most {TAGS_MOST} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account, use no emoji on the screen.
- The end card names the source; it is added.
"""


class TemplateShort(Engine):
    """What is on the screen is the body, line by line: title, points, end card. So an edit of it is filmed again."""

    kind = "template_short"
    name = "Template Short"
    bucket = "video"
    version = 1
    credits = 5
    made_from = ("text", "topic")
    sizes = (SIZE,)

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        usable = [
            sentence
            for start, end in split_sentences(source.text)
            if _is_usable(sentence := _as_point(source.text[start:end]))
        ]
        if len(usable) >= POINTS:
            return None
        most = SLOTS["point"].characters
        return f"A Template Short needs {POINTS} sentences of at most {most} characters; this item has {len(usable)}."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Each variant has three points of its own, best first, in the order of the source, whatever the seed."""
        del seed
        usable = _points(brief, persona)
        title = _title(brief, persona, usable)
        drafts = []
        for number in range(variants):
            chosen = usable[number * POINTS : (number + 1) * POINTS]
            if len(chosen) < POINTS or title is None:
                break
            chosen = sorted(chosen, key=lambda one: one[1].start)
            drafts.append(_draft(brief, persona, title, chosen))
        if not drafts:
            message = f"The source holds no title and {POINTS} sentences that are short enough for a film and stand alone."
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def draft_schema(self) -> Mapping[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        return variant_schema(
            {
                "title": {"type": "string", "description": "What stands on the first card."},
                "points": {**texts, "description": f"The {POINTS} points, in order."},
                "description": {"type": "string", "description": "The text under the film."},
                "tags": {**texts, "description": "One word each; an empty list for none."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """The end card and the source's address are added here: a model neither sees nor writes them."""
        said = [line for one in answer["points"] if (line := collapse(one.replace("\n", " ")))]
        title = collapse(answer["title"].replace("\n", " "))
        language = persona.language or brief.language
        values = Values(title, tuple(said), _end(brief, persona, language))
        tags = [tag for one in answer["tags"] if (tag := one.strip().lstrip("#"))]
        caption = "\n".join(line for one in answer["description"].splitlines() if (line := collapse(one)))
        return _as_draft(
            values,
            brief,
            claims=claims_of(answer, brief),
            language=language,
            angle=angle,
            tags=tags,
            caption=caption,
        )

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Short Post's rules for the words, and whether they can be filmed."""
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        judged = self._post.check(as_post, brief, source, persona)
        return (
            _check_content(draft, brief, source, persona),
            *(check for check in judged if check.code in _FROM_SHORT_POST),
            _check_slots(draft),
            _check_links(draft),
            _check_glyphs(draft, persona),
            _check_fits(draft, persona),
        )

    def film(self, draft: Draft, persona: PersonaCard, media: Media) -> Storyboard:
        """Raises `MissingGlyphs`, `DoesNotFit`, or `Refused` for a body that isn't title, points and end card."""
        return points.plan(
            values_of(draft),
            _cast(persona, has_portrait=media.has_portrait),
            language=draft.language,
            alt_text=alt_text_of(draft),
        )


def values_of(draft: Draft) -> Values:
    """The slots of a body, one a line. Raises `Refused` where there are too few or too many."""
    lines = [line for one in draft.body.splitlines() if (line := one.strip())]
    if len(lines) != POINTS + 2:
        message = (
            f"The film shows {POINTS + 2} cards, one for each line of the text: the title, {POINTS} points and the end "
            f"card. There are {len(lines)} lines."
        )
        raise Refused(message, code="wrong_count")
    return Values(lines[0], tuple(lines[1:-1]), lines[-1])


def alt_text_of(draft: Draft) -> str:
    return " ".join(line.strip() for line in draft.body.splitlines() if line.strip())[:1000]


def _as_point(sentence: str) -> str:
    return trim_conjunction(collapse(sentence.replace("\n", " ")))


def _is_usable(sentence: str) -> bool:
    return (
        len(sentence) <= SLOTS["point"].characters
        and _WORD.search(sentence) is not None
        and is_clean(sentence)
        and not find_links(sentence)
        and is_self_contained(sentence)
    )


def _points(brief: Brief, persona: PersonaCard) -> list[tuple[str, Fact]]:
    """The sentences that can be points, best first, none like another or like the title."""
    found: list[tuple[str, Fact]] = []
    said = [_words(brief.title)]
    for fact in brief.facts:
        sentence = _as_point(fact.quote)
        words = _words(sentence)
        if (
            _is_usable(sentence)
            and not missing(typeset(sentence, brief.language))
            and is_allowed(sentence, brief, persona)
            and not any(_is_alike(words, other) for other in said)
        ):
            found.append((sentence, fact))
            said.append(words)
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _is_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and len(one & other) >= _LIKENESS * len(one | other)


def _title(brief: Brief, persona: PersonaCard, usable: list[tuple[str, Fact]]) -> str | None:
    """The source's title; where it is too long or isn't there, the best short sentence, which then is no point."""
    most = SLOTS["title"].characters
    whole = collapse(brief.title.replace("\n", " "))
    # What leads away isn't taken for an aside.
    is_harmless = is_clean(whole) and not find_links(whole) and is_allowed(whole, brief, persona)
    for title in (whole, drop_asides(whole)) if is_harmless else ():
        if title and len(title) <= most and not missing(typeset(title, brief.language)):
            return title
    for place, (sentence, _) in enumerate(usable):
        if len(sentence) <= most:
            del usable[place]
            return sentence
    return None


def _end(brief: Brief, persona: PersonaCard, language: str) -> str:
    """“Source: …” with the site's name; without a source the persona's own name."""
    host = (urlsplit(ascii_url(brief.url)).hostname or "").removeprefix("www.")
    if host:
        tag = language.lower().replace("_", "-").partition("-")[0]
        return f"{_SOURCE.get(tag, 'Source')}: {host}"
    bare = persona.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else collapse(persona.name) or collapse(brief.title)


def _draft(brief: Brief, persona: PersonaCard, title: str, chosen: Sequence[tuple[str, Fact]]) -> Draft:
    values = Values(title, tuple(sentence for sentence, _ in chosen), _end(brief, persona, brief.language))
    claims = tuple(Claim(sentence, fact.quote, fact.start, fact.end) for sentence, fact in chosen)
    caption = _captioned(values, persona)
    return _as_draft(
        values, brief, claims=claims, language=brief.language, angle="", tags=[], caption=caption
    )


def _captioned(values: Values, persona: PersonaCard) -> str:
    """The title, and the points too where the persona's rules ask for more than it says."""
    return (
        values.title if not missing_in(values.title, persona) else "\n".join((values.title, *values.points))
    )


def _as_draft(
    values: Values,
    brief: Brief,
    *,
    claims: tuple[Claim, ...],
    language: str,
    angle: str,
    tags: list[str],
    caption: str,
) -> Draft:
    body = "\n".join((values.title, *values.points, values.end))
    url = ascii_url(brief.url)
    return Draft(
        title=values.title[:TITLE_MOST],
        body=body,
        body_format="text",
        content={"caption": f"{caption}\n{url}" if url else caption, "tags": tags, "script": body},
        claims=claims,
        language=language,
        angle=angle,
    )


def _cast(persona: PersonaCard, *, has_portrait: bool) -> Cast:
    return Cast(
        name=persona.name,
        handle=persona.handle,
        primary=persona.brand.get("primary"),
        accent=persona.brand.get("accent"),
        has_portrait=has_portrait,
    )


def _outcome(code: str, passed: str, fault: str | None) -> Check:
    return Check(code, "passed", passed) if fault is None else Check(code, "failed", fault)


def _check_content(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    fault = None
    caption, tags = draft.content.get("caption"), draft.content.get("tags")
    if not isinstance(caption, str) or not isinstance(tags, list):
        fault = "The content of a Template Short is a caption, tags and a script."
    elif len(draft.title) > TITLE_MOST:
        fault = f"The title has {len(draft.title)} characters; {TITLE_MOST} are the most."
    elif len(tags) > TAGS_MOST:
        fault = f"The film has {len(tags)} tags; {TAGS_MOST} are the most."
    elif any(_TAG.fullmatch(str(tag)) is None for tag in tags):
        fault = "A tag is one word."
    elif strange_addresses(caption, brief, persona, url=source.url):
        fault = "The caption has a link that is neither the source's nor the persona's."
    return _outcome("content", "The film has a title, a caption and at most five tags.", fault)


def _check_slots(draft: Draft) -> Check:
    fault = None
    try:
        values = values_of(draft)
    except Refused as refused:
        fault = refused.message
    else:
        fault = points.too_long(values)
        seconds = points.seconds_of(values)
        if fault is None and not SECONDS[0] <= seconds <= SECONDS[1]:
            fault = f"The film is {seconds:.1f} seconds long; it takes {SECONDS[0]:.0f} to {SECONDS[1]:.0f}."
    return _outcome("slots", "Title, three points and end card have the length that a film takes.", fault)


def _check_links(draft: Draft) -> Check:
    found = [link.url for link in find_links(draft.body) if link.has_scheme]
    fault = f"Nobody can follow a link in a film: {', '.join(found[:3])}." if found else None
    return _outcome("links_in_film", "The words on the screen hold no link.", fault)


def _check_glyphs(draft: Draft, persona: PersonaCard) -> Check:
    absent = missing(f"{typeset(draft.body, draft.language)} {persona.name} {persona.handle}")
    fault = f"The fonts for films have no glyphs for {named(absent)}." if absent else None
    return _outcome("glyphs", "The bundled fonts draw every character.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    fault = None
    try:
        board = points.plan(values_of(draft), _cast(persona, has_portrait=False), language=draft.language)
    except Refused as refused:
        # How many lines there are is told by the check of slots.
        fault = None if refused.code == "wrong_count" else refused.message
    else:
        beyond = outside(board)
        if beyond:
            fault = f"These words stand where an app covers them: “{beyond[0]}”."
        elif faults(board):
            fault = faults(board)[0]
    return _outcome("fits", "The words fit into their slots, inside of what every app leaves free.", fault)


PLUGIN = TemplateShort()
