"""LinkedIn Post: one point in 600 to 1,500 characters, told in short paragraphs; the first lines carry it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, judge, variant_schema
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

LEAST: Final = 600
MOST: Final = 1_500
"""Characters of usual width (`display_width`); readers leave longer posts."""
HARD_MOST: Final = 3_000
"""LinkedIn's own limit for a post (MS Learn, "Posts API", read on 20 November 2026)."""
SEEN: Final = 200
"""Characters that are shown before "see more", on the narrowest screens."""
MAX_TAGS: Final = 3
SENTENCES_OF_A_PARAGRAPH: Final = 2

_ENOUGH: Final = 900
"""Without a model no further sentence is added beyond so many characters."""
_LONGEST_SENTENCE: Final = 400
_BREAK: Final = "\n\n"
_BLANK_LINE: Final = re.compile(r"\n\s*\n")
_NOT_TAG: Final = re.compile(r"\W+")

_RULES: Final = f"""\
A LinkedIn Post makes one point for people at work, from one source.
- {LEAST + 100} to {MOST - 200} characters in all.
- The first paragraph is one sentence of at most {SEEN - 20} characters that carries the point: most see nothing else. No \
question to the reader, no announcement of what follows.
- Each paragraph has one or two sentences. What happened, what it rests on, what it changes, what is still open.
- The last paragraph says what follows from it for these readers. No call to like, to comment or to share.
- Write no link: the source's address is added on a line of its own. Mention no account.
- `hashtags`: at most {MAX_TAGS} words that the facts say, without the sign; none is better.
- No lists, no emoji as bullets, no single words as paragraphs.
"""


class LinkedInPost(Engine):
    """One part; a blank line parts its paragraphs."""

    kind = "linkedin_post"
    name = "LinkedIn Post"
    bucket = "text"
    version = 1
    credits = 2
    made_from = ("text", "topic")
    draft_tokens = 3_000
    least_lines = 3

    def why_not(self, source: SourceText) -> str | None:
        text = collapse(source.text[: 10 * LEAST])
        if display_width(text) >= LEAST:
            return None
        has, least = _counted(text)
        return f"This item has {counted(has, 'character')} of text; a LinkedIn Post has {least} or more, and none is invented."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Sentences in the order of the source, under one that carries the point. A further draft uses others."""
        del seed
        url = ascii_url(brief.url)
        left = spread_over_parts(standalone_sentences(brief, persona, _LONGEST_SENTENCE, count=len), brief)
        followers = _followers(brief, persona)
        drafts: list[Draft] = []
        lacks: tuple[str, ...] = ()
        for _ in range(max(1, variants)):
            taken = _chosen(left, followers, url)
            if not taken:
                break
            draft = _draft(taken, url, brief, persona)
            told = {one.fact.id for paragraph in taken for one in paragraph}
            left = tuple(one for one in left if one.fact.id not in told)
            followers = {end: one for end, one in followers.items() if one.fact.id not in told}
            lacks = lacks or missing_in(draft.body, persona)
            if not missing_in(draft.body, persona):
                drafts.append(draft)
        if drafts:
            return tuple(drafts)
        if lacks:
            message = (
                f"The source's sentences don't keep the persona's rules as a LinkedIn Post: {' '.join(lacks)}"
            )
        else:
            message = (
                f"A LinkedIn Post needs {LEAST} characters in whole sentences that make sense out of their context, and "
                f"one of at most {SEEN} to begin with that says what it is about. The source has too few of them."
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
            *check_words(draft, brief, source, persona, parts=(body,), most_tags=MAX_TAGS),
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
        """The source's address is added here: a model neither sees nor writes it."""
        paragraphs = [collapse(one) for words in answer["paragraphs"] for one in _BLANK_LINE.split(words)]
        paragraphs = [one for one in paragraphs if one]
        if not paragraphs:
            message = "The list of paragraphs is empty."
            raise Refused(message, code="empty")
        url = ascii_url(brief.url)
        has_link = any(find_links(one) for one in paragraphs)
        tags = [f"#{tag}" for one in answer["hashtags"] if (tag := _NOT_TAG.sub("", one))]
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


def _followers(brief: Brief, persona: PersonaCard) -> dict[int, FactSentence]:
    """Sentences that lean on the one before them, by where that one ends: with it they are understood."""
    found: dict[int, FactSentence] = {}
    for fact in brief.facts:
        words = collapse(fact.quote)
        is_fit = is_postable(words) and len(words) <= _LONGEST_SENTENCE and is_balanced(words)
        is_follower = (
            leans_on_previous(words, brief.language) and words[:1].isupper() and not brief.is_heading(fact)
        )
        if is_follower and is_fit and not find_links(words) and is_allowed(words, brief, persona):
            # One space, or one line break, lies between two sentences of a paragraph.
            found[fact.start - 1] = FactSentence(words, fact)
    return found


def _chosen(
    left: Sequence[FactSentence], followers: Mapping[int, FactSentence], url: str
) -> tuple[tuple[FactSentence, ...], ...]:
    """The paragraphs of the next draft; none where what is left makes no post."""
    opening = next((one for one in left if _carries(one.words)), None)
    if opening is None:
        return ()
    taken: list[tuple[FactSentence, ...]] = [(opening,)]
    length = display_width(opening.words) + (len(url) + len(_BREAK) if url else 0)
    for one in left:
        if one is opening or length >= (LEAST if one.leans else _ENOUGH):
            continue
        told = {said.fact.id for paragraph in taken for said in paragraph}
        if one.fact.id in told:
            continue
        paragraph = _with_follower(one, followers)
        if paragraph[-1].fact.id in told:
            paragraph = (one,)
        more = len(_BREAK) + display_width(_joined(paragraph))
        if length + more > MOST or not _is_short(_joined(paragraph)):
            paragraph = (one,)
            more = len(_BREAK) + display_width(one.words)
        if length + more <= MOST and _is_short(one.words):
            taken.append(paragraph)
            length += more
    if length < LEAST:
        return ()
    rest = sorted(taken[1:], key=lambda paragraph: paragraph[0].fact.start)
    return (taken[0], *rest)


def _with_follower(one: FactSentence, followers: Mapping[int, FactSentence]) -> tuple[FactSentence, ...]:
    following = followers.get(one.fact.end)
    # What was cut doesn't end where its text_following_body begins.
    is_whole = one.words[-1:] == one.fact.quote.rstrip()[-1:]
    return (one,) if following is None or not is_whole else (one, following)


def _joined(paragraph: Sequence[FactSentence]) -> str:
    return paragraph_of(one.words for one in paragraph)


def _draft(taken: Sequence[Sequence[FactSentence]], url: str, brief: Brief, persona: PersonaCard) -> Draft:
    opening = taken[0][0].words
    body = _BREAK.join([*map(_joined, taken), *([url] if url else [])])
    return Draft(
        title=title_of(brief, persona, opening),
        body=body,
        body_format="text",
        content={"parts": [body]},
        claims=tuple(one.claim for paragraph in taken for one in paragraph),
        language=brief.language,
        angle=angle_of(opening),
    )


def _carries(words: str) -> bool:
    return len(words) <= SEEN and _count_sentences(words) == 1


def _is_short(paragraph: str) -> bool:
    return _count_sentences(paragraph) <= SENTENCES_OF_A_PARAGRAPH


def _count_sentences(paragraph: str) -> int:
    return len(split_sentences(without_links(paragraph)))


def _paragraphs(body: str) -> list[str]:
    return [one for one in _BLANK_LINE.split(body) if says_anything(without_links(one))]


def _counted(text: str) -> tuple[int, int]:
    """How many characters of its own script it has, and how many it has to have."""
    width = 2 if is_wide(text) else 1
    return display_width(text) // width, LEAST // width


def _check_length(body: str) -> Check:
    length = len(body)
    if MOST < length <= HARD_MOST:
        message = f"The post has {length} characters; few read on after {MOST}."
        return Check("length", "warning", message)
    faults = None
    if length > HARD_MOST:
        faults = f"The post has {length} characters; LinkedIn takes {HARD_MOST}."
    elif display_width(body) < LEAST:
        has, least = _counted(body)
        faults = f"The post has {counted(has, 'character')}; a LinkedIn Post has {least} or more."
    return judge("length", f"The post has {counted(length, 'character')}.", faults)


def _check_opening(body: str, language: str) -> Check:
    first = next(iter(_paragraphs(body)), "")
    spans = split_sentences(first)
    end = spans[0][1] if spans else 0
    faults = None
    if end > SEEN:
        faults = f"The first sentence ends after {counted(end, 'character')}; readers see {SEEN} before they have to click."
    elif opens_dangling(first, language):
        faults = "The first word points at something said before."
    return judge("opening", f"The first {SEEN} characters hold a whole sentence.", faults)


def _check_paragraphs(body: str) -> Check:
    long = [place for place, one in enumerate(_paragraphs(body), 1) if not _is_short(one)]
    faults = None
    if long:
        which = f"Paragraph {long[0]} has" if len(long) == 1 else f"{len(long)} paragraphs have"
        faults = f"{which} more than two sentences; a blank line belongs after every one or two."
    return judge("paragraphs", "Every paragraph has one or two sentences.", faults)


PLUGIN = LinkedInPost()
