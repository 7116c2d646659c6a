"""What every draft has to prove, whatever its engine: its numbers, quotations, names, sums and statements.

An engine may give the checks `numbers` and `quotations` itself, over the words that it knows to be words; what it
doesn't give, the stage adds by `check_grounding`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check
from pipeline.engines.checks.allowed_contacts import list_some
from pipeline.grounding import (
    find_misquotations,
    fold,
    passage_around,
    place_in,
    recompute,
    support,
    unsupported_names,
    unsupported_numbers,
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

_NO_WORDS: Final = frozenset({"slug", "canonical_url", "tags", "form", "json_ld", "clips", "kind"})
"""Fields of a draft's content that are made of its words or lead elsewhere."""
_AROUND: Final = " .,;:!?\u2026\"'"
"""What may stand around a sentence, or not, without another thing being said."""
_TAG: Final = re.compile(r"(?<![\w&/])[#\uff03@\uff20]\w+")
_MOST_NAMED: Final = 5
_SAID: Final = {
    "absent": "These numbers aren't in the source: {}.",
    "unit": "The source doesn't say these numbers with this unit: {}.",
    "counted": "The source counts something else with these numbers: {}.",
    "bound": "The source bounds these numbers from the other side: {}.",
}


def check_grounding(
    draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
) -> tuple[Check, ...]:
    """`numbers`, `quotations`, `names`, `support` where the draft claims something, `derived` where it declares sums.

    Numbers, quotations and sums fail a draft. A name that is nowhere is a warning. A statement fails where its passage
    says the opposite in the same words, and warns where it shares too few words with its passage.
    """
    words = "\n|\n".join(words_of(draft))
    sums = check_sums(draft, source)
    return (
        check_numbers((words,), draft, source, persona),
        check_quotations((words,), source),
        check_names(words, draft, brief, source, persona),
        # Of a draft that claims nothing, nothing was compared.
        *((_check_support(draft, source),) if draft.claims else ()),
        *((sums,) if sums is not None else ()),
    )


def words_of(draft: Draft) -> Iterator[str]:
    """Every text that a reader of the draft is shown, each once: the body, and what of the content isn't in it."""
    body = draft.body if draft.body_format == "text" else plain_text(draft.body, draft.body_format)
    yield body
    for words in _strings({name: value for name, value in draft.content.items() if name not in _NO_WORDS}):
        rest = words.replace(draft.body, " ") if draft.body else words
        if rest.strip() and rest not in body:
            yield rest


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in _NO_WORDS:
                yield from _strings(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _strings(member)


def remove_added_words(text: str, draft: Draft) -> str:
    """The text without what the engine put there itself (`Engine.marked`)."""
    stretches = sorted(filter(None, draft.added), key=len, reverse=True)
    numbers = [one for one in stretches if one.isdigit()]
    if numbers:
        # A number is a number whoever is called so, but in a line that holds nothing else.
        text = re.sub(rf"(?m)^[\s\u2013]*(?:{'|'.join(numbers)})\s*$", " ", text)
    pattern = "|".join(re.escape(one) for one in stretches if one not in numbers)
    return re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", " ", text, flags=re.IGNORECASE) if pattern else text


def check_numbers(parts: Sequence[str], draft: Draft, source: SourceText, persona: PersonaCard) -> Check:
    """Every number of the parts with its unit; those that a declared sum gives are no strangers."""
    required = "\n".join(str(one.get("text") or "") for one in persona.required_structures)
    # "3/5" at the end of a line numbers a post of a thread; that of a title is said, in one line as drafts have it.
    known = f"{collapse(source.title)} |\n{source.author}\n|\n{source.text}\n|\n{required}"
    told: dict[str, Any] = {
        "language": draft.language,
        "source_language": source.language,
        "declared": _declared(draft, source),
    }
    strange: dict[str, list[str]] = {reason: [] for reason in _SAID}
    for place, part in enumerate(parts, 1):
        # A draft's lines are slides, points and paragraphs: no number goes across.
        lines = remove_added_words(part, draft).replace("\n", "\n|\n")
        for one in unsupported_numbers(lines, known, **told):
            strange[one.reason].append(_placed(one.text, place, parts))
    said = [
        _SAID[reason].format(list_some(tuple(dict.fromkeys(texts))))
        for reason, texts in strange.items()
        if texts
    ]
    if said:
        return Check("numbers", "failed", " ".join(said))
    return Check("numbers", "passed", "Every number stands in the source.")


def check_quotations(parts: Sequence[str], source: SourceText) -> Check:
    # A draft has the title in one line.
    known = f"{strip_invisible(collapse(source.title))}\n|\n{source.text}"
    wrong = [
        (place, one)
        for place, part in enumerate(parts, 1)
        for one in find_misquotations(strip_invisible(part), known)
    ]
    if not wrong:
        return Check("quotations", "passed", "Every quotation stands in the source word for word.")
    texts = tuple(_placed(one.text.rstrip(" ,"), place, parts) for place, one in wrong)
    said = f"These quotations aren't in the source word for word: {list_some(texts)}."
    nearest = next((one.nearest for _, one in wrong if one.nearest), "")
    if nearest:
        said = f"{said} Nearest in the source: {nearest.rstrip('.')}."
    return Check("quotations", "failed", said)


def _placed(text: str, place: int, parts: Sequence[str]) -> str:
    """Of several parts, such as the posts of a thread, the one that is meant is named."""
    return text if len(parts) == 1 else f"{text} (post {place})"


def check_names(words: str, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    """Names are a sign, not a proof: a person looks."""
    required = [str(one.get("text") or "") for one in persona.required_structures]
    known = (
        source.title,
        source.text,
        source.author,
        brief.title,
        persona.name,
        persona.handle,
        persona.who_you_are,
    )
    strange = unsupported_names(
        remove_added_words(words, draft),
        (*known, *persona.approved_lines, *required),
        language=draft.language,
    )
    if strange:
        return Check(
            "names", "warning", f"These names aren't in the source as they are written: {list_some(strange)}."
        )
    return Check("names", "passed", "Every name stands in the source.")


def check_sums(draft: Draft, source: SourceText) -> Check | None:
    """The declared sums, computed again; None where nothing is declared."""
    outcomes = [one for claim in draft.claims if claim.derived for one in _recomputed(claim, draft, source)]
    if not outcomes:
        return None
    faults = [f"{one.text}: {one.fault}" for one in outcomes if one.fault]
    if faults:
        return Check("derived", "failed", " ".join(faults[:_MOST_NAMED]))
    said = list_some(tuple(one.text for one in outcomes))
    return Check("derived", "passed", f"Computed again from numbers of the source: {said}.")


def _recomputed(claim: Claim, draft: Draft, source: SourceText) -> tuple[Any, ...]:
    return recompute(
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
        for outcome in _recomputed(claim, draft, source)
        for value in outcome.values
    )


def _check_support(draft: Draft, source: SourceText) -> Check:
    """Each claim against the sentence that it rests on, with one sentence before and after it."""
    failed: list[str] = []
    doubtful: list[str] = []
    for claim in draft.claims:
        if (
            not claim.quote
            or source.text[claim.start : claim.end] != claim.quote
            or claim.text == claim.quote
        ):
            # A quote that isn't there is the engine's to refuse; words taken as they are prove themselves.
            continue
        if is_beheaded(claim.text, claim.quote):
            failed.append(
                f"\u201c{_cut(claim.text)}\u201d leaves out the source's \u201c{claim.quote.split()[0]}\u201d."
            )
            continue
        start, end = passage_around(source.text, claim.start, claim.end)
        passage = source.text[start:end]
        told = {"language": draft.language, "source_language": source.language}
        elsewhere = _only_elsewhere(claim, f"{source.title}\n|\n{passage}", draft, source)
        if elsewhere:
            failed.append(f"What \u201c{_cut(claim.text)}\u201d rests on doesn't say {list_some(elsewhere)}.")
            continue
        found = support(claim.text, claim.quote, passage, **told)
        if found.turned is not None:
            said = _turned_said(claim, found.turned)
            (failed if found.is_sure else doubtful).append(said)
        elif found.covered < MIN_COVERAGE and not claim.derived:
            # What is computed is said in words of its own.
            doubtful.append(
                f"\u201c{_cut(claim.text)}\u201d shares {found.covered:.0%} of its words with the passage that it rests on."
            )
        if not any(place_in(words, claim.text) for words in words_of(draft)):
            doubtful.append(f"The draft doesn't say \u201c{_cut(claim.text)}\u201d in these words.")
    if failed:
        return Check("support", "failed", " ".join(failed[:_MOST_NAMED]))
    if doubtful:
        return Check("support", "warning", " ".join(doubtful[:_MOST_NAMED]))
    return Check("support", "passed", "Each statement matches its passage in the source.")


def unsaid_texts(sentences: Iterable[str], draft: Draft, source: SourceText) -> tuple[str, ...]:
    """Those that no sentence of the source says in the same words, or only by leaving out its "not"."""
    known = [
        fold(source.title),
        *(fold(source.text[start:end]) for start, end in split_sentences(source.text)),
    ]
    told = {"language": draft.language, "source_language": source.language}
    found: list[str] = []
    for sentence in sentences:
        words = fold(sentence).strip(_AROUND)
        pattern = re.compile(rf"(?<!\w){re.escape(words)}(?!\w)", re.IGNORECASE)
        quote = next((one for one in known if pattern.search(one)), None) if words else ""
        if quote is None or (quote and support(words, quote, quote, **told).turned is not None):
            found.append(sentence)
    return tuple(found)


def fresh_sentences(texts: Iterable[str], before: Iterable[str], draft: Draft) -> tuple[str, ...]:
    """The sentences that weren't among the texts before, each once, but for links, tags and what the engine has added."""
    known = fold("\n|\n".join(before))
    found: list[str] = []
    for text in texts:
        for start, end in split_sentences(text):
            sentence = text[start:end]
            bare = fold(_TAG.sub(" ", without_links(remove_added_words(sentence, draft)))).strip(_AROUND)
            if not re.search(r"\w", bare):
                continue
            if not re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", known):
                found.append(sentence)
    return tuple(dict.fromkeys(found))


def _only_elsewhere(claim: Claim, passage: str, draft: Draft, source: SourceText) -> tuple[str, ...]:
    """The statement's numbers that the source says, but of something else than its passage speaks of."""
    told: dict[str, Any] = {
        "language": draft.language,
        "source_language": source.language,
        "declared": _declared(draft, source),
    }
    here = unsupported_numbers(claim.text, passage, **told)
    if not here:
        return ()
    nowhere = {
        one.start for one in unsupported_numbers(claim.text, f"{source.title}\n|\n{source.text}", **told)
    }
    return tuple(one.text for one in here if one.start not in nowhere)


def _turned_said(claim: Claim, turned: tuple[str, str]) -> str:
    own, theirs = turned
    if own and theirs:
        return f"\u201c{_cut(claim.text)}\u201d says \u201c{own}\u201d, and the source says \u201c{theirs}\u201d."
    if own:
        return f"\u201c{_cut(claim.text)}\u201d says \u201c{own}\u201d, and the source doesn't."
    return f"\u201c{_cut(claim.text)}\u201d leaves out the source's \u201c{theirs}\u201d."


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}\u2026"
