"""Checks every draft against its source: numbers, quotations, names, sums and statements.

An engine may return the checks `numbers` and `quotations` itself, since it knows which of its texts are words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check
from pipeline.engines.checks.allowed_contacts import list_some
from pipeline.grounding import (
    find_in_draft,
    find_misquotations,
    find_unsupported_names,
    find_unsupported_numbers,
    measure_support,
    normalize_quotation,
    passage_around,
    recompute_sums,
)
from pipeline.grounding.claim_support import MIN_COVERAGE
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.plain_text import plain_text
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, is_beheaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    from pipeline.engines.base import Brief, Claim, Draft, PersonaCard, SourceText

_FIELDS_WITHOUT_WORDS: Final = frozenset(
    {"slug", "canonical_url", "tags", "form", "json_ld", "clips", "kind"}
)
"""Fields of a draft's content that are derived from its words or hold no sentences."""
_EDGE_MARKS: Final = " .,;:!?\u2026\"'"
"""Marks around a sentence that don't change what it says."""
_TAG: Final = re.compile(r"(?<![\w&/])[#\uff03@\uff20]\w+")
_MAX_NAMED: Final = 5
_NUMBER_FAULTS: Final = {
    "absent": "These numbers aren't in the source: {}.",
    "unit": "The source doesn't say these numbers with this unit: {}.",
    "counted": "The source counts something else with these numbers: {}.",
    "bound": "The source bounds these numbers from the other side: {}.",
}


def check_grounding(
    draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
) -> tuple[Check, ...]:
    """Return `numbers`, `quotations` and `names`, and `support` for claims and `derived` for declared sums.

    Numbers, quotations and sums fail a draft. A name that isn't in the source is a warning. `support` fails if
    a statement's passage says the opposite in the same words, lacks its numbers or begins with a word that it
    leaves out; it warns if the opposite is doubtful, if too few words are shared, or if the draft doesn't make
    the statement.
    """
    words = "\n|\n".join(words_of(draft))
    sums = check_sums(draft, source)
    return (
        check_numbers((words,), draft, source, persona),
        check_quotations((words,), source),
        check_names(words, draft, brief, source, persona),
        # A draft without claims has nothing to compare.
        *((_check_support(draft, source),) if draft.claims else ()),
        *((sums,) if sums is not None else ()),
    )


def words_of(draft: Draft) -> Iterator[str]:
    """Yield every text that a reader of the draft sees: the body, and each text of the content that isn't in it."""
    body = draft.body if draft.body_format == "text" else plain_text(draft.body, draft.body_format)
    yield body
    for words in _strings_in(
        {name: value for name, value in draft.content.items() if name not in _FIELDS_WITHOUT_WORDS}
    ):
        rest = words.replace(draft.body, " ") if draft.body else words
        if rest.strip() and rest not in body:
            yield rest


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in _FIELDS_WITHOUT_WORDS:
                yield from _strings_in(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _strings_in(member)


def remove_added_words(text: str, draft: Draft) -> str:
    """Return the text without what the engine added (`Draft.added`)."""
    stretches = sorted(filter(None, draft.added), key=len, reverse=True)
    numbers = [stretch for stretch in stretches if stretch.isdigit()]
    if numbers:
        # A name of digits is removed only where it stands alone on a line; elsewhere it is a number.
        text = re.sub(rf"(?m)^[\s\u2013]*(?:{'|'.join(numbers)})\s*$", " ", text)
    pattern = "|".join(re.escape(stretch) for stretch in stretches if stretch not in numbers)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", " ", text, flags=re.IGNORECASE) if pattern else text


def check_numbers(parts: Sequence[str], draft: Draft, source: SourceText, persona: PersonaCard) -> Check:
    """Check every number of the parts with its unit; results of declared sums are allowed."""
    required = "\n".join(str(structure.get("text") or "") for structure in persona.required_structures)
    # "3/5" at the end of a line numbers a post of a thread; in a title it is stated, which drafts have on one
    # line.
    known = f"{collapse(source.title)} |\n{source.author}\n|\n{source.text}\n|\n{required}"
    options: dict[str, Any] = {
        "language": draft.language,
        "source_language": source.language,
        "declared": _declared(draft, source),
    }
    unsupported: dict[str, list[str]] = {reason: [] for reason in _NUMBER_FAULTS}
    for number, part in enumerate(parts, 1):
        # Lines are slides, points and paragraphs: no number continues across them.
        lines = remove_added_words(part, draft).replace("\n", "\n|\n")
        for unsupported_number in find_unsupported_numbers(lines, known, **options):
            unsupported[unsupported_number.reason].append(
                _with_post_number(unsupported_number.text, number, parts)
            )
    faults = [
        _NUMBER_FAULTS[reason].format(list_some(tuple(dict.fromkeys(texts))))
        for reason, texts in unsupported.items()
        if texts
    ]
    if faults:
        return Check("numbers", "failed", " ".join(faults))
    return Check("numbers", "passed", "Every number is in the source.")


def check_quotations(parts: Sequence[str], source: SourceText) -> Check:
    """Check that every quotation stands in the source word for word."""
    # Drafts have the title on one line.
    known = f"{strip_invisible(collapse(source.title))}\n|\n{source.text}"
    misquotations = [
        (number, misquotation)
        for number, part in enumerate(parts, 1)
        for misquotation in find_misquotations(strip_invisible(part), known)
    ]
    if not misquotations:
        return Check("quotations", "passed", "Every quotation is in the source word for word.")
    texts = tuple(
        _with_post_number(misquotation.text.rstrip(" ,"), number, parts)
        for number, misquotation in misquotations
    )
    message = f"These quotations aren't in the source word for word: {list_some(texts)}."
    nearest = next((misquotation.nearest for _, misquotation in misquotations if misquotation.nearest), "")
    if nearest:
        message = f"{message} Nearest in the source: {nearest.rstrip('.')}."
    return Check("quotations", "failed", message)


def _with_post_number(text: str, number: int, parts: Sequence[str]) -> str:
    """Return the text, with the number of its post if there are several parts."""
    return text if len(parts) == 1 else f"{text} (post {number})"


def check_names(words: str, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    """Check that the names are in the source or the persona's texts; others are a warning, and a person decides."""
    required_texts = [str(structure.get("text") or "") for structure in persona.required_structures]
    known_texts = (
        source.title,
        source.text,
        source.author,
        brief.title,
        persona.name,
        persona.handle,
        persona.who_you_are,
    )
    unsupported = find_unsupported_names(
        remove_added_words(words, draft),
        (*known_texts, *persona.approved_lines, *required_texts),
        language=draft.language,
    )
    if unsupported:
        return Check(
            "names",
            "warning",
            f"These names aren't in the source as they are written: {list_some(unsupported)}.",
        )
    return Check("names", "passed", "Every name is in the source.")


def check_sums(draft: Draft, source: SourceText) -> Check | None:
    """Return the check `derived`, which recomputes the declared sums, or `None` if none is declared."""
    outcomes = [
        outcome
        for claim in draft.claims
        if claim.derived
        for outcome in _recompute_claim(claim, draft, source)
    ]
    if not outcomes:
        return None
    faults = [f"{outcome.text}: {outcome.fault}" for outcome in outcomes if outcome.fault]
    if faults:
        return Check("derived", "failed", " ".join(faults[:_MAX_NAMED]))
    summary = list_some(tuple(outcome.text for outcome in outcomes))
    return Check("derived", "passed", f"Computed again from numbers of the source: {summary}.")


def _recompute_claim(claim: Claim, draft: Draft, source: SourceText) -> tuple[Any, ...]:
    return recompute_sums(
        claim.derived,
        f"{source.title}\n|\n{source.text}",
        language=draft.language,
        source_language=source.language,
    )


def _declared(draft: Draft, source: SourceText) -> frozenset[tuple[Fraction, str]]:
    return frozenset(
        value
        for claim in draft.claims
        if claim.derived
        for outcome in _recompute_claim(claim, draft, source)
        for value in outcome.values
    )


def _check_support(draft: Draft, source: SourceText) -> Check:
    """Check each claim against the sentence that it cites, with one sentence before and after it."""
    failed: list[str] = []
    doubtful: list[str] = []
    for claim in draft.claims:
        if (
            not claim.quote
            or source.text[claim.start : claim.end] != claim.quote
            or claim.text == claim.quote
        ):
            # The check `claims` reports a missing quote; words taken verbatim need no comparison.
            continue
        if is_beheaded(claim.text, claim.quote):
            failed.append(
                f"\u201c{_shorten(claim.text)}\u201d leaves out the source's \u201c{claim.quote.split()[0]}\u201d."
            )
            continue
        start, end = passage_around(source.text, claim.start, claim.end)
        passage = source.text[start:end]
        languages = {"language": draft.language, "source_language": source.language}
        numbers_elsewhere = _numbers_from_elsewhere(claim, f"{source.title}\n|\n{passage}", draft, source)
        if numbers_elsewhere:
            failed.append(
                f"What \u201c{_shorten(claim.text)}\u201d rests on doesn't say {list_some(numbers_elsewhere)}."
            )
            continue
        result = measure_support(claim.text, claim.quote, passage, **languages)
        if result.reversal is not None:
            message = _reversal_message(claim, result.reversal)
            (failed if result.is_sure else doubtful).append(message)
        elif result.coverage < MIN_COVERAGE and not claim.derived:
            # A computed result shares few words with its passage.
            doubtful.append(
                f"\u201c{_shorten(claim.text)}\u201d shares {result.coverage:.0%} of its words with the passage that it rests on."
            )
        if not any(find_in_draft(words, claim.text) for words in words_of(draft)):
            doubtful.append(f"The draft doesn't say \u201c{_shorten(claim.text)}\u201d in these words.")
    if failed:
        return Check("support", "failed", " ".join(failed[:_MAX_NAMED]))
    if doubtful:
        return Check("support", "warning", " ".join(doubtful[:_MAX_NAMED]))
    return Check("support", "passed", "Each statement matches its passage in the source.")


def find_unsupported_texts(sentences: Iterable[str], draft: Draft, source: SourceText) -> tuple[str, ...]:
    """Return the sentences that are in no sentence of the source word for word, or only with the opposite sense."""
    source_sentences = [
        normalize_quotation(source.title),
        *(normalize_quotation(source.text[start:end]) for start, end in split_sentences(source.text)),
    ]
    languages = {"language": draft.language, "source_language": source.language}
    unsupported: list[str] = []
    for sentence in sentences:
        words = normalize_quotation(sentence).strip(_EDGE_MARKS)
        pattern = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)
        quote = (
            next(
                (source_sentence for source_sentence in source_sentences if pattern.search(source_sentence)),
                None,
            )
            if words
            else ""
        )
        if quote is None or (
            quote and measure_support(words, quote, quote, **languages).reversal is not None
        ):
            unsupported.append(sentence)
    return tuple(unsupported)


def find_new_sentences(texts: Iterable[str], before: Iterable[str], draft: Draft) -> tuple[str, ...]:
    """Return the sentences that weren't in `before`, each once, ignoring links, tags and the engine's additions."""
    earlier_text = normalize_quotation("\n|\n".join(before))
    new_sentences: list[str] = []
    for text in texts:
        for start, end in split_sentences(text):
            sentence = text[start:end]
            core = normalize_quotation(
                _TAG.sub(" ", without_links(remove_added_words(sentence, draft)))
            ).strip(_EDGE_MARKS)
            if not re.search(r"\w", core):
                continue
            if not re.search(rf"(?<!\w){re.escape(core)}(?!\w)", earlier_text):
                new_sentences.append(sentence)
    return tuple(dict.fromkeys(new_sentences))


def _numbers_from_elsewhere(claim: Claim, passage: str, draft: Draft, source: SourceText) -> tuple[str, ...]:
    """Return the statement's numbers that the source states, but not in the statement's passage."""
    options: dict[str, Any] = {
        "language": draft.language,
        "source_language": source.language,
        "declared": _declared(draft, source),
    }
    not_in_passage = find_unsupported_numbers(claim.text, passage, **options)
    if not not_in_passage:
        return ()
    not_in_source = {
        number.start
        for number in find_unsupported_numbers(claim.text, f"{source.title}\n|\n{source.text}", **options)
    }
    return tuple(number.text for number in not_in_passage if number.start not in not_in_source)


def _reversal_message(claim: Claim, opposites: tuple[str, str]) -> str:
    claim_word, source_word = opposites
    if claim_word and source_word:
        return f"\u201c{_shorten(claim.text)}\u201d says \u201c{claim_word}\u201d, and the source says \u201c{source_word}\u201d."
    if claim_word:
        return f"\u201c{_shorten(claim.text)}\u201d says \u201c{claim_word}\u201d, and the source doesn't."
    return f"\u201c{_shorten(claim.text)}\u201d leaves out the source's \u201c{source_word}\u201d."


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}\u2026"
