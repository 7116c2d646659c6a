"""Changes to a storyboard by people: other words, other lengths, another order, fewer scenes. Pure: a board in, a board out.

What is typed anew is laid out where the words before it stood, at most as large as they were, and made smaller until it
fits. What the scenes hold moves with them.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.picture_plan import Disc, DrawnText, Panel
from pipeline.render.typography import fonts
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import layout
from pipeline.render.typography.word_segmentation import joined, phrases
from pipeline.render.video.storyboard import SAFE_AREA, SIZE, Caption, Overlay, Word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.storyboard import Item, Storyboard

LARGEST: Final = 400
"""Pixels of a letter."""
_STEP: Final = 0.07
"""Between two lines that come one after the other, where there was one line before."""
_SMALLEST: Final = 0.55
"""Of the size that the words had; smaller ones would not be read."""
_LEAST_PIXELS: Final = 26
_GAP: Final = 12.0
SLACK: Final = 0.02
"""Seconds; what ends a moment after its scene still belongs to it."""
_SCENERY: Final = "scenery"


class Unfit(Refused):
    """What was asked for can't be done; `place` is the scene, the text or the caption that it concerns."""

    def __init__(self, place: str, message: str, *, code: str = "does_not_fit") -> None:
        super().__init__(message, code=code)
        self.place = place


@dataclass(frozen=True)
class SceneText:
    """Words on the screen that people may write anew; `overlays` are those that show its lines, one after the other."""

    key: str
    name: str
    scene: int
    words: str
    start: float
    end: float
    overlays: tuple[int, ...]


def texts(board: Storyboard) -> tuple[SceneText, ...]:
    """All of them as they come in; what lies on a disc or a panel of its own, such as initials, is none."""
    found: list[SceneText] = []
    for place, overlay in enumerate(board.overlays):
        block = _block_of(overlay)
        if block is None:
            continue
        words = " ".join(line.text for line in block.lines)
        last = found[-1] if found else None
        if last is not None and last.overlays[-1] == place - 1 and _goes_on(board, last, overlay):
            found[-1] = dataclasses.replace(
                last, words=f"{last.words} {words}", overlays=(*last.overlays, place)
            )
            continue
        scene = scene_at(board, overlay.start)
        found.append(SceneText(f"t{place}", overlay.name, scene, words, overlay.start, overlay.end, (place,)))
    return tuple(found)


def _block_of(overlay: Overlay) -> Block | None:
    (only,) = overlay.items if len(overlay.items) == 1 else (None,)
    return only.block if isinstance(only, DrawnText) and only.block.lines else None


def _goes_on(board: Storyboard, text: SceneText, overlay: Overlay) -> bool:
    """Whether an overlay is the next line of one text: cut out of the same block, lower down."""
    before, after = _block_of(board.overlays[text.overlays[-1]]), _block_of(overlay)
    if before is None or after is None or overlay.name != text.name or overlay.end != text.end:
        return False
    is_same = (before.width, before.height, before.size) == (after.width, after.height, after.size)
    return is_same and before.lines[-1].baseline < after.lines[0].baseline


def scene_at(board: Storyboard, second: float) -> int:
    """Which scene is shown then; the last one for what comes after the end."""
    for place, scene in enumerate(board.scenes):
        if second < scene.end - SLACK:
            return place
    return len(board.scenes) - 1


def relaid(board: Storyboard) -> Storyboard:
    """With every text laid out anew whose lines say something else than what is drawn. Raises `Unfit`."""
    for text in reversed(texts(board)):
        if not all(_is_spelt(board.overlays[place]) for place in text.overlays):
            board = retyped(board, text, text.words)
    for place, overlay in enumerate(board.overlays):
        if not _is_spelt(overlay):
            message = "What is drawn here isn't what its lines say, and it can't be laid out anew."
            raise Unfit("t" + str(place), message, code="not_words")
    return board


def _is_spelt(overlay: Overlay) -> bool:
    """Whether the runs of each line, in whatever order they stand, have the signs of its text."""
    blocks = [item.block for item in overlay.items if isinstance(item, DrawnText)]
    return all(
        _signs(line.text) == _signs("".join(run.text for run in line.runs))
        for block in blocks
        for line in block.lines
    )


def _signs(words: str) -> Counter[str]:
    return Counter(one for one in words if not one.isspace() and one not in "\u00ad\u2060\u200e\u200f-\u2010")


def oddities(board: Storyboard) -> Iterator[tuple[int, str]]:
    """What of the overlays no renderer could draw, or nobody see: which, and a sentence."""
    most = 4 * max(board.width, board.height)
    for place, overlay in enumerate(board.overlays):
        for item in overlay.items:
            yield from ((place, said) for said in _odd(item, most))


def _odd(item: Item, most: int) -> Iterator[str]:
    if max(abs(item.x), abs(item.y)) > most:
        yield "It lies far outside of the picture."
    colours = [getattr(item, name) for name in ("colour", "accent") if hasattr(item, name)]
    if any(colour.parse(one) != one for one in colours):
        yield "A colour is written as #1f3a5f."
    if isinstance(item, Panel):
        if not (0 < item.width <= most and 0 < item.height <= most and 0 <= item.radius <= most):
            yield "A panel has a size, and isn't larger than four pictures."
    elif isinstance(item, DrawnText):
        block = item.block
        if not (1 <= block.size <= LARGEST and 100 <= block.weight <= 900 and 0 < block.width <= most):
            yield f"Words have a size of up to {LARGEST} pixels, a weight from 100 to 900, and a place of some width."
        if not (fonts.SMALLEST_OPTICAL <= block.optical <= fonts.LARGEST_OPTICAL):
            yield f"The optical size is from {fonts.SMALLEST_OPTICAL} to {fonts.LARGEST_OPTICAL}."
        runs = [run for line in block.lines for run in line.runs]
        if any(run.font not in fonts.in_order() for run in runs):
            yield f"The fonts are {', '.join(fonts.in_order())}."
    elif not 0 < item.size <= most:
        yield "A disc or a portrait has a size, and isn't larger than four pictures."


# --- Words -----------------------------------------------------------------------------------------------------------


def retyped(board: Storyboard, text: SceneText, words: str) -> Storyboard:
    """With other words in the place of a text. Raises `Unfit` for words that have no room, or no glyphs.

    Other texts keep their keys in `texts` only until overlays are added or taken away: change the last one first.
    """
    first = board.overlays[text.overlays[0]]
    item, old = first.items[0], _block_of(first)
    if not isinstance(item, DrawnText) or old is None:
        raise Unfit(text.key, "These words can't be changed.", code="not_words")
    if not words.strip():
        raise Unfit(text.key, "Write something, or remove the scene.", code="required")
    block = _laid(board, text, item, old, words)
    if len(text.overlays) == 1:
        fresh: tuple[Overlay, ...] = (
            dataclasses.replace(first, items=(dataclasses.replace(item, block=block),)),
        )
    else:
        fresh = _line_by_line(board, text, item, block)
    start, end = text.overlays[0], text.overlays[-1] + 1
    overlays = (*board.overlays[:start], *fresh, *board.overlays[end:])
    return dataclasses.replace(board, overlays=overlays, told=_told(board, text, words))


def _laid(board: Storyboard, text: SceneText, item: DrawnText, old: Block, words: str) -> Block:
    style = Style(
        weight=old.weight,
        optical=old.optical,
        line_height=_line_height(board, text, old),
        align=_align_of(board, text),
    )
    room = max(_floor(board, text, item, old) - item.y, old.height)
    try:
        return layout(
            typeset(" ".join(words.split()), old.language or board.meta.language),
            (old.width, room),
            style,
            largest=old.size,
            smallest=min(old.size, max(_LEAST_PIXELS, round(old.size * _SMALLEST))),
            language=old.language,
            direction=old.direction,
        )
    except Refused as refused:
        said = refused.message
        if refused.code == "does_not_fit":
            said = (
                f"These words don't fit into their place, {old.width:.0f} × {room:.0f} pixels. Shorten them."
            )
        raise Unfit(text.key, said, code=refused.code) from refused


def _lines(board: Storyboard, text: SceneText) -> list[tuple[float, float, float]]:
    """Left edge, width and baseline of each line."""
    blocks = [block for place in text.overlays if (block := _block_of(board.overlays[place])) is not None]
    return [(line.x, line.width, line.baseline) for block in blocks for line in block.lines]


def _line_height(board: Storyboard, text: SceneText, old: Block) -> float:
    baselines = [one[2] for one in _lines(board, text)]
    if len(baselines) > 1:
        return (baselines[-1] - baselines[0]) / (len(baselines) - 1) / old.size
    return old.height / old.size


def _align_of(board: Storyboard, text: SceneText) -> Literal["start", "center", "end"]:
    """As the lines lie in their box."""
    block = _block_of(board.overlays[text.overlays[0]])
    if block is None:
        return "start"
    lines = _lines(board, text)
    lefts = max(abs(x) for x, _, _ in lines)
    rights = max(abs(block.width - x - width) for x, width, _ in lines)
    middles = max(abs(block.width - 2 * x - width) for x, width, _ in lines)
    is_left = lefts <= min(rights, middles)
    if not is_left and middles < rights:
        return "center"
    return "start" if is_left is (block.direction == "ltr") else "end"


def _floor(board: Storyboard, text: SceneText, item: DrawnText, old: Block) -> float:
    """How far down there is room: to what stands below at the same time, else to the end of what apps leave free."""
    bottom = SAFE_AREA[3] * board.height / SIZE[1]
    below = item.y + old.height
    for place, overlay in enumerate(board.overlays):
        is_meanwhile = overlay.start < text.end - SLACK and text.start + SLACK < overlay.end
        if place in text.overlays or not is_meanwhile or overlay.name == _SCENERY:
            continue
        for other in overlay.items:
            if isinstance(other, Disc) and len(overlay.items) == 1:
                continue
            if other.y >= below - 1:
                bottom = min(bottom, other.y - _GAP)
    return float(bottom)


def _line_by_line(board: Storyboard, text: SceneText, item: DrawnText, block: Block) -> tuple[Overlay, ...]:
    one, other = (board.overlays[place] for place in text.overlays[:2])
    step = round(other.start - one.start, 4) or _STEP
    return tuple(
        dataclasses.replace(
            one,
            start=round(one.start + place * step, 4),
            items=(dataclasses.replace(item, block=dataclasses.replace(block, lines=(line,))),),
        )
        for place, line in enumerate(block.lines)
    )


def _told(board: Storyboard, text: SceneText, words: str) -> tuple[Caption, ...]:
    """The caption files of a silent film say what stands on the screen: they follow it."""
    before = plain(text.words)
    told = []
    for card in board.told:
        said = joined(word.t for word in card.words)
        if scene_at(board, card.start) == text.scene and before and before in plain(said):
            fresh = plain(said).replace(before, " ".join(words.split()), 1)
            told.append(Caption((Word(fresh, card.start, card.end),), card.start, card.end))
        else:
            told.append(card)
    return tuple(told)


def plain(words: str) -> str:
    """To be compared: one space between words, whatever kind it was, and no marks that nobody sees."""
    return " ".join(words.replace("\u00ad", "").replace("\u2060", "").split())


def recaptioned(board: Storyboard, place: int, words: str) -> Storyboard:
    """Another text on a caption card; as many words keep their moments, else they share the card's by their length."""
    card = board.captions[place]
    said = [piece for part in words.split() for piece in phrases(part)]
    if not said:
        raise Unfit("c" + str(place), "A caption says something.", code="required")
    if len(said) == len(card.words):
        fresh = tuple(dataclasses.replace(old, t=new) for old, new in zip(card.words, said, strict=True))
    else:
        whole, at = sum(len(one) for one in said), card.words[0].start
        span = card.words[-1].end - at
        timed = []
        for one in said:
            end = round(at + span * len(one) / whole, 4)
            timed.append(Word(one, at, end))
            at = end
        fresh = tuple(timed)
    captions = (
        *board.captions[:place],
        dataclasses.replace(card, words=fresh),
        *board.captions[place + 1 :],
    )
    return dataclasses.replace(board, captions=captions)
