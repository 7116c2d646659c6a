"""Makes a Template Short: a title, three points and an end card on the screen, 6 to 20 seconds, without a voice."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.shared.film_checks import (
    MAX_TAGS,
    MAX_TITLE_CHARACTERS,
    SHORT_POST_CHECKS,
    check_content,
    check_film_links,
    check_fits,
    check_glyphs,
)
from pipeline.engines.shared.film_parts import (
    alt_text_of,
    caption_of,
    cast_of,
    choose_title,
    compose_caption,
    end_of,
    tags_of,
)
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.storyboard import SIZE
from pipeline.render.video.templates import points
from pipeline.render.video.templates.points import POINTS, SLOTS, PointsTexts
from pipeline.text.links import ascii_url, find_links
from pipeline.text.prose.sentences import statements_in
from pipeline.text.prose.verbatim_edits import (
    collapse,
    counted,
    display_width,
    is_clean,
    is_self_contained,
    trim_conjunction,
)
from pipeline.text.similarity import distinct_words, is_same_idea

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText
    from pipeline.render.picture_types import AvailableMedia
    from pipeline.render.video.storyboard import Storyboard

SECONDS: Final = (6.0, 20.0)
"""The shortest and the longest film."""
_SAME_POINT_SHARE: Final = 0.5
"""Two sentences that share this much of their words count as the same point."""
_WORD: Final = re.compile(r"\w+")
_RULES: Final = f"""\
A Template Short is a silent film of about 15 seconds: a title, three points that come one after the other, an end card.
- The title: at most {SLOTS["title"].characters - 12} characters. It says what happened or why it matters; no question that the points don't answer.
- Exactly {POINTS} points, each at most {SLOTS["point"].characters - 15} characters, better 40 to 80: each is read in four seconds. Each is one whole sentence, understood without the others, and says one thing.
- The description: one or two sentences for the text under the film.
- At most {MAX_TAGS} tags, each one word without "#"; none is better than a vague one.
- Write no link and no address, mention no account, use no emoji on the screen.
- The end card names the source; it is added.
"""


class TemplateShort(Engine):
    """Makes a film whose body stands on the screen, line by line: title, points, end card.

    An edit of the body is filmed again.
    """

    kind = "template_short"
    name = "Template Short"
    bucket = "video"
    version = 1
    credits = 5
    is_starting = True
    made_from = ("text", "topic")
    sizes = (SIZE,)
    least_lines = POINTS

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        usable = [
            sentence
            for start, end in statements_in(source.text)
            if _is_usable(sentence := _as_point(source.text[start:end]), source.language)
        ]
        if len(usable) >= POINTS:
            return None
        maximum = SLOTS["point"].characters
        return f"A Template Short needs {POINTS} sentences of at most {maximum} characters; this item has {len(usable)}."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return drafts of three different points each, the best in the first, in the source's order.

        They are the same whatever the seed.
        """
        del seed
        usable = _find_points(brief, persona)
        title = _choose_title(brief, persona, usable)
        drafts = []
        for number in range(variants):
            chosen = usable[number * POINTS : (number + 1) * POINTS]
            if len(chosen) < POINTS or title is None:
                break
            chosen = sorted(chosen, key=lambda pair: pair[1].start)
            drafts.append(_draft(brief, persona, title, chosen))
        if not drafts:
            message = (
                f"Besides its first card, a Template Short needs {POINTS} sentences that are short enough "
                f"for a film and stand alone; the source has {len(usable)}."
                if len(usable) < POINTS
                else "Neither the source's title nor a sentence of it fits on the first card of a Template Short."
            )
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
        """Build the draft.

        The end card and the source's address are added here, because a model neither sees nor writes them.
        Raises `Refused` if a claim cites an unknown fact.
        """
        point_texts = [
            line for raw_point in answer["points"] if (line := collapse(raw_point.replace("\n", " ")))
        ]
        title = collapse(answer["title"].replace("\n", " "))
        language = persona.language or brief.language
        values = PointsTexts(title, tuple(point_texts), end_of(brief, persona, language))
        return _build_draft(
            values,
            brief,
            claims=claims_of(answer, brief),
            language=language,
            angle=angle,
            tags=tags_of(answer),
            caption=caption_of(answer),
        )

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Run a Short Post's checks of the words, and check that they can be filmed."""
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        post_checks = self._post.check(as_post, brief, source, persona)
        return (
            check_content(draft, brief, source, persona, noun=self.name),
            *(check for check in post_checks if check.code in SHORT_POST_CHECKS),
            _check_slots(draft),
            check_film_links(draft.body),
            check_glyphs(draft, persona),
            _check_fits(draft, persona),
        )

    def film(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Storyboard:
        """Return the storyboard.

        Raises `Refused` if the body has too few or too many lines, `MissingGlyphs` if the fonts lack a
        character, and `TextDoesNotFit` if a text is too long.
        """
        return points.plan(
            values_of(draft),
            cast_of(persona, has_portrait=media.has_portrait),
            language=draft.language,
            alt_text=alt_text_of(draft),
        )


def values_of(draft: Draft) -> PointsTexts:
    """Return the texts of a body, one per line. Raises `Refused` if there are too few or too many lines."""
    lines = [line for raw_line in draft.body.splitlines() if (line := raw_line.strip())]
    if len(lines) != POINTS + 2:
        message = (
            f"The film shows {POINTS + 2} cards, one for each line of the text: the title, {POINTS} points and the end "
            f"card. The text has {counted(len(lines), 'line')}."
        )
        raise Refused(message, code="wrong_count")
    return PointsTexts(lines[0], tuple(lines[1:-1]), lines[-1])


def _as_point(sentence: str) -> str:
    return trim_conjunction(collapse(sentence.replace("\n", " ")))


def _is_usable(sentence: str, language: str) -> bool:
    return (
        display_width(sentence) <= SLOTS["point"].characters
        and _WORD.search(sentence) is not None
        and is_clean(sentence)
        and not find_links(sentence)
        and is_self_contained(sentence, language)
    )


def _find_points(brief: Brief, persona: PersonaCard) -> list[tuple[str, Fact]]:
    """Return the sentences that can be points, best first, none like another or like the title."""
    found_points: list[tuple[str, Fact]] = []
    earlier_words = [distinct_words(brief.title)]
    for fact in brief.facts:
        sentence = _as_point(fact.quote)
        words = distinct_words(sentence)
        if (
            _is_usable(sentence, brief.language)
            and not undrawable_clusters(typeset(sentence, brief.language))
            and is_allowed(sentence, brief, persona)
            and not any(is_same_idea(words, other, share=_SAME_POINT_SHARE) for other in earlier_words)
        ):
            found_points.append((sentence, fact))
            earlier_words.append(words)
    return found_points


def _choose_title(brief: Brief, persona: PersonaCard, usable: list[tuple[str, Fact]]) -> str | None:
    """Return the title that `choose_title` chooses; a sentence that becomes the title is removed from `usable`."""
    sentences = [sentence for sentence, _ in usable]
    title = choose_title(brief, persona, sentences, max_width=SLOTS["title"].characters)
    index = next((index for index, (sentence, _) in enumerate(usable) if sentence == title), None)
    if index is not None:
        del usable[index]
    return title


def _draft(brief: Brief, persona: PersonaCard, title: str, chosen: Sequence[tuple[str, Fact]]) -> Draft:
    values = PointsTexts(
        title, tuple(sentence for sentence, _ in chosen), end_of(brief, persona, brief.language)
    )
    claims = tuple(Claim(sentence, fact.quote, fact.start, fact.end) for sentence, fact in chosen)
    caption = compose_caption(values.title, "\n".join(values.points), persona)
    return _build_draft(
        values, brief, claims=claims, language=brief.language, angle="", tags=[], caption=caption
    )


def _build_draft(
    values: PointsTexts,
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
        title=values.title[:MAX_TITLE_CHARACTERS],
        body=body,
        body_format="text",
        content={"caption": f"{caption}\n{url}" if url else caption, "tags": tags, "script": body},
        claims=claims,
        language=language,
        angle=angle,
    )


def _check_slots(draft: Draft) -> Check:
    """Check the number of lines, the length of each, and the film's seconds, which follow from them."""
    fault = None
    try:
        values = values_of(draft)
    except Refused as refused:
        fault = refused.message
    else:
        fault = points.length_fault(values)
        seconds = points.seconds_of(values)
        if fault is None and not SECONDS[0] <= seconds <= SECONDS[1]:
            fault = f"The film is {seconds:.1f} seconds long; it takes {SECONDS[0]:.0f} to {SECONDS[1]:.0f}."
    return make_check("slots", "Title, three points and end card have the length that a film takes.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    return check_fits(
        lambda: points.plan(values_of(draft), cast_of(persona, has_portrait=False), language=draft.language),
        # The check of slots reports the number of lines.
        reported_codes=frozenset({"wrong_count"}),
    )


PLUGIN = TemplateShort()
