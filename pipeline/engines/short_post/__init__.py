"""Makes a Short Post: one idea in at most 280 weighted characters, with the source's address if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.engines.base import Check, Claim, Draft, Engine, claims_of, make_check, variant_schema
from pipeline.engines.checks.allowed_contacts import (
    check_accounts,
    check_addresses,
    check_contacts,
    check_suspicion,
    is_allowed,
    title_of,
    unlisted_tags,
)
from pipeline.engines.checks.grounded import check_numbers, check_quotations
from pipeline.engines.checks.persona_rules import missing_in
from pipeline.engines.checks.posts import (
    MAX_LINKS,
    check_characters,
    check_claims,
    check_hashtags,
    check_link_count,
    check_one_part,
)
from pipeline.engines.shared.source_sentences import (
    MAX_HASHTAGS,
    THREAD_MARK,
    angle_of,
    is_postable,
    says_anything,
    shorten_sentence,
)
from pipeline.grounding import normalize_quotation
from pipeline.plugins import Refused
from pipeline.text.links import ascii_url, find_links
from pipeline.text.prose.anaphora import lacks_antecedent, points_back
from pipeline.text.prose.verbatim_edits import (
    collapse,
    drop_asides,
    first_words,
    is_self_contained,
    trim_conjunction,
)
from pipeline.text.similarity import distinct_words, is_same_idea
from pipeline.text.weighted_length import LINK_WEIGHT, MAX_LENGTH, weighted_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.engines.base import Brief, Fact, PersonaCard, SourceText

_ADDRESS_CHARACTERS = 60
"""The space that the first words of a long title leave for an address, in weighted characters."""
_MIN_LENGTH_RATIO = 2
"""A source that is longer than its title by more than this factor says more than the title."""

# 17 characters are left for the line break before the source's address, and for miscounting.
_RULES = f"""\
A Short Post is one idea from one source, for readers who scroll past quickly.
- At most {MAX_LENGTH - LINK_WEIGHT - 17} characters; an emoji counts as two, and so does a Chinese, Japanese or Korean character.
- The first words say what happened or why it matters. No greeting, no announcement of what follows.
- Write no link: the source's address is added on a line of its own.
- At most {MAX_HASHTAGS} hashtags, none is better. Mention no account.
- A single post: no numbering and no thread sign.
"""


@dataclass(frozen=True)
class _Wording:
    """A sentence, and the body in which it can be posted; `fact` is `None` for the source's title."""

    sentence: str
    body: str
    fact: Fact | None


def _link_to_add(sentence: str, url: str) -> str | None:
    """Return the address to add below the sentence, or "" if the sentence names an address or there is none.

    It is `None` if the sentence can't be posted, because it has a whole link or several addresses.
    """
    links = find_links(sentence)
    if any(link.has_scheme for link in links) or len(links) > MAX_LINKS:
        return None
    return "" if links else url


def _fit(sentence: str, url: str, *, may_cut: bool) -> str | None:
    """Return the body with the fewest edits that bring it to the limit, or `None` if it can't be posted."""
    link = _link_to_add(sentence, url)
    if link is None:
        return None
    ending = f"\n{link}" if link else ""
    words = shorten_sentence(sentence, MAX_LENGTH - weighted_length(ending), may_cut=may_cut)
    return None if words is None else words + ending


def _find_wordings(brief: Brief, persona: PersonaCard) -> Iterator[_Wording]:
    """Yield the sentences that stand alone, best first: those that fit, then all that fit when they are cut.

    If there are none, the other sentences follow. No sentence begins with a reference to another one, because
    without that it would say something else.
    """
    url = ascii_url(brief.url)
    sentences = [(trim_conjunction(collapse(fact.quote)), fact) for fact in brief.facts]
    usable = [
        (sentence, fact)
        for sentence, fact in sentences
        if is_postable(sentence)
        and not points_back(sentence, brief.language)
        and not lacks_antecedent(sentence)
    ]
    has_found = False
    for stands_alone, may_cut in ((True, False), (True, True), (False, False), (False, True)):
        if has_found and not stands_alone:
            return
        for sentence, fact in usable:
            if is_self_contained(sentence, brief.language) is not stands_alone:
                continue
            body = _fit(sentence, url, may_cut=may_cut)
            if body is not None and is_allowed(body, brief, persona) and not missing_in(body, persona):
                has_found = True
                yield _Wording(sentence, body, fact)


def _whole_wording(brief: Brief, persona: PersonaCard) -> _Wording | None:
    """Return all of a short text in its own lines, or `None` if it doesn't fit or can't be posted."""
    fact = brief.whole
    if fact is None:
        return None
    words = "\n".join(line for line in map(collapse, fact.quote.splitlines()) if line)
    link = _link_to_add(words, ascii_url(brief.url))
    if link is None or not is_postable(collapse(words)):
        return None
    body = f"{words}\n{link}" if link else words
    if (
        weighted_length(body) > MAX_LENGTH
        or not is_allowed(body, brief, persona)
        or missing_in(body, persona)
    ):
        return None
    return _Wording(words, body, fact)


def _title_wording(brief: Brief, persona: PersonaCard) -> _Wording | None:
    """Return the title, cut if it is too long, as a post, or `None` if it can't be posted."""
    title = collapse(brief.title)
    if not is_postable(title) or not is_allowed(title, brief, persona):
        return None
    url = ascii_url(brief.url)
    body = _fit(title, url, may_cut=True)
    if body is None and _link_to_add(title, url) is not None:
        # Half the limit in code points fits whatever the characters weigh, with space for an address.
        body = _fit(first_words(title, MAX_LENGTH // 2 - _ADDRESS_CHARACTERS // 2), url, may_cut=False)
    return None if body is None or missing_in(body, persona) else _Wording(title, body, None)


def _draft(wording: _Wording, brief: Brief, persona: PersonaCard) -> Draft:
    """Return the draft of a wording, whose claim is the first line, or the whole of a short text."""
    words = wording.body.partition("\n")[0]
    fact = wording.fact
    claimed_words = wording.sentence if fact is not None and fact is brief.whole else words
    claims = (
        () if fact is None else (Claim(text=claimed_words, quote=fact.quote, start=fact.start, end=fact.end),)
    )
    return Draft(
        title=title_of(brief, persona, words),
        body=wording.body,
        body_format="text",
        content={"parts": [wording.body]},
        claims=claims,
        language=brief.language,
        angle=angle_of(words),
    )


class ShortPost(Engine):
    """Makes a post of one idea of a source."""

    kind = "short_post"
    name = "Short Post"
    bucket = "text"
    version = 1
    credits = 1
    is_starting = True
    made_from = ("text", "topic")

    def why_not(self, source: SourceText) -> str | None:
        if says_anything(source.text) or says_anything(source.title):
            return None
        if source.url:
            return "This item has only an address: without a title or any words there is nothing to say."
        return "This item has no title and no words, so there is nothing to say."

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return the whole text, if it is a post, then the best sentences, whatever the seed.

        For a further variant ask for one more and take the last.
        """
        del seed
        whole_wording = _whole_wording(brief, persona)
        chosen: list[_Wording] = [] if whole_wording is None else [whole_wording]
        earlier_words: list[frozenset[str]] = []
        for wording in _find_wordings(brief, persona):
            if len(chosen) >= variants:
                break
            words = distinct_words(wording.sentence)
            is_whole = whole_wording is not None and words == distinct_words(whole_wording.sentence)
            if not is_whole and not any(is_same_idea(words, other) for other in earlier_words):
                chosen.append(wording)
                earlier_words.append(words)
        if not chosen:
            title = _title_wording(brief, persona)
            message = ""
            if title is None:
                message = "The source holds no sentence and no title that could stand as a post of its own."
            # The text of a source of one sentence may be the same as its title.
            elif brief.characters > _MIN_LENGTH_RATIO * len(brief.title) and not brief.facts:
                message = (
                    "The source has no sentence that makes sense on its own, and words that only repeat "
                    "its title would say nothing of it."
                )
            if title is None or message:
                raise Refused(message, code="nothing_to_say")
            chosen.append(title)
        return tuple(_draft(wording, brief, persona) for wording in chosen[: max(1, variants)])

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Check that it is a single post of one part, and check the text as every post's."""
        body = draft.body
        links = find_links(body)
        # A separator that no number and no address spans.
        title_and_body = f"{draft.title}\n|\n{body}"
        return (
            check_one_part(draft, is_empty=not says_anything(body)),
            _check_length(body),
            check_link_count(len(links)),
            check_addresses(title_and_body, brief, persona, url=source.url),
            check_hashtags(body, unlisted_tags(body, brief, persona), max_tags=MAX_HASHTAGS),
            check_accounts(title_and_body, persona),
            check_contacts(title_and_body, brief, persona, url=source.url),
            _check_thread_mark(body),
            check_characters(body),
            check_numbers((body,), draft, source, persona),
            check_quotations((body,), source),
            check_claims(draft, source, needs_claim=not _is_title(body, source.title)),
            check_suspicion(brief),
        )

    def draft_schema(self) -> Mapping[str, Any]:
        return variant_schema({"text": {"type": "string", "description": "The words of the post."}})

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        """Build the draft. The source's address is added here, as a model neither sees nor writes it.

        Raises `Refused` if a claim cites an unknown fact.
        """
        words = "\n".join(line for line in map(collapse, answer["text"].splitlines()) if line)
        url = ascii_url(brief.url)
        # An address of the persona in the words is the one link that a post may have.
        body = words if not url or find_links(words) else f"{words}\n{url}"
        return Draft(
            title=title_of(brief, persona, words),
            body=body,
            body_format="text",
            content={"parts": [body]},
            claims=claims_of(answer, brief),
            language=persona.language or brief.language,
            angle=angle,
        )


def _check_length(body: str) -> Check:
    length = weighted_length(body)
    fault = None
    if length > MAX_LENGTH:
        fault = (
            f"The post counts {length} characters, {length - MAX_LENGTH} more than the {MAX_LENGTH} that fit."
        )
    return make_check("length", f"The post counts {length} of {MAX_LENGTH} characters.", fault)


def _check_thread_mark(body: str) -> Check:
    fault = "The post announces a thread, and it is a single post." if THREAD_MARK in body else None
    return make_check("thread_mark", "The post doesn't announce a thread.", fault)


def _is_title(body: str, title: str) -> bool:
    """Return whether the body's first line is the title or its beginning, with or without the title's asides."""
    words = normalize_quotation(body.partition("\n")[0]).rstrip(".\u2026 ")
    titles = (normalize_quotation(title), normalize_quotation(drop_asides(collapse(title))))
    return bool(words) and any(wording.startswith(words) for wording in titles)


PLUGIN = ShortPost()
