"""Carousel: four to ten slides that tell one source, a hook first, a call last; as pictures and as one PDF."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, judge, variant_schema
from pipeline.engines.carousel.slides import (
    CALL,
    FEWEST,
    HOOK,
    LEAST_SIZE,
    MOST,
    POINT,
    RECAP,
    WORDS_MOST,
    Slide,
    draw_slides,
    slides_in,
)
from pipeline.engines.checks.allowed_contacts import check_suspicion, is_allowed, title_of
from pipeline.engines.checks.persona_rules import keeps_rules
from pipeline.engines.shared.fixed_words import fixed_words
from pipeline.engines.shared.picture_parts import (
    caption_fault,
    check_glyphs,
    check_picture_links,
    handle_of,
    with_last_line,
)
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, THREAD_MARK
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render.picture_plan import UPRIGHT, AvailableMedia, Layout
from pipeline.text.links import ascii_url, find_links
from pipeline.text.prose.verbatim_edits import (
    clause_cuts,
    collapse,
    count_words,
    counted,
    drop_asides,
    first_words,
    is_clean,
    is_self_contained,
    trim_conjunction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText

SIZES: Final = (UPRIGHT,)
MOST_POINTS: Final = 5
"""That the offline writer takes: one sentence each."""
FEWEST_POINTS: Final = 2
_HOOK_WORDS: Final = 16
_RECAP_WORDS: Final = 14
_RECAP_LINES: Final = 3
_BODY_MOST: Final = 240
"""Characters of the words beside the slides, so that an address fits with them."""
_TITLE_LENGTH: Final = 90

_WORD: Final = re.compile(r"\w+")
_FIGURE: Final = re.compile(r"\d")
_VISIBLE: Final = re.compile(r"\w")
_OWN_CHECKS: Final = frozenset({"content", "length", "link_count", "instructions"})

_RULES: Final = f"""\
A Carousel tells one source in slides that somebody swipes through, each with few large words.
- "caption": one or two sentences that go beside the slides, {_BODY_MOST} characters at most. Write no link.
- "hook": the first slide, at most {_HOOK_WORDS - 4} words: what happened or why it matters, so that one swipes on.
- "points": 3 to 6 slides, each one idea: "title" of at most 6 words, "text" of at most 30. Each is understood by itself.
- "recap": 2 to 4 lines of at most 10 words each, that say the points again in short.
- "call": the last slide, at most 10 words: what to do now. No link, no account: the persona's are added.
- Every slide has at most {WORDS_MOST} words. No numbering, no hashtags, no accounts; slides are counted by themselves.
"""


class Carousel(Engine):
    """Its slides are drawn; its body goes beside them and isn't."""

    kind = "carousel"
    name = "Carousel"
    bucket = "image"
    version = 1
    credits = 3
    made_from = ("text", "topic")
    sizes = SIZES
    draft_tokens = 6_000

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        words = len(_WORD.findall(source.text))
        if not _VISIBLE.search(source.text):
            return "This item has no words of its own, and a carousel needs at least two sentences."
        if words < 2 * FEWEST_POINTS:
            return "This item has too few words: a carousel needs at least two sentences."
        return None

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """One sentence on a slide, in the source's order; a further variant takes the next best sentences."""
        del seed
        usable = [one for one in _sentences(brief) if _is_usable(one[0], brief, persona)]
        drafts: list[Draft] = []
        while len(drafts) < max(1, variants):
            taken, usable = usable[:MOST_POINTS], usable[MOST_POINTS:]
            draft = _offline_draft(taken, brief, persona, is_first=not drafts)
            if draft is None:
                break
            drafts.append(draft)
        if not drafts:
            message = "The source has too few sentences that could each stand on a slide of their own."
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def draft_schema(self) -> Mapping[str, Any]:
        text = {"type": "string"}
        point = {
            "type": "object",
            "properties": {"title": text, "text": text},
            "required": ["title", "text"],
            "additionalProperties": False,
        }
        return variant_schema(
            {
                "caption": {"type": "string", "description": "The words beside the slides."},
                "hook": {"type": "string", "description": "The first slide."},
                "points": {"type": "array", "items": point},
                "recap": {"type": "array", "items": text},
                "call": {"type": "string", "description": "The last slide."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        language = persona.language or brief.language
        words = fixed_words(language)
        recap = "\n".join(line for line in map(collapse, answer["recap"]) if line)
        points = [
            Slide(POINT, collapse(point["title"]), collapse(point["text"])) for point in answer["points"]
        ]
        slides = [
            Slide(HOOK, collapse(answer["hook"]), ""),
            *points,
            *([Slide(RECAP, words.recap, recap)] if recap else []),
            Slide(CALL, collapse(answer["call"]), _sign_off(brief, persona, language)),
        ]
        if not FEWEST <= len(slides) <= MOST:
            message = f"With hook, recap and call it has {len(slides)} slides; {FEWEST} to {MOST} fit."
            raise Refused(message, code="slide_count")
        body = collapse(answer["caption"])
        return _draft(body, slides, claims_of(answer, brief), brief, persona, language=language, angle=angle)

    def drawn(self, draft: Draft) -> object:
        return draft.content.get("slides")

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """The slides' own rules, then a Short Post's for all words, and whether each slide can be drawn."""
        try:
            slides, fault = slides_in(draft.content), None
        except Refused as refused:
            slides, fault = (), refused
        said = "\n".join(slide.words for slide in slides)
        # A sign that no number and no address goes across.
        shown = f"{draft.body}\n|\n{said}"
        as_post = dataclasses.replace(draft, body=shown, content={"parts": [shown]})
        judged = self._post.check(as_post, brief, source, persona)
        return (
            _check_content(
                draft,
                slides,
                fault,
                caption_fault(draft, brief, source, persona),
                has_call=bool(brief.url or handle_of(persona)),
            ),
            _check_words(slides, fault),
            _check_body(draft),
            *(check for check in judged if check.code not in _OWN_CHECKS),
            check_picture_links(said),
            check_glyphs(said, draft.language, persona),
            _check_fits(draft, persona, slides),
            check_suspicion(brief),
        )

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout:
        """A picture for each slide, and a document of them all. Raises `Refused` for slides that can't be drawn."""
        if media.size not in SIZES:
            message = f"A Carousel is {SIZES[0]} pixels, not {media.size}."
            raise ValueError(message)
        pictures = draw_slides(slides_in(draft.content), persona, media, language=draft.language)
        return Layout(pictures, document="carousel.pdf", title=draft.title, language=draft.language)


def _sentences(brief: Brief) -> list[tuple[str, Fact]]:
    """As they can stand on a slide, best first: those that stand alone before those that don't."""
    found = [(trim_conjunction(collapse(fact.quote)), fact) for fact in brief.facts]
    alone = [one for one in found if is_self_contained(one[0], brief.language)]
    short = [(_shortened(words, WORDS_MOST), fact) for words, fact in alone]
    return [(words, fact) for words, fact in short if words]


def _shortened(sentence: str, most: int) -> str:
    """The sentence with the fewest cuts that bring it under so many words; empty where none does."""
    for wording in (sentence, bare := drop_asides(sentence), *clause_cuts(bare)):
        if count_words(wording) <= most:
            return wording
    return ""


def _told_shortly(sentence: str, most: int) -> str:
    """As `_shortened`, but a cut one has to hold a figure: what is left of others may be no more than their subject."""
    short = _shortened(sentence, most)
    return short if not short.endswith("\u2026") or _FIGURE.search(short) else ""


def _is_usable(words: str, brief: Brief, persona: PersonaCard) -> bool:
    return (
        _VISIBLE.search(words) is not None
        and is_clean(words)
        and not find_links(words)
        and THREAD_MARK not in words
        and words.count("#") <= MAX_HASHTAGS
        and is_allowed(words, brief, persona)
    )


def _offline_draft(
    taken: Sequence[tuple[str, Fact]], brief: Brief, persona: PersonaCard, *, is_first: bool
) -> Draft | None:
    """None where so few sentences make no carousel, or none keeps the persona's rules beside the slides."""
    if len(taken) < FEWEST_POINTS:
        return None
    sentences = [sentence for sentence, _ in taken]
    bodies = [one if len(one) <= _BODY_MOST else first_words(one, _BODY_MOST) for one in sentences]
    body = next((one for one in bodies if keeps_rules(one, persona)), "")
    if not body:
        return None
    points = sorted(taken, key=lambda one: one[1].start)
    words = fixed_words(brief.language)
    recap = _recap(sentences) if len(taken) > FEWEST_POINTS else ()
    is_title_best = is_first or len(taken) == FEWEST_POINTS
    hook = _hook(sentences[0], brief, persona, is_title_best=is_title_best)
    slides = [
        hook,
        # What opens it isn't told again.
        *(Slide(POINT, "", sentence) for sentence, _ in points if sentence != hook.title),
        *([Slide(RECAP, words.recap, "\n".join(recap))] if recap else []),
    ]
    sign_off = _sign_off(brief, persona, brief.language)
    # The name alone says nothing: it only makes the smallest carousel whole.
    if brief.url or sign_off or len(slides) < FEWEST:
        slides.append(Slide(CALL, words.read_on if brief.url else persona.name, sign_off))
    slides = [slide for slide in slides if slide.words]
    if len(slides) < FEWEST:
        return None
    claims = tuple(
        Claim(text=sentence, quote=fact.quote, start=fact.start, end=fact.end) for sentence, fact in points
    )
    return _draft(body, slides, claims, brief, persona, language=brief.language, angle="story")


def _hook(best: str, brief: Brief, persona: PersonaCard, *, is_title_best: bool) -> Slide:
    """The source's title; for a further variant, or without a usable title, the beginning of the best sentence."""
    title = collapse(brief.title)
    short = _told_shortly(best, _HOOK_WORDS)
    if title and _is_usable(title, brief, persona) and (is_title_best or not short):
        return Slide(HOOK, first_words(title, _TITLE_LENGTH), "")
    return Slide(HOOK, short or first_words(best, _TITLE_LENGTH), "")


def _recap(sentences: Sequence[str]) -> tuple[str, ...]:
    """What is short enough to be said again, the best first; none where only one is."""
    short = [told for one in sentences if (told := _told_shortly(one, _RECAP_WORDS))]
    return tuple(short[:_RECAP_LINES]) if len(short) >= FEWEST_POINTS else ()


def _sign_off(brief: Brief, persona: PersonaCard, language: str) -> str:
    """Where the story is, and whom to follow."""
    try:
        host = (urlsplit(brief.url.strip()).hostname or "").lower()
    except ValueError:
        host = ""
    bare = host.removeprefix("www.")
    site = bare if bare and is_allowed(bare, brief, persona) else host
    handle = handle_of(persona)
    follow = fixed_words(language).follow.format(handle) if handle else ""
    return "\n".join(part for part in (site, follow) if part)


def _draft(
    body: str,
    slides: Sequence[Slide],
    claims: tuple[Claim, ...],
    brief: Brief,
    persona: PersonaCard,
    *,
    language: str,
    angle: str,
) -> Draft:
    return Draft(
        title=title_of(brief, persona, body),
        body=body,
        body_format="text",
        content={
            "caption": with_last_line(body, ascii_url(brief.url)),
            "slides": [slide.as_json() for slide in slides],
        },
        claims=claims,
        language=language,
        angle=angle,
    )


def _check_content(
    draft: Draft, slides: Sequence[Slide], refused: Refused | None, of_caption: str | None, *, has_call: bool
) -> Check:
    """`has_call` where there is a link or somebody to follow: else the last point ends it."""
    fault = of_caption
    if refused is not None and refused.code != "too_many_words":
        fault = refused.message
    elif not _VISIBLE.search(draft.body):
        fault = "There are no words beside the slides."
    elif slides and (slides[0].kind != HOOK or (has_call and slides[-1].kind != CALL)):
        fault = "The first slide is the hook and the last one the call."
    ends = "call" if slides and slides[-1].kind == CALL else "last point"
    return judge("content", f"There is a caption, and {len(slides)} slides from hook to {ends}.", fault)


def _check_words(slides: Sequence[Slide], refused: Refused | None) -> Check:
    fault = refused.message if refused is not None and refused.code == "too_many_words" else None
    most = max((count_words(slide.words) for slide in slides), default=0)
    return judge("slide_words", f"No slide has more than {most} of {WORDS_MOST} words.", fault)


def _check_body(draft: Draft) -> Check:
    length = len(draft.body)
    most = _BODY_MOST + 20
    fault = (
        f"The words beside the slides have {length} characters; {most} are the most."
        if length > most
        else None
    )
    return judge("length", f"The words beside the slides have {counted(length, 'character')}.", fault)


def _check_fits(draft: Draft, persona: PersonaCard, slides: Sequence[Slide]) -> Check:
    fault = None
    try:
        draw_slides(slides, persona, AvailableMedia(size=UPRIGHT), language=draft.language)
    except Refused as refused:
        fault = refused.message
    return judge("fits", f"Each slide's words fit at {LEAST_SIZE} pixels or more.", fault)


PLUGIN = Carousel()
