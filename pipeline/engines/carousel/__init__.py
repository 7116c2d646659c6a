"""Makes a Carousel: four to ten slides from one source, hook first and call last, as pictures and as one PDF."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.carousel.slides import (
    CALL,
    HOOK,
    MAX_SLIDE_WORDS,
    MAX_SLIDES,
    MIN_SIZE,
    MIN_SLIDES,
    POINT,
    RECAP,
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
from pipeline.render.picture_types import UPRIGHT, AvailableMedia, Layout
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
MAX_POINTS: Final = 5
MIN_POINTS: Final = 2
"""The points of a carousel that is made without a model, one sentence each."""
_MAX_HOOK_WORDS: Final = 16
_MAX_RECAP_WORDS: Final = 14
"""The words of one line of the recap."""
_MAX_RECAP_LINES: Final = 3
_MAX_BODY_CHARACTERS: Final = 240
"""The maximum of the words next to the slides, so that an address fits too."""
_MAX_TITLE_CHARACTERS: Final = 90
"""The maximum of a source's title, or of a sentence's beginning, as the hook."""

_WORD: Final = re.compile(r"\w+")
_FIGURE: Final = re.compile(r"\d")
_VISIBLE: Final = re.compile(r"\w")
_OWN_CHECKS: Final = frozenset({"content", "length", "link_count", "instructions"})

_RULES: Final = f"""\
A Carousel tells one source in slides that somebody swipes through, each with few large words.
- "caption": one or two sentences that go beside the slides, {_MAX_BODY_CHARACTERS} characters at most. Write no link.
- "hook": the first slide, at most {_MAX_HOOK_WORDS - 4} words: what happened or why it matters, so that one swipes on.
- "points": 3 to 6 slides, each one idea: "title" of at most 6 words, "text" of at most 30. Each is understood by itself.
- "recap": 2 to 4 lines of at most 10 words each, that say the points again in short.
- "call": the last slide, at most 10 words: what to do now. No link, no account: the persona's are added.
- Every slide has at most {MAX_SLIDE_WORDS} words. No numbering, no hashtags, no accounts; slides are counted by themselves.
"""


class Carousel(Engine):
    """Makes slides, which are drawn, and a body, which stands next to them."""

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
        if words < 2 * MIN_POINTS:
            return "This item has too few words: a carousel needs at least two sentences."
        return None

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return drafts of one sentence a slide, in the source's order, the best in the first, whatever the seed."""
        del seed
        usable = [
            candidate for candidate in _candidate_sentences(brief) if _is_usable(candidate[0], brief, persona)
        ]
        drafts: list[Draft] = []
        while len(drafts) < max(1, variants):
            chosen, usable = usable[:MAX_POINTS], usable[MAX_POINTS:]
            draft = _offline_draft(chosen, brief, persona, is_first=not drafts)
            if draft is None:
                break
            drafts.append(draft)
        if not drafts:
            message = "The source has too few sentences that could each stand on a slide of their own."
            raise Refused(message, code="nothing_to_say")
        return tuple(drafts)

    def draft_schema(self) -> Mapping[str, Any]:
        """Return the schema of the caption and of the slides: hook, points, recap and call."""
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
        """Build the draft. The recap's title, the site and the persona's handle are added here.

        Raises `Refused` if there are too few or too many slides, or a claim cites an unknown fact.
        """
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
        if not MIN_SLIDES <= len(slides) <= MAX_SLIDES:
            message = (
                f"With hook, recap and call it has {len(slides)} slides; {MIN_SLIDES} to {MAX_SLIDES} fit."
            )
            raise Refused(message, code="slide_count")
        body = collapse(answer["caption"])
        return _draft(body, slides, claims_of(answer, brief), brief, persona, language=language, angle=angle)

    def drawn(self, draft: Draft) -> object:
        return draft.content.get("slides")

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check the slides, run a Short Post's checks on all words, and check that each slide can be drawn."""
        try:
            slides, fault = slides_in(draft.content), None
        except Refused as refused:
            slides, fault = (), refused
        slide_words = "\n".join(slide.words for slide in slides)
        # A separator that no number and no address spans.
        all_words = f"{draft.body}\n|\n{slide_words}"
        as_post = dataclasses.replace(draft, body=all_words, content={"parts": [all_words]})
        post_checks = self._post.check(as_post, brief, source, persona)
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
            *(check for check in post_checks if check.code not in _OWN_CHECKS),
            check_picture_links(slide_words),
            check_glyphs(slide_words, draft.language, persona),
            _check_fits(draft, persona, slides),
            check_suspicion(brief),
        )

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout:
        """Return a picture for each slide, and a document of them all.

        Raises `Refused` if the slides are invalid or can't be drawn, and `ValueError` for a size that isn't in
        `SIZES`.
        """
        if media.size not in SIZES:
            message = f"A Carousel is {SIZES[0]} pixels, not {media.size}."
            raise ValueError(message)
        pictures = draw_slides(slides_in(draft.content), persona, media, language=draft.language)
        return Layout(pictures, document="carousel.pdf", title=draft.title, language=draft.language)


def _candidate_sentences(brief: Brief) -> list[tuple[str, Fact]]:
    """Return the sentences that stand alone, best first, shortened to what a slide takes."""
    sentences = [(trim_conjunction(collapse(fact.quote)), fact) for fact in brief.facts]
    self_contained = [sentence for sentence in sentences if is_self_contained(sentence[0], brief.language)]
    shortened = [(_shorten(words, MAX_SLIDE_WORDS), fact) for words, fact in self_contained]
    return [(words, fact) for words, fact in shortened if words]


def _shorten(sentence: str, max_words: int) -> str:
    """Return the sentence with the fewest cuts that bring it to `max_words`, or "" if none does."""
    for wording in (sentence, without_asides := drop_asides(sentence), *clause_cuts(without_asides)):
        if count_words(wording) <= max_words:
            return wording
    return ""


def _shorten_for_headline(sentence: str, max_words: int) -> str:
    """Shorten as `_shorten` does, but return "" for a cut sentence without a figure, which may lose its point."""
    short = _shorten(sentence, max_words)
    return short if not short.endswith("\u2026") or _FIGURE.search(short) else ""


def _is_usable(words: str, brief: Brief, persona: PersonaCard) -> bool:
    """Return whether the words can stand on a slide."""
    return (
        _VISIBLE.search(words) is not None
        and is_clean(words)
        and not find_links(words)
        and THREAD_MARK not in words
        and words.count("#") <= MAX_HASHTAGS
        and is_allowed(words, brief, persona)
    )


def _offline_draft(
    chosen: Sequence[tuple[str, Fact]], brief: Brief, persona: PersonaCard, *, is_first: bool
) -> Draft | None:
    """Return the draft, or `None` if there are too few sentences or slides, or none keeps the persona's rules."""
    if len(chosen) < MIN_POINTS:
        return None
    sentences = [sentence for sentence, _ in chosen]
    bodies = [
        sentence if len(sentence) <= _MAX_BODY_CHARACTERS else first_words(sentence, _MAX_BODY_CHARACTERS)
        for sentence in sentences
    ]
    body = next((sentence for sentence in bodies if keeps_rules(sentence, persona)), "")
    if not body:
        return None
    points = sorted(chosen, key=lambda pair: pair[1].start)
    words = fixed_words(brief.language)
    recap = _choose_recap(sentences) if len(chosen) > MIN_POINTS else ()
    prefers_title = is_first or len(chosen) == MIN_POINTS
    hook = _choose_hook(sentences[0], brief, persona, prefers_title=prefers_title)
    slides = [
        hook,
        # The sentence that opens it isn't repeated.
        *(Slide(POINT, "", sentence) for sentence, _ in points if sentence != hook.title),
        *([Slide(RECAP, words.recap, "\n".join(recap))] if recap else []),
    ]
    sign_off = _sign_off(brief, persona, brief.language)
    # The name alone says nothing: it only completes the smallest carousel.
    if brief.url or sign_off or len(slides) < MIN_SLIDES:
        slides.append(Slide(CALL, words.read_on if brief.url else persona.name, sign_off))
    slides = [slide for slide in slides if slide.words]
    if len(slides) < MIN_SLIDES:
        return None
    claims = tuple(
        Claim(text=sentence, quote=fact.quote, start=fact.start, end=fact.end) for sentence, fact in points
    )
    return _draft(body, slides, claims, brief, persona, language=brief.language, angle="story")


def _choose_hook(best_sentence: str, brief: Brief, persona: PersonaCard, *, prefers_title: bool) -> Slide:
    """Return the title as hook, if usable and preferred or if the sentence can't be shortened, else the sentence."""
    title = collapse(brief.title)
    short = _shorten_for_headline(best_sentence, _MAX_HOOK_WORDS)
    if title and _is_usable(title, brief, persona) and (prefers_title or not short):
        return Slide(HOOK, first_words(title, _MAX_TITLE_CHARACTERS), "")
    return Slide(HOOK, short or first_words(best_sentence, _MAX_TITLE_CHARACTERS), "")


def _choose_recap(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the sentences that are short enough to be repeated, best first, or none if only one is."""
    short = [line for sentence in sentences if (line := _shorten_for_headline(sentence, _MAX_RECAP_WORDS))]
    return tuple(short[:_MAX_RECAP_LINES]) if len(short) >= MIN_POINTS else ()


def _sign_off(brief: Brief, persona: PersonaCard, language: str) -> str:
    """Return a line with the source's site and a line that asks to follow the persona, each if there is one."""
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
    draft: Draft,
    slides: Sequence[Slide],
    refusal: Refused | None,
    caption_fault: str | None,
    *,
    has_call: bool,
) -> Check:
    """Check the caption and the slides from hook to call.

    `refusal` is the error of `slides_in`. Without `has_call`, if there is no link and no handle, any slide may
    be the last.
    """
    fault = caption_fault
    if refusal is not None and refusal.code != "too_many_words":
        fault = refusal.message
    elif not _VISIBLE.search(draft.body):
        fault = "The caption is empty."
    elif slides and (slides[0].kind != HOOK or (has_call and slides[-1].kind != CALL)):
        fault = "The first slide is the hook and the last one the call."
    ending = "call" if slides and slides[-1].kind == CALL else "last point"
    return make_check(
        "content", f"There is a caption, and {len(slides)} slides from hook to {ending}.", fault
    )


def _check_words(slides: Sequence[Slide], refusal: Refused | None) -> Check:
    fault = refusal.message if refusal is not None and refusal.code == "too_many_words" else None
    longest = max((count_words(slide.words) for slide in slides), default=0)
    return make_check("slide_words", f"No slide has more than {longest} of {MAX_SLIDE_WORDS} words.", fault)


def _check_body(draft: Draft) -> Check:
    length = len(draft.body)
    maximum = _MAX_BODY_CHARACTERS + 20
    fault = f"The caption has {length} characters; the maximum is {maximum}." if length > maximum else None
    return make_check("length", f"The caption has {counted(length, 'character')}.", fault)


def _check_fits(draft: Draft, persona: PersonaCard, slides: Sequence[Slide]) -> Check:
    fault = None
    try:
        draw_slides(slides, persona, AvailableMedia(size=UPRIGHT), language=draft.language)
    except Refused as refused:
        fault = refused.message
    return make_check("fits", f"Each slide's words fit at {MIN_SIZE} pixels or more.", fault)


PLUGIN = Carousel()
