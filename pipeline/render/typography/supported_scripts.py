"""Finds the scripts that pictures and films can't show on this machine, and the remedy."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pipeline.plugins import Unavailability
from pipeline.render.typography import clusters, fonts
from pipeline.text.prose.sentences import split_sentences

CJK_PACKAGE: Final = "fonts-noto-cjk"
"""Debian's package of the fonts for Chinese, Japanese and Korean, which are too large to be bundled (40 MB)."""
_MAX_CHARACTERS_CHECKED: Final = 20_000
"""Characters of a source that are searched for a sentence that can be shown."""


@dataclass(frozen=True)
class Script:
    """A script with some of its letters; `package` is Debian's package of its font if that isn't bundled."""

    name: str
    letters: str
    package: str = ""


SCRIPTS: Final = (
    Script("Latin", "aÄę"),
    Script("Greek", "Ωλ"),
    Script("Cyrillic", "Жя"),
    Script("Hebrew", "א"),
    Script("Arabic", "ع"),
    Script("Devanagari", "कह"),
    Script("Thai", "กท"),
    Script("Chinese", "港湾", CJK_PACKAGE),
    Script("Japanese", "のフ", CJK_PACKAGE),
    Script("Korean", "항구", CJK_PACKAGE),
)


def missing_scripts() -> tuple[Script, ...]:
    """Return the listed scripts that no font draws on this machine."""
    return tuple(script for script in SCRIPTS if clusters.undrawable_clusters(script.letters))


def unshown_scripts() -> Unavailability | None:
    """Return the listed scripts that can't be shown here, with the remedy, or `None` if all can."""
    missing = missing_scripts()
    if not missing:
        return None
    reason = f"Pictures and films can't show {_join_names([script.name for script in missing])} here."
    return Unavailability(reason, _remedy(), code="missing_glyphs")


@lru_cache(maxsize=64)
def unshown_text(text: str) -> Unavailability | None:
    """Return why no sentence of the text can be shown here, with the remedy, or `None` if one can."""
    checked_text = text[:_MAX_CHARACTERS_CHECKED]
    unknown_letters = _letters_without_font(checked_text)
    if not unknown_letters:
        return None
    sentences = [checked_text[start:end] for start, end in split_sentences(checked_text)] or [checked_text]
    if any(not clusters.undrawable_clusters(sentence) for sentence in sentences):
        return None
    names = _join_names(list(dict.fromkeys(map(_script_of, unknown_letters))))
    reason = f"The fonts for pictures and films on this service have no letters for {names}."
    return Unavailability(reason, _remedy(), code="missing_glyphs")


def _letters_without_font(text: str) -> list[str]:
    return [
        character
        for character in dict.fromkeys(text)
        if character.isalpha() and clusters.font_of(character) is None
    ]


def _script_of(letter: str) -> str:
    """Return a letter's script as people call it: Japanese for kana, Chinese for ideographs, else Unicode's name."""
    name = unicodedata.name(letter, "").replace("FULLWIDTH ", "").replace("HALFWIDTH ", "")
    first = name.partition(" ")[0].partition("-")[0]
    known = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
    return known.get(first, first.capitalize() or "this script")


def _remedy() -> str:
    """Return the advice for a missing script, for people."""
    if fonts.CJK in fonts.search_order():
        return "Choose a format without pictures."
    return f"Ask the operator to install Debian's package {CJK_PACKAGE}, or choose a format without pictures."


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
