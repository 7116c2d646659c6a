"""The parts of a film that are made of its brief, its persona or a model's answer."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.shared.fixed_words import source_word
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
    """The text under the film, line by line, as a model answered it."""
    return "\n".join(line for one in answer["description"].splitlines() if (line := collapse(one)))


def tags_of(answer: Mapping[str, Any]) -> list[str]:
    """Without their marks; empty ones are left out."""
    return [tag for one in answer["tags"] if (tag := one.strip().lstrip("#"))]


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
        if title and not undrawable_clusters(typeset(title, brief.language))
    ]
    short = (one for one in (*titles, *sentences) if display_width(one) <= most)
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


def compose_caption(title: str, story: str, persona: PersonaCard) -> str:
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
