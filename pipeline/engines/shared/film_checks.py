"""Checks the parts that films share: content, links, glyphs, and whether the storyboard can be filmed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, make_check
from pipeline.engines.checks.allowed_contacts import unlisted_addresses
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import list_characters, undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.storyboard import storyboard_faults, texts_outside
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.render.video.storyboard import Storyboard

MAX_TITLE_CHARACTERS: Final = 90
MAX_TAGS: Final = 5
_TAG: Final = re.compile(r"#?[^\W_][\w]{0,39}")
SHORT_POST_CHECKS: Final = frozenset(
    {
        *("link_origin", "hashtags", "mentions", "contacts"),
        *("characters", "numbers", "quotations", "claims", "instructions"),
    }
)
"""The checks of a Short Post that also hold for a film's words."""


def clips_in(draft: Draft) -> Sequence[Any]:
    """Return the clips in the content, whose form isn't checked, or none if they are no list."""
    clips = draft.content.get("clips")
    return clips if isinstance(clips, list | tuple) else ()


def is_span(clip: object) -> bool:
    """Return whether the clip names a video, and a start and a later end in seconds."""
    return (
        isinstance(clip, dict)
        and isinstance(clip.get("upload"), str)
        and all(isinstance(clip.get(name), int | float) for name in ("start", "end"))
        and 0 <= clip["start"] < clip["end"]
    )


def check_content(
    draft: Draft,
    brief: Brief,
    source: SourceText,
    persona: PersonaCard,
    *,
    noun: str,
    holds: str = "a caption, tags and a script",
) -> Check:
    """Check title, caption and tags of a film; `noun` and `holds` name the film and its content in a message."""
    fault = None
    caption, tags = draft.content.get("caption"), draft.content.get("tags")
    if not isinstance(caption, str) or not isinstance(tags, list):
        fault = f"The content of a {noun} is {holds}."
    elif len(draft.title) > MAX_TITLE_CHARACTERS:
        fault = f"The title has {len(draft.title)} characters; the maximum is {MAX_TITLE_CHARACTERS}."
    elif len(tags) > MAX_TAGS:
        fault = f"The film has {len(tags)} tags; the maximum is {MAX_TAGS}."
    elif any(_TAG.fullmatch(str(tag)) is None for tag in tags):
        fault = "A tag is one word."
    elif unlisted_addresses(caption, brief, persona, url=source.url):
        fault = "The caption has a link that is neither the source's nor the persona's."
    return make_check("content", "The film has a title, a caption and at most five tags.", fault)


def check_film_links(words: str) -> Check:
    """Check that the words on the screen hold no link with a scheme; bare names of sites are allowed."""
    urls = [link.url for link in find_links(words) if link.has_scheme]
    fault = f"Links in a film can't be followed: {', '.join(urls[:3])}." if urls else None
    return make_check("links_in_film", "The words on the screen hold no link.", fault)


def check_glyphs(draft: Draft, persona: PersonaCard) -> Check:
    """Check that the bundled fonts can draw the film's words and the persona's name and handle."""
    return check_text_glyphs(f"{typeset(draft.body, draft.language)} {persona.name} {persona.handle}")


def check_fits(film: Callable[[], Storyboard], *, reported_codes: frozenset[str]) -> Check:
    """Check that the storyboard which `film` returns can be filmed, and that no app covers its words.

    A refusal of `film` with one of `reported_codes` passes, because another check reports it.
    """
    fault = None
    try:
        board = film()
    except Refused as refused:
        fault = None if refused.code in reported_codes else refused.message
    else:
        covered_words = texts_outside(board)
        if covered_words:
            fault = f"An app covers these words: “{covered_words[0]}”."
        elif faults := storyboard_faults(board):
            fault = faults[0]
    return make_check("fits", "The words fit into their places, inside of what every app leaves free.", fault)


def check_text_glyphs(words: str) -> Check:
    """Check that the fonts draw the typeset words."""
    absent = undrawable_clusters(words)
    fault = f"The fonts for films have no glyphs for {list_characters(absent)}." if absent else None
    return make_check("glyphs", "The bundled fonts draw every character.", fault)
