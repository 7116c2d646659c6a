"""What every newsletter keeps to: a subject and a preheader that inboxes show whole, sections, and what may be said."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check, Claim
from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.checks.persona_rules import banned_in
from pipeline.engines.short_post import PLUGIN as POST
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

SUBJECT_MOST: Final = 50
"""Telephones show about so many characters of a subject."""
PREHEADER_LEAST: Final = 40
PREHEADER_MOST: Final = 90
HEADLINE_MOST: Final = 90

_OF_WORDS: Final = (
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
"""What is judged in a newsletter's words as in those of a post."""
_POST: Final = re.compile(r"\b([Tt])he post\b")
_UNNAMED: Final = re.compile(
    r"\b(?:he|she|they|it) (?:said|says|added|adds|told|wrote|writes|argued|explained|noted)\b", re.IGNORECASE
)
"""Somebody who was named in another sentence speaks."""
SUBJECT_RULES: Final = f"""\
- `subject`: at most {SUBJECT_MOST} characters, what the reader gets; no greeting, no "newsletter", no full stop.
- `preheader`: {PREHEADER_LEAST} to {PREHEADER_MOST} characters that go on where the subject ends, with another fact; never the subject again.
- Plain words: no Markdown, no HTML, no emoji, no hashtag.
- Write no link: the program adds the link to the source.
"""


def sayable_sentence(fact: Fact, brief: Brief, persona: PersonaCard) -> str | None:
    """The fact's sentence as it may stand in a newsletter without an edit but a trimmed "And"; None where it may not."""
    sentence = trim_conjunction(collapse(fact.quote))
    if not is_clean(sentence) or not is_allowed(sentence, brief, persona):
        return None
    return sentence


def claim_of(sentence: str, fact: Fact) -> Claim:
    return Claim(text=sentence, quote=fact.quote, start=fact.start, end=fact.end)


def rank_sentences(facts: Iterable[Fact], brief: Brief, persona: PersonaCard) -> list[tuple[str, Fact]]:
    """What may be said, best first: sentences that stand alone; only where there are none, the others.

    None that begins with what another sentence said: without it, it says something else.
    """
    said = [
        (sentence, fact) for fact in facts if (sentence := sayable_sentence(fact, brief, persona)) is not None
    ]
    alone = [
        pair for pair in said if is_self_contained(pair[0], brief.language) and not _UNNAMED.search(pair[0])
    ]
    return alone or [
        pair for pair in said if not points_back(pair[0], brief.language) and not lacks_antecedent(pair[0])
    ]


def subject_of(title: str) -> str:
    return first_words(title, SUBJECT_MOST)


def preheader_of(sentences: Sequence[tuple[str, Fact]], subject: str) -> tuple[str, tuple[Claim, ...]]:
    """The first sentence that fits whole, else one that is cut at a clause, else the first words of the first.

    Empty where nothing but the subject could be said again.
    """
    whole = ((sentence, fact) for sentence, fact in sentences if _fits(sentence))
    cut = ((one, fact) for sentence, fact in sentences for one in clause_cuts(sentence) if _fits(one))
    for words, fact in (*whole, *cut):
        if not repeats_subject(words, subject):
            return words, (claim_of(words, fact),)
    words = ""
    claims: list[Claim] = []
    for sentence, fact in sentences:
        words = paragraph_of((words, sentence)).strip()
        claims.append(claim_of(sentence, fact))
        if len(words) >= PREHEADER_LEAST:
            break
    shown = first_words(words, PREHEADER_MOST)
    # A quotation that stays open would be closed by whatever the inbox shows next.
    shown = shown if is_balanced(shown) else shown.translate(_NO_MARKS)
    return ("", ()) if repeats_subject(shown, subject) else (shown, tuple(claims))


_NO_MARKS: Final = dict.fromkeys(map(ord, '"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d()[]'))


def repeats_subject(preheader: str, subject: str) -> bool:
    """Whether it says nothing but the subject again."""
    return preheader.rstrip(".\u2026").casefold() == subject.rstrip(".\u2026").casefold()


def _fits(words: str) -> bool:
    return PREHEADER_LEAST <= len(words) <= PREHEADER_MOST


def check_words(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> tuple[Check, ...]:
    """The rules that any words keep to, over all that the reader sees: subject, preheader and body."""
    body = markdown_to_text(draft.body)
    links = " \n".join(one.link for one in from_content(draft.content))
    # A sign that no number and no address goes across.
    words = "\n|\n".join((*_lines(draft.content), body, links))
    as_post = dataclasses.replace(draft, body=words, content={"parts": [words]})
    judged = {check.code: check for check in POST.check(as_post, brief, source, persona)}
    return tuple(
        dataclasses.replace(judged[code], message=_POST.sub(r"\1he newsletter", judged[code].message))
        for code in _OF_WORDS
    )


def check_content(draft: Draft) -> Check:
    """`content`: the sections are there, and the body says what they say."""
    sections = from_content(draft.content)
    fault = None
    if not {"subject", "preheader", "sections"} <= set(draft.content) or not sections:
        fault = "The content of a newsletter is a subject, a preheader and its sections."
    elif any(not one.headline.strip() or not one.text.strip() for one in sections):
        fault = "A section has no headline or no words."
    elif any(one.text not in draft.body or one.link not in draft.body for one in sections):
        fault = "The body doesn't say what the sections say."
    return check_result(
        "content", "Subject, preheader and sections are there, and the body says the same.", fault
    )


def check_subject(draft: Draft) -> Check:
    subject = str(draft.content.get("subject", ""))
    fault = None
    if not subject.strip() or subject != collapse(subject):
        fault = "The subject has to be one line of words."
    elif len(subject) > SUBJECT_MOST:
        fault = f"The subject has {len(subject)} characters; {SUBJECT_MOST} are the most."
    return check_result("subject", f"The subject has at most {SUBJECT_MOST} characters.", fault)


def check_preheader(draft: Draft) -> Check:
    preheader = str(draft.content.get("preheader", ""))
    subject = str(draft.content.get("subject", ""))
    fault = None
    if preheader != collapse(preheader) or not PREHEADER_LEAST <= len(preheader) <= PREHEADER_MOST:
        fault = (
            f"The preheader has {counted(len(preheader), 'character')}; it has to be one line of {PREHEADER_LEAST} to "
            f"{PREHEADER_MOST}."
        )
    elif repeats_subject(preheader, subject):
        fault = "The preheader only repeats the subject."
    return check_result(
        "preheader", f"The preheader has {PREHEADER_LEAST} to {PREHEADER_MOST} characters.", fault
    )


def check_banned(draft: Draft, persona: PersonaCard) -> tuple[Check, ...]:
    """`banned_in_subject`, of a persona that bans words: title and body are judged with every draft."""
    if not persona.banned_words:
        return ()
    banned = banned_in("\n|\n".join(_lines(draft.content)), persona)
    fault = f"The persona never says: {', '.join(banned)}." if banned else None
    return (
        check_result("banned_in_subject", "Subject and preheader say nothing that the persona bans.", fault),
    )


def is_verbatim(section: NewsletterSection, claims: Iterable[Claim]) -> bool:
    """Whether the section's words are sentences of the source and nothing else."""
    left = markdown_to_text(section.text)
    for claim in sorted(claims, key=lambda claim: -len(claim.text)):
        left = left.replace(claim.text, "")
    return not left.strip()


def words_in(section: NewsletterSection) -> int:
    return count_words(markdown_to_text(section.text))


def check_result(code: str, passed: str, fault: str | None) -> Check:
    """One check; `fault` is the sentence for a failure, None where all is well."""
    return Check(code, "passed", passed) if fault is None else Check(code, "failed", fault)


def _lines(content: Mapping[str, object]) -> tuple[str, str]:
    return str(content.get("subject", "")), str(content.get("preheader", ""))
