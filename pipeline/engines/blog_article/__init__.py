"""Blog Article: 700 to 1,400 words on one source with headings, three points, links to it and a hero picture.

Without a model it is an excerpt post: sentences under the source's own headings, at most a tenth of it, a few
sentences of a short one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, variant_schema
from pipeline.engines.blog_article.checks import (
    LEAST_HEADINGS,
    LEAST_WORDS,
    MOST_HEADINGS,
    MOST_TAGS,
    MOST_WORDS,
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
    META_LEAST,
    META_MOST,
    TITLE_CHARACTERS,
    draft_excerpts,
    draft_of_article,
)
from pipeline.engines.blog_article.hero_picture import SIZE, plan_hero_picture
from pipeline.engines.blog_article.markdown import ArticleSection, compose_body, parse_article, phrases_in
from pipeline.engines.checks.allowed_contacts import (
    check_accounts,
    check_addresses,
    check_contacts,
    check_suspicion,
    strange_tags,
    title_of,
)
from pipeline.engines.checks.grounded import check_numbers, check_quotations
from pipeline.engines.checks.posts import check_characters, check_claims, check_hashtags
from pipeline.engines.shared.source_sentences import MAX_HASHTAGS, says_anything
from pipeline.plugins import Refused
from pipeline.render.picture_plan import AvailableMedia, Layout
from pipeline.text.links import ascii_url
from pipeline.text.prose.verbatim_edits import collapse, count_words, counted, is_clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engines.base import Brief, PersonaCard, SourceText

LEAST_SOURCE_WORDS: Final = 100
"""Of less neither an article nor an excerpt can be made."""
_LOOKED_THROUGH: Final = 40 * LEAST_SOURCE_WORDS
"""Characters that are counted."""
_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_RULES: Final = f"""\
A Blog Article explains what one source says to readers who will not read the source.
- {LEAST_WORDS + 100} to {MOST_WORDS - 300} words in all; where the facts don't carry so many, fewer. Never fill: what no fact says isn't said.
- `title`: at most {TITLE_CHARACTERS - 5} characters, says what the article says, no colon tricks, no question.
- `meta_description`: {META_LEAST + 5} to {META_MOST - 5} characters, one or two sentences that say what readers will know afterwards.
- `introduction`: one or two paragraphs. The first sentence says what happened or what is claimed, and by whom.
- `points`: exactly {POINTS} sentences that sum the article up, none like another.
- `sections`: {LEAST_HEADINGS} to {MOST_HEADINGS}, each with a `heading` of two to eight words that says what stands under it, and a \
`text` of two to five paragraphs. A blank line parts paragraphs; lines that begin with a hyphen are a list. No other markup.
- Retell in your own words. Quote rarely and briefly: less than a tenth of the source in all.
- Write no link and no list of sources: both are added. Say in words whose statement it is. Mention no account, no hashtags.
- `tags`: at most {MOST_TAGS} subjects of one or two words that the facts name.
"""


class BlogArticle(Engine):
    """Its body is Markdown; `content.form` says whether it is an article or an excerpt."""

    kind = "blog_article"
    name = "Blog Article"
    bucket = "blog"
    version = 1
    credits = 4
    made_from = ("text", "topic")
    draft_tokens = 16_000
    sizes = (SIZE,)
    least_lines = 0

    def why_not(self, source: SourceText) -> str | None:
        words = count_words(source.text[:_LOOKED_THROUGH])
        if words >= LEAST_SOURCE_WORDS:
            return None
        return f"This item has {counted(words, 'word')}; a Blog Article needs {LEAST_SOURCE_WORDS} or more."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Excerpts, the best sentences in the first."""
        del seed
        return draft_excerpts(brief, persona, variants)

    def labels(self, language: str) -> tuple[str, ...]:
        said = phrases_in(language)
        # Some languages say where before, some after.
        parts = (*said.excerpt.split("{source}"), *said.read_on.split("{place}"))
        return tuple(words for part in parts if says_anything(words := part.strip()))

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        taken = parse_article(draft.body, draft.language)
        description = str(draft.content.get("meta_description", ""))
        words = f"{draft.title}\n|\n{description}\n|\n{taken.words}"
        # What Markdown shows and what it hides: the words as they are written hold the addresses.
        shown = f"{words}\n|\n{draft.body}"
        return (
            check_content(draft, taken),
            check_title(draft),
            check_slug(draft),
            check_description(draft),
            check_headings(draft, taken, source),
            check_points(draft, taken, source),
            check_length(draft, taken, source, brief),
            check_share(draft, taken, source, brief),
            check_sources(draft, taken, source.url or brief.url),
            check_addresses(shown, brief, persona, url=source.url),
            check_hashtags(words, strange_tags(words, brief, persona), most=MAX_HASHTAGS, what="article"),
            check_tags(draft, brief, persona),
            check_accounts(words, persona),
            check_contacts(words, brief, persona, url=source.url),
            check_characters(shown, "article"),
            check_numbers((words,), draft, source, persona),
            check_quotations((words,), source),
            check_claims(draft, source, what="article"),
            _check_hero(draft, persona),
            check_suspicion(brief),
        )

    def draft_schema(self) -> Mapping[str, Any]:
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
        """The Markdown, the links to the source and the list of sources are made here, from plain words."""
        claims = claims_of(answer, brief)
        language = persona.language or brief.language
        url = ascii_url(brief.url)
        sections = [
            ArticleSection(collapse(one["heading"]).lstrip("# "), one["text"].strip())
            for one in answer["sections"]
        ]
        title = collapse(answer["title"])
        body = compose_body(
            answer["introduction"],
            [point for one in answer["points"] if (point := collapse(one))],
            [one for one in sections if one.heading and one.text],
            claims,
            source=(_source_title(brief, persona), url),
            language=language,
        )
        return draft_of_article(
            title,
            body,
            claims,
            brief,
            persona,
            form="article",
            description=collapse(answer["meta_description"]),
            language=language,
            angle=angle,
            tags=[tag for one in answer["tags"] if (tag := collapse(one).lstrip("#"))],
        )

    def drawn(self, draft: Draft) -> object:
        return draft.title

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout | None:
        """The hero picture; none where the fonts lack the title's letters. An article is one without it too.

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
    """As it is listed under the article; empty where it leads to strangers."""
    title = title_of(brief, persona, "")
    return title if is_clean(title) else ""


def _check_hero(draft: Draft, persona: PersonaCard) -> Check:
    try:
        plan_hero_picture(draft.title, draft.language, persona, AvailableMedia(size=SIZE))
    except Refused as refused:
        return Check("hero", "warning", f"The article has no picture: {refused.message}")
    return Check("hero", "passed", "The title fits into the article's picture.")


PLUGIN = BlogArticle()
