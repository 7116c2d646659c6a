"""Converts text into the words by which full-text search finds it.

PostgreSQL does the same in `search_words()`, which a migration of the pipeline creates; SQLite calls the
function of this module.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

UNSPACED_RUN: Final = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
"""Matches a run of letters of scripts without spaces: Thai, Lao, Burmese, Khmer, Japanese, Chinese; Korean too."""
MAX_CHARACTERS: Final = 60_000
"""Characters of a text that are searchable, from its start; PostgreSQL takes no more than 1 MB of words."""
_RUN: Final = re.compile(UNSPACED_RUN)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_ELISION: Final = re.compile(r"\b[^\W\d_]['’](?=\w)")
"""Matches an elided article, as in `l'école`."""
_SIGN: Final = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")
"""Matches ASCII that is neither a letter nor a digit."""


def fold(text: str) -> str:
    """Return the first `MAX_CHARACTERS` of the text in lower case, without accents, tags and ASCII signs."""
    text = _TAG.sub(" ", text[:MAX_CHARACTERS]).lower().replace("ß", "ss").replace("ς", "σ")
    text = unicodedata.normalize("NFKC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return _SIGN.sub(" ", text)


def search_words(text: str) -> str:
    """Return the searchable words of a text, separated by spaces.

    A run of letters without spaces gives each pair of neighbouring letters, and its last letter.
    """
    folded = fold(text)
    pairs = [run[index : index + 2] for run in _RUN.findall(folded) for index in range(len(run))]
    return " ".join([_RUN.sub(" ", folded), *pairs])


def query_words(text: str) -> tuple[list[str], list[str]]:
    """Return the words to look for, and the beginnings of words.

    The last part of the text counts as a beginning, as does a run of one letter; a longer run is looked for by
    its pairs of letters. Parts without a letter or digit are left out.
    """
    words: list[str] = []
    beginnings: list[str] = []
    parts = re.findall(f"{UNSPACED_RUN}|[^\\s{UNSPACED_RUN[1:-2]}]+", fold(_ELISION.sub(" ", text)))
    for index, part in enumerate(parts):
        if not any(unicodedata.category(letter)[0] in "LN" for letter in part):
            continue
        if not _RUN.match(part):
            (beginnings if index == len(parts) - 1 else words).append(part)
        elif len(part) == 1:
            beginnings.append(part)
        else:
            words += [part[offset : offset + 2] for offset in range(len(part) - 1)]
    return words, beginnings
