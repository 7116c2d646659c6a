"""What an article has to keep beside what every text has to: its parts, its lengths, how much it quotes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check, judge
from pipeline.engines.blog_article.draft import (
    META_LEAST,
    META_MOST,
    SHARE,
    TITLE_CHARACTERS,
    quotable_characters,
)
from pipeline.engines.blog_article.markdown import list_entries
from pipeline.engines.checks.allowed_contacts import list_some, strange_tags
from pipeline.grounding import fold, quotations
from pipeline.text.article import EXCERPT, slug_of
from pipeline.text.links import ascii_url, find_links, is_same_address
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import begins_whole, collapse, count_words, counted, first_words

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.engines.blog_article.markdown import ParsedArticle

LEAST_WORDS: Final = 700
MOST_WORDS: Final = 1_400
HARD_MOST_WORDS: Final = 2_000
FEWEST_WORDS: Final = 350
"""Of an article whose source is shorter than `LEAST_WORDS` itself: more could only be padding. Of a source shorter
than this, as many words as it has."""
LEAST_HEADINGS: Final = 3
MOST_HEADINGS: Final = 6
POINTS: Final = 3
MOST_TAGS: Final = 5
_MOST_SHOWN: Final = 3
_SHOWN: Final = 80

_CONTENT: Final = frozenset(
    {"slug", "meta_description", "tags", "canonical_url", "form", "reading_minutes", "json_ld"}
)


def is_excerpt(draft: Draft) -> bool:
    return draft.content.get("form") == EXCERPT


def check_content(draft: Draft, taken: ParsedArticle) -> Check:
    faults = None
    if not taken.words.strip():
        faults = "The article is empty."
    elif set(draft.content) != _CONTENT or draft.body_format != "markdown":
        faults = "The article's content isn't that of an article in Markdown."
    return judge("content", "The article has a text, an address and a description.", faults)


def check_title(draft: Draft) -> Check:
    length = len(draft.title)
    faults = None
    if not length:
        faults = "The article has no title."
    elif length > TITLE_CHARACTERS:
        faults = f"The title has {counted(length, 'character')}; search engines show {TITLE_CHARACTERS}."
    return judge("title_length", f"The title has {counted(length, 'character')}.", faults)


def check_slug(draft: Draft) -> Check:
    slug = str(draft.content.get("slug", ""))
    faults = None
    if not slug:
        faults = "The title has no letters of which a slug could be made."
    elif slug != slug_of(slug):
        faults = f"The slug “{slug}” has other signs than letters, digits and single hyphens."
    return judge("slug", "The slug has letters, digits and single hyphens.", faults)


def check_description(draft: Draft) -> Check:
    length = len(str(draft.content.get("meta_description", "")))
    # An excerpt has only its source's sentences to describe itself with.
    least = 1 if is_excerpt(draft) else META_LEAST
    faults = None
    if not least <= length <= META_MOST:
        faults = (
            f"The meta description has {counted(length, 'character')}; {META_LEAST} to {META_MOST} are shown."
        )
    return judge("meta_description", f"The meta description has {counted(length, 'character')}.", faults)


def check_headings(draft: Draft, taken: ParsedArticle, source: SourceText) -> Check:
    count = len(taken.headings)
    faults = None
    if is_excerpt(draft):
        known = fold(source.text)
        own = tuple(one for one in taken.headings if fold(one) not in known)
        if own:
            faults = f"These headings aren't the source's: {list_some(own)}."
        elif count > MOST_HEADINGS:
            faults = f"The excerpt has {count} headings; {MOST_HEADINGS} are the most."
        return judge("headings", "The headings are the source's own.", faults)
    if not LEAST_HEADINGS <= count <= MOST_HEADINGS:
        faults = f"The article has {counted(count, 'heading')}; {LEAST_HEADINGS} to {MOST_HEADINGS} guide its readers."
    elif len({fold(one).casefold() for one in taken.headings}) < count:
        faults = "Two headings are the same."
    return judge("headings", f"The article has {counted(count, 'heading')}.", faults)


def check_points(draft: Draft, taken: ParsedArticle, source: SourceText) -> Check:
    """Of an excerpt: whether nothing stands in it but the source's sentences, each from its beginning."""
    faults = None
    if is_excerpt(draft):
        foreign = (
            *_not_the_sources(draft, source),
            *(claim.text for claim in draft.claims if not begins_whole(claim.text, claim.quote)),
        )
        if foreign:
            faults = _promised_otherwise(foreign)
        elif not draft.claims:
            faults = "The excerpt has no sentence of the source."
        return judge("points", "Every sentence of the excerpt stands in the source.", faults)
    if len(taken.points) != POINTS:
        faults = f"It is summed up in {counted(len(taken.points), 'point')}; {POINTS} are read."
    return judge("points", f"It is summed up in {POINTS} points.", faults)


def _not_the_sources(draft: Draft, source: SourceText) -> tuple[str, ...]:
    """The sentences that are no claim, and that nobody took whole from the source either."""
    claimed = {collapse(claim.text) for claim in draft.claims}
    others = [one for one in list_entries(draft.body) if one not in claimed]
    if not others:
        return ()
    whole = {fold(source.text[start:end]) for start, end in split_sentences(source.text)}
    return tuple(one for one in others if fold(one) not in whole)


def _promised_otherwise(sentences: tuple[str, ...]) -> str:
    """What the line above the sentences says of them, and what whoever wrote them has to do."""
    are, them = ("sentence isn't", "it") if len(sentences) == 1 else ("sentences aren't", "them")
    shown = " ".join(f"\u201c{first_words(one, _SHOWN)}\u201d" for one in sentences[:_MOST_SHOWN])
    return (
        f"{len(sentences)} {are} the source's, though the line at the top of the article says that all are taken "
        f"word for word from it: {shown} Remove {them}, or write the source's own words."
    )


def check_length(draft: Draft, taken: ParsedArticle, source: SourceText, brief: Brief) -> Check:
    words = count_words(taken.words)
    if is_excerpt(draft):
        return Check("length", "passed", f"The excerpt has {counted(words, 'word')}.")
    length = count_words(source.text)
    if words > HARD_MOST_WORDS or words < _fewest_words(length, brief):
        return Check(
            "length",
            "failed",
            f"The article has {counted(words, 'word')}; {LEAST_WORDS} to {MOST_WORDS} make one.",
        )
    if words > MOST_WORDS:
        return Check(
            "length", "warning", f"The article has {counted(words, 'word')}; few read on after {MOST_WORDS}."
        )
    if words < LEAST_WORDS:
        message = f"The article has {counted(words, 'word')}, fewer than the {LEAST_WORDS} of a full one; what it rests on has {length}."
        return Check("length", "warning", message)
    return Check("length", "passed", f"The article has {counted(words, 'word')}.")


def _fewest_words(length: int, brief: Brief) -> int:
    if brief.lane is not None:
        return FEWEST_WORDS
    return LEAST_WORDS if length >= LEAST_WORDS else min(FEWEST_WORDS, length)


def check_share(draft: Draft, taken: ParsedArticle, source: SourceText, brief: Brief) -> Check:
    """How much of the source is quoted: between quotation marks, and of an excerpt all that is the source's."""
    known = fold(source.text)
    if is_excerpt(draft):
        # A sentence that somebody added isn't quoted; `check_points` names it.
        claimed = {collapse(claim.text) for claim in draft.claims}
        used = {*taken.headings, *list_entries(draft.body)}
        quoted = sum(len(one) for one in used if one in claimed or fold(one) in known)
        most = quotable_characters(len(source.text))
    else:
        quoted = sum(len(one) for one in set(quotations(taken.words)) if fold(one).rstrip(" .,…") in known)
        most = int(SHARE * len(source.text))
    faults = None
    # The persona's own sentences may be said as often as it likes.
    if brief.lane is None and quoted > most:
        faults = f"{_percent(quoted, source)} % of the source is quoted; {100 * most // max(len(source.text), 1)} % is the most."
    passed = "At most a tenth of the source is quoted."
    if quoted > SHARE * len(source.text):
        passed = f"{_percent(quoted, source)} % of a short source is quoted."
    return judge("quoted_share", passed, faults)


def _percent(characters: int, source: SourceText) -> int:
    return math.ceil(100 * characters / max(len(source.text), 1))


def check_sources(draft: Draft, taken: ParsedArticle, url: str) -> Check:
    faults = None
    wanted = ascii_url(url)
    if wanted:
        links = [link for link in find_links(draft.body) if is_same_address(link.url, wanted)]
        if not links:
            faults = "The article doesn't lead to its source."
        elif not is_excerpt(draft) and not taken.has_sources:
            faults = "The article has no list of its sources."
        elif not is_excerpt(draft) and len(links) < 2:
            faults = "No sentence of the article leads to the source that it rests on."
    passed = "The article leads to its source." if wanted else "The source has no link."
    return judge("sources", passed, faults)


def check_tags(draft: Draft, brief: Brief, persona: PersonaCard) -> Check:
    tags = [str(tag) for tag in draft.content.get("tags", ())]
    strange = strange_tags(" ".join(f"#{''.join(tag.split())}" for tag in tags), brief, persona)
    faults = None
    if len(tags) > MOST_TAGS:
        faults = f"The article has {len(tags)} tags; {MOST_TAGS} are the most."
    elif strange:
        faults = f"These tags say what no fact says: {list_some(strange)}."
    return judge("tags", f"The article has at most {MOST_TAGS} tags, of words that the facts say.", faults)
