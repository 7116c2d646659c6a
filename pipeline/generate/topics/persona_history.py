"""Compares texts with the persona's items of the last 90 days, by shared runs of three words."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core.ids import encode
from pipeline import limits
from pipeline.models import GeneratedItem
from pipeline.text.links import without_links
from pipeline.text.similarity import jaccard

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from uuid import UUID

_RUN_WORDS: Final = 3
"""The words in one compared run."""
_MAX_WORDS: Final = 2000
"""About the most words of one text that are compared; a post has a few dozen."""
_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True)
class NearestText:
    """The most similar text. `likeness` is the Jaccard index of both sets of runs, from 0 to 1."""

    likeness: float
    item_id: UUID

    @property
    def public_id(self) -> str:
        return encode("gen", self.item_id)


def word_runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return the runs of three words of the text's first `_MAX_WORDS` words, without links, case and marks.

    A shorter text is one run of all its words. A text without words has none.
    """
    folded = unicodedata.normalize("NFKC", without_links(text)).casefold()
    words: list[str] = []
    for word in _WORD.findall(folded):
        # Scripts without spaces between words are compared character by character.
        words += list(word) if _UNSPACED.search(word) else [word]
        if len(words) >= _MAX_WORDS:
            break
    if not words:
        return frozenset()
    if len(words) < _RUN_WORDS:
        return frozenset({tuple(words)})
    return frozenset(tuple(words[start : start + _RUN_WORDS]) for start in range(len(words) - _RUN_WORDS + 1))


class PersonaHistory:
    """The posts of a persona in the last 90 days, read once for all drafts of a run."""

    def __init__(
        self,
        *,
        workspace_id: UUID,
        persona_id: UUID,
        test: bool,
        without: Collection[UUID],
        now: datetime,
    ) -> None:
        """Read the persona's items, except those of the generations in `without`.

        A caller leaves out the engines of one slot, which share its topic.
        """
        self._earlier_runs: list[tuple[UUID, frozenset[tuple[str, ...]]]] = [
            (key, word_runs(body))
            for key, body in (
                GeneratedItem.objects.of(workspace_id)
                .filter(
                    persona_id=persona_id,
                    test=test,
                    created_at__gte=now - limits.LANE_MEMORY,
                    revision__gt=0,
                    deleted_at=None,
                )
                .exclude(generation_id__in=list(without))
                .values_list("id", "body")
            )
        ]

    def find_nearest(self, text: str) -> NearestText | None:
        """Return the most similar text, the newest of equals, or `None` if there is no text yet."""
        own_runs = word_runs(text)
        scored = ((jaccard(own_runs, other_runs), key) for key, other_runs in self._earlier_runs)
        best = max(scored, default=None)
        return None if best is None else NearestText(round(best[0], 3), best[1])
