"""Checks of an article beyond those of every text: its parts, its lengths, and how much it quotes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check, make_check
from pipeline.engines.blog_article.draft import (
    MAX_META_CHARACTERS,
    MAX_QUOTED_SHARE,
    MAX_TITLE_CHARACTERS,
    MIN_META_CHARACTERS,
    quotable_characters,
)
from pipeline.engines.blog_article.markdown import list_entries
from pipeline.engines.checks.allowed_contacts import list_some, unlisted_tags
from pipeline.grounding import find_quoted_texts, normalize_quotation
from pipeline.text.article_metadata import EXCERPT, slug_of
from pipeline.text.links import ascii_url, find_links, is_same_address
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import begins_whole, collapse, count_words, counted, first_words

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.engines.blog_article.markdown import ParsedArticle

MIN_WORDS: Final = 700
MAX_WORDS: Final = 1_400
"""A longer article is a warning."""
HARD_MAX_WORDS: Final = 2_000
"""A longer article fails."""
MIN_WORDS_OF_SHORT_SOURCE: Final = 350
"""The minimum of an article whose source has fewer words than `MIN_WORDS`: more could only be padding.

If the source has fewer words than this, their number is the article's minimum.
"""
MIN_HEADINGS: Final = 3
MAX_HEADINGS: Final = 6
POINTS: Final = 3
"""The exact number of sentences that sum an article up."""
MAX_TAGS: Final = 5
_MAX_SENTENCES_SHOWN: Final = 3
_MAX_SHOWN_CHARACTERS: Final = 80

_CONTENT: Final = frozenset(
    {"slug", "meta_description", "tags", "canonical_url", "form", "reading_minutes", "json_ld"}
)


def is_excerpt(draft: Draft) -> bool:
    """Return whether the draft is an excerpt, which only quotes its source."""
    return draft.content.get("form") == EXCERPT


def check_content(draft: Draft, article: ParsedArticle) -> Check:
    """Check that the article has a text, and exactly the content fields of an article in Markdown."""
    fault = None
    if not article.words.strip():
        fault = "The article is empty."
    elif set(draft.content) != _CONTENT or draft.body_format != "markdown":
        fault = "The article's content isn't that of an article in Markdown."
    return make_check("content", "The article has a text, an address and a description.", fault)


def check_title(draft: Draft) -> Check:
    """Check that there is a title, as short as search engines show it."""
    length = len(draft.title)
    fault = None
    if not length:
        fault = "The article has no title."
    elif length > MAX_TITLE_CHARACTERS:
        fault = f"The title has {counted(length, 'character')}; search engines show {MAX_TITLE_CHARACTERS}."
    return make_check("title_length", f"The title has {counted(length, 'character')}.", fault)


def check_slug(draft: Draft) -> Check:
    """Check that there is a slug, of letters, digits and single hyphens only."""
    slug = str(draft.content.get("slug", ""))
    fault = None
    if not slug:
        fault = "The title has no letters of which a slug could be made."
    elif slug != slug_of(slug):
        fault = f"The slug “{slug}” has other signs than letters, digits and single hyphens."
    return make_check("slug", "The slug has letters, digits and single hyphens.", fault)


def check_description(draft: Draft) -> Check:
    """Check that the meta description has a length that search engines show; an excerpt's may be shorter."""
    length = len(str(draft.content.get("meta_description", "")))
    # An excerpt can describe itself only with its source's sentences.
    minimum = 1 if is_excerpt(draft) else MIN_META_CHARACTERS
    fault = None
    if not minimum <= length <= MAX_META_CHARACTERS:
        fault = f"The meta description has {counted(length, 'character')}; {MIN_META_CHARACTERS} to {MAX_META_CHARACTERS} are shown."
    return make_check("meta_description", f"The meta description has {counted(length, 'character')}.", fault)


def check_headings(draft: Draft, article: ParsedArticle, source: SourceText) -> Check:
    """Check the number of headings, and that they differ; an excerpt's may be few but have to be in the source."""
    count = len(article.headings)
    fault = None
    if is_excerpt(draft):
        source_text = normalize_quotation(source.text)
        own_headings = tuple(
            heading for heading in article.headings if normalize_quotation(heading) not in source_text
        )
        if own_headings:
            fault = f"These headings aren't the source's: {list_some(own_headings)}."
        elif count > MAX_HEADINGS:
            fault = f"The excerpt has {count} headings; the maximum is {MAX_HEADINGS}."
        return make_check("headings", "The headings are the source's own.", fault)
    if not MIN_HEADINGS <= count <= MAX_HEADINGS:
        fault = f"The article has {counted(count, 'heading')}; {MIN_HEADINGS} to {MAX_HEADINGS} guide its readers."
    elif len({normalize_quotation(heading).casefold() for heading in article.headings}) < count:
        fault = "Two headings are the same."
    return make_check("headings", f"The article has {counted(count, 'heading')}.", fault)


def check_points(draft: Draft, article: ParsedArticle, source: SourceText) -> Check:
    """Check the number of points that sum the article up, or that an excerpt has only the source's sentences.

    Each sentence of an excerpt has to begin where the source's does.
    """
    fault = None
    if is_excerpt(draft):
        foreign_sentences = (
            *_foreign_sentences(draft, source),
            *(claim.text for claim in draft.claims if not begins_whole(claim.text, claim.quote)),
        )
        if foreign_sentences:
            fault = _foreign_sentences_fault(foreign_sentences)
        elif not draft.claims:
            fault = "The excerpt has no sentence of the source."
        return make_check("points", "Every sentence of the excerpt is in the source.", fault)
    if len(article.points) != POINTS:
        fault = f"It is summed up in {counted(len(article.points), 'point')}; {POINTS} are read."
    return make_check("points", f"It is summed up in {POINTS} points.", fault)


def _foreign_sentences(draft: Draft, source: SourceText) -> tuple[str, ...]:
    """Return the list entries that are no claims and no whole sentences of the source."""
    claimed = {collapse(claim.text) for claim in draft.claims}
    unclaimed = [entry for entry in list_entries(draft.body) if entry not in claimed]
    if not unclaimed:
        return ()
    source_sentences = {
        normalize_quotation(source.text[start:end]) for start, end in split_sentences(source.text)
    }
    return tuple(entry for entry in unclaimed if normalize_quotation(entry) not in source_sentences)


def _foreign_sentences_fault(sentences: tuple[str, ...]) -> str:
    """Return the message on sentences that the article's first line wrongly says are the source's."""
    verb_phrase, pronoun = ("sentence isn't", "it") if len(sentences) == 1 else ("sentences aren't", "them")
    quoted = " ".join(
        f"\u201c{first_words(sentence, _MAX_SHOWN_CHARACTERS)}\u201d"
        for sentence in sentences[:_MAX_SENTENCES_SHOWN]
    )
    return (
        f"{len(sentences)} {verb_phrase} the source's, though the line at the top of the article says that all are taken "
        f"word for word from it: {quoted} Remove {pronoun}, or write the source's own words."
    )


def check_length(draft: Draft, article: ParsedArticle, source: SourceText, brief: Brief) -> Check:
    """Check the number of words; a shorter source allows a shorter article, with a warning.

    An excerpt passes at any length. An article between the two maxima is a warning.
    """
    words = count_words(article.words)
    if is_excerpt(draft):
        return Check("length", "passed", f"The excerpt has {counted(words, 'word')}.")
    source_words = count_words(source.text)
    if words > HARD_MAX_WORDS or words < _min_words(source_words, brief):
        return Check(
            "length",
            "failed",
            f"The article has {counted(words, 'word')}; {MIN_WORDS} to {MAX_WORDS} make one.",
        )
    if words > MAX_WORDS:
        return Check(
            "length", "warning", f"The article has {counted(words, 'word')}; few read on after {MAX_WORDS}."
        )
    if words < MIN_WORDS:
        message = f"The article has {counted(words, 'word')}, fewer than the {MIN_WORDS} of a full one; what it rests on has {source_words}."
        return Check("length", "warning", message)
    return Check("length", "passed", f"The article has {counted(words, 'word')}.")


def _min_words(source_words: int, brief: Brief) -> int:
    """Return the fewest words of an article; a brand lane's brief has no source whose length would count."""
    if brief.lane is not None:
        return MIN_WORDS_OF_SHORT_SOURCE
    return MIN_WORDS if source_words >= MIN_WORDS else min(MIN_WORDS_OF_SHORT_SOURCE, source_words)


def check_share(draft: Draft, article: ParsedArticle, source: SourceText, brief: Brief) -> Check:
    """Check the share of the source that is quoted.

    That is what stands between quotation marks, and in an excerpt every heading and sentence of the source.
    What a brand lane's article quotes are the persona's own sentences, so it always passes.
    """
    source_text = normalize_quotation(source.text)
    if is_excerpt(draft):
        # A sentence that somebody added isn't quoted; `check_points` reports it.
        claimed = {collapse(claim.text) for claim in draft.claims}
        used = {*article.headings, *list_entries(draft.body)}
        quoted_characters = sum(
            len(passage)
            for passage in used
            if passage in claimed or normalize_quotation(passage) in source_text
        )
        max_quoted = quotable_characters(len(source.text))
    else:
        quoted_characters = sum(
            len(passage)
            for passage in set(find_quoted_texts(article.words))
            if normalize_quotation(passage).rstrip(" .,…") in source_text
        )
        max_quoted = int(MAX_QUOTED_SHARE * len(source.text))
    fault = None
    if brief.lane is None and quoted_characters > max_quoted:
        fault = (
            f"{_percent(quoted_characters, source)} % of the source is quoted; the maximum is "
            f"{100 * max_quoted // max(len(source.text), 1)} %."
        )
    passed = "At most a tenth of the source is quoted."
    if quoted_characters > MAX_QUOTED_SHARE * len(source.text):
        passed = f"{_percent(quoted_characters, source)} % of a short source is quoted."
    return make_check("quoted_share", passed, fault)


def _percent(characters: int, source: SourceText) -> int:
    return math.ceil(100 * characters / max(len(source.text), 1))


def check_sources(draft: Draft, article: ParsedArticle, url: str) -> Check:
    """Check that the article links to its source: in its list of sources, and from a sentence.

    An excerpt needs only one link, and a source without an address none.
    """
    fault = None
    source_url = ascii_url(url)
    if source_url:
        links = [link for link in find_links(draft.body) if is_same_address(link.url, source_url)]
        if not links:
            fault = "The article doesn't lead to its source."
        elif not is_excerpt(draft) and not article.has_sources:
            fault = "The article has no list of its sources."
        elif not is_excerpt(draft) and len(links) < 2:
            fault = "No sentence of the article leads to the source that it rests on."
    passed = "The article leads to its source." if source_url else "The source has no link."
    return make_check("sources", passed, fault)


def check_tags(draft: Draft, brief: Brief, persona: PersonaCard) -> Check:
    """Check that there are few tags, and that the facts, the brief or the persona say their words."""
    tags = [str(tag) for tag in draft.content.get("tags", ())]
    unlisted = unlisted_tags(" ".join(f"#{''.join(tag.split())}" for tag in tags), brief, persona)
    fault = None
    if len(tags) > MAX_TAGS:
        fault = f"The article has {len(tags)} tags; the maximum is {MAX_TAGS}."
    elif unlisted:
        fault = f"These tags say what no fact says: {list_some(unlisted)}."
    return make_check("tags", f"The article has at most {MAX_TAGS} tags, of words that the facts say.", fault)
