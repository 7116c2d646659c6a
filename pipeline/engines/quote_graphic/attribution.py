"""Attribution says whom a text names for given words, who stands behind the others, and whether two names are one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.quote_graphic.speakers import ARTICLES, LABEL, SAYS, speech_in
from pipeline.grounding import PAIRED_QUOTES, fold
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, without_gershayim, word_set

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, PersonaCard

_PARTED: Final = re.compile(r"\n[^\S\n]*\n")
_FORMS: Final = word_set(
    "mr mrs ms mx miss dr prof professor sir dame lord lady rev st president minister mayor senator governor captain judge coach chief "
    "herr frau doktor bürgermeister bürgermeisterin minister ministerin präsident präsidentin "
    "monsieur madame mme mlle docteur maire ministre président présidente don doña señor señora sr sra alcalde alcaldesa ministro ministra "
    "presidente presidenta doctor doctora signor signora dott dottor dottoressa sindaco sindaca"
)
_NO_SITES: Final = word_set("local localhost localdomain internal intranet lan home corp test invalid arpa")
_QUOTES: Final = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]")
_WORDS: Final = re.compile(r"\w+(?:['\u2019-]\w+)*")
_SAYS_WORD: Final = re.compile(rf"\b(?:{SAYS})\b")


@dataclass(frozen=True)
class NamedSpeaker:
    """Whom a text names as the speaker of some words; `is_plain` where a clause with a verb has a name alone."""

    speaker: str
    is_plain: bool


@lru_cache(maxsize=32)
def find_speaker(words: str, text: str) -> tuple[NamedSpeaker, ...]:
    """Whom the text names for these words, wherever it has them.

    That is the sentence that holds them; where nothing but the speech stands there, the one before that ends with a
    colon, the one after that tells no other speech, or the speech that it goes on from.
    """
    wanted = _comparable(words)
    if not wanted:
        return ()
    spans = split_sentences(text)
    found: list[NamedSpeaker] = []
    for place, (start, end) in enumerate(spans):
        if not _has(text[start:end], wanted):
            continue
        before = text[slice(*spans[place - 1])] if place else ""
        after = text[slice(*spans[place + 1])] if place + 1 < len(spans) else ""
        is_parted = place > 0 and _PARTED.search(text, spans[place - 1][1], start) is not None
        found += _readings(wanted, text[start:end], before, after, is_parted=is_parted)
    return tuple(dict.fromkeys(found))


def _readings(wanted: str, sentence: str, before: str, after: str, *, is_parted: bool) -> list[NamedSpeaker]:
    named = _named_for(wanted, sentence)
    if named:
        return [NamedSpeaker(name, is_plain=name[0].isupper()) for name in named]
    label = LABEL.match(sentence)
    if label is not None and _has(sentence[label.end() :], wanted):
        return [NamedSpeaker(label["name"], is_plain=False)]
    if not PAIRED_QUOTES.fullmatch(without_gershayim(sentence.strip())):
        return []
    if before.rstrip().endswith(":"):
        label = LABEL.fullmatch(f"{before.strip()} ")
        if label is not None:
            return [NamedSpeaker(label["name"], is_plain=False)]
        return [
            NamedSpeaker(name, is_plain=name[0].isupper())
            for name in _named_for(wanted, f"{before} {sentence}")
        ]
    if _SAYS_WORD.search(after) and not _QUOTES.search(after):
        named = _named_for(wanted, f"{sentence} {after}")
        if named:
            return [NamedSpeaker(name, is_plain=False) for name in named]
    if is_parted:
        return []
    return [
        NamedSpeaker(one.speaker, is_plain=False)
        for one in speech_in(collapse(before))
        if not _is_role(one.speaker)
    ][-1:]


def _named_for(wanted: str, sentence: str) -> list[str]:
    """Speakers of the sentence's speech that holds the words, or is most of them."""
    return [
        one.speaker
        for one in speech_in(collapse(sentence))
        if wanted in (said := _comparable(one.words)) or (said in wanted and 2 * len(said) >= len(wanted))
        if not _is_role(one.speaker)
    ]


def _is_role(speaker: str) -> bool:
    """Whether it is only what somebody is: "die Bürgermeisterin", "the party's leader"."""
    words = speaker.split()
    return words[0] in ARTICLES and (len(words) == 2 or words[-1][0].islower())


def _has(sentence: str, wanted: str) -> bool:
    return wanted in _comparable(sentence)


def _comparable(words: str) -> str:
    return fold(words).casefold().strip(" .,;:!?\u2026\"'")


def is_same_person(one: str, other: str, text: str) -> bool:
    """Whether two names may be one person's: a surname, a title before it, or what the text has in one run."""
    ours, theirs = (_name_words(name) for name in (one, other))
    if not ours or not theirs:
        return True
    if not any(sign.isupper() for sign in one + other):
        # Scripts without capital letters, some of which write a name and what it belongs to as one.
        bare = [collapse(name).replace(" ", "") for name in (one, other)]
        return bare[0] in bare[1] or bare[1] in bare[0] or bool(set(ours) & set(theirs))
    if set(ours) <= set(theirs) or set(theirs) <= set(ours):
        return True
    if re.search(rf"{re.escape(f'{one}, {other}')}(?:[.,;]|$)", text):
        # What somebody is, and who.
        return True
    if ours[-1] != theirs[-1]:
        return False
    both = set(ours) | set(theirs)
    run = rf"(?:(?:{'|'.join(map(re.escape, sorted(both)))})\b\.?\s*){{{len(both)}}}"
    return any(
        set(_WORDS.findall(match.group().casefold())) == both
        for match in re.finditer(rf"(?<!\w){run}", text, re.IGNORECASE)
    )


def _name_words(name: str) -> list[str]:
    """The words of a name in small letters, without forms of address, and without what is said after a comma."""
    words = _WORDS.findall(name.split(",", maxsplit=1)[0])
    is_cased = any(word[0].isupper() for word in words)
    return [
        word.casefold()
        for word in words
        if word.casefold() not in _FORMS and (word[0].isupper() or not is_cased)
    ]


def origin_of(brief: Brief, persona: PersonaCard) -> str:
    """Who stands behind words that nobody is named for: of the persona's own it, of a source its site; else nobody.

    A brand says nothing as a person does: the picture's foot has its name.
    """
    if brief.lane is not None:
        return "" if persona.is_brand else persona.name.strip()
    try:
        host = (urlsplit(brief.url.strip()).hostname or "").lower()
    except ValueError:
        return ""
    if not _is_site(host):
        return ""
    bare = host.removeprefix("www.")
    return bare if is_allowed(bare, brief, persona) else host


def _is_site(host: str) -> bool:
    """Whether readers know a site by that name: no number, and no machine of a network at home."""
    labels = host.rstrip(".").split(".")
    is_named = len(labels) > 1 and ":" not in host and not labels[-1].isdigit()
    return is_named and labels[-1] not in _NO_SITES
