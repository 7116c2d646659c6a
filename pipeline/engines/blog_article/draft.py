"""An article's draft with what follows from its words: slug, reading time, and what search engines are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.engines.base import Draft
from pipeline.text.article import slug_of, with_data
from pipeline.text.links import ascii_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Claim, PersonaCard


def draft_of_article(
    title: str,
    body: str,
    claims: tuple[Claim, ...],
    brief: Brief,
    persona: PersonaCard,
    *,
    form: str,
    description: str,
    language: str,
    angle: str,
    tags: Sequence[str] = (),
    canonical_url: str = "",
) -> Draft:
    """`body` is Markdown; `form` says whether it is an article or an excerpt."""
    content = {
        "slug": slug_of(title, language),
        "meta_description": description,
        "tags": list(tags),
        "canonical_url": canonical_url,
        "form": form,
    }
    return Draft(
        title=title,
        body=body,
        body_format="markdown",
        content=with_data(
            content,
            title=title,
            body=body,
            body_format="markdown",
            language=language,
            author=persona.name,
            author_url=persona.links[0] if persona.links else "",
            source_url=ascii_url(brief.url),
        ),
        claims=claims,
        language=language,
        angle=angle,
    )
