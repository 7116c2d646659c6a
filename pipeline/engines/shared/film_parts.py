"""Builds the parts of a film from its brief, its persona or a model's answer."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.shared.fixed_words import source_word
from pipeline.engines.shared.picture_parts import handle_of
from pipeline.render.typography.clusters import undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.templates.parts import Cast
from pipeline.text.links import ascii_url, find_links
from pipeline.text.prose.verbatim_edits import (
    collapse,
    display_width,
    drop_asides,
    first_words,
    is_clean,
    is_wide,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard


def caption_of(answer: Mapping[str, Any]) -> str:
    """Return the text under the film from a model's answer, without blank lines and surplus spaces."""
    return "\n".join(line for raw_line in answer["description"].splitlines() if (line := collapse(raw_line)))


def tags_of(answer: Mapping[str, Any]) -> list[str]:
    """Return the tags of a model's answer without their signs, and without empty ones."""
    return [tag for raw_tag in answer["tags"] if (tag := raw_tag.strip().lstrip("#"))]


def alt_text_of(draft: Draft) -> str:
    """Return the film's alternative text: the words of its body, cut to 1,000 characters."""
    return paragraph_of(line.strip() for line in draft.body.splitlines() if line.strip())[:1000]


def choose_title(
    brief: Brief, persona: PersonaCard, sentences: Sequence[str], *, max_width: int
) -> str | None:
    """Return the source's title, else the first sentence that is at most `max_width` wide (`display_width`).

    A title may lose its asides. If nothing is short enough, return the first words of the title, or of the
    first sentence if there is no title; return `None` if there is neither.
    """
    source_title = collapse(brief.title.replace("\n", " "))
    # A title with links or contacts isn't used, not even without its asides.
    is_harmless = (
        is_clean(source_title) and not find_links(source_title) and is_allowed(source_title, brief, persona)
    )
    titles = [
        title
        for title in ((source_title, drop_asides(source_title)) if is_harmless else ())
        if title and not undrawable_clusters(typeset(title, brief.language))
    ]
    short_enough = (text for text in (*titles, *sentences) if display_width(text) <= max_width)
    shortened = (
        # A wide character, such as a Chinese one, counts as two.
        first_words(text, max_width // 2 if is_wide(text) else max_width)
        for text in (*titles[:1], *sentences[:1])
    )
    return next(chain(short_enough, shortened), None)


def end_of(brief: Brief, persona: PersonaCard, language: str) -> str:
    """Return “Source: …” with the site's name, or without an address the persona's handle, its name or the title."""
    host = (urlsplit(ascii_url(brief.url)).hostname or "").removeprefix("www.")
    if host:
        return f"{source_word(language)}: {host}"
    return handle_of(persona) or collapse(persona.name) or collapse(brief.title)


def credit_of(credit: str, persona: PersonaCard, language: str) -> str:
    """Return “Source: …” with the owner in `credit`, or the persona's handle or name if `credit` is empty."""
    if credit.strip():
        return f"{source_word(language)}: {credit.strip()}"
    return handle_of(persona) or persona.name.strip()


def compose_caption(title: str, story: str, persona: PersonaCard) -> str:
    """Return the title, with the story below it if the title lacks a structure that the persona requires."""
    return title if not missing_in(title, persona) else f"{title}\n{story}"


def cast_of(persona: PersonaCard, *, has_portrait: bool) -> Cast:
    """Return the persona as films show it."""
    return Cast(
        name=persona.name,
        handle=persona.handle,
        primary=persona.brand.get("primary"),
        accent=persona.brand.get("accent"),
        has_portrait=has_portrait,
    )
