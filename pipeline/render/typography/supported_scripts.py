"""Which scripts pictures and films can show here: the one place that says so, and what brings the others."""

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
_LOOKED_THROUGH: Final = 20_000
"""Characters of a source that are looked through for sentences that can be shown."""


@dataclass(frozen=True)
class Script:
    """A script by some of its letters; `package` is what brings its font where it isn't bundled."""

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
    """The scripts of the list that no font draws here."""
    return tuple(one for one in SCRIPTS if clusters.undrawable_clusters(one.letters))


def unshown_scripts() -> Unavailability | None:
    """Which scripts pictures and films can't show here, and the remedy; None where they show all of the list."""
    found = missing_scripts()
    if not found:
        return None
    reason = f"Pictures and films can't show {_listed([one.name for one in found])} here."
    return Unavailability(reason, _remedy(), code="missing_glyphs")


@lru_cache(maxsize=64)
def unshown_text(text: str) -> Unavailability | None:
    """Why pictures and films can show no sentence of this text here; None where they can show one."""
    looked = text[:_LOOKED_THROUGH]
    strange = _unknown_letters(looked)
    if not strange:
        return None
    sentences = [looked[start:end] for start, end in split_sentences(looked)] or [looked]
    if any(not clusters.undrawable_clusters(one) for one in sentences):
        return None
    names = _listed(list(dict.fromkeys(map(_script_of, strange))))
    reason = f"The fonts for pictures and films on this service have no letters for {names}."
    return Unavailability(reason, _remedy(), code="missing_glyphs")


def _unknown_letters(text: str) -> list[str]:
    return [sign for sign in dict.fromkeys(text) if sign.isalpha() and clusters.font_of(sign) is None]


def _script_of(letter: str) -> str:
    """As people call it: kana is Japanese, an ideograph Chinese; of other scripts Unicode's own word."""
    name = unicodedata.name(letter, "").replace("FULLWIDTH ", "").replace("HALFWIDTH ", "")
    first = name.partition(" ")[0].partition("-")[0]
    known = {"CJK": "Chinese", "HIRAGANA": "Japanese", "KATAKANA": "Japanese", "HANGUL": "Korean"}
    return known.get(first, first.capitalize() or "this script")


def _remedy() -> str:
    if fonts.CJK in fonts.in_order():
        return "Choose a format without pictures."
    return f"Ask the operator to install Debian's package {CJK_PACKAGE}, or choose a format without pictures."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
