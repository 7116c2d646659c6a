"""Builds the draft of an article, and the verbatim excerpt that takes its place without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Draft
from pipeline.engines.blog_article.markdown import (
    BREAK,
    bullet_list,
    escape_markdown,
    format_link,
    phrases_in,
    site_of,
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
from pipeline.text.article_metadata import EXCERPT, slug_of, with_article_data
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

MAX_QUOTED_SHARE: Final = 0.1
"""The share of a source's characters that may be quoted; `quotable_characters` allows more of a short one."""
_MIN_QUOTABLE_CHARACTERS: Final = 280
"""As many characters as one post quotes: a tenth of a short source wouldn't be a sentence."""
_MAX_SHORT_SHARE: Final = 1 / 3
"""The share of a short source's characters that may be quoted."""
MAX_TITLE_CHARACTERS: Final = 60
MAX_META_CHARACTERS: Final = 155
MIN_META_CHARACTERS: Final = 120
"""The characters of a meta description that search engines show, at most and at least."""
_MIN_SENTENCES: Final = 2
_MAX_SENTENCES: Final = 9
_MAX_EXCERPT_HEADINGS: Final = 6
_MAX_SENTENCE_CHARACTERS: Final = 400


def build_article_draft(
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
    """Return the draft with its slug, reading time and structured data.

    `body` is Markdown, `form` is `article` or `excerpt`, and `description` is the meta description.
    """
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
        content=with_article_data(
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
    """Return how many of a source's characters an excerpt may quote: a tenth, of a short source up to a third."""
    return int(
        max(MAX_QUOTED_SHARE * characters, min(_MIN_QUOTABLE_CHARACTERS, _MAX_SHORT_SHARE * characters))
    )


def draft_excerpts(brief: Brief, persona: PersonaCard, variants: int) -> tuple[Draft, ...]:
    """Return at most `variants` excerpts that share no sentence, and at least one.

    Raises `Refused` if the source has too few sentences that stand alone and may be quoted.
    """
    max_characters = quotable_characters(
        brief.characters or max((fact.end for fact in brief.facts), default=0)
    )
    unfit_headings = {
        heading.id
        for heading in brief.headings
        if not (is_clean(heading.text) and is_allowed(heading.text, brief, persona))
    }
    # Without its own heading a sentence would stand below another's.
    remaining = tuple(
        sentence
        for sentence in standalone_sentences(brief, persona, _MAX_SENTENCE_CHARACTERS, count=len)
        if (heading := part_of(sentence.fact, brief)) is None or heading.id not in unfit_headings
    )
    drafts: list[Draft] = []
    for _ in range(max(1, variants)):
        chosen = _choose_sentences(remaining, brief, max_characters)
        if not drafts and len(chosen) < _MIN_SENTENCES:
            # If the best sentence is too long, the shortest ones leave space for another.
            shortest_first = sorted(remaining, key=lambda sentence: len(sentence.words))
            chosen = _choose_sentences(shortest_first, brief, max_characters)
        if len(chosen) < _MIN_SENTENCES:
            break
        drafts.append(_build_excerpt(chosen, brief, persona))
        remaining = tuple(sentence for sentence in remaining if sentence not in chosen)
    if not drafts:
        message = (
            f"An excerpt quotes {max_characters} characters of this source at the most: too few for {_MIN_SENTENCES} sentences "
            "that make sense out of their context."
        )
        raise Refused(message, code="nothing_to_say")
    return tuple(drafts)


def _choose_sentences(
    remaining: Sequence[FactSentence], brief: Brief, max_characters: int
) -> list[FactSentence]:
    """Return the best sentences within the limits, one of each part of the source first, in the source's order.

    Sentences that lean on others are taken only until there are two.
    """
    chosen: list[FactSentence] = []
    used_headings: set[str] = set()
    used_characters = 0
    for sentence in spread_over_parts(remaining, brief):
        if sentence.leans and len(chosen) >= _MIN_SENTENCES:
            break
        heading = part_of(sentence.fact, brief)
        is_new_heading = heading is not None and heading.id not in used_headings
        # A heading is quoted too, so it counts.
        heading_characters = len(heading.text) if heading is not None and is_new_heading else 0
        added_characters = len(sentence.words) + heading_characters
        has_too_many_headings = is_new_heading and len(used_headings) == _MAX_EXCERPT_HEADINGS
        if used_characters + added_characters > max_characters or has_too_many_headings:
            continue
        chosen.append(sentence)
        used_characters += added_characters
        if heading is not None:
            used_headings.add(heading.id)
        if len(chosen) == _MAX_SENTENCES:
            break
    return sorted(chosen, key=lambda sentence: sentence.fact.start)


def _quote_title(title: str, language: str) -> str:
    """Return the title in the language's quotation marks; a title that is a quotation has its own."""
    if is_wholly_quoted(title.replace("\\", "")):
        return title
    opening, closing = quotation_marks(language)
    marks = opening.strip() + closing.strip()
    # Nested guillemets, « … « … » », would be read as three quotations.
    inner = (
        title.translate({ord(mark): inner for mark, inner in zip(marks, "\u201c\u201d", strict=True)})
        if marks in ("\u00ab\u00bb", "\u00bb\u00ab")
        else title
    )
    return f"{opening}{inner}{closing}"


def _build_excerpt(chosen: Sequence[FactSentence], brief: Brief, persona: PersonaCard) -> Draft:
    """Return the excerpt: a line that names the source, the sentences below their headings, and a link if any."""
    source_title = title_of(brief, persona, "")
    # A title that makes no address, or holds hidden characters, can't be used.
    usable_title = source_title if is_clean(source_title) and slug_of(source_title) else ""
    title = first_words(usable_title or chosen[0].words, MAX_TITLE_CHARACTERS)
    url = ascii_url(brief.url)
    phrases = phrases_in(brief.language)
    source = (
        format_link(usable_title or site_of(url), url)
        if url
        else _quote_title(escape_markdown(usable_title or title), brief.language)
    )
    blocks = [f"*{phrases.excerpt.format(source=source)}*"]
    for heading, sentences in _group_by_heading(chosen, brief):
        if heading is not None:
            blocks.append(f"## {escape_markdown(heading.text)}")
        blocks.append(bullet_list(escape_markdown(sentence.words) for sentence in sentences))
    if url:
        blocks.append(format_link(phrases.read_on.format(place=site_of(url)), url))
    body = BREAK.join(blocks)
    return build_article_draft(
        title,
        body,
        tuple(sentence.claim for sentence in chosen),
        brief,
        persona,
        form=EXCERPT,
        description=_describe(chosen),
        language=brief.language,
        angle=angle_of(chosen[0].words),
        # The words are the source's own, so search engines are sent there.
        canonical_url=url,
    )


def _group_by_heading(
    chosen: Sequence[FactSentence], brief: Brief
) -> list[tuple[Fact | None, list[FactSentence]]]:
    groups: list[tuple[Fact | None, list[FactSentence]]] = []
    for sentence in chosen:
        heading = part_of(sentence.fact, brief)
        if not groups or groups[-1][0] != heading:
            groups.append((heading, []))
        groups[-1][1].append(sentence)
    return groups


def _describe(chosen: Sequence[FactSentence]) -> str:
    """Return the first sentences that search engines show whole; a longer first one is cut, at best at a clause."""
    first_sentence = chosen[0].words
    if len(first_sentence) > MAX_META_CHARACTERS:
        # Cut after a number it would state another amount.
        cuts = (cut for cut in clause_cuts(first_sentence) if len(cut) <= MAX_META_CHARACTERS)
        return next(cuts, None) or first_words(first_sentence, MAX_META_CHARACTERS)
    description = first_sentence
    for sentence in chosen[1:]:
        longer = paragraph_of((description, sentence.words))
        # A text without an end mark would run on into the next: "for ¥280" into "000 people".
        if (
            len(description) >= MIN_META_CHARACTERS
            or len(longer) > MAX_META_CHARACTERS
            or description[-1].isalnum()
        ):
            break
        description = longer
    return description
