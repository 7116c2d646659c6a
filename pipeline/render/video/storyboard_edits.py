"""Changes a storyboard's texts as people edit them, by pure functions: a board in, a board out.

New words are laid out in the old ones' box, at most as large, and made smaller until they fit. `storyboard_rearrange`
reorders scenes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.picture_types import Disc, DrawnText, Panel
from pipeline.render.typography import fonts
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import layout
from pipeline.render.typography.word_segmentation import join_words, split_words
from pipeline.render.video.storyboard import SAFE_AREA, SIZE, Caption, Overlay, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.storyboard import Item, Storyboard

MAX_TYPE_PIXELS: Final = 400
"""The largest type size."""
_LINE_DELAY_SECONDS: Final = 0.07
"""The time between two lines that come one after the other, if the old lines came at once."""
_MIN_TYPE_SHARE: Final = 0.55
"""The minimum of the new type size as a share of the old one; smaller words couldn't be read."""
_MIN_TYPE_PIXELS: Final = 26
"""The smallest type size, unless the old one was smaller."""
_GAP_PIXELS: Final = 12.0
"""The space between a text and the item below it."""
TOLERANCE_SECONDS: Final = 0.02
"""An overlay or a caption that ends so soon after its scene still belongs to it."""
_SCENERY: Final = "scenery"
"""The name of overlays over which a text may lie."""


class Unfit(Refused):
    """The change can't be made; `place` is the key of the scene, the text or the caption that it concerns."""

    def __init__(self, place: str, message: str, *, code: str = "does_not_fit") -> None:
        super().__init__(message, code=code)
        self.place = place


@dataclass(frozen=True)
class SceneText:
    """Words on the screen that people may rewrite; `overlays` are the indexes of the overlays of its lines, in order.

    `scene` is the index of its scene, and `start` and `end` are seconds of the film.
    """

    key: str
    name: str
    scene: int
    words: str
    start: float
    end: float
    overlays: tuple[int, ...]


def editable_texts(board: Storyboard) -> tuple[SceneText, ...]:
    """Return the texts of overlays that show nothing else, in order; the lines of one text are joined."""
    texts: list[SceneText] = []
    for index, overlay in enumerate(board.overlays):
        block = _block_of(overlay)
        if block is None:
            continue
        words = " ".join(line.text for line in block.lines)
        previous = texts[-1] if texts else None
        if (
            previous is not None
            and previous.overlays[-1] == index - 1
            and _is_next_line(board, previous, overlay)
        ):
            texts[-1] = dataclasses.replace(
                previous, words=f"{previous.words} {words}", overlays=(*previous.overlays, index)
            )
            continue
        scene = scene_at(board, overlay.start)
        texts.append(SceneText(f"t{index}", overlay.name, scene, words, overlay.start, overlay.end, (index,)))
    return tuple(texts)


def _block_of(overlay: Overlay) -> Block | None:
    """Return the laid-out text of an overlay that shows nothing else, or `None` for any other overlay."""
    (item,) = overlay.items if len(overlay.items) == 1 else (None,)
    return item.block if isinstance(item, DrawnText) and item.block.lines else None


def _is_next_line(board: Storyboard, text: SceneText, overlay: Overlay) -> bool:
    """Return whether an overlay is the text's next line: cut out of the same block, lower down."""
    before, after = _block_of(board.overlays[text.overlays[-1]]), _block_of(overlay)
    if before is None or after is None or overlay.name != text.name or overlay.end != text.end:
        return False
    is_same = (before.width, before.height, before.size) == (after.width, after.height, after.size)
    return is_same and before.lines[-1].baseline < after.lines[0].baseline


def scene_at(board: Storyboard, second: float) -> int:
    """Return the index of the scene at a second; the last one for a second after the end."""
    for index, scene in enumerate(board.scenes):
        if second < scene.end - TOLERANCE_SECONDS:
            return index
    return len(board.scenes) - 1


def lay_out_changed_texts(board: Storyboard) -> Storyboard:
    """Return the board, with every text laid out again whose runs differ from its lines.

    Raises `Unfit` if a text doesn't fit, or if it isn't one of `editable_texts`.
    """
    for text in reversed(editable_texts(board)):
        if not all(_draws_its_text(board.overlays[index]) for index in text.overlays):
            board = replace_text(board, text, text.words)
    for index, overlay in enumerate(board.overlays):
        if not _draws_its_text(overlay):
            message = "What is drawn here isn't what its lines say, and it can't be laid out again."
            raise Unfit("t" + str(index), message, code="not_words")
    return board


def _draws_its_text(overlay: Overlay) -> bool:
    """Return whether the runs of each line, in whatever order, have the characters of its text."""
    blocks = [item.block for item in overlay.items if isinstance(item, DrawnText)]
    return all(
        _count_characters(line.text) == _count_characters("".join(run.text for run in line.runs))
        for block in blocks
        for line in block.lines
    )


def _count_characters(words: str) -> Counter[str]:
    """Return the numbers of the visible characters, without hyphens, since a line's end may add one."""
    return Counter(
        character
        for character in words
        if not character.isspace() and character not in "\u00ad\u2060\u200e\u200f-\u2010"
    )


def overlay_faults(board: Storyboard) -> Iterator[tuple[int, str]]:
    """Yield an overlay's index and a sentence for each item that can't be drawn or couldn't be seen."""
    max_pixels = 4 * max(board.width, board.height)
    for index, overlay in enumerate(board.overlays):
        for item in overlay.items:
            yield from ((index, fault) for fault in _item_faults(item, max_pixels))


def _item_faults(item: Item, max_pixels: int) -> Iterator[str]:
    """Yield the faults of an item's position, colours, size and fonts."""
    if max(abs(item.x), abs(item.y)) > max_pixels:
        yield "It lies far outside of the picture."
    colours = [getattr(item, name) for name in ("colour", "accent") if hasattr(item, name)]
    if any(colour.parse(value) != value for value in colours):
        yield "A colour is written as #1f3a5f."
    if isinstance(item, Panel):
        if not (
            0 < item.width <= max_pixels and 0 < item.height <= max_pixels and 0 <= item.radius <= max_pixels
        ):
            yield "A panel has a size, and isn't larger than four pictures."
    elif isinstance(item, DrawnText):
        block = item.block
        if not (
            1 <= block.size <= MAX_TYPE_PIXELS
            and 100 <= block.weight <= 900
            and 0 < block.width <= max_pixels
        ):
            yield f"Words have a size of up to {MAX_TYPE_PIXELS} pixels, a weight from 100 to 900, and a place of some width."
        if not (fonts.MIN_OPTICAL_SIZE <= block.optical <= fonts.MAX_OPTICAL_SIZE):
            yield f"The optical size is from {fonts.MIN_OPTICAL_SIZE} to {fonts.MAX_OPTICAL_SIZE}."
        runs = [run for line in block.lines for run in line.runs]
        if any(run.font not in fonts.search_order() for run in runs):
            yield f"The fonts are {', '.join(fonts.search_order())}."
    elif not 0 < item.size <= max_pixels:
        yield "A disc or a portrait has a size, and isn't larger than four pictures."


# --- Words -----------------------------------------------------------------------------------------------------------


def replace_text(board: Storyboard, text: SceneText, words: str) -> Storyboard:
    """Return the board with other words in the box of a text.

    Raises `Unfit` if there are no words, if they don't fit or can't be drawn, or if the text is fixed. The keys of
    `editable_texts` change when overlays are added or removed, so the last text has to be replaced first.
    """
    first = board.overlays[text.overlays[0]]
    item, old_block = first.items[0], _block_of(first)
    if not isinstance(item, DrawnText) or old_block is None:
        raise Unfit(text.key, "These words can't be changed.", code="not_words")
    if not words.strip():
        raise Unfit(text.key, "Write something, or remove the scene.", code="required")
    block = _lay_out(board, text, item, old_block, words)
    if len(text.overlays) == 1:
        new_overlays: tuple[Overlay, ...] = (
            dataclasses.replace(first, items=(dataclasses.replace(item, block=block),)),
        )
    else:
        new_overlays = _line_by_line(board, text, item, block)
    start, end = text.overlays[0], text.overlays[-1] + 1
    overlays = (*board.overlays[:start], *new_overlays, *board.overlays[end:])
    return dataclasses.replace(board, overlays=overlays, told=_replace_told_cards(board, text, words))


def _lay_out(board: Storyboard, text: SceneText, item: DrawnText, old_block: Block, words: str) -> Block:
    """Lay the words out in the old block's style and box. Raises `Unfit` if they don't fit or can't be drawn."""
    style = Style(
        weight=old_block.weight,
        optical=old_block.optical,
        line_height=_line_height(board, text, old_block),
        align=_align_of(board, text),
    )
    height = max(_lowest_edge(board, text, item, old_block) - item.y, old_block.height)
    try:
        return layout(
            typeset(" ".join(words.split()), old_block.language or board.meta.language),
            (old_block.width, height),
            style,
            largest=old_block.size,
            smallest=min(old_block.size, max(_MIN_TYPE_PIXELS, round(old_block.size * _MIN_TYPE_SHARE))),
            language=old_block.language,
            direction=old_block.direction,
        )
    except Refused as refused:
        message = refused.message
        if refused.code == "does_not_fit":
            message = f"These words don't fit into their place, {old_block.width:.0f} × {height:.0f} pixels. Shorten them."
        raise Unfit(text.key, message, code=refused.code) from refused


def _line_geometry(board: Storyboard, text: SceneText) -> list[tuple[float, float, float]]:
    """Return left edge, width and baseline of each line of a text, in pixels from the block's corner."""
    blocks = [block for index in text.overlays if (block := _block_of(board.overlays[index])) is not None]
    return [(line.x, line.width, line.baseline) for block in blocks for line in block.lines]


def _line_height(board: Storyboard, text: SceneText, old_block: Block) -> float:
    """Return the old distance of two lines, in units of the type size."""
    baselines = [line[2] for line in _line_geometry(board, text)]
    if len(baselines) > 1:
        return (baselines[-1] - baselines[0]) / (len(baselines) - 1) / old_block.size
    return old_block.height / old_block.size


def _align_of(board: Storyboard, text: SceneText) -> Literal["start", "center", "end"]:
    """Return the alignment that the text's lines have in their box."""
    block = _block_of(board.overlays[text.overlays[0]])
    if block is None:
        return "start"
    lines = _line_geometry(board, text)
    lefts = max(abs(x) for x, _, _ in lines)
    rights = max(abs(block.width - x - width) for x, width, _ in lines)
    middles = max(abs(block.width - 2 * x - width) for x, width, _ in lines)
    is_left = lefts <= min(rights, middles)
    if not is_left and middles < rights:
        return "center"
    return "start" if is_left is (block.direction == "ltr") else "end"


def _lowest_edge(board: Storyboard, text: SceneText, item: DrawnText, old_block: Block) -> float:
    """Return the lowest edge for the text: the safe area's, or above an item that is below it at the same time."""
    bottom = SAFE_AREA[3] * board.height / SIZE[1]
    below = item.y + old_block.height
    for index, overlay in enumerate(board.overlays):
        is_meanwhile = (
            overlay.start < text.end - TOLERANCE_SECONDS and text.start + TOLERANCE_SECONDS < overlay.end
        )
        if index in text.overlays or not is_meanwhile or overlay.name == _SCENERY:
            continue
        for other in overlay.items:
            if isinstance(other, Disc) and len(overlay.items) == 1:
                continue
            if other.y >= below - 1:
                bottom = min(bottom, other.y - _GAP_PIXELS)
    return float(bottom)


def _line_by_line(board: Storyboard, text: SceneText, item: DrawnText, block: Block) -> tuple[Overlay, ...]:
    """Return an overlay for each line, which come with the same delay as the old lines."""
    first_line, second_line = (board.overlays[index] for index in text.overlays[:2])
    delay = round(second_line.start - first_line.start, 4) or _LINE_DELAY_SECONDS
    return tuple(
        dataclasses.replace(
            first_line,
            start=round(first_line.start + index * delay, 4),
            items=(dataclasses.replace(item, block=dataclasses.replace(block, lines=(line,))),),
        )
        for index, line in enumerate(block.lines)
    )


def _replace_told_cards(board: Storyboard, text: SceneText, words: str) -> tuple[Caption, ...]:
    """Return the cards of a silent film's caption files, with the new words where they had the text of the scene."""
    before = normalize_text(text.words)
    cards = []
    for card in board.told:
        card_text = join_words(word.t for word in card.words)
        if scene_at(board, card.start) == text.scene and before and before in normalize_text(card_text):
            new_text = normalize_text(card_text).replace(before, " ".join(words.split()), 1)
            cards.append(Caption((Word(new_text, card.start, card.end),), card.start, card.end))
        else:
            cards.append(card)
    return tuple(cards)


def normalize_text(words: str) -> str:
    """Return the words for comparison, with one blank for any white space and without invisible marks."""
    return " ".join(words.replace("\u00ad", "").replace("\u2060", "").split())


def replace_caption(board: Storyboard, index: int, words: str) -> Storyboard:
    """Return the board with another text on a caption card. Raises `Unfit` if it has no words.

    If there are as many words as before, they keep the old times; else they share them by their lengths.
    """
    card = board.captions[index]
    new_words = [word for chunk in words.split() for word in split_words(chunk)]
    if not new_words:
        raise Unfit("c" + str(index), "A caption says something.", code="required")
    if len(new_words) == len(card.words):
        timed_words = tuple(
            dataclasses.replace(old, t=new) for old, new in zip(card.words, new_words, strict=True)
        )
    else:
        characters, start = sum(len(word) for word in new_words), card.words[0].start
        span = card.words[-1].end - start
        shared = []
        for word in new_words:
            end = round(start + span * len(word) / characters, 4)
            shared.append(Word(word, start, end))
            start = end
        timed_words = tuple(shared)
    captions = (
        *board.captions[:index],
        dataclasses.replace(card, words=timed_words),
        *board.captions[index + 1 :],
    )
    return dataclasses.replace(board, captions=captions)
