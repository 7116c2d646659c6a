"""Whether a statement of a draft says what its passage of the source says: direction, negation, the same words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from pipeline.grounding.number_lexicon import is_common, language_of, number_words_of, units
from pipeline.grounding.quotations import fold
from pipeline.text.prose.sentences import split_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_COVERAGE: Final = 0.6
"""Of a statement's words that mean something, so many stand in its passage."""
_ALIKE: Final = 0.75
"""From here on two sentences are one with other words in it, so that a "not" more or less turns it round."""
_STEM: Final = 5
_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_NEGATIONS: Final = frozenset(
    [
        "not",
        "no",
        "never",
        "none",
        "neither",
        "nor",
        "without",
        "cannot",
        "can't",
        "won't",
        "don't",
        "doesn't",
        "didn't",
        "isn't",
        "aren't",
        "wasn't",
        "weren't",
        "hasn't",
        "haven't",
        "hadn't",
        "wouldn't",
        "couldn't",
        "shouldn't",
        "nobody",
        "nothing",
        "nowhere",
        "hardly",
        "barely",
        "scarcely",
        "fails",
        "failed",
        "nicht",
        "kein",
        "keine",
        "keinen",
        "keiner",
        "keinem",
        "keines",
        "nie",
        "niemals",
        "nichts",
        "niemand",
        "ohne",
        "weder",
        "kaum",
        "ne",
        "pas",
        "jamais",
        "aucun",
        "aucune",
        "rien",
        "personne",
        "sans",
        "ni",
        "sin",
        "nunca",
        "jamás",
        "ningún",
        "ninguna",
        "ninguno",
        "nada",
        "nadie",
        "tampoco",
    ]
)
_OPPOSITES: Final[tuple[tuple[str, str], ...]] = (
    (("rise rises rose risen rising increase increases increased increasing grow grows grew grown growing gain gains gained climb climbed climbs "
     "jump jumped jumps surge surged soar soared up higher more expand expanded stieg steigt stiegen gestiegen wuchs gewachsen zugenommen "
     "augmenté augmente augmentation hausse subió sube aumentó aumenta aumento creció"),
     ("fall falls fell fallen falling decrease decreases decreased decreasing decline declines declined declining drop drops dropped shrink shrank shrunk "
     "slide slid slip slipped plunge plunged tumble tumbled down lower fewer less sank sinkt sanken gesunken fiel fielen gefallen abgenommen "
     "baissé baisse diminué chute bajó baja cayó cae disminuyó descendió")),
    ("won wins win winning victory beat beats gewann gewonnen gagné gagne ganó", "lost loses lose losing defeat defeated verlor verloren perdu perd perdió"),
    (("approve approved approves approving accept accepted accepts back backed backs support supported supports favour favours favor favors agreed agrees passed adopted "
     "genehmigt genehmigte beschlossen approuvé aprobó aprobado"),
     ("reject rejected rejects rejecting refuse refused refuses decline declined oppose opposed opposes against block blocked blocks veto vetoed "
     "abgelehnt ablehnte rejeté rechazó rechazado")),
    ("open opens opened opening reopened reopens öffnet öffnete eröffnet ouvert ouvre abrió abre", "close closes closed closing shut shuts schließt schloss geschlossen fermé ferme cerró cierra"),
    ("before vor avant antes", "after nach après después"),
    ("profit profits gewinn bénéfice beneficio", "loss losses verlust perte pérdida"),
    ("begin begins began begun start starts started launch launched", "end ends ended stop stops stopped finish finished"),
    ("hire hired hires hiring", "fire fired dismiss dismissed sack sacked"),
    ("best largest biggest highest most longest fastest maximum", "worst smallest lowest least shortest slowest minimum"),
    ("safe safer", "unsafe dangerous"), ("legal", "illegal"), ("allow allowed allows permit permitted permits", "ban bans banned forbid forbidden prohibit prohibited prohibits"),
    ("confirm confirmed confirms admit admitted", "deny denied denies"), ("guilty convicted", "acquitted innocent"),
    ("north northern", "south southern"), ("east eastern", "west western"), ("buy buys bought", "sell sells sold"),
    ("import imports imported", "export exports exported"), ("male men man boys", "female women woman girls"),
)  # fmt: skip


def _sides() -> Mapping[str, tuple[tuple[int, int], ...]]:
    """Each word with the pairs that it belongs to, and on which side."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, sides in enumerate(_OPPOSITES):
        for side, words in enumerate(sides):
            for word in words.split():
                found.setdefault(word, []).append((place, side))
    return {word: tuple(places) for word, places in found.items()}


@dataclass(frozen=True)
class Support:
    """How a passage bears a statement out. `turned` is a pair of opposite words, or the negation that is missing."""

    turned: tuple[str, str] | None
    is_sure: bool
    """Whether the two are otherwise the same, so that what is turned round can't be a matter of wording."""
    covered: float
    """From 0 to 1; 1 where nothing can be compared, as between two languages."""


def passage_around(text: str, start: int, end: int) -> tuple[int, int]:
    """From the beginning of the sentence before a quote to the end of the one after."""
    spans = _spans(text)
    touching = [place for place, (first, last) in enumerate(spans) if first < end and start < last]
    if not touching:
        return start, end
    before, after = max(0, touching[0] - 1), min(len(spans) - 1, touching[-1] + 1)
    return min(start, spans[before][0]), max(end, spans[after][1])


@lru_cache(maxsize=32)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    return split_sentences(text)


def support(
    statement: str, quote: str, passage: str, *, language: str = "", source_language: str = ""
) -> Support:
    """Whether the passage, the `quote` with its neighbours, bears the statement out."""
    told = language_of(statement, language)
    theirs = language_of(passage, source_language)
    words, quoted, around = (_words(one) for one in (statement, quote, passage))
    if told and theirs and told != theirs:
        return Support(None, is_sure=False, covered=1.0)
    content = [word for word in words if _says_something(word, told or "en")]
    stems = {word[:_STEM] for word in around}
    met = sum(word[:_STEM] in stems for word in content)
    covered = met / len(content) if content else 1.0
    turned = _turned(words, quoted, around)
    others = {word[:_STEM] for word in quoted}
    shared = sum(word[:_STEM] in others for word in content) / len(content) if content else 0.0
    if turned is None:
        turned = _negated(words, quoted, around)
        said = [word for word in quoted if _says_something(word, told or "en")]
        if turned is not None and not turned[0] and len(content) < _ALIKE * len(said):
            # A part of the sentence, in which nothing was denied.
            turned = None
        return Support(turned, is_sure=shared >= _ALIKE, covered=covered)
    return Support(turned, is_sure=shared >= 1 - MIN_COVERAGE, covered=covered)


def _says_something(word: str, language: str) -> bool:
    """Numbers and units are compared by their value, elsewhere."""
    return (
        len(word) > 2
        and not is_common(word, language)
        and word not in units()
        and word not in number_words_of(language)
    )


def _words(text: str) -> list[str]:
    return [word.replace("\u2019", "'") for word in _WORD.findall(text.lower())]


def _turned(words: list[str], quoted: list[str], around: list[str]) -> tuple[str, str] | None:
    sides = _sides_of()
    in_quote = {place: word for word in quoted for place in sides.get(word, ())}
    nearby = {place for word in around for place in sides.get(word, ())}
    own = {place for word in words for place in sides.get(word, ())}
    for word in words:
        for pair, side in sides.get(word, ()):
            other = (pair, 1 - side)
            if (pair, side) not in nearby and other in in_quote and other not in own:
                return word, in_quote[other]
    return None


@lru_cache(maxsize=1)
def _sides_of() -> Mapping[str, tuple[tuple[int, int], ...]]:
    return _sides()


def _negated(words: list[str], quoted: list[str], around: list[str]) -> tuple[str, str] | None:
    own = [word for word in words if word in _NEGATIONS]
    theirs = [word for word in quoted if word in _NEGATIONS]
    if own and not any(word in _NEGATIONS for word in around):
        return own[0], ""
    if theirs and not own:
        return "", theirs[0]
    return None


def place_in(draft: str, statement: str) -> tuple[int, int] | None:
    """Where the draft says the statement, in code points; None where it doesn't in these words."""
    place = draft.find(statement)
    if place != -1 and statement:
        return place, place + len(statement)
    words = fold(statement).rstrip(" .,;:!?\u2026").split(" ")
    if not words or not words[0]:
        return None
    pattern = r"\s+".join(_loose(word) for word in words)
    match = re.search(pattern, draft, re.IGNORECASE)
    return match.span() if match else None


def _loose(word: str) -> str:
    """The word with any kind of quotation marks and apostrophes."""
    return "".join(
        "['\u2018\u2019`]"
        if sign == "'"
        else '["\u201c\u201d\u201e\u00ab\u00bb]'
        if sign == '"'
        else re.escape(sign)
        for sign in word
    )
