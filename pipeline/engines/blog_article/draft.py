"""An article's draft with its slug and reading time, and the excerpt that is made without a model, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Draft
from pipeline.engines.blog_article.markdown import (
    BREAK,
    bullet_list,
    escape_markdown,
    format_link,
    phrases_in,
    place_of,
)
from pipeline.engines.checks.allowed_contacts import is_allowed, title_of
from pipeline.engines.shared.source_sentences import (
    angle_of,
    part_of,
    spread_over_parts,
    standalone_sentences,
)
from pipeline.plugins import Refused
from pipeline.render.typography.punctuation import quotation_marks
from pipeline.text.article import EXCERPT, slug_of, with_data
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import (
    clause_cuts,
    first_words,
    is_clean,
    is_wholly_quoted,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Claim, Fact, PersonaCard
    from pipeline.engines.shared.source_sentences import FactSentence

SHARE: Final = 0.1
"""Of the source's characters, the most that may be quoted of it; of a short one see `quotable`."""
_SHORT_ROOM: Final = 280
"""Characters, as many as one post quotes: a tenth of a short source would be no sentence."""
_SHORT_SHARE: Final = 1 / 3
TITLE_CHARACTERS: Final = 60
META_MOST: Final = 155
META_LEAST: Final = 120
_LEAST_SENTENCES: Final = 2
_MOST_SENTENCES: Final = 9
_MOST_HEADINGS: Final = 6
_LONGEST: Final = 400


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


def quotable_characters(characters: int) -> int:
    """How many characters an excerpt takes of a source at most: a tenth, of a short one up to a third."""
    return int(max(SHARE * characters, min(_SHORT_ROOM, _SHORT_SHARE * characters)))


def draft_excerpts(brief: Brief, persona: PersonaCard, variants: int) -> tuple[Draft, ...]:
    """At most `variants`, none with a sentence of another. Raises `Refused` where the source has too little."""
    room = quotable_characters(brief.characters or max((fact.end for fact in brief.facts), default=0))
    unfit = {
        one.id for one in brief.headings if not (is_clean(one.text) and is_allowed(one.text, brief, persona))
    }
    # Without its own heading a sentence would come under another's.
    left = tuple(
        one
        for one in standalone_sentences(brief, persona, _LONGEST, count=len)
        if (part := part_of(one.fact, brief)) is None or part.id not in unfit
    )
    drafts: list[Draft] = []
    for _ in range(max(1, variants)):
        taken = _within(left, brief, room)
        if not drafts and len(taken) < _LEAST_SENTENCES:
            # The best one is too long: shorter ones leave room for another.
            taken = _within(sorted(left, key=lambda one: len(one.words)), brief, room)
        if len(taken) < _LEAST_SENTENCES:
            break
        drafts.append(_draft(taken, brief, persona))
        left = tuple(one for one in left if one not in taken)
    if not drafts:
        message = (
            f"An excerpt quotes {room} characters of this source at the most: too few for {_LEAST_SENTENCES} sentences "
            "that make sense out of their context."
        )
        raise Refused(message, code="nothing_to_say")
    return tuple(drafts)


def _within(left: Sequence[FactSentence], brief: Brief, room: int) -> list[FactSentence]:
    """The best that the room holds, one of each part of the source first; in the order of the source."""
    taken: list[FactSentence] = []
    parts: set[str] = set()
    used = 0
    for one in spread_over_parts(left, brief):
        if one.leans and len(taken) >= _LEAST_SENTENCES:
            break
        part = part_of(one.fact, brief)
        is_another = part is not None and part.id not in parts
        # A heading is quoted too.
        more = len(one.words) + (len(part.text) if part is not None and is_another else 0)
        if used + more > room or (is_another and len(parts) == _MOST_HEADINGS):
            continue
        taken.append(one)
        used += more
        if part is not None:
            parts.add(part.id)
        if len(taken) == _MOST_SENTENCES:
            break
    return sorted(taken, key=lambda one: one.fact.start)


def _in_marks(title: str, language: str) -> str:
    """In the quotation marks of that language; a title that is a quotation has its own."""
    if is_wholly_quoted(title.replace("\\", "")):
        return title
    opening, closing = quotation_marks(language)
    marks = opening.strip() + closing.strip()
    # « … « … » » would be read as three quotations.
    inner = (
        title.translate({ord(mark): inner for mark, inner in zip(marks, "\u201c\u201d", strict=True)})
        if marks in ("\u00ab\u00bb", "\u00bb\u00ab")
        else title
    )
    return f"{opening}{inner}{closing}"


def _draft(taken: Sequence[FactSentence], brief: Brief, persona: PersonaCard) -> Draft:
    given = title_of(brief, persona, "")
    # What can't be an address or be shown can't be a title.
    name = given if is_clean(given) and slug_of(given) else ""
    title = first_words(name or taken[0].words, TITLE_CHARACTERS)
    url = ascii_url(brief.url)
    said = phrases_in(brief.language)
    source = (
        format_link(name or place_of(url), url)
        if url
        else _in_marks(escape_markdown(name or title), brief.language)
    )
    blocks = [f"*{said.excerpt.format(source=source)}*"]
    for heading, sentences in _by_heading(taken, brief):
        if heading is not None:
            blocks.append(f"## {escape_markdown(heading.text)}")
        blocks.append(bullet_list(escape_markdown(one.words) for one in sentences))
    if url:
        blocks.append(format_link(said.read_on.format(place=place_of(url)), url))
    body = BREAK.join(blocks)
    return draft_of_article(
        title,
        body,
        tuple(one.claim for one in taken),
        brief,
        persona,
        form=EXCERPT,
        description=_description(taken),
        language=brief.language,
        angle=angle_of(taken[0].words),
        # The words are the source's: search engines are sent there.
        canonical_url=url,
    )


def _by_heading(taken: Sequence[FactSentence], brief: Brief) -> list[tuple[Fact | None, list[FactSentence]]]:
    groups: list[tuple[Fact | None, list[FactSentence]]] = []
    for one in taken:
        heading = part_of(one.fact, brief)
        if not groups or groups[-1][0] != heading:
            groups.append((heading, []))
        groups[-1][1].append(one)
    return groups


def _description(taken: Sequence[FactSentence]) -> str:
    """The excerpt's first sentences, as many as search engines show whole; one that is longer ends at a clause's edge."""
    first = taken[0].words
    if len(first) > META_MOST:
        # Cut after a number, it would say another thing.
        cuts = (cut for cut in clause_cuts(first) if len(cut) <= META_MOST)
        return next(cuts, None) or first_words(first, META_MOST)
    words = first
    for one in taken[1:]:
        longer = paragraph_of((words, one.words))
        # What doesn't end would run on into the next: "for ¥280" into "000 people".
        if len(words) >= META_LEAST or len(longer) > META_MOST or words[-1].isalnum():
            break
        words = longer
    return words
