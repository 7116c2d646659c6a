"""Thread: three to eight posts, each of at most 280 weighted characters; the last leads to the source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.allowed_contacts import list_some, title_of
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.checks.posts import check_words
from pipeline.engines.shared.source_sentences import (
    MAX_HASHTAGS,
    angle_of,
    are_alike,
    count_sentences,
    says_anything,
    spread_over_parts,
    standalone_sentences,
    words_of,
)
from pipeline.plugins import Refused
from pipeline.text.content_schema import PARTS_BETWEEN
from pipeline.text.links import ascii_url, find_links, is_same_address, without_links
from pipeline.text.prose.anaphora import lacks_antecedent, leaves_speaker_open
from pipeline.text.prose.verbatim_edits import collapse, is_balanced, is_wholly_quoted, opens_dangling
from pipeline.text.weighted_length import LIMIT, LINK_WEIGHT, weighted_length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Claim, PersonaCard, SourceText
    from pipeline.engines.shared.source_sentences import FactSentence

MIN_POSTS: Final = 3
MAX_POSTS: Final = 8
MAX_VERBATIM_POSTS: Final = 6
"""Sentences of one thread without a model: more are the article."""
_USUAL: Final = 5
"""Of a source without headings."""

_NUMBERING: Final = re.compile(r"^[(\[]?\d{1,2}\s?/\s?\d{0,2}[)\]]?[.:]?\s+")
_RULES: Final = f"""\
A Thread is {MIN_POSTS} to {MAX_POSTS} posts that are read one after another; four to six are best.
- Each post has at most {LIMIT - LINK_WEIGHT - 17} characters; an emoji counts as two, and so does a Chinese, Japanese or Korean character.
- The first post stands alone: who reads nothing else knows what happened and why it matters. It announces nothing.
- Every other post says one thing more, and is understood without the one before. None begins with a pronoun that points \
back (it, this, they, he, she), nor with a word such as "but" or "so". Name again what is meant.
- The last post ends with what follows from it all, not with a summary.
- No numbering, no thread sign. Write no link: the source's address is added to the last post.
- At most {MAX_HASHTAGS} hashtags in all, none is better. Mention no account.
"""


class Thread(Engine):
    """Its body is its parts with a blank line between them."""

    kind = "thread"
    name = "Thread"
    bucket = "text"
    version = 1
    credits = 2
    made_from = ("text", "topic")
    draft_tokens = 3_000
    least_lines = MIN_POSTS

    def why_not(self, source: SourceText) -> str | None:
        sentences = count_sentences(source.text, MIN_POSTS)
        if sentences >= MIN_POSTS:
            return None
        has = {0: "no sentence", 1: "one sentence"}.get(sentences, f"{sentences} sentences")
        return f"This item has {has}; a Thread has a post for each of {MIN_POSTS} or more."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Sentences in the order of the source. The best go into the first thread, the next ones into the second."""
        del seed
        url = ascii_url(brief.url)
        ending = f"\n{url}" if url else ""
        left = standalone_sentences(brief, persona, LIMIT - weighted_length(ending))
        drafts: list[Draft] = []
        for _ in range(max(1, variants)):
            taken = _best(left, brief)
            if len(taken) < MIN_POSTS:
                break
            drafts.append(_draft(taken, ending, brief, persona))
            left = tuple(one for one in left if one not in taken)
        kept = [draft for draft in drafts if not missing_in(draft.body, persona)]
        if kept:
            return tuple(kept)
        if drafts:
            lacks = " ".join(missing_in(drafts[0].body, persona))
            message = f"The source's sentences don't keep the persona's rules as a Thread: {lacks}"
        else:
            message = (
                f"A Thread needs {MIN_POSTS} sentences that make sense out of their context and fit into a post; the source "
                f"has {len(left)}."
            )
        raise Refused(message, code="nothing_to_say")

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        parts = _parts(draft)
        return (
            _check_content(draft, parts),
            _check_count(parts),
            _check_lengths(parts),
            _check_opening(parts, draft.language),
            _check_dangling(parts, draft),
            _check_repetition(parts),
            _check_link_place(parts, source.url or brief.url),
            *check_words(draft, brief, source, persona, parts=parts, most_tags=MAX_HASHTAGS, what="thread"),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        posts = {
            "type": "array",
            "items": {"type": "string"},
            "description": "The words of each post, in their order.",
        }
        return variant_schema({"posts": posts})

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Numbers before the posts go, and the source's address is added: a model neither sees nor writes it."""
        posts = [_NUMBERING.sub("", _lines(post)) for post in answer["posts"]]
        posts = [post for post in posts if post]
        if not posts:
            message = "The list of posts is empty."
            raise Refused(message, code="empty")
        url = ascii_url(brief.url)
        parts = [*posts[:-1], posts[-1] if not url or find_links(posts[-1]) else f"{posts[-1]}\n{url}"]
        return Draft(
            title=title_of(brief, persona, posts[0]),
            body=PARTS_BETWEEN.join(parts),
            body_format="text",
            content={"parts": parts},
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def _best(left: Sequence[FactSentence], brief: Brief) -> tuple[FactSentence, ...]:
    """The next thread's sentences, in the order of the source; one of each part of it first."""
    most = MAX_VERBATIM_POSTS if brief.headings else _USUAL
    best = [
        one
        for place, one in enumerate(spread_over_parts(left, brief)[:most])
        if not one.leans or place < MIN_POSTS
    ]
    return tuple(sorted(best, key=lambda one: one.fact.start))


def _draft(taken: Sequence[FactSentence], ending: str, brief: Brief, persona: PersonaCard) -> Draft:
    parts = [one.words for one in taken]
    parts[-1] += ending
    return Draft(
        title=title_of(brief, persona, taken[0].words),
        body=PARTS_BETWEEN.join(parts),
        body_format="text",
        content={"parts": parts},
        claims=tuple(one.claim for one in taken),
        language=brief.language,
        angle=angle_of(taken[0].words),
    )


def _lines(post: str) -> str:
    return "\n".join(line for line in map(collapse, post.splitlines()) if line)


def _parts(draft: Draft) -> list[str]:
    """The posts as they are, or the body as one where the content is none."""
    parts = draft.content.get("parts")
    is_sound = isinstance(parts, list | tuple) and parts and all(isinstance(one, str) for one in parts)
    return list(parts) if is_sound and parts else [draft.body]


def _words(part: str) -> str:
    return without_links(part).strip()


def _check_content(draft: Draft, parts: Sequence[str]) -> Check:
    faults = None
    empty = [place for place, part in enumerate(parts, 1) if not says_anything(_words(part))]
    if empty:
        faults = f"Post {empty[0]} is empty."
    elif set(draft.content) != {"parts"} or PARTS_BETWEEN.join(parts) != draft.body:
        faults = "The thread's parts aren't the same as its body."
    return make_check("content", "Every post has words, and together they are the body.", faults)


def _check_count(parts: Sequence[str]) -> Check:
    faults = None
    if not MIN_POSTS <= len(parts) <= MAX_POSTS:
        posts = "1 post" if len(parts) == 1 else f"{len(parts)} posts"
        faults = f"The thread has {posts}; {MIN_POSTS} to {MAX_POSTS} make one."
    return make_check("part_count", f"The thread has {len(parts)} posts.", faults)


def _check_lengths(parts: Sequence[str]) -> Check:
    lengths = [weighted_length(part) for part in parts]
    too_long = [
        f"Post {place} counts {length} characters, {length - LIMIT} more than the {LIMIT} that fit."
        for place, length in enumerate(lengths, 1)
        if length > LIMIT
    ]
    return make_check(
        "length", f"The longest post counts {max(lengths)} of {LIMIT} characters.", " ".join(too_long) or None
    )


def _check_opening(parts: Sequence[str], language: str) -> Check:
    words = _words(parts[0])
    faults = None
    if not is_balanced(words):
        faults = "The first post doesn't stand alone: a quotation or a bracket in it isn't closed."
    elif is_wholly_quoted(words):
        faults = "The first post doesn't stand alone: it is a quotation that doesn't say whose."
    elif opens_dangling(words, language):
        faults = "The first post doesn't stand alone: its first word points at something said before."
    elif _is_open(words):
        faults = "The first post doesn't stand alone: it doesn't say whom or what one of its words means."
    return make_check("stands_alone", "The first post is understood by itself.", faults)


def _is_open(words: str) -> bool:
    return leaves_speaker_open(words) or lacks_antecedent(words)


def _strays(place: int, parts: Sequence[str], claims: Sequence[Claim]) -> bool:
    """Whether the post says a sentence whose "he" or "there" is named in one that isn't in the post before it."""
    before = {claim.end for claim in claims if claim.text in parts[place - 1]}
    return any(
        claim.text in parts[place]
        and _is_open(claim.text)
        and before.isdisjoint((claim.start - 1, claim.start - 2))
        for claim in claims
    )


def _check_dangling(parts: Sequence[str], draft: Draft) -> Check:
    dangling = [
        place
        for place, part in enumerate(parts, 1)
        if place > 1 and opens_dangling(_words(part), draft.language)
    ]
    faults = None
    if dangling:
        which = ", ".join(f"{place} (“{parts[place - 1].split()[0]}”)" for place in dangling)
        faults = f"The first word of these posts points at something said before: {which}."
    elif strays := [place for place in range(1, len(parts)) if _strays(place, parts, draft.claims)]:
        faults = f"Post {strays[0] + 1} means somebody or something that the post before it doesn't name."
    return make_check("dangling", "No post begins with a word that points at the one before.", faults)


def _check_repetition(parts: Sequence[str]) -> Check:
    bags = [words_of(_words(part)) for part in parts]
    again = [
        f"{place} repeats {other}"
        for place, bag in enumerate(bags, 1)
        for other, earlier in enumerate(bags[: place - 1], 1)
        if bag and are_alike(bag, earlier)
    ]
    faults = f"Posts say the same twice: {list_some(tuple(again))}." if again else None
    return make_check("distinct_posts", "No post repeats another.", faults)


def _check_link_place(parts: Sequence[str], url: str) -> Check:
    faults = None
    early = [place for place, part in enumerate(parts[:-1], 1) if find_links(part)]
    last = find_links(parts[-1])
    wanted = ascii_url(url)
    if early:
        faults = f"Post {early[0]} has a link; only the last one has."
    elif len(last) > 1:
        faults = f"The last post has {len(last)} links; one is the most."
    elif wanted and not any(is_same_address(link.url, wanted) or not link.has_scheme for link in last):
        faults = "The last post doesn't lead to the source."
    passed = (
        "The last post leads to the source." if wanted else "The thread has at most one link, at its end."
    )
    return make_check("link_place", passed, faults)


PLUGIN = Thread()
