"""Makes a Blog Article: 700 to 1,400 words on one source with headings, points, links and a hero picture.

Without a model the article is an excerpt: sentences under the source's own headings, at most a tenth of the
source, or a few sentences of a short one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, variant_schema
from pipeline.engines.blog_article.checks import (
    MAX_HEADINGS,
    MAX_TAGS,
    MAX_WORDS,
    MIN_HEADINGS,
    MIN_WORDS,
    POINTS,
    check_content,
    check_description,
    check_headings,
    check_length,
    check_points,
    check_share,
    check_slug,
    check_sources,
    check_tags,
    check_title,
)
from pipeline.engines.blog_article.draft import (
    MAX_META_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    MIN_META_CHARACTERS,
    build_article_draft,
    draft_excerpts,
)
from pipeline.engines.blog_article.hero_picture import SIZE, plan_hero_picture
from pipeline.engines.blog_article.markdown import ArticleSection, compose_body, parse_article, phrases_in
from pipeline.engines.checks.allowed_contacts import (
    check_accounts,
    check_addresses,
    check_contacts,
    check_suspicion,
    title_of,
    unlisted_tags,
)
from pipeline.engines.checks.grounded import check_numbers, check_quotations
from pipeline.engines.checks.posts import check_characters, check_claims, check_hashtags
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, says_anything
from pipeline.plugins import Refused
from pipeline.render.picture_types import AvailableMedia, Layout
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import collapse, count_words, counted, is_clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engines.base import Brief, PersonaCard, SourceText

MIN_SOURCE_WORDS: Final = 100
"""A source of fewer words is too short for an article or an excerpt."""
_MAX_COUNTED_CHARACTERS: Final = 40 * MIN_SOURCE_WORDS
"""The characters whose words are counted to decide whether the source is long enough."""
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_RULES: Final = f"""\
A Blog Article explains what one source says to readers who will not read the source.
- {MIN_WORDS + 100} to {MAX_WORDS - 300} words in all; where the facts don't carry so many, fewer. Never fill: what no fact says isn't said.
- `title`: at most {MAX_TITLE_CHARACTERS - 5} characters, says what the article says, no colon tricks, no question.
- `meta_description`: {MIN_META_CHARACTERS + 5} to {MAX_META_CHARACTERS - 5} characters, one or two sentences that say what readers will know afterwards.
- `introduction`: one or two paragraphs. The first sentence says what happened or what is claimed, and by whom.
- `points`: exactly {POINTS} sentences that sum the article up, none like another.
- `sections`: {MIN_HEADINGS} to {MAX_HEADINGS}, each with a `heading` of two to eight words that says what stands under it, and a \
`text` of two to five paragraphs. A blank line parts paragraphs; lines that begin with a hyphen are a list. No other markup.
- Retell in your own words. Quote rarely and briefly: less than a tenth of the source in all.
- Write no link and no list of sources: both are added. Say in words whose statement it is. Mention no account, no hashtags.
- `tags`: at most {MAX_TAGS} subjects of one or two words that the facts name.
"""


class BlogArticle(Engine):
    """Makes an article in Markdown; `content.form` says whether it is an article or an excerpt."""

    kind = "blog_article"
    name = "Blog Article"
    bucket = "blog"
    version = 1
    credits = 4
    is_starting = True
    made_from = ("text", "topic")
    draft_tokens = 16_000
    sizes = (SIZE,)
    least_lines = 0

    def why_not(self, source: SourceText) -> str | None:
        words = count_words(source.text[:_MAX_COUNTED_CHARACTERS])
        if words >= MIN_SOURCE_WORDS:
            return None
        return f"This item has {counted(words, 'word')}; a Blog Article needs {MIN_SOURCE_WORDS} or more."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return excerpts, with the best sentences in the first, whatever the seed."""
        del seed
        return draft_excerpts(brief, persona, variants)

    def labels(self, language: str) -> tuple[str, ...]:
        phrases = phrases_in(language)
        # Some languages put the source's name before the phrase, some after it.
        parts = (*phrases.excerpt.split("{source}"), *phrases.read_on.split("{place}"))
        return tuple(words for part in parts if says_anything(words := part.strip()))

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check the article's own parts, and its words as every text's are checked."""
        article = parse_article(draft.body, draft.language)
        description = str(draft.content.get("meta_description", ""))
        words = f"{draft.title}\n|\n{description}\n|\n{article.words}"
        # The Markdown itself is checked too, because it holds the addresses of links.
        words_and_markup = f"{words}\n|\n{draft.body}"
        return (
            check_content(draft, article),
            check_title(draft),
            check_slug(draft),
            check_description(draft),
            check_headings(draft, article, source),
            check_points(draft, article, source),
            check_length(draft, article, source, brief),
            check_share(draft, article, source, brief),
            check_sources(draft, article, source.url or brief.url),
            check_addresses(words_and_markup, brief, persona, url=source.url),
            check_hashtags(
                words, unlisted_tags(words, brief, persona), max_tags=MAX_HASHTAGS, noun="article"
            ),
            check_tags(draft, brief, persona),
            check_accounts(words, persona),
            check_contacts(words, brief, persona, url=source.url),
            check_characters(words_and_markup, "article"),
            check_numbers((words,), draft, source, persona),
            check_quotations((words,), source),
            check_claims(draft, source, noun="article"),
            _check_hero(draft, persona),
            check_suspicion(brief),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        """Return the schema of the article's parts, all of them plain text."""
        section = {
            "type": "object",
            "properties": {"heading": _TEXT, "text": _TEXT},
            "required": ["heading", "text"],
            "additionalProperties": False,
        }
        return variant_schema(
            {
                "title": _TEXT,
                "meta_description": _TEXT,
                "introduction": _TEXT,
                "points": _TEXTS,
                "sections": {"type": "array", "items": section},
                "tags": _TEXTS,
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the Markdown from plain words, with the links to the source and the list of sources."""
        claims = claims_of(answer, brief)
        language = persona.language or brief.language
        url = ascii_url(brief.url)
        sections = [
            ArticleSection(collapse(section["heading"]).lstrip("# "), section["text"].strip())
            for section in answer["sections"]
        ]
        title = collapse(answer["title"])
        body = compose_body(
            answer["introduction"],
            [point for answered in answer["points"] if (point := collapse(answered))],
            [section for section in sections if section.heading and section.text],
            claims,
            source=(_source_title(brief, persona), url),
            language=language,
        )
        return build_article_draft(
            title,
            body,
            claims,
            brief,
            persona,
            form="article",
            description=collapse(answer["meta_description"]),
            language=language,
            angle=angle,
            tags=[tag for answered in answer["tags"] if (tag := collapse(answered).lstrip("#"))],
        )

    def drawn(self, draft: Draft) -> object:
        return draft.title

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout | None:
        """Return the hero picture, or `None` if its texts can't be drawn, since an article needs no picture.

        Raises `ValueError` for a size that isn't in `sizes`.
        """
        if media.size not in self.sizes:
            message = f"The picture of a Blog Article is {SIZE} pixels, not {media.size}."
            raise ValueError(message)
        try:
            return Layout((plan_hero_picture(draft.title, draft.language, persona, media),))
        except Refused:
            return None


def _source_title(brief: Brief, persona: PersonaCard) -> str:
    """Return the source's title for the list of sources, or "" if it leads to strangers or has hidden characters."""
    title = title_of(brief, persona, "")
    return title if is_clean(title) else ""


def _check_hero(draft: Draft, persona: PersonaCard) -> Check:
    try:
        plan_hero_picture(draft.title, draft.language, persona, AvailableMedia(size=SIZE))
    except Refused as refused:
        return Check("hero", "warning", f"The article has no picture: {refused.message}")
    return Check("hero", "passed", "The title fits into the article's picture.")


PLUGIN = BlogArticle()
