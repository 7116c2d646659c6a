"""Makes a LinkedIn Post: one point in 600 to 1,500 characters, in short paragraphs, the point first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.allowed_contacts import is_allowed, title_of
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.checks.posts import check_link_count, check_one_part, check_words
from pipeline.engines.shared.source_sentences import (
    FactSentence,
    angle_of,
    is_postable,
    leans_on_previous,
    says_anything,
    spread_over_parts,
    standalone_sentences,
)
from pipeline.plugins import Refused
from pipeline.text.links import ascii_url, find_links, without_links
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import (
    collapse,
    counted,
    display_width,
    is_balanced,
    is_wide,
    opens_dangling,
    paragraph_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, PersonaCard, SourceText

MIN_CHARACTERS: Final = 600
MAX_CHARACTERS: Final = 1_500
"""The characters of a good post; a wide character counts as two, except in the check of the maximum."""
HARD_MAX_CHARACTERS: Final = 3_000
"""LinkedIn's own limit for a post (MS Learn, "Posts API", read on 20 November 2026)."""
VISIBLE_CHARACTERS: Final = 200
"""The characters that the narrowest screens show before "see more"."""
MAX_TAGS: Final = 3
MAX_PARAGRAPH_SENTENCES: Final = 2

_ENOUGH_CHARACTERS: Final = 900
"""A post of this length gets no further sentence without a model."""
_MAX_SENTENCE_CHARACTERS: Final = 400
_BREAK: Final = "\n\n"
_BLANK_LINE: Final = re.compile(r"\n\s*\n")
_NOT_TAG: Final = re.compile(r"\W+")

_RULES: Final = f"""\
A LinkedIn Post makes one point for people at work, from one source.
- {MIN_CHARACTERS + 100} to {MAX_CHARACTERS - 200} characters in all.
- The first paragraph is one sentence of at most {VISIBLE_CHARACTERS - 20} characters that carries the point: most see nothing else. No \
question to the reader, no announcement of what follows.
- Each paragraph has one or two sentences. What happened, what it rests on, what it changes, what is still open.
- The last paragraph says what follows from it for these readers. No call to like, to comment or to share.
- Write no link: the source's address is added on a line of its own. Mention no account.
- `hashtags`: at most {MAX_TAGS} words that the facts say, without the sign; none is better.
- No lists, no emoji as bullets, no single words as paragraphs.
"""


class LinkedInPost(Engine):
    """Makes a post of one part; a blank line separates its paragraphs."""

    kind = "linkedin_post"
    name = "LinkedIn Post"
    bucket = "text"
    version = 1
    credits = 2
    made_from = ("text", "topic")
    draft_tokens = 3_000
    least_lines = 3

    def why_not(self, source: SourceText) -> str | None:
        text = collapse(source.text[: 10 * MIN_CHARACTERS])
        if display_width(text) >= MIN_CHARACTERS:
            return None
        characters, minimum = _count_characters(text)
        return f"This item has {counted(characters, 'character')} of text; a LinkedIn Post has {minimum} or more, and none is invented."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return drafts of sentences in the source's order below one that carries the point, whatever the seed.

        Each draft has other sentences. A draft is left out if it lacks a structure that the persona requires.
        """
        del seed
        url = ascii_url(brief.url)
        remaining = spread_over_parts(
            standalone_sentences(brief, persona, _MAX_SENTENCE_CHARACTERS, count=len), brief
        )
        followers = _find_followers(brief, persona)
        drafts: list[Draft] = []
        faults: tuple[str, ...] = ()
        for _ in range(max(1, variants)):
            paragraphs = _choose_paragraphs(remaining, followers, url)
            if not paragraphs:
                break
            draft = _draft(paragraphs, url, brief, persona)
            used_ids = {sentence.fact.id for paragraph in paragraphs for sentence in paragraph}
            remaining = tuple(sentence for sentence in remaining if sentence.fact.id not in used_ids)
            followers = {
                end: sentence for end, sentence in followers.items() if sentence.fact.id not in used_ids
            }
            draft_faults = missing_in(draft.body, persona)
            faults = faults or draft_faults
            if not draft_faults:
                drafts.append(draft)
        if drafts:
            return tuple(drafts)
        if faults:
            message = f"The source's sentences don't keep the persona's rules as a LinkedIn Post: {' '.join(faults)}"
        else:
            message = (
                f"A LinkedIn Post needs {MIN_CHARACTERS} characters in whole sentences that make sense out of their context, and "
                f"one of at most {VISIBLE_CHARACTERS} to begin with that says what it is about. The source has too few of them."
            )
        raise Refused(message, code="nothing_to_say")

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        body = draft.body
        return (
            check_one_part(draft, is_empty=not _paragraphs(body)),
            _check_length(body),
            _check_opening(body, draft.language),
            _check_paragraphs(body),
            check_link_count(len(find_links(body))),
            *check_words(draft, brief, source, persona, parts=(body,), max_tags=MAX_TAGS),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        texts = {"type": "array", "items": {"type": "string"}}
        return variant_schema(
            {
                "paragraphs": {**texts, "description": "The first one carries the point."},
                "hashtags": {**texts, "description": "Without the sign; empty where none fits."},
            }
        )

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft. The source's address is added here, as a model neither sees nor writes it.

        Raises `Refused` if there are no paragraphs, or a claim cites an unknown fact.
        """
        paragraphs = [
            collapse(paragraph) for words in answer["paragraphs"] for paragraph in _BLANK_LINE.split(words)
        ]
        paragraphs = [paragraph for paragraph in paragraphs if paragraph]
        if not paragraphs:
            message = "The list of paragraphs is empty."
            raise Refused(message, code="empty")
        url = ascii_url(brief.url)
        has_link = any(find_links(paragraph) for paragraph in paragraphs)
        tags = [f"#{tag}" for answered_tag in answer["hashtags"] if (tag := _NOT_TAG.sub("", answered_tag))]
        ending = [*([url] if url and not has_link else []), *([" ".join(tags)] if tags else [])]
        body = _BREAK.join([*paragraphs, *ending])
        return Draft(
            title=title_of(brief, persona, paragraphs[0]),
            body=body,
            body_format="text",
            content={"parts": [body]},
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def _find_followers(brief: Brief, persona: PersonaCard) -> dict[int, FactSentence]:
    """Return the usable sentences that need the sentence before them, by the offset at which that one ends."""
    followers: dict[int, FactSentence] = {}
    for fact in brief.facts:
        words = collapse(fact.quote)
        is_fit = is_postable(words) and len(words) <= _MAX_SENTENCE_CHARACTERS and is_balanced(words)
        is_follower = (
            leans_on_previous(words, brief.language) and words[:1].isupper() and not brief.is_heading(fact)
        )
        if is_follower and is_fit and not find_links(words) and is_allowed(words, brief, persona):
            # One character, a space or a line break, lies between two sentences of a paragraph.
            followers[fact.start - 1] = FactSentence(words, fact)
    return followers


def _choose_paragraphs(
    remaining: Sequence[FactSentence], followers: Mapping[int, FactSentence], url: str
) -> tuple[tuple[FactSentence, ...], ...]:
    """Return the paragraphs of the next draft, the opening first, or none if the sentences make no post."""
    opening = next((candidate for candidate in remaining if _can_open(candidate.words)), None)
    if opening is None:
        return ()
    paragraphs: list[tuple[FactSentence, ...]] = [(opening,)]
    length = display_width(opening.words) + (len(url) + len(_BREAK) if url else 0)
    for candidate in remaining:
        if candidate is opening or length >= (MIN_CHARACTERS if candidate.leans else _ENOUGH_CHARACTERS):
            continue
        used_ids = {sentence.fact.id for paragraph in paragraphs for sentence in paragraph}
        if candidate.fact.id in used_ids:
            continue
        paragraph = _with_follower(candidate, followers)
        if paragraph[-1].fact.id in used_ids:
            paragraph = (candidate,)
        added_width = len(_BREAK) + display_width(_join(paragraph))
        if length + added_width > MAX_CHARACTERS or not _is_short(_join(paragraph)):
            paragraph = (candidate,)
            added_width = len(_BREAK) + display_width(candidate.words)
        if length + added_width <= MAX_CHARACTERS and _is_short(candidate.words):
            paragraphs.append(paragraph)
            length += added_width
    if length < MIN_CHARACTERS:
        return ()
    rest = sorted(paragraphs[1:], key=lambda paragraph: paragraph[0].fact.start)
    return (paragraphs[0], *rest)


def _with_follower(sentence: FactSentence, followers: Mapping[int, FactSentence]) -> tuple[FactSentence, ...]:
    """Return the sentence with the follower that needs it, or alone if it has none or was cut."""
    following = followers.get(sentence.fact.end)
    # A sentence that was cut doesn't end where its follower begins.
    is_whole = sentence.words[-1:] == sentence.fact.quote.rstrip()[-1:]
    return (sentence,) if following is None or not is_whole else (sentence, following)


def _join(paragraph: Sequence[FactSentence]) -> str:
    return paragraph_of(sentence.words for sentence in paragraph)


def _draft(
    paragraphs: Sequence[Sequence[FactSentence]], url: str, brief: Brief, persona: PersonaCard
) -> Draft:
    """Return the draft of these paragraphs, with the address, if there is one, on a line of its own."""
    opening = paragraphs[0][0].words
    body = _BREAK.join([*map(_join, paragraphs), *([url] if url else [])])
    return Draft(
        title=title_of(brief, persona, opening),
        body=body,
        body_format="text",
        content={"parts": [body]},
        claims=tuple(sentence.claim for paragraph in paragraphs for sentence in paragraph),
        language=brief.language,
        angle=angle_of(opening),
    )


def _can_open(words: str) -> bool:
    """Return whether the words can open the post: they are one sentence, short enough to be seen whole."""
    return len(words) <= VISIBLE_CHARACTERS and _count_sentences(words) == 1


def _is_short(paragraph: str) -> bool:
    return _count_sentences(paragraph) <= MAX_PARAGRAPH_SENTENCES


def _count_sentences(paragraph: str) -> int:
    return len(split_sentences(without_links(paragraph)))


def _paragraphs(body: str) -> list[str]:
    return [block for block in _BLANK_LINE.split(body) if says_anything(without_links(block))]


def _count_characters(text: str) -> tuple[int, int]:
    """Return the number of characters that the text has, and the number that a text in its script needs."""
    width = 2 if is_wide(text) else 1
    return display_width(text) // width, MIN_CHARACTERS // width


def _check_length(body: str) -> Check:
    length = len(body)
    if MAX_CHARACTERS < length <= HARD_MAX_CHARACTERS:
        message = f"The post has {length} characters; few read on after {MAX_CHARACTERS}."
        return Check("length", "warning", message)
    fault = None
    if length > HARD_MAX_CHARACTERS:
        fault = f"The post has {length} characters; LinkedIn takes {HARD_MAX_CHARACTERS}."
    elif display_width(body) < MIN_CHARACTERS:
        characters, minimum = _count_characters(body)
        fault = f"The post has {counted(characters, 'character')}; a LinkedIn Post has {minimum} or more."
    return make_check("length", f"The post has {counted(length, 'character')}.", fault)


def _check_opening(body: str, language: str) -> Check:
    first = next(iter(_paragraphs(body)), "")
    spans = split_sentences(first)
    end = spans[0][1] if spans else 0
    fault = None
    if end > VISIBLE_CHARACTERS:
        fault = f"The first sentence ends after {counted(end, 'character')}; readers see {VISIBLE_CHARACTERS} before they have to click."
    elif opens_dangling(first, language):
        fault = "The first word points at something said before."
    return make_check("opening", f"The first {VISIBLE_CHARACTERS} characters hold a whole sentence.", fault)


def _check_paragraphs(body: str) -> Check:
    long_paragraphs = [
        number for number, paragraph in enumerate(_paragraphs(body), 1) if not _is_short(paragraph)
    ]
    fault = None
    if long_paragraphs:
        subject = (
            f"Paragraph {long_paragraphs[0]} has"
            if len(long_paragraphs) == 1
            else f"{len(long_paragraphs)} paragraphs have"
        )
        fault = f"{subject} more than two sentences; a blank line belongs after every one or two."
    return make_check("paragraphs", "Every paragraph has one or two sentences.", fault)


PLUGIN = LinkedInPost()
