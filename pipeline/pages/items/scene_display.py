"""Builds what the storyboard's page shows of each scene: a
frame, when it is shown in seconds, and what is written on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.pages.items.display import scene_name
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video import storyboard_edits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.review.storyboards import StoredStoryboard


@dataclass(frozen=True)
class SceneSeen:
    """One scene as people see it; `picture` is the address of its frame, empty where there is none."""

    number: int
    start: float
    end: float
    picture: str
    width: int
    height: int
    texts: Sequence[tuple[str, str]]
    captions: str

    @property
    def seconds(self) -> float:
        return round(self.end - self.start, 2)


def scenes_of(kept: StoredStoryboard) -> list[SceneSeen]:
    board = kept.board
    texts = storyboard_edits.editable_texts(board)
    found = []
    for place, scene in enumerate(board.scenes):
        frame = kept.frames[place] if place < len(kept.frames) else None
        cards = [card for card in board.captions if storyboard_edits.scene_at(board, card.start) == place]
        found.append(
            SceneSeen(
                number=place + 1,
                start=scene.start,
                end=scene.end,
                picture=f"/media/{frame.secret}/{frame.name}" if frame else "",
                width=(frame.width if frame else None) or board.width,
                height=(frame.height if frame else None) or board.height,
                texts=[
                    (scene_name(one.name), storyboard_edits.normalize_text(one.words))
                    for one in texts
                    if one.scene == place
                ],
                captions=join_words(word.t for card in cards for word in card.words),
            )
        )
    return found
