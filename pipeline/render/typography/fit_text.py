"""One text in one box, tried at sizes: lines are chosen by widths in units of the size, then set in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.typography import fonts
from pipeline.render.typography.bidi import visual_order
from pipeline.render.typography.layout_types import Block, TextLine, TextRun
from pipeline.render.typography.line_breaks import UnbrokenRun, broken, is_unseen
from pipeline.render.typography.measure import Pen, advance, ink_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.render.typography.layout_types import Direction, Style

_SEARCH_STEPS = 10
_LOOSE = 1.05
"""The column that is aimed at, against the narrowest one that takes no more lines."""
_LONGEST = 1.25
"""How long a line may get against the narrowest column, where that spares a bad break."""
_TOO_LONG = 3.0
_SHORT_LAST = 0.34
_SHORT_LAST_COST = 0.25
_LAST_LINE = 0.6
_PER_LINE = 2.0
_MEASURED_AT: Final = 128
_ASCENT: Final = 0.96875
_DESCENT: Final = 0.2412109375
"""Inter's own, in units of the size; every line is set on its baseline, whatever font stands on it."""
_ARABIC_LEADING: Final = 1.14
"""Arabic reaches further up and down than Latin."""
_LEADING_MOST: Final = 1.9
"""With two signs over a high Arabic letter; no word of any script has use for more, and what piles up higher is refused."""
_OVERSHOOT: Final = 0.18
"""How far ink may leave its line above or below, in units of the size."""
_RAGGED: Final = 0.03
_SMALLER: Final = (0.96, 0.92, 0.88, 0.84)
_FOR_SMALLER: Final = 0.15
_FEW_LINES: Final = 3
_OPENING_MARKS: Final = frozenset('"\u201c\u201e\u201d\u00ab\u2018\u201a')


@dataclass(frozen=True)
class Measured:
    """A piece in units of its type size: its own width, that of the space after it, that of its hyphen."""

    width: float
    space: float
    hyphen: float
    cost: float


def _greedy(parts: Sequence[Measured], width: float) -> int | None:
    """How many lines it takes; None where a piece is wider than a line."""
    lines = 1
    used = 0.0
    for part in parts:
        if part.width + part.hyphen > width:
            return None
        # A hyphen is only drawn where the line ends there.
        if used and used + part.width + part.hyphen > width:
            lines += 1
            used = 0.0
        used += part.width + part.space
    return lines


def line_count(parts: Sequence[Measured], width: float) -> int | None:
    """The fewest lines; None where a piece is wider than a line."""
    return _greedy(parts, width)


def balanced(parts: Sequence[Measured], width: float) -> list[tuple[int, int]]:
    """The lines as ranges of pieces. Every piece must fit into the width."""
    fewest = _greedy(parts, width)
    if fewest is None:
        message = "A piece is wider than the line."
        raise ValueError(message)
    if fewest == 1:
        return [(0, len(parts))]
    narrow, wide = 0.0, width
    for _ in range(_SEARCH_STEPS):
        middle = (narrow + wide) / 2
        lines = _greedy(parts, middle)
        if lines is not None and lines <= fewest:
            wide = middle
        else:
            narrow = middle
    return _evenest(parts, min(width, wide * _LOOSE), min(width, wide * _LONGEST))


def _evenest(parts: Sequence[Measured], column: float, longest: float) -> list[tuple[int, int]]:
    """The cheapest lines: squares of what they differ from the column, prices of the breaks, and each line's own."""
    count = len(parts)
    best = [0.0] + [float("inf")] * count
    cut_at = [0] * (count + 1)
    for end in range(1, count + 1):
        used = -parts[end - 1].space
        is_last = end == count
        for start in range(end - 1, -1, -1):
            used += parts[start].width + parts[start].space
            line = used + parts[end - 1].hyphen
            if line > longest + 1e-9 and start < end - 1:
                break
            slack = (column - line) / column
            weight = _TOO_LONG if slack < 0 else _LAST_LINE if is_last else 1.0
            price = _PER_LINE + slack * slack * weight
            if not is_last:
                price += parts[end - 1].cost
            elif line < _SHORT_LAST * column:
                price += _SHORT_LAST_COST
            if best[start] + price < best[end]:
                best[end] = best[start] + price
                cut_at[end] = start
    lines: list[tuple[int, int]] = []
    end = count
    while end:
        lines.append((cut_at[end], end))
        end = cut_at[end]
    return lines[::-1]


@dataclass(frozen=True)
class Paragraph:
    clusters: tuple[str, ...]
    fonts: tuple[str, ...]
    levels: tuple[int, ...]
    accents: tuple[bool, ...]
    pieces: tuple[UnbrokenRun, ...]
    is_rtl: bool


class Shape:
    """One text in one box: tries sizes. Pieces are measured once, in units of the size."""

    def __init__(
        self, paragraphs: list[Paragraph], box: tuple[float, float], style: Style, language: str
    ) -> None:
        self.paragraphs = paragraphs
        self.width, self.height = box
        self.style = style
        self.language = language
        has_arabic = any(fonts.ARABIC in paragraph.fonts for paragraph in paragraphs)
        self.leading = style.line_height * (_ARABIC_LEADING if has_arabic else 1.0)
        self.leading = max(self.leading, min(self._least_leading(), _LEADING_MOST))
        self.measured = [self._measure(paragraph, paragraph.pieces) for paragraph in paragraphs]

    def _least_leading(self) -> float:
        """The height of a line, in units of the size, in which every word stays: no smaller size makes up for less."""
        least = 0.0
        for paragraph in self.paragraphs:
            for part in paragraph.pieces:
                for start, end in self._spans(paragraph, part.start, part.end):
                    words, font = _drawn(paragraph.clusters[start:end]), paragraph.fonts[start]
                    if font == fonts.EMOJI or words.isascii():
                        continue
                    _, top, _, bottom = ink_of(words, self._pen(font, paragraph.levels[start], _MEASURED_AT))
                    above = -top / _MEASURED_AT - _OVERSHOOT - _ASCENT
                    below = bottom / _MEASURED_AT - _OVERSHOOT - _DESCENT
                    least = max(least, 2 * max(above, below) + _ASCENT + _DESCENT + 0.01)
        return least

    def _measure(self, paragraph: Paragraph, parts: Sequence[UnbrokenRun]) -> list[Measured]:
        measured = []
        for part in parts:
            runs = self._spans(paragraph, part.start, part.end)
            width = sum(self._advance_of(paragraph, start, end, _MEASURED_AT) for start, end in runs)
            space = sum(
                self._advance_of(paragraph, place, place + 1, _MEASURED_AT)
                for place in range(part.end, part.next_start)
            )
            hyphen = advance(part.hyphen, self._pen(fonts.INTER, 0, _MEASURED_AT)) if part.hyphen else 0.0
            scale = 1 / _MEASURED_AT
            measured.append(Measured(width * scale, space * scale, hyphen * scale, part.cost))
        return measured

    @staticmethod
    def _spans(paragraph: Paragraph, start: int, end: int) -> list[tuple[int, int]]:
        """Stretches of one font, level and colour, in the order of reading."""
        spans: list[tuple[int, int]] = []
        for place in range(start, end):
            key = (paragraph.fonts[place], paragraph.levels[place], paragraph.accents[place])
            if spans:
                first = spans[-1][0]
                same = (paragraph.fonts[first], paragraph.levels[first], paragraph.accents[first]) == key
                if same:
                    spans[-1] = (first, place + 1)
                    continue
            spans.append((place, place + 1))
        return spans

    def _advance_of(self, paragraph: Paragraph, start: int, end: int, size: int) -> float:
        pen = self._pen(paragraph.fonts[start], paragraph.levels[start], size)
        return advance(_drawn(paragraph.clusters[start:end]), pen)

    def _pen(self, font: str, level: int, size: int) -> Pen:
        return Pen(font, size, self.style.weight, self.style.optical, self.language, _direction(level))

    def largest_fit(self, largest: int, smallest: int, *, may_break: bool) -> Block | None:
        low, high = smallest, largest
        best: int | None = None
        while low <= high:
            middle = (low + high) // 2
            if self._line_count(middle, may_break=may_break) is not None:
                best = middle
                low = middle + 1
            else:
                high = middle - 1
        while best is not None and best >= smallest:
            block = self._set(best, may_break=may_break)
            if block is not None:
                return self._evener(block, smallest, may_break=may_break)
            best -= 1
        return None

    def _evener(self, block: Block, smallest: int, *, may_break: bool) -> Block:
        """A somewhat smaller size where that makes the lines much more even, as long words often want it."""
        price = self._raggedness(block.size, may_break=may_break)
        if price < _RAGGED:
            return block
        prices = {block.size: price}
        for share in _SMALLER:
            size = max(smallest, round(block.size * share))
            if size not in prices:
                paid = _FOR_SMALLER * (1 - size / block.size)
                prices[size] = self._raggedness(size, may_break=may_break) + paid
        best = min(prices, key=lambda size: prices[size])
        return (self._set(best, may_break=may_break) or block) if best != block.size else block

    def _raggedness(self, size: int, *, may_break: bool) -> float:
        """The mean square of the room that the lines leave, the last one apart, against the longest of them."""
        widths: list[float] = []
        for _, _, sizes in self._parts(size, may_break=may_break) or ():
            for first, end in balanced(sizes, self.width / size):
                line = sum(part.width + part.space for part in sizes[first:end])
                widths.append(line - sizes[end - 1].space + sizes[end - 1].hyphen)
        if len(widths) < _FEW_LINES:
            return 0.0
        longest = max(widths)
        return sum((1 - width / longest) ** 2 for width in widths[:-1]) / (len(widths) - 1)

    def _parts(
        self, size: int, *, may_break: bool
    ) -> list[tuple[Paragraph, list[UnbrokenRun], list[Measured]]] | None:
        """The pieces of each paragraph at a size; None where one is wider than the box."""
        room = self.width / size
        found = []
        for paragraph, measured in zip(self.paragraphs, self.measured, strict=True):
            parts, sizes = list(paragraph.pieces), measured
            if any(part.width + part.hyphen > room for part in measured):
                if not may_break:
                    return None
                parts, sizes = self._break(paragraph, measured, room)
                if any(part.width + part.hyphen > room for part in sizes):
                    return None
            found.append((paragraph, parts, sizes))
        return found

    def _break(
        self, paragraph: Paragraph, measured: list[Measured], room: float
    ) -> tuple[list[UnbrokenRun], list[Measured]]:
        parts: list[UnbrokenRun] = []
        sizes: list[Measured] = []
        clusters = list(paragraph.clusters)
        for piece, size in zip(paragraph.pieces, measured, strict=True):
            if size.width + size.hyphen <= room:
                parts.append(piece)
                sizes.append(size)
                continue
            for part in broken(piece, clusters, anywhere=False):
                (part_size,) = self._measure(paragraph, [part])
                if part_size.width + part_size.hyphen <= room:
                    parts.append(part)
                    sizes.append(part_size)
                else:
                    smaller = broken(part, clusters, anywhere=True, whole=piece)
                    parts += smaller
                    sizes += self._measure(paragraph, smaller)
        return parts, sizes

    def _line_count(self, size: int, *, may_break: bool) -> int | None:
        found = self._parts(size, may_break=may_break)
        if found is None:
            return None
        counts = [line_count(sizes, self.width / size) or 1 for _, _, sizes in found]
        return sum(counts) if sum(counts) * size * self.leading <= self.height + 0.5 else None

    def _set(self, size: int, *, may_break: bool) -> Block | None:
        """The block at a size; None where a line turns out too wide or ink leaves its line."""
        found = self._parts(size, may_break=may_break)
        if found is None:
            return None
        lines: list[TextLine] = []
        step = size * self.leading
        above = (step - size * (_ASCENT + _DESCENT)) / 2 + size * _ASCENT
        for paragraph, parts, sizes in found:
            for first, end in balanced(sizes, self.width / size):
                baseline = len(lines) * step + above
                line = self._line(paragraph, parts[first:end], baseline, size)
                if line.width > self.width + 0.5 or not self._stays_in(line, size, step, above):
                    return None
                lines.append(line)
        height = len(lines) * step
        if height > self.height + 0.5:
            return None
        return Block(
            width=self.width,
            height=round(height, 2),
            size=size,
            weight=self.style.weight,
            optical=self.style.optical,
            language=self.language,
            direction="rtl" if self.paragraphs and self.paragraphs[0].is_rtl else "ltr",
            lines=tuple(lines),
        )

    def _line(
        self, paragraph: Paragraph, parts: Sequence[UnbrokenRun], baseline: float, size: int
    ) -> TextLine:
        start, end = parts[0].start, parts[-1].end
        hyphen = parts[-1].hyphen if end < len(paragraph.clusters) else ""
        runs: list[TextRun] = []
        run_levels: list[int] = []
        for first, last in self._spans(paragraph, start, end):
            words = _drawn(paragraph.clusters[first:last]) + (hyphen if last == end else "")
            if not words:
                continue
            font, level = paragraph.fonts[first], paragraph.levels[first]
            width = advance(words, self._pen(font, level, size))
            run_levels.append(level)
            runs.append(TextRun(words, font, 0.0, width, _direction(level), paragraph.accents[first]))
        ordered = visual_order(runs, run_levels)
        width = sum(run.width for run in ordered)
        start_x = self._start_of_line(ordered, self.width - width, size, is_rtl=paragraph.is_rtl)
        placed: list[TextRun] = []
        x = start_x
        for run in ordered:
            placed.append(
                TextRun(run.text, run.font, round(x, 2), round(run.width, 2), run.direction, run.is_accented)
            )
            x += run.width
        words = _drawn(paragraph.clusters[start:end]) + hyphen
        return TextLine(words, round(start_x, 2), round(baseline, 2), round(width, 2), tuple(placed))

    def _start_of_line(self, runs: Sequence[TextRun], room: float, size: int, *, is_rtl: bool) -> float:
        if self.style.align == "center":
            return room / 2
        if (self.style.align == "start") is is_rtl:
            return room
        if self.style.hang and not is_rtl and runs and runs[0].text[0] in _OPENING_MARKS:
            mark = advance(runs[0].text[0], self._pen(runs[0].font, 0, size))
            return -min(self.style.hang, mark)
        return 0.0

    def _stays_in(self, line: TextLine, size: int, step: float, above: float) -> bool:
        beyond = _OVERSHOOT * size
        for run in line.runs:
            if run.font == fonts.EMOJI:
                continue
            left, top, right, bottom = ink_of(run.text, self._pen(run.font, run.direction == "rtl", size))
            if top < -above - beyond or bottom > step - above + beyond:
                return False
            if run.x + left < -self.style.hang - beyond or run.x + right > self.width + beyond:
                return False
        return True


def _drawn(clusters: Sequence[str]) -> str:
    return "".join(cluster for cluster in clusters if not is_unseen(cluster))


def _direction(level: int) -> Direction:
    return "rtl" if level % 2 else "ltr"
