"""Checks every newsletter, and chooses the sentences, subject and preheader of one made without a model."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.engines.base import Check, Claim, make_check
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import banned_in
from pipeline.engines.short_post import PLUGIN as SHORT_POST
from pipeline.text.newsletter_sections import from_content
from pipeline.text.plain_text import markdown_to_text
from pipeline.text.prose.anaphora import lacks_antecedent, points_back
from pipeline.text.prose.verbatim_edits import (
    clause_cuts,
    collapse,
    count_words,
    counted,
    first_words,
    is_balanced,
    is_clean,
    is_self_contained,
    paragraph_of,
    trim_conjunction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.engines.base import Brief, Draft, Fact, PersonaCard, SourceText
    from pipeline.text.newsletter_sections import NewsletterSection

MAX_SUBJECT_CHARACTERS: Final = 50
"""Phones show about so many characters of a subject."""
MIN_PREHEADER_CHARACTERS: Final = 40
MAX_PREHEADER_CHARACTERS: Final = 90
MAX_HEADLINE_CHARACTERS: Final = 90

_WORD_CHECKS: Final = (
    "link_origin",
    "hashtags",
    "mentions",
    "contacts",
    "characters",
    "numbers",
    "quotations",
    "claims",
    "instructions",
)
"""Checks of a post that also hold for a newsletter's words."""
_THE_POST: Final = re.compile(r"\b([Tt])he post\b")
"""A Short Post's name in the messages of its checks, which a newsletter's checks replace."""
_UNNAMED: Final = re.compile(
    r"\b(?:he|she|they|it) (?:said|says|added|adds|told|wrote|writes|argued|explained|noted)\b", re.IGNORECASE
)
"""Words such as "she said": another sentence names the speaker."""
SUBJECT_RULES: Final = f"""\
- `subject`: at most {MAX_SUBJECT_CHARACTERS} characters, what the reader gets; no greeting, no "newsletter", no full stop.
- `preheader`: {MIN_PREHEADER_CHARACTERS} to {MAX_PREHEADER_CHARACTERS} characters that go on where the subject ends, with another fact; never the subject again.
- Plain words: no Markdown, no HTML, no emoji, no hashtag.
- Write no link: the program adds the link to the source.
"""


class InboxLines(NamedTuple):
    """The two lines of a mail that an inbox shows."""

    subject: str
    preheader: str


def _edit_sentence(fact: Fact, brief: Brief, persona: PersonaCard) -> str | None:
    """Return the fact's sentence as a newsletter may say it, or `None` if it may not.

    White space is collapsed, a leading "And" or the like is trimmed, and the first letter is capitalised.
    """
    sentence = trim_conjunction(collapse(fact.quote))
    if not is_clean(sentence) or not is_allowed(sentence, brief, persona):
        return None
    return sentence


def claim_of(sentence: str, fact: Fact) -> Claim:
    """Return the claim of a sentence made from the fact."""
    return Claim(text=sentence, quote=fact.quote, start=fact.start, end=fact.end)


def rank_sentences(facts: Iterable[Fact], brief: Brief, persona: PersonaCard) -> list[tuple[str, Fact]]:
    """Return the usable sentences with their facts, best first: those that stand alone, or the others if none does.

    The others don't begin with a reference to another sentence, because without that they would say
    something else.
    """
    sentences = [
        (sentence, fact) for fact in facts if (sentence := _edit_sentence(fact, brief, persona)) is not None
    ]
    self_contained = [
        pair
        for pair in sentences
        if is_self_contained(pair[0], brief.language) and not _UNNAMED.search(pair[0])
    ]
    return self_contained or [
        pair
        for pair in sentences
        if not points_back(pair[0], brief.language) and not lacks_antecedent(pair[0])
    ]


def subject_of(title: str) -> str:
    """Return the title cut to the length of a subject."""
    return first_words(title, MAX_SUBJECT_CHARACTERS)


def choose_preheader(sentences: Sequence[tuple[str, Fact]], subject: str) -> tuple[str, tuple[Claim, ...]]:
    """Return a preheader with its claims, or "" without claims if it could only repeat the subject.

    It is the first sentence that fits whole, else the first sentence cut at a clause that fits. If neither
    exists, the first sentences are joined and cut; the result may be shorter than the minimum.
    """
    whole_sentences = ((sentence, fact) for sentence, fact in sentences if _fits(sentence))
    clauses = (
        (clause, fact) for sentence, fact in sentences for clause in clause_cuts(sentence) if _fits(clause)
    )
    for text, fact in (*whole_sentences, *clauses):
        if not repeats_subject(text, subject):
            return text, (claim_of(text, fact),)
    text = ""
    claims: list[Claim] = []
    for sentence, fact in sentences:
        text = paragraph_of((text, sentence)).strip()
        claims.append(claim_of(sentence, fact))
        if len(text) >= MIN_PREHEADER_CHARACTERS:
            break
    shortened = first_words(text, MAX_PREHEADER_CHARACTERS)
    # An open quotation would be closed by whatever the inbox shows next.
    shortened = shortened if is_balanced(shortened) else shortened.translate(_REMOVE_MARKS)
    return ("", ()) if repeats_subject(shortened, subject) else (shortened, tuple(claims))


_REMOVE_MARKS: Final = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d()[]'))
"""A table for `str.translate` that deletes quotation marks and brackets."""


def repeats_subject(preheader: str, subject: str) -> bool:
    """Return whether the preheader is the subject, apart from case and a full stop or an ellipsis at the end."""
    return preheader.rstrip(".\u2026").casefold() == subject.rstrip(".\u2026").casefold()


def _fits(text: str) -> bool:
    return MIN_PREHEADER_CHARACTERS <= len(text) <= MAX_PREHEADER_CHARACTERS


def check_words(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> tuple[Check, ...]:
    """Run a Short Post's checks of words on all that the reader sees: subject, preheader, body and links."""
    body = markdown_to_text(draft.body)
    links = " \n".join(section.link for section in from_content(draft.content))
    # A separator that no number and no address spans.
    text = "\n|\n".join((*_inbox_lines(draft.content), body, links))
    as_post = dataclasses.replace(draft, body=text, content={"parts": [text]})
    post_checks = {check.code: check for check in SHORT_POST.check(as_post, brief, source, persona)}
    return tuple(
        dataclasses.replace(
            post_checks[code], message=_THE_POST.sub(r"\1he newsletter", post_checks[code].message)
        )
        for code in _WORD_CHECKS
    )


def check_content(draft: Draft) -> Check:
    """Check that subject, preheader and filled sections are there, and that the body holds each section."""
    sections = from_content(draft.content)
    fault = None
    if not {"subject", "preheader", "sections"} <= set(draft.content) or not sections:
        fault = "The content of a newsletter is a subject, a preheader and its sections."
    elif any(not section.headline.strip() or not section.text.strip() for section in sections):
        fault = "A section has no headline or no words."
    elif any(section.text not in draft.body or section.link not in draft.body for section in sections):
        fault = "The body doesn't say what the sections say."
    return make_check(
        "content", "Subject, preheader and sections are there, and the body says the same.", fault
    )


def check_subject(draft: Draft) -> Check:
    """Check that the subject is one line that inboxes show whole."""
    subject = str(draft.content.get("subject", ""))
    fault = None
    if not subject.strip() or subject != collapse(subject):
        fault = "The subject has to be one line of words."
    elif len(subject) > MAX_SUBJECT_CHARACTERS:
        fault = f"The subject has {len(subject)} characters; the maximum is {MAX_SUBJECT_CHARACTERS}."
    return make_check("subject", f"The subject has at most {MAX_SUBJECT_CHARACTERS} characters.", fault)


def check_preheader(draft: Draft) -> Check:
    """Check that the preheader is one line of a length that inboxes show whole, and not the subject again."""
    preheader = str(draft.content.get("preheader", ""))
    subject = str(draft.content.get("subject", ""))
    fault = None
    if (
        preheader != collapse(preheader)
        or not MIN_PREHEADER_CHARACTERS <= len(preheader) <= MAX_PREHEADER_CHARACTERS
    ):
        fault = (
            f"The preheader has {counted(len(preheader), 'character')}; it has to be one line of {MIN_PREHEADER_CHARACTERS} to "
            f"{MAX_PREHEADER_CHARACTERS}."
        )
    elif repeats_subject(preheader, subject):
        fault = "The preheader only repeats the subject."
    return make_check(
        "preheader",
        f"The preheader has {MIN_PREHEADER_CHARACTERS} to {MAX_PREHEADER_CHARACTERS} characters.",
        fault,
    )


def check_banned(draft: Draft, persona: PersonaCard) -> tuple[Check, ...]:
    """Return `banned_in_subject`, if the persona bans words; every draft's title and body are checked elsewhere."""
    if not persona.banned_words:
        return ()
    banned = banned_in("\n|\n".join(_inbox_lines(draft.content)), persona)
    fault = f"The persona never says: {', '.join(banned)}." if banned else None
    return (
        make_check("banned_in_subject", "Subject and preheader say nothing that the persona bans.", fault),
    )


def is_verbatim(section: NewsletterSection, claims: Iterable[Claim]) -> bool:
    """Return whether the section's text consists of the claims' texts alone."""
    remaining = markdown_to_text(section.text)
    for claim in sorted(claims, key=lambda claim: -len(claim.text)):
        remaining = remaining.replace(claim.text, "")
    return not remaining.strip()


def count_section_words(section: NewsletterSection) -> int:
    """Return the number of words in the section."""
    return count_words(markdown_to_text(section.text))


def _inbox_lines(content: Mapping[str, object]) -> InboxLines:
    return InboxLines(str(content.get("subject", "")), str(content.get("preheader", "")))
