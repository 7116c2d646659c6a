"""Builds what the storyboard's page shows of each scene: a frame, its times, and the text on it."""

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
class ShownScene:
    """A scene as pages show it; `start` and `end` are in seconds from the beginning of the film.

    `picture` is the path of its frame, or empty if there is none. `texts` are label and text of each text on it.
    """

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
        """The length of the scene, in seconds."""
        return round(self.end - self.start, 2)


def scenes_of(stored: StoredStoryboard) -> list[ShownScene]:
    """Return the scenes of a stored storyboard in their order."""
    board = stored.board
    texts = storyboard_edits.editable_texts(board)
    scenes = []
    for index, scene in enumerate(board.scenes):
        frame = stored.frames[index] if index < len(stored.frames) else None
        caption_cards = [
            card for card in board.captions if storyboard_edits.scene_at(board, card.start) == index
        ]
        scenes.append(
            ShownScene(
                number=index + 1,
                start=scene.start,
                end=scene.end,
                picture=f"/media/{frame.secret}/{frame.name}" if frame else "",
                width=(frame.width if frame else None) or board.width,
                height=(frame.height if frame else None) or board.height,
                texts=[
                    (scene_name(text.name), storyboard_edits.normalize_text(text.words))
                    for text in texts
                    if text.scene == index
                ],
                captions=join_words(word.t for card in caption_cards for word in card.words),
            )
        )
    return scenes
