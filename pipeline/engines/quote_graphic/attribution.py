"""Finds the speaker whom a text names for some words, and the origin of words without one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.engines.checks.allowed_contacts import is_allowed
from pipeline.engines.quote_graphic.speakers import ARTICLES, LABEL, SAYS, speech_in
from pipeline.grounding import PAIRED_QUOTES, normalize_quotation
from pipeline.text.prose.sentences import split_sentences
from pipeline.text.prose.verbatim_edits import collapse, without_gershayim, word_set

if TYPE_CHECKING:
    from pipeline.engines.base import Brief, PersonaCard

_BLANK_LINE: Final = re.compile(r"\n[^\S\n]*\n")
_FORMS_OF_ADDRESS: Final = word_set(
    "mr mrs ms mx miss dr prof professor sir dame lord lady rev st president minister mayor senator governor captain judge coach chief "
    "herr frau doktor bürgermeister bürgermeisterin minister ministerin präsident präsidentin "
    "monsieur madame mme mlle docteur maire ministre président présidente don doña señor señora sr sra alcalde alcaldesa ministro ministra "
    "presidente presidenta doctor doctora signor signora dott dottor dottoressa sindaco sindaca"
)
_PRIVATE_DOMAINS: Final = word_set(
    "local localhost localdomain internal intranet lan home corp test invalid arpa"
)
_QUOTES: Final = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d]")
_WORDS: Final = re.compile(r"\w+(?:['\u2019-]\w+)*")
_SAYS_WORD: Final = re.compile(rf"\b(?:{SAYS})\b")


@dataclass(frozen=True)
class NamedSpeaker:
    """A speaker whom a text names for some words, with `is_plain` by a capitalised name in the speech's clause."""

    speaker: str
    is_plain: bool


@lru_cache(maxsize=32)
def find_speaker(words: str, text: str) -> tuple[NamedSpeaker, ...]:
    """Return the speakers whom the text names for these words, wherever it has them, each once.

    A speaker is named in the sentence that has the words. If that is only the speech, the speaker is named in the
    sentence before, if that ends with a colon, in the one after, if that has no other speech, or for the speech
    before, which the words continue.
    """
    comparable_words = _comparable(words)
    if not comparable_words:
        return ()
    spans = split_sentences(text)
    speakers: list[NamedSpeaker] = []
    for index, (start, end) in enumerate(spans):
        if not _contains(text[start:end], comparable_words):
            continue
        before = text[slice(*spans[index - 1])] if index else ""
        after = text[slice(*spans[index + 1])] if index + 1 < len(spans) else ""
        is_new_paragraph = index > 0 and _BLANK_LINE.search(text, spans[index - 1][1], start) is not None
        speakers += _speakers_at(
            comparable_words, text[start:end], before, after, is_new_paragraph=is_new_paragraph
        )
    return tuple(dict.fromkeys(speakers))


def _speakers_at(
    wanted: str, sentence: str, before: str, after: str, *, is_new_paragraph: bool
) -> list[NamedSpeaker]:
    """Return the speakers of the words by their sentence and the sentences before and after it."""
    names = _named_for(wanted, sentence)
    if names:
        return [NamedSpeaker(name, is_plain=name[0].isupper()) for name in names]
    label = LABEL.match(sentence)
    if label is not None and _contains(sentence[label.end() :], wanted):
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
        names = _named_for(wanted, f"{sentence} {after}")
        if names:
            return [NamedSpeaker(name, is_plain=False) for name in names]
    if is_new_paragraph:
        return []
    return [
        NamedSpeaker(speech.speaker, is_plain=False)
        for speech in speech_in(collapse(before))
        if not _is_role(speech.speaker)
    ][-1:]


def _named_for(wanted: str, sentence: str) -> list[str]:
    """Return the speakers, except mere roles, of the sentence's speech that has the words or is half of them."""
    return [
        speech.speaker
        for speech in speech_in(collapse(sentence))
        if wanted in (comparable_speech := _comparable(speech.words))
        or (comparable_speech in wanted and 2 * len(comparable_speech) >= len(wanted))
        if not _is_role(speech.speaker)
    ]


def _is_role(speaker: str) -> bool:
    """Return whether the speaker is only a role: "die Bürgermeisterin", "the party's leader"."""
    words = speaker.split()
    return words[0] in ARTICLES and (len(words) == 2 or words[-1][0].islower())


def _contains(sentence: str, wanted: str) -> bool:
    return wanted in _comparable(sentence)


def _comparable(words: str) -> str:
    return normalize_quotation(words).casefold().strip(" .,;:!?\u2026\"'")


def is_same_person(first_name: str, second_name: str, text: str) -> bool:
    """Return whether two names may be one person's.

    They may if one has the other's words, if the text has one behind the other, or if they have one surname and
    the text has all their words in one run. A name of forms of address alone may be anybody's.
    """
    first_words, second_words = (_name_words(name) for name in (first_name, second_name))
    if not first_words or not second_words:
        return True
    if not any(character.isupper() for character in first_name + second_name):
        # Scripts without capital letters, some of which join a name and its title.
        compact = [collapse(name).replace(" ", "") for name in (first_name, second_name)]
        shares_word = bool(set(first_words) & set(second_words))
        return compact[0] in compact[1] or compact[1] in compact[0] or shares_word
    if set(first_words) <= set(second_words) or set(second_words) <= set(first_words):
        return True
    if re.search(rf"{re.escape(f'{first_name}, {second_name}')}(?:[.,;]|$)", text):
        # A role and a name, as in "the mayor, Ida Berg".
        return True
    if first_words[-1] != second_words[-1]:
        return False
    all_words = set(first_words) | set(second_words)
    run_pattern = rf"(?:(?:{'|'.join(map(re.escape, sorted(all_words)))})\b\.?\s*){{{len(all_words)}}}"
    return any(
        set(_WORDS.findall(match.group().casefold())) == all_words
        for match in re.finditer(rf"(?<!\w){run_pattern}", text, re.IGNORECASE)
    )


def _name_words(name: str) -> list[str]:
    """Return the words of a name in lower case: before a comma, without forms of address and uncapitalised words."""
    words = _WORDS.findall(name.split(",", maxsplit=1)[0])
    is_cased = any(word[0].isupper() for word in words)
    return [
        word.casefold()
        for word in words
        if word.casefold() not in _FORMS_OF_ADDRESS and (word[0].isupper() or not is_cased)
    ]


def origin_of(brief: Brief, persona: PersonaCard) -> str:
    """Return the origin of words without a speaker: the persona's name in a brand lane, else the site or "".

    It is "" for a brand too, because a brand isn't quoted like a person: its name stands at the picture's foot.
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
    """Return whether the host can name a site: it is no IP address and no host of a private network."""
    labels = host.rstrip(".").split(".")
    is_named = len(labels) > 1 and ":" not in host and not labels[-1].isdigit()
    return is_named and labels[-1] not in _PRIVATE_DOMAINS
