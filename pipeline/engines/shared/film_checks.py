"""The checks that films share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, judge
from pipeline.engines.checks.allowed_contacts import strange_addresses
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import list_characters, undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video.storyboard import storyboard_faults, texts_outside
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.render.video.storyboard import Storyboard

TITLE_MOST: Final = 90
TAGS_MOST: Final = 5
_TAG: Final = re.compile(r"#?[^\W_][\w]{0,39}")
FROM_SHORT_POST: Final = frozenset(
    {
        *("link_origin", "hashtags", "mentions", "contacts"),
        *("characters", "numbers", "quotations", "claims", "instructions"),
    }
)


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
    return judge("content", "The film has a title, a caption and at most five tags.", fault)


def check_film_links(words: str) -> Check:
    found = [link.url for link in find_links(words) if link.has_scheme]
    fault = f"Nobody can follow a link in a film: {', '.join(found[:3])}." if found else None
    return judge("links_in_film", "The words on the screen hold no link.", fault)


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
        beyond = texts_outside(board)
        if beyond:
            fault = f"These words stand where an app covers them: “{beyond[0]}”."
        elif found := storyboard_faults(board):
            fault = found[0]
    return judge("fits", "The words fit into their places, inside of what every app leaves free.", fault)


def judge_glyphs(words: str) -> Check:
    """Of words as they are set."""
    absent = undrawable_clusters(words)
    fault = f"The fonts for films have no glyphs for {list_characters(absent)}." if absent else None
    return judge("glyphs", "The bundled fonts draw every character.", fault)
