"""The writer that needs no model: it finds a source's most telling sentences and repeats them verbatim."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeline.engines.base import Brief, Fact
from pipeline.engines.checks.persona_rules import draft_without_model
from pipeline.plugins import Refused
from pipeline.text.article import find_headings
from pipeline.text.language_detection import guess_language
from pipeline.text.plain_text import RELEASE, bare_title
from pipeline.text.prose.boilerplate import after_dateline, is_boilerplate, set_apart, sounds_like_boilerplate
from pipeline.text.prose.sentences import signature_in, statements_in
from pipeline.text.prose.verbatim_edits import (
    collapse,
    is_clean,
    is_question,
    is_wholly_quoted,
    leans_back,
    word_set,
)
from pipeline.text.weighted_length import LIMIT, weighted_length
from pipeline.writers.approved_line_drafts import approved_drafts
from pipeline.writers.base import NO_HINTS, BriefAnswer, DraftAnswer, Usage, Writer, answer_screened
from pipeline.writers.extractive.topic_posts import sentences_of, topic_drafts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import Draft, Engine, PersonaCard, SourceText
    from pipeline.writers.base import Judge

MAX_CHARACTERS = 60_000
"""What is read of a source; the same cap holds for a model."""
MAX_FACTS = 24
MAX_HEADINGS = 40
_POOL = 160
"""Diversity is weighed among this many best sentences: its cost rises with pool times facts."""
FROM_SOURCE = "extractive-1"
APPROVED_LINES = "approved-lines-1"
"""The label of what is an approved line of the persona, word for word."""
_LEAST_WORDS = 4
_LEAST_OF_WHOLE = 3
_LEAST_CHARACTERS_CJK = 8
_LONGEST = 1_000
"""Longer than this is no sentence but a table, a key or an address."""
_FULL_LENGTH = 12
"""Sentences of fewer words than this say less than their words' weight promises."""
_RELEVANCE = 0.6
_LEAST_UNCOUNTED = 2
"""Words without a digit; "4.2.0 – 2027-02-03" says nothing."""
_COLUMNS = " | "
"""Between what stands side by side on a page, or under a letter."""
_ADDED_TO_TITLE = 4
"""Words, such as "| Brackwater Gazette"."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_FIGURE = re.compile(r"\d")
# A label with hardly a word behind it, as in minutes: "Carried".
_LABEL_ALONE = re.compile(r"[^\W\d_]+(?:\s[^\W\d_]+){0,2}\s?:\s(?:\S+\s?){1,3}$")
# What a press release says of itself.
_RELEASE = re.compile(rf"\W*{RELEASE}(?![^\W_])", re.IGNORECASE)
# Where a line or a paragraph breaks off behind a short form.
_CUT_SHORT = re.compile(
    r"\s(?:c|ca|approx|(?:of|for|at|to|about|costs?) est|max|incl|excl|inkl|zzgl|vgl|cf|vs|e\.g|i\.e|z\.\s?B|np|dyr|eng|[Dd]r|Mrs?|Ms|[Pp]rof|डॉ)\.$"
)
_ANNOUNCES = re.compile(r"[:\uff1a][\"'\u2019\u201d\u00bb)]*$")
_LEFT_OPEN = re.compile(r"[^\W_][\"'\u2019\u201d\u201c\u00bb)\]]*$|[,;\u2013\u3001\uff0c\uff1b\u060c-]$")
_BROKEN_OFF = re.compile(r"(?:\u2026|\.\.\.)[\])]?$")
_SPEAKER = re.compile(r"^[^\W\d_][^\n:.!?]{0,40}:\s", re.MULTILINE)
_MARKS = "\"'\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d "
_QUOTED = re.compile(r"[\"\u201c\u201d\u00ab\u00bb\u300c]")
_STOP_WORDS = word_set(
    "a an and are as at be been but by can could did do does for from had has have he her him his how i "
    "if in into is it its just like may more most my no not of on one or our out over she so some than "
    "that the their them then there these they this to too up us was we were what when which who will "
    "with would you your about after also all any because before between both each even here him only "
    "other own same such through under very der die das und ist ein eine den dem des im mit auf für von "
    "zu nicht sich le la les un une et est des du en que pour dans sur pas el los las y es por con una "
    "del al se"
)


@dataclass(frozen=True)
class _Candidate:
    order: int
    start: int
    end: int
    quote: str
    weights: Mapping[str, float]
    score: float


def _terms(quote: str) -> list[str]:
    """Words without the frequent ones; pairs of characters for scripts that write without spaces."""
    words = [word for word in _WORD.findall(quote.lower()) if word not in _STOP_WORDS]
    terms: list[str] = []
    for word in words:
        if len(word) > 1 and _CJK.search(word):
            terms.extend(word[position : position + 2] for position in range(len(word) - 1))
        else:
            terms.append(word)
    return terms


def _says_something(quote: str) -> bool:
    if len(quote) > _LONGEST or not is_clean(quote) or _CUT_SHORT.search(quote):
        return False
    if _CJK.search(quote):
        return len(quote) >= _LEAST_CHARACTERS_CJK
    if _COLUMNS in quote or _LABEL_ALONE.match(quote):
        return False
    words = _WORD.findall(quote)
    return len(words) >= _LEAST_WORDS and sum(not _FIGURE.search(word) for word in words) >= _LEAST_UNCOUNTED


def _unit(weights: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {term: weight / length for term, weight in weights.items()} if length else {}


def _likeness(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    if len(one) > len(other):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)


def _score(quote: str, order: int, count: int, nearness: float, words: int, *, language: str) -> float:
    score = nearness * min(1.0, words / _FULL_LENGTH)
    # The lead of a report says most; the bonus fades over the first fifth.
    score += 0.25 * max(0.0, 1.0 - order / max(3.0, count / 5))
    if _FIGURE.search(quote):
        score += 0.08
    if _QUOTED.search(quote):
        score += 0.06
    if leans_back(quote, language) or is_wholly_quoted(quote):
        score -= 0.2
    # A question is told without its answer.
    if sounds_like_boilerplate(quote) or is_question(quote):
        score -= 0.3
    return score


def _without_fragments(found: Sequence[_Candidate], title: str) -> list[_Candidate]:
    """Without the title, lines that announce what doesn't follow ("as follows:"), and lines that are left open where
    most sentences end: headings, bylines, menus. What was spoken and Thai have no such ends.
    """
    name = _bare(title)
    said = [one for one in found if _ANNOUNCES.search(one.quote) is None and _bare(one.quote) != name]
    ended = [one for one in said if _LEFT_OPEN.search(one.quote) is None or signature_in(one.quote)]
    return ended if 2 * len(ended) >= len(said) else said


def _bare(sentence: str) -> str:
    return " ".join(_WORD.findall(sentence.casefold())) or collapse(sentence)


def _after_title(text: str, title: str) -> int:
    """Where the text goes on behind its first line where that is the title once more, with what a site adds to it."""
    lead = len(text) - len(text.lstrip())
    line = text[lead:].partition("\n")[0]
    words, said = _WORD.findall(title.casefold()), _WORD.findall(bare_title(line).casefold())
    is_title = bool(words) and said[: len(words)] == words and len(said) <= len(words) + _ADDED_TO_TITLE
    return lead + len(line) if is_title and (said == words or _LEFT_OPEN.search(line.rstrip())) else 0


def _candidates(text: str, title: str) -> list[_Candidate]:
    spans: dict[str, tuple[int, int]] = {}
    begun = _after_title(text, title)
    apart = set_apart(text)
    for first, last in statements_in(text[begun:]):
        start, end = after_dateline(text, begun + first, begun + last), begun + last
        if any(one <= start < other for one, other in apart):
            continue
        quote = text[start:end]
        key = collapse(quote).casefold()
        # What is said twice, as teasers and captions are, counts where it stands first.
        if key not in spans and _says_something(quote) and not is_boilerplate(quote):
            spans[key] = (start, end)
    counts = [Counter(_terms(key)) for key in spans]
    total = len(counts)
    document_frequency = Counter(term for terms in counts for term in terms)
    title_terms = set(_terms(title))
    vectors = [
        _unit(
            {
                term: count * (1.0 + math.log(total / document_frequency[term]))
                for term, count in terms.items()
            }
        )
        for terms in counts
    ]
    sums: dict[str, float] = {}
    for vector in vectors:
        for term, weight in vector.items():
            sums[term] = sums.get(term, 0.0) + weight
    # What the title names, the source is about.
    centroid = _unit({term: weight * (1.5 if term in title_terms else 1.0) for term, weight in sums.items()})
    language = guess_language(text)
    found: list[_Candidate] = []
    for order, ((start, end), vector, terms) in enumerate(zip(spans.values(), vectors, counts, strict=True)):
        quote = text[start:end]
        score = _score(quote, order, total, _likeness(vector, centroid), terms.total(), language=language)
        found.append(_Candidate(order, start, end, quote, vector, score))
    # What stands in fragments tells what the text is about all the same.
    return _without_fragments(found, title)


def _diverse(candidates: Sequence[_Candidate], limit: int) -> list[_Candidate]:
    """Best first, each weighed against its likeness to those already taken (maximal marginal relevance)."""
    pool = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.order))[:_POOL]
    nearest = [0.0] * len(pool)
    taken: list[_Candidate] = []
    left = list(range(len(pool)))
    while left and len(taken) < limit:
        best = max(left, key=lambda place: _RELEVANCE * pool[place].score - (1 - _RELEVANCE) * nearest[place])
        left.remove(best)
        taken.append(pool[best])
        for place in left:
            nearest[place] = max(nearest[place], _likeness(pool[place].weights, pool[best].weights))
    return [one for one in taken if not any(_holds(other.quote, one.quote) for other in taken)]


def _holds(longer: str, quote: str) -> bool:
    """Whether it says the other as one of its own sentences: "“A. B.”" and "B." by itself, as a pull quote has it."""
    return len(longer) > len(quote) and collapse(quote).strip(_MARKS) in collapse(longer)


def find_facts(text: str, *, title: str = "", limit: int = MAX_FACTS) -> tuple[Fact, ...]:
    """The sentences that say most, best first, none like another; `quote` is `text[start:end]` exactly."""
    chosen = _diverse(_candidates(text[:MAX_CHARACTERS], title), limit)
    return tuple(
        Fact(
            id=f"f{place}",
            text=collapse(candidate.quote),
            quote=candidate.quote,
            start=candidate.start,
            end=candidate.end,
            score=round(candidate.score, 4),
        )
        for place, candidate in enumerate(chosen, start=1)
    )


def _headings(source: SourceText) -> tuple[Fact, ...]:
    text = source.text[:MAX_CHARACTERS]
    found = find_headings(text, title=source.title)
    spans = [(start, end) for start, end in found if not _RELEASE.match(text, start, end)][:MAX_HEADINGS]
    return tuple(
        Fact(f"h{place}", collapse(text[start:end]), text[start:end], start, end, kind="heading")
        for place, (start, end) in enumerate(spans, start=1)
    )


def _whole(text: str, title: str) -> Fact | None:
    """A text that is short enough for a post, without its title; None where a part of it is nothing to publish."""
    start = _after_title(text, title)
    quote = text[start:].strip()
    if not quote or weighted_length(quote) > LIMIT or not is_clean(collapse(quote)):
        return None
    parts = [quote[first:last] for first, last in statements_in(quote)]
    words = [word for word in _WORD.findall(quote) if not _FIGURE.search(word)]
    is_short = len(words) < _LEAST_OF_WHOLE and len(_CJK.findall(quote)) < _LEAST_CHARACTERS_CJK
    if is_short or set_apart(quote) or any(map(_is_no_statement, parts)) or _bare(quote) == _bare(title):
        return None
    # A byline or a heading beside sentences; a text that its source breaks off; an interview.
    ends = [_LEFT_OPEN.search(one) is None for one in map(str.rstrip, quote.split("\n\n"))]
    if (any(ends) and not all(ends)) or _BROKEN_OFF.search(quote) or len(_SPEAKER.findall(quote)) > 1:
        return None
    begun = start + len(text[start:]) - len(text[start:].lstrip())
    return Fact("whole", collapse(quote), quote, begun, begun + len(quote), kind="whole")


def _is_no_statement(part: str) -> bool:
    is_label = _COLUMNS in part or _LABEL_ALONE.match(part) or _ANNOUNCES.search(part)
    return bool(is_label) or is_boilerplate(part) or sounds_like_boilerplate(part)


def _found_in(source: SourceText) -> Brief:
    facts = find_facts(source.text, title=source.title)
    return Brief(
        title=source.title,
        language=source.language,
        url=source.url,
        facts=facts,
        summary=facts[0].text if facts else "",
        headings=_headings(source),
        characters=len(source.text),
        whole=_whole(source.text, source.title),
    )


def brief_of(source: SourceText) -> Brief:
    """What this writer finds in a source; the same each time."""

    def find(shown: SourceText) -> BriefAnswer:
        return BriefAnswer(_found_in(shown), Usage("offline", "", offline=True, prompt_version=""))

    return answer_screened(source, find).brief


class Extractive(Writer):
    kind = "extractive"
    label = "Without AI: sentences taken from the source"
    offline = True
    prompt_version = FROM_SOURCE

    def _usage(self) -> Usage:
        return Usage(provider="offline", model=FROM_SOURCE, offline=True, prompt_version=self.prompt_version)

    def find(self, source: SourceText, *, client: Any = None) -> BriefAnswer:
        del client
        return BriefAnswer(_found_in(source), self._usage())

    def draft(
        self,
        engine: Engine,
        brief: Brief,
        persona: PersonaCard,
        *,
        variants: int,
        seed: str,
        client: Any = None,
        judge: Judge | None = None,
        hint: str = "",
        former: Draft | None = None,
    ) -> DraftAnswer:
        del client, former
        if hint:
            raise Refused(NO_HINTS, code="needs_ai", field="hint")
        if brief.lane is not None:
            drafts, are_lines = lane_drafts(engine, brief, persona, variants=variants, seed=seed, judge=judge)
            usage = self._usage()
            return DraftAnswer(drafts, replace(usage, model=APPROVED_LINES) if are_lines else usage)
        drafts = draft_without_model(engine, brief, persona, variants=variants, seed=seed)
        return DraftAnswer(drafts, self._usage())


def lane_drafts(
    engine: Engine, brief: Brief, persona: PersonaCard, *, variants: int, seed: str, judge: Judge | None
) -> tuple[tuple[Draft, ...], bool]:
    """What a brand lane says without a model, and whether all of it are approved lines.

    Approved lines come first, for a person chose their words; then what the topic's notes and evidence say. Raises
    `Refused` where nothing may be said.
    """
    told = sentences_of(brief) if engine.least_lines else ()
    lines: tuple[Draft, ...] = ()
    try:
        lines = approved_drafts(engine, brief, persona, variants=variants, seed=seed, judge=judge)
    except Refused:
        if not told:
            raise
    if len(lines) == variants or not told:
        return lines, True
    try:
        more = topic_drafts(
            engine,
            brief,
            persona,
            variants=variants - len(lines),
            seed=seed,
            judge=judge,
            rank=lambda text, title: [fact.quote for fact in find_facts(text, title=title)],
        )
    except Refused:
        if not lines:
            raise
        return lines, True
    return (*lines, *more), False


PLUGIN = Extractive()
