"""Makes a Thread: three to eight posts of at most 280 weighted characters; the last one links to the source."""

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
    count_sentences,
    says_anything,
    spread_over_parts,
    standalone_sentences,
)
from pipeline.plugins import Refused
from pipeline.text.content_schema import PARTS_BETWEEN
from pipeline.text.links import ascii_url, find_links, is_same_address, without_links
from pipeline.text.prose.anaphora import lacks_antecedent, leaves_speaker_open
from pipeline.text.prose.verbatim_edits import collapse, is_balanced, is_wholly_quoted, opens_dangling
from pipeline.text.similarity import distinct_words, is_same_idea
from pipeline.text.weighted_length import LINK_WEIGHT, MAX_LENGTH, weighted_length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Brief, Claim, PersonaCard, SourceText
    from pipeline.engines.shared.source_sentences import FactSentence

MIN_POSTS: Final = 3
MAX_POSTS: Final = 8
MAX_VERBATIM_POSTS: Final = 6
"""The maximum of a thread without a model; more posts would be the whole article."""
_MAX_POSTS_WITHOUT_HEADINGS: Final = 5
"""The same for a source without headings."""

_NUMBERING: Final = re.compile(r"^[(\[]?\d{1,2}\s?/\s?\d{0,2}[)\]]?[.:]?\s+")
"""A number before a post, such as "1/ " or "(2/5) "."""
_RULES: Final = f"""\
A Thread is {MIN_POSTS} to {MAX_POSTS} posts that are read one after another; four to six are best.
- Each post has at most {MAX_LENGTH - LINK_WEIGHT - 17} characters; an emoji counts as two, and so does a Chinese, Japanese or Korean character.
- The first post stands alone: who reads nothing else knows what happened and why it matters. It announces nothing.
- Every other post says one thing more, and is understood without the one before. None begins with a pronoun that points \
back (it, this, they, he, she), nor with a word such as "but" or "so". Name again what is meant.
- The last post ends with what follows from it all, not with a summary.
- No numbering, no thread sign. Write no link: the source's address is added to the last post.
- At most {MAX_HASHTAGS} hashtags in all, none is better. Mention no account.
"""


class Thread(Engine):
    """Makes posts that are read one after another; the body is these parts with a blank line between them."""

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
        count_text = {0: "no sentence", 1: "one sentence"}.get(sentences, f"{sentences} sentences")
        return f"This item has {count_text}; a Thread has a post for each of {MIN_POSTS} or more."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return drafts of one sentence a post, in the source's order, whatever the seed.

        The best sentences make the first thread, the next ones the second. A thread is left out if it lacks a
        structure that the persona requires.
        """
        del seed
        url = ascii_url(brief.url)
        ending = f"\n{url}" if url else ""
        remaining = standalone_sentences(brief, persona, MAX_LENGTH - weighted_length(ending))
        drafts: list[Draft] = []
        for _ in range(max(1, variants)):
            chosen = _choose_sentences(remaining, brief)
            if len(chosen) < MIN_POSTS:
                break
            drafts.append(_draft(chosen, ending, brief, persona))
            remaining = tuple(sentence for sentence in remaining if sentence not in chosen)
        allowed = [draft for draft in drafts if not missing_in(draft.body, persona)]
        if allowed:
            return tuple(allowed)
        if drafts:
            faults = " ".join(missing_in(drafts[0].body, persona))
            message = f"The source's sentences don't keep the persona's rules as a Thread: {faults}"
        else:
            message = (
                f"A Thread needs {MIN_POSTS} sentences that make sense out of their context and fit into a post; the source "
                f"has {len(remaining)}."
            )
        raise Refused(message, code="nothing_to_say")

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check the posts, one by one and together, and run the checks of a plain text on them."""
        parts = _parts_of(draft)
        return (
            _check_content(draft, parts),
            _check_count(parts),
            _check_lengths(parts),
            _check_opening(parts, draft.language),
            _check_dangling(parts, draft),
            _check_repetition(parts),
            _check_link_place(parts, source.url or brief.url),
            *check_words(draft, brief, source, persona, parts=parts, max_tags=MAX_HASHTAGS, noun="thread"),
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
        """Build the draft, without numbers before the posts and with the source's address, which no model sees.

        Raises `Refused` if there are no posts, or a claim cites an unknown fact.
        """
        posts = [_NUMBERING.sub("", _collapse_lines(post)) for post in answer["posts"]]
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


def _choose_sentences(remaining: Sequence[FactSentence], brief: Brief) -> tuple[FactSentence, ...]:
    """Return the next thread's sentences in the source's order: the best of each part of the source, then others.

    Sentences that lean on others are taken only if there are fewer than `MIN_POSTS` before them.
    """
    maximum = MAX_VERBATIM_POSTS if brief.headings else _MAX_POSTS_WITHOUT_HEADINGS
    best = [
        sentence
        for index, sentence in enumerate(spread_over_parts(remaining, brief)[:maximum])
        if not sentence.leans or index < MIN_POSTS
    ]
    return tuple(sorted(best, key=lambda sentence: sentence.fact.start))


def _draft(chosen: Sequence[FactSentence], ending: str, brief: Brief, persona: PersonaCard) -> Draft:
    parts = [sentence.words for sentence in chosen]
    parts[-1] += ending
    return Draft(
        title=title_of(brief, persona, chosen[0].words),
        body=PARTS_BETWEEN.join(parts),
        body_format="text",
        content={"parts": parts},
        claims=tuple(sentence.claim for sentence in chosen),
        language=brief.language,
        angle=angle_of(chosen[0].words),
    )


def _collapse_lines(post: str) -> str:
    return "\n".join(line for line in map(collapse, post.splitlines()) if line)


def _parts_of(draft: Draft) -> list[str]:
    """Return the posts of the content, or the body as one post if the content has no list of texts."""
    parts = draft.content.get("parts")
    is_valid = isinstance(parts, list | tuple) and parts and all(isinstance(part, str) for part in parts)
    return list(parts) if is_valid and parts else [draft.body]


def _without_links(part: str) -> str:
    return without_links(part).strip()


def _check_content(draft: Draft, parts: Sequence[str]) -> Check:
    fault = None
    empty = [number for number, part in enumerate(parts, 1) if not says_anything(_without_links(part))]
    if empty:
        fault = f"Post {empty[0]} is empty."
    elif set(draft.content) != {"parts"} or PARTS_BETWEEN.join(parts) != draft.body:
        fault = "The thread's parts aren't the same as its body."
    return make_check("content", "Every post has words, and together they are the body.", fault)


def _check_count(parts: Sequence[str]) -> Check:
    fault = None
    if not MIN_POSTS <= len(parts) <= MAX_POSTS:
        posts = "1 post" if len(parts) == 1 else f"{len(parts)} posts"
        fault = f"The thread has {posts}; {MIN_POSTS} to {MAX_POSTS} make one."
    return make_check("part_count", f"The thread has {len(parts)} posts.", fault)


def _check_lengths(parts: Sequence[str]) -> Check:
    lengths = [weighted_length(part) for part in parts]
    too_long = [
        f"Post {number} counts {length} characters, {length - MAX_LENGTH} more than the {MAX_LENGTH} that fit."
        for number, length in enumerate(lengths, 1)
        if length > MAX_LENGTH
    ]
    return make_check(
        "length",
        f"The longest post counts {max(lengths)} of {MAX_LENGTH} characters.",
        " ".join(too_long) or None,
    )


def _check_opening(parts: Sequence[str], language: str) -> Check:
    """Check that the first post makes sense on its own."""
    words = _without_links(parts[0])
    fault = None
    if not is_balanced(words):
        fault = "The first post doesn't stand alone: a quotation or a bracket in it isn't closed."
    elif is_wholly_quoted(words):
        fault = "The first post doesn't stand alone: it is a quotation that doesn't say whose."
    elif opens_dangling(words, language):
        fault = "The first post doesn't stand alone: its first word points at something said before."
    elif _has_open_reference(words):
        fault = "The first post doesn't stand alone: it doesn't say whom or what one of its words means."
    return make_check("stands_alone", "The first post makes sense on its own.", fault)


def _has_open_reference(words: str) -> bool:
    return leaves_speaker_open(words) or lacks_antecedent(words)


def _lacks_previous(index: int, parts: Sequence[str], claims: Sequence[Claim]) -> bool:
    """Return whether a sentence of the post refers to one ("he", "there") that the post before it leaves out."""
    ends_before = {claim.end for claim in claims if claim.text in parts[index - 1]}
    return any(
        claim.text in parts[index]
        and _has_open_reference(claim.text)
        # One or two characters of white space lie between two sentences that follow one another.
        and ends_before.isdisjoint((claim.start - 1, claim.start - 2))
        for claim in claims
    )


def _check_dangling(parts: Sequence[str], draft: Draft) -> Check:
    """Check that no further post begins with a word that points back, or refers to what the one before lacks."""
    dangling = [
        number
        for number, part in enumerate(parts, 1)
        if number > 1 and opens_dangling(_without_links(part), draft.language)
    ]
    fault = None
    if dangling:
        quoted_words = ", ".join(f"{number} (“{parts[number - 1].split()[0]}”)" for number in dangling)
        fault = f"The first word of these posts points at something said before: {quoted_words}."
    elif lacking := [index for index in range(1, len(parts)) if _lacks_previous(index, parts, draft.claims)]:
        fault = f"Post {lacking[0] + 1} refers to someone or something that the post before it doesn't name."
    return make_check("dangling", "No post begins with a word that points at the one before.", fault)


def _check_repetition(parts: Sequence[str]) -> Check:
    word_sets = [distinct_words(_without_links(part)) for part in parts]
    repetitions = [
        f"{number} repeats {other}"
        for number, words in enumerate(word_sets, 1)
        for other, earlier in enumerate(word_sets[: number - 1], 1)
        if words and is_same_idea(words, earlier)
    ]
    fault = f"Posts say the same twice: {list_some(tuple(repetitions))}." if repetitions else None
    return make_check("distinct_posts", "No post repeats another.", fault)


def _check_link_place(parts: Sequence[str], url: str) -> Check:
    """Check that only the last post has a link, at most one, and that it leads to a source that has an address.

    A bare name of a site counts as leading there; other checks report where it leads.
    """
    fault = None
    early_links = [number for number, part in enumerate(parts[:-1], 1) if find_links(part)]
    last_links = find_links(parts[-1])
    source_url = ascii_url(url)
    if early_links:
        fault = f"Post {early_links[0]} has a link; only the last one has."
    elif len(last_links) > 1:
        fault = f"The last post has {len(last_links)} links; the maximum is one."
    elif source_url and not any(
        is_same_address(link.url, source_url) or not link.has_scheme for link in last_links
    ):
        fault = "The last post doesn't lead to the source."
    passed = (
        "The last post leads to the source." if source_url else "The thread has at most one link, at its end."
    )
    return make_check("link_place", passed, fault)


PLUGIN = Thread()
