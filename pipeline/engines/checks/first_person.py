"""Whether words say “I” or “we”: only who has written the source itself may."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pipeline.text.sentence_edits import collapse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.engines.base import Brief, PersonaCard, SourceText

_QUOTED: Final = re.compile(r"“[^”]*”|„[^“”]*[“”]|«[^»]*»|\"[^\"]*\"|(?<!\w)‘[^’]*’(?!\w)")
_WORDS: Final[Mapping[str, re.Pattern[str]]] = {
    # “World War I” and “Charles I” are nobody's.
    "en": re.compile(
        r"(?<![A-Z]\w )(?<![a-z] War )\bI(?:['’](?:m|ve|ll|d)\b|(?=\s+[a-z]))|\b(?:[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|[Oo]urs?|us)\b"
    ),
    "de": re.compile(r"\b(?:ich|mich|mir|mein\w*|wir|uns|unser\w*)\b", re.IGNORECASE),
    "fr": re.compile(r"\b(?:je|moi|mon|ma|mes|nous|notre|nos)\b|\bj['’]", re.IGNORECASE),
    "es": re.compile(r"\b(?:yo|mí|mis?|nosotr[oa]s|nuestr[oa]s?)\b", re.IGNORECASE),
}


def first_person_in(words: str, language: str) -> str:
    """The first such word outside of quotations, empty for none; languages that aren't known have none."""
    pattern = _WORDS.get(language.lower().replace("_", "-").partition("-")[0])
    found = pattern.search(_QUOTED.sub(" ", words)) if pattern is not None else None
    return found.group() if found else ""


def is_author(persona: PersonaCard, brief: Brief, source: SourceText) -> bool:
    """Whether the persona has written what is told; a brand lane tells of the persona alone."""
    if brief.lane is not None:
        return True
    names = {collapse(one).casefold().lstrip("@") for one in (persona.name, persona.handle) if one.strip()}
    return collapse(source.author).casefold().lstrip("@") in names
