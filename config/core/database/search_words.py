"""Text as the words under which it is found.

PostgreSQL does the same in `search_words()`, which a migration of the pipeline makes; SQLite calls this one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

RUN: Final = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
"""A run of letters without spaces between the words: Thai, Lao, Burmese, Khmer, Japanese, Chinese; Korean too."""
CHARACTERS: Final = 60_000
"""Characters of a text that are found; PostgreSQL takes no more than 1 MB of words."""
_RUN: Final = re.compile(RUN)
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]*>")
_ACCENT: Final = re.compile("[\u0300-\u036f]")
_ELISION: Final = re.compile(r"\b[^\W\d_]['’](?=\w)")
"""As in `l'école`."""
_SIGN: Final = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")


def fold(text: str) -> str:
    """In lower case, without accents, tags and signs."""
    text = _TAG.sub(" ", text[:CHARACTERS]).lower().replace("ß", "ss").replace("ς", "σ")
    text = unicodedata.normalize("NFKC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
    return _SIGN.sub(" ", text)


def search_words(text: str) -> str:
    """The words of a text; of a run each two neighbouring letters, and its last one."""
    folded = fold(text)
    pairs = [run[place : place + 2] for run in _RUN.findall(folded) for place in range(len(run))]
    return " ".join([_RUN.sub(" ", folded), *pairs])


def query_words(text: str) -> tuple[list[str], list[str]]:
    """The words to look for, and beginnings of words; a run is looked for by its pairs."""
    words: list[str] = []
    beginnings: list[str] = []
    parts = re.findall(f"{RUN}|[^\\s{RUN[1:-2]}]+", fold(_ELISION.sub(" ", text)))
    for place, part in enumerate(parts):
        if not any(unicodedata.category(letter)[0] in "LN" for letter in part):
            continue
        if not _RUN.match(part):
            (beginnings if place == len(parts) - 1 else words).append(part)
        elif len(part) == 1:
            beginnings.append(part)
        else:
            words += [part[at : at + 2] for at in range(len(part) - 1)]
    return words, beginnings
