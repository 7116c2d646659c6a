"""Finds a source's most telling sentences, its headings, and whether all of it is short enough for a post."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.engines.base import Fact
from pipeline.text.article_metadata import find_headings
from pipeline.text.language_detection import guess_language
from pipeline.text.plain_text import RELEASE, bare_title
from pipeline.text.prose.boilerplate import find_notes, is_boilerplate, skip_dateline, sounds_like_boilerplate
from pipeline.text.prose.sentences import find_signature, statements_in
from pipeline.text.prose.verbatim_edits import (
    collapse,
    is_clean,
    is_question,
    is_wholly_quoted,
    leans_back,
    word_set,
)
from pipeline.text.weighted_length import MAX_LENGTH, weighted_length

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import SourceText

MAX_CHARACTERS = 60_000
"""The most characters of a source that are read; the same limit holds for a model."""
MAX_FACTS = 24
MAX_HEADINGS = 40
_DIVERSITY_POOL = 160
"""Diversity is weighed among this many best sentences, because its cost rises with pool times facts."""
_MIN_WORDS = 4
_MIN_WHOLE_WORDS = 3
_MIN_CHARACTERS_CJK = 8
_MAX_SENTENCE_CHARACTERS = 1_000
"""A longer text is no sentence but a table, a key or an address."""
_FULL_LENGTH_WORDS = 12
"""Sentences of fewer words get a lower score, because they say less than the weight of their words suggests."""
_RELEVANCE = 0.6
"""The weight of a sentence's score in the choice; the rest weighs against its similarity to the chosen ones."""
_MIN_PLAIN_WORDS = 2
"""The least words without digits, because "4.2.0 – 2027-02-03" says nothing."""
_COLUMNS = " | "
"""Separates texts that stand side by side on a page, or below a letter."""
_MAX_ADDED_WORDS = 4
"""The most words that a site adds to its titles, such as "| Brackwater Gazette"."""

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_FIGURE = re.compile(r"\d")
# A label with hardly a word after it, as in minutes: "Carried".
_LABEL_ALONE = re.compile(r"[^\W\d_]+(?:\s[^\W\d_]+){0,2}\s?:\s(?:\S+\s?){1,3}$")
# The label of a press release, such as "FOR IMMEDIATE RELEASE".
_RELEASE = re.compile(rf"\W*{RELEASE}(?![^\W_])", re.IGNORECASE)
# A line or a paragraph that breaks off after an abbreviation: "costs est." or "at approx.".
_CUT_SHORT = re.compile(
    r"\s(?:c|ca|approx|(?:of|for|at|to|about|costs?) est|max|incl|excl|inkl|zzgl|vgl|cf|vs|e\.g|i\.e|z\.\s?B|np|dyr|eng|[Dd]r|Mrs?|Ms|[Pp]rof|डॉ)\.$"
)
# "It reads as follows:".
_COLON_END = re.compile(r"[:\uff1a][\"'\u2019\u201d\u00bb)]*$")
# A line without an end mark, such as "About the authors" or "apples,".
_OPEN_END = re.compile(r"[^\W_][\"'\u2019\u201d\u201c\u00bb)\]]*$|[,;\u2013\u3001\uff0c\uff1b\u060c-]$")
# "Read on […]".
_BROKEN_OFF = re.compile(r"(?:\u2026|\.\.\.)[\])]?$")
# The beginning of an answer in an interview: "Ann Bell: ".
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
    """A sentence of the source with its offsets, its unit vector of term weights and its score."""

    order: int
    """Its index among the source's sentences."""
    start: int
    end: int
    quote: str
    weights: Mapping[str, float]
    score: float


def _terms(quote: str) -> list[str]:
    """Return the words without frequent ones; a word of a script without spaces gives its pairs of characters."""
    words = [word for word in _WORD.findall(quote.lower()) if word not in _STOP_WORDS]
    terms: list[str] = []
    for word in words:
        if len(word) > 1 and _CJK.search(word):
            terms.extend(word[start : start + 2] for start in range(len(word) - 1))
        else:
            terms.append(word)
    return terms


def _says_something(quote: str) -> bool:
    """Return whether the sentence has enough words, and is no label, table row or cut-off text."""
    if len(quote) > _MAX_SENTENCE_CHARACTERS or not is_clean(quote) or _CUT_SHORT.search(quote):
        return False
    if _CJK.search(quote):
        return len(quote) >= _MIN_CHARACTERS_CJK
    if _COLUMNS in quote or _LABEL_ALONE.match(quote):
        return False
    words = _WORD.findall(quote)
    return len(words) >= _MIN_WORDS and sum(not _FIGURE.search(word) for word in words) >= _MIN_PLAIN_WORDS


def _unit(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the vector scaled to length 1."""
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {term: weight / length for term, weight in weights.items()} if length else {}


def _cosine(first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Return the cosine similarity of two unit vectors."""
    if len(first) > len(second):
        first, second = second, first
    return sum(weight * second[term] for term, weight in first.items() if term in second)


def _score(quote: str, order: int, count: int, similarity: float, words: int, *, language: str) -> float:
    """Return how telling a sentence is, by its similarity to the whole text, its position and its form."""
    score = similarity * min(1.0, words / _FULL_LENGTH_WORDS)
    # The lead of a report says most; the bonus fades over the first fifth.
    score += 0.25 * max(0.0, 1.0 - order / max(3.0, count / 5))
    if _FIGURE.search(quote):
        score += 0.08
    if _QUOTED.search(quote):
        score += 0.06
    if leans_back(quote, language) or is_wholly_quoted(quote):
        score -= 0.2
    # A question would be repeated without its answer.
    if sounds_like_boilerplate(quote) or is_question(quote):
        score -= 0.3
    return score


def _drop_fragments(candidates: Sequence[_Candidate], title: str) -> list[_Candidate]:
    """Return the candidates without the title, announcements ("as follows:") and open lines.

    An open line, such as a heading, a byline or a menu, has no end mark. Open lines stay if they are the majority,
    as in transcripts of speech and in Thai, which have no such marks.
    """
    title_words = _bare_words(title)
    lines = [
        each
        for each in candidates
        if _COLON_END.search(each.quote) is None and _bare_words(each.quote) != title_words
    ]
    ended = [each for each in lines if _OPEN_END.search(each.quote) is None or find_signature(each.quote)]
    return ended if 2 * len(ended) >= len(lines) else lines


def _bare_words(sentence: str) -> str:
    """Return the sentence in lower case, without marks."""
    return " ".join(_WORD.findall(sentence.casefold())) or collapse(sentence)


def _after_title(text: str, title: str) -> int:
    """Return the offset at which a first line that repeats the title ends, or 0 without such a line."""
    indent = len(text) - len(text.lstrip())
    line = text[indent:].partition("\n")[0]
    title_words, line_words = _WORD.findall(title.casefold()), _WORD.findall(bare_title(line).casefold())
    begins_with_title = bool(title_words) and line_words[: len(title_words)] == title_words
    if not begins_with_title or len(line_words) > len(title_words) + _MAX_ADDED_WORDS:
        return 0
    is_title = line_words == title_words or _OPEN_END.search(line.rstrip())
    return indent + len(line) if is_title else 0


def _find_candidates(text: str, title: str) -> list[_Candidate]:
    """Return the sentences that may be facts, each with its score."""
    spans: dict[str, tuple[int, int]] = {}
    text_start = _after_title(text, title)
    set_apart_spans = find_notes(text)
    for first, last in statements_in(text[text_start:]):
        start, end = skip_dateline(text, text_start + first, text_start + last), text_start + last
        if any(apart_start <= start < apart_end for apart_start, apart_end in set_apart_spans):
            continue
        quote = text[start:end]
        key = collapse(quote).casefold()
        # A sentence that stands twice, as teasers and captions do, counts where it stands first.
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
    # The source is about the things that its title names.
    centroid = _unit({term: weight * (1.5 if term in title_terms else 1.0) for term, weight in sums.items()})
    language = guess_language(text)
    candidates: list[_Candidate] = []
    for order, ((start, end), vector, terms) in enumerate(zip(spans.values(), vectors, counts, strict=True)):
        quote = text[start:end]
        score = _score(quote, order, total, _cosine(vector, centroid), terms.total(), language=language)
        candidates.append(_Candidate(order, start, end, quote, vector, score))
    # Fragments are dropped only now, because their terms still tell what the text is about.
    return _drop_fragments(candidates, title)


def _select_diverse(candidates: Sequence[_Candidate], limit: int) -> list[_Candidate]:
    """Return the best sentences, each weighed against those chosen (maximal marginal relevance).

    A sentence that a longer chosen one contains is left out.
    """
    pool = sorted(candidates, key=lambda candidate: (-candidate.score, candidate.order))[:_DIVERSITY_POOL]
    nearest = [0.0] * len(pool)
    chosen: list[_Candidate] = []
    remaining = list(range(len(pool)))
    while remaining and len(chosen) < limit:
        best = max(
            remaining,
            key=lambda index: _RELEVANCE * pool[index].score - (1 - _RELEVANCE) * nearest[index],
        )
        remaining.remove(best)
        chosen.append(pool[best])
        for index in remaining:
            nearest[index] = max(nearest[index], _cosine(pool[index].weights, pool[best].weights))
    return [each for each in chosen if not any(_contains(other.quote, each.quote) for other in chosen)]


def _contains(longer: str, quote: str) -> bool:
    """Return whether the longer text contains the other, as "“A. B.”" contains the pull quote "B."."""
    return len(longer) > len(quote) and collapse(quote).strip(_MARKS) in collapse(longer)


def find_facts(text: str, *, title: str = "", limit: int = MAX_FACTS) -> tuple[Fact, ...]:
    """Return the most telling sentences, the best first, no two alike; `quote` is exactly `text[start:end]`."""
    chosen = _select_diverse(_find_candidates(text[:MAX_CHARACTERS], title), limit)
    return tuple(
        Fact(
            id=f"f{number}",
            text=collapse(candidate.quote),
            quote=candidate.quote,
            start=candidate.start,
            end=candidate.end,
            score=round(candidate.score, 4),
        )
        for number, candidate in enumerate(chosen, start=1)
    )


def find_heading_facts(source: SourceText) -> tuple[Fact, ...]:
    """Return the source's headings as facts, in its order, without the labels of press releases."""
    text = source.text[:MAX_CHARACTERS]
    headings = find_headings(text, title=source.title)
    spans = [(start, end) for start, end in headings if not _RELEASE.match(text, start, end)][:MAX_HEADINGS]
    return tuple(
        Fact(f"h{number}", collapse(text[start:end]), text[start:end], start, end, kind="heading")
        for number, (start, end) in enumerate(spans, start=1)
    )


def find_whole_text(text: str, title: str) -> Fact | None:
    """Return a text that is short enough for a post, without its title, or `None` if it isn't fit for one."""
    start = _after_title(text, title)
    quote = text[start:].strip()
    if not quote or weighted_length(quote) > MAX_LENGTH or not is_clean(collapse(quote)):
        return None
    statements = [quote[first:last] for first, last in statements_in(quote)]
    words = [word for word in _WORD.findall(quote) if not _FIGURE.search(word)]
    is_short = len(words) < _MIN_WHOLE_WORDS and len(_CJK.findall(quote)) < _MIN_CHARACTERS_CJK
    if is_short or find_notes(quote) or any(map(_is_noise, statements)):
        return None
    if _bare_words(quote) == _bare_words(title):
        return None
    # A byline or a heading next to sentences, a text that breaks off and an interview are no posts.
    ended = [_OPEN_END.search(paragraph) is None for paragraph in map(str.rstrip, quote.split("\n\n"))]
    if (any(ended) and not all(ended)) or _BROKEN_OFF.search(quote) or len(_SPEAKER.findall(quote)) > 1:
        return None
    quote_start = start + len(text[start:]) - len(text[start:].lstrip())
    return Fact("whole", collapse(quote), quote, quote_start, quote_start + len(quote), kind="whole")


def _is_noise(part: str) -> bool:
    """Return whether the text is a label, a table row, an announcement or boilerplate."""
    is_label = _COLUMNS in part or _LABEL_ALONE.match(part) or _COLON_END.search(part)
    return bool(is_label) or is_boilerplate(part) or sounds_like_boilerplate(part)
