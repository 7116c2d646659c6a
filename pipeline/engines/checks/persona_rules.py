"""Checks a persona's demands on every draft, as far as a program can: banned words, structures, first person."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pipeline.engines.base import Check, make_check
from pipeline.text.html_text import strip_invisible
from pipeline.text.links import without_links
from pipeline.text.prose.verbatim_edits import collapse, count_words, is_question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText

MAX_NAMED: Final = 5

_SPACE: Final = re.compile(r"\s+")
_HASHTAG: Final = re.compile(r"(?<![\w&/])[#\uff03]\w*[^\W\d_]\w*")
"""A hashtag with a letter: "#Rye26", but not "#26" or "page#top"."""
_TRAILING_TAGS: Final = re.compile(r"(?:\s*[#\uff03]\w+)+\s*$")
_EMOJI: Final = re.compile(
    # A flag is two letters; an emoji sequence that is joined to one picture counts once.
    r"[\U0001f1e6-\U0001f1ff]{2}"
    r"|[\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001faff](?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[\u2600-\u27bf\U0001f300-\U0001faff])*"
)
_QUOTED: Final = re.compile(r"“[^”]*”|„[^“”]*[“”]|«[^»]*»|\"[^\"]*\"|(?<!\w)‘[^’]*’(?!\w)")
_FIRST_PERSON: Final[Mapping[str, re.Pattern[str]]] = {
    # The "I" of “World War I” and “Charles I” is no pronoun.
    "en": re.compile(
        r"(?<![A-Z]\w )(?<![a-z] War )\bI(?:['’](?:m|ve|ll|d)\b|(?=\s+[a-z]))|\b(?:[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|[Oo]urs?|us)\b"
    ),
    "de": re.compile(r"\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(?:je|moi|mon|ma|mes|nous|notre|nos)\b|\bj['’]", re.IGNORECASE),
    "es": re.compile(r"\b(?:yo|mí|mis?|nosotr[oa]s|nuestr[oa]s?)\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class StructureKind:
    """A kind of demand on a text's structure. `takes` is the key of its value next to `kind`, if it has a value."""

    label: str
    takes: Literal["most", "text"] | None = None
    is_checked: bool = True


KINDS: Final[Mapping[str, StructureKind]] = {
    "ends_with_question": StructureKind("Ends with a question"),
    "starts_with": StructureKind("Begins with these words", "text"),
    "ends_with": StructureKind("Ends with these words", "text"),
    "max_words": StructureKind("At most so many words", "most"),
    "max_hashtags": StructureKind("At most so many hashtags", "most"),
    "max_emoji": StructureKind("At most so many emoji", "most"),
    "other": StructureKind(
        "In your own words; the model is told, no program checks it", "text", is_checked=False
    ),
}

_KINDS_OF_LONG_TEXTS: Final = frozenset({"max_hashtags", "max_emoji"})


def banned_in(words: str, persona: PersonaCard) -> tuple[str, ...]:
    """Return the persona's banned words and phrases that are in `words` as whole words, in any case and spacing."""
    if not persona.banned_words:
        return ()
    folded_words = _fold_words(words)
    return tuple(banned for banned in persona.banned_words if _contains(_fold_words(banned), folded_words))


def missing_in(words: str, persona: PersonaCard) -> tuple[str, ...]:
    """Return a sentence for each structure that the persona requires and the words lack.

    Links and tags at the words' end don't count, except for the numbers of hashtags and emoji and for a
    required ending.
    """
    return tuple(
        fault
        for structure in persona.required_structures
        if (fault := _structure_fault(structure, words, _without_trailing_links(words))) is not None
    )


def keeps_rules(words: str, persona: PersonaCard) -> bool:
    """Return whether the persona may say these words as a whole post."""
    return not banned_in(words, persona) and not missing_in(words, persona)


def check_persona(draft: Draft, persona: PersonaCard) -> tuple[Check, ...]:
    """Return the checks `banned_words` and `required_structures`, each only if the persona has such demands.

    Only the structures of hashtags and emoji are checked in articles and newsletters, which aren't plain text.
    """
    checks: list[Check] = []
    if persona.banned_words:
        slides = draft.content.get("slides") or ()
        slide_words = (str(words) for slide in slides if isinstance(slide, dict) for words in slide.values())
        banned = banned_in("\n|\n".join((draft.title, draft.body, *slide_words)), persona)
        message = f"The persona never says: {_list_words(banned)}."
        passed = "None of the persona's banned words is said."
        checks.append(make_check("banned_words", passed, message if banned else None))
    structures = persona.required_structures
    if draft.body_format != "text":
        # How a post begins and ends, and how long it is, can't be demanded of an article or a letter.
        structures = tuple(
            structure for structure in structures if structure.get("kind") in _KINDS_OF_LONG_TEXTS
        )
    if any(_is_checked(structure) for structure in structures):
        faults = missing_in(draft.body, replace(persona, required_structures=structures))
        passed = "The words have the structures that the persona requires."
        checks.append(make_check("required_structures", passed, " ".join(faults) or None))
    return tuple(checks)


def count_hashtags(text: str) -> int:
    return len(_HASHTAG.findall(text))


def count_emoji(text: str) -> int:
    return len(_EMOJI.findall(text))


def _is_checked(structure: Mapping[str, object]) -> bool:
    kind = KINDS.get(str(structure.get("kind")))
    return kind is not None and kind.is_checked


def _structure_fault(structure: Mapping[str, object], words: str, core: str) -> str | None:
    """Return the sentence on the structure if the text lacks it, or `None`; `core` is without links at the end."""
    kind, text = str(structure.get("kind")), str(structure.get("text") or "")
    folded_core, folded_text = _fold_words(core), _fold_words(text)
    if kind == "ends_with_question":
        return None if is_question(core) else "It has to end with a question."
    if kind == "starts_with":
        return None if folded_core.startswith(folded_text) else f"It has to begin with \u201c{text}\u201d."
    if kind == "ends_with":
        # The required ending may be a tag or an address.
        endings = (folded_core, _fold_words(words))
        return (
            None
            if any(end.endswith(folded_text) for end in endings)
            else f"It has to end with \u201c{text}\u201d."
        )
    maximum = structure.get("most")
    if kind not in _COUNTED or not isinstance(maximum, int):
        return None
    count_in, name = _COUNTED[kind]
    count = count_in(words if kind != "max_words" else core)
    return None if count <= maximum else f"It has {count} {name}; the maximum is {maximum}."


_COUNTED: Final[Mapping[str, tuple[Callable[[str], int], str]]] = {
    "max_words": (count_words, "words"),
    "max_hashtags": (count_hashtags, "hashtags"),
    "max_emoji": (count_emoji, "emoji"),
}
"""The counter of each kind with a maximum, and the noun for what it counts."""


def _without_trailing_links(words: str) -> str:
    """Return the words without the links and tags at their end, which an engine adds."""
    return _TRAILING_TAGS.sub("", without_links(words).rstrip()).rstrip()


def _fold_words(words: str) -> str:
    text = unicodedata.normalize("NFKC", strip_invisible(words)).replace("\u2019", "'")
    return _SPACE.sub(" ", text.casefold()).strip()


def _contains(banned: str, words: str) -> bool:
    """Return whether the words contain the banned phrase, as whole words in scripts that have spaces."""
    if not banned:
        return False
    before = r"(?<!\w)" if _is_spaced_script(banned[0]) else ""
    after = r"(?!\w)" if _is_spaced_script(banned[-1]) else ""
    return re.search(f"{before}{re.escape(banned)}{after}", words) is not None


def _is_spaced_script(character: str) -> bool:
    return (character.isalnum() or character == "_") and not "\u2e80" <= character <= "\u9fff"


def _list_words(words: tuple[str, ...]) -> str:
    listed = ", ".join(f"\u201c{word}\u201d" for word in words[:MAX_NAMED])
    omitted_count = len(words) - MAX_NAMED
    return f"{listed} and {omitted_count} more" if omitted_count > 0 else listed


def first_person_in(words: str, language: str) -> str:
    """Return the first first-person word outside of quotations, or "" if there is none or no list of them."""
    pattern = _FIRST_PERSON.get(language.lower().replace("_", "-").partition("-")[0])
    match = pattern.search(_QUOTED.sub(" ", words)) if pattern is not None else None
    return match.group() if match else ""


def is_author(persona: PersonaCard, brief: Brief, source: SourceText) -> bool:
    """Return whether the persona wrote the source, as a brand lane's persona always did."""
    if brief.lane is not None:
        return True
    names = {collapse(name).casefold().lstrip("@") for name in (persona.name, persona.handle) if name.strip()}
    return collapse(source.author).casefold().lstrip("@") in names
