"""Fits one text into one box: chooses lines by widths in units of the type size, then sets them in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.typography import fonts
from pipeline.render.typography.bidi import visual_order
from pipeline.render.typography.layout_types import Block, TextLine, TextRun
from pipeline.render.typography.line_breaks import UnbrokenRun, break_piece, is_invisible
from pipeline.render.typography.measure import RunStyle, advance, ink_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.render.typography.layout_types import Direction, Style

_SEARCH_STEPS = 10
_COLUMN_SHARE = 1.05
"""The column that lines aim at, as a multiple of the narrowest one that takes no more lines."""
_MAX_LINE_SHARE = 1.25
"""The limit of a line that spares a bad break, as a multiple of the narrowest column."""
# Costs of lines: factors for the squared slack of an overlong and of the last line, a last line's share of the column
# that is too short and its cost, and the cost of each line.
_OVERLONG_WEIGHT = 3.0
_SHORT_LAST_LINE_SHARE = 0.34
_SHORT_LAST_LINE_COST = 0.25
_LAST_LINE_WEIGHT = 0.6
_LINE_COST = 2.0
_MEASURING_PIXELS: Final = 128
_ASCENT: Final = 0.96875
_DESCENT: Final = 0.2412109375
"""Inter's ascent and descent, in units of the size; every line has Inter's baseline, whatever font stands on it."""
_ARABIC_LEADING: Final = 1.14
"""Arabic reaches further up and down than Latin, so its lines stand further apart by this factor."""
_MAX_LEADING: Final = 1.9
"""The highest line, which holds two marks over a high Arabic letter; no word needs more, and more is refused."""
_OVERSHOOT: Final = 0.18
"""The distance by which ink may leave its line above or below, in units of the size."""
_ACCEPTED_RAGGEDNESS: Final = 0.03
_SMALLER_SHARES: Final = (0.96, 0.92, 0.88, 0.84)
_SHRINKING_COST: Final = 0.15
_MIN_LINES_FOR_RAGGEDNESS: Final = 3
_OPENING_MARKS: Final = frozenset('"\u201c\u201e\u201d\u00ab\u2018\u201a')


@dataclass(frozen=True)
class MeasuredPiece:
    """A piece in units of the type size: its own width, that of the space after it, and that of its hyphen."""

    width: float
    space: float
    hyphen: float
    cost: float


def count_lines(pieces: Sequence[MeasuredPiece], width: float) -> int | None:
    """Return the number of lines of a greedy fill, which is the lowest, or `None` if a piece is wider than a line."""
    lines = 1
    filled = 0.0
    for piece in pieces:
        if piece.width + piece.hyphen > width:
            return None
        # A hyphen is drawn only if the line ends with it.
        if filled and filled + piece.width + piece.hyphen > width:
            lines += 1
            filled = 0.0
        filled += piece.width + piece.space
    return lines


def balance_lines(pieces: Sequence[MeasuredPiece], width: float) -> list[tuple[int, int]]:
    """Return even lines as ranges of pieces. Raises `ValueError` if a piece is wider than `width`."""
    fewest = count_lines(pieces, width)
    if fewest is None:
        message = "A piece is wider than the line."
        raise ValueError(message)
    if fewest == 1:
        return [(0, len(pieces))]
    low, high = 0.0, width
    for _ in range(_SEARCH_STEPS):
        middle = (low + high) / 2
        lines = count_lines(pieces, middle)
        if lines is not None and lines <= fewest:
            high = middle
        else:
            low = middle
    return _cheapest_lines(pieces, min(width, high * _COLUMN_SHARE), min(width, high * _MAX_LINE_SHARE))


def _cheapest_lines(pieces: Sequence[MeasuredPiece], column: float, max_line: float) -> list[tuple[int, int]]:
    """Return the cheapest lines, each of which costs its squared distance from the column, its break and more."""
    count = len(pieces)
    best = [0.0] + [float("inf")] * count
    cut_at = [0] * (count + 1)
    for end in range(1, count + 1):
        filled = -pieces[end - 1].space
        is_last = end == count
        for start in range(end - 1, -1, -1):
            filled += pieces[start].width + pieces[start].space
            line = filled + pieces[end - 1].hyphen
            if line > max_line + 1e-9 and start < end - 1:
                break
            slack = (column - line) / column
            weight = _OVERLONG_WEIGHT if slack < 0 else _LAST_LINE_WEIGHT if is_last else 1.0
            cost = _LINE_COST + slack * slack * weight
            if not is_last:
                cost += pieces[end - 1].cost
            elif line < _SHORT_LAST_LINE_SHARE * column:
                cost += _SHORT_LAST_LINE_COST
            if best[start] + cost < best[end]:
                best[end] = best[start] + cost
                cut_at[end] = start
    lines: list[tuple[int, int]] = []
    end = count
    while end:
        lines.append((cut_at[end], end))
        end = cut_at[end]
    return lines[::-1]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph to be set, cluster by cluster: fonts, bidirectional levels, accents; and its unbreakable pieces."""

    clusters: tuple[str, ...]
    fonts: tuple[str, ...]
    levels: tuple[int, ...]
    accents: tuple[bool, ...]
    pieces: tuple[UnbrokenRun, ...]
    is_rtl: bool


class TextFitter:
    """Tries one text in one box at several sizes. Pieces are measured once, in units of the size."""

    def __init__(
        self, paragraphs: list[Paragraph], box: tuple[float, float], style: Style, language: str
    ) -> None:
        self.paragraphs = paragraphs
        self.width, self.height = box
        self.style = style
        self.language = language
        has_arabic = any(fonts.ARABIC in paragraph.fonts for paragraph in paragraphs)
        self.leading = style.line_height * (_ARABIC_LEADING if has_arabic else 1.0)
        self.leading = max(self.leading, min(self._min_leading(), _MAX_LEADING))
        self.measured_pieces = [self._measure(paragraph, paragraph.pieces) for paragraph in paragraphs]

    def _min_leading(self) -> float:
        """Return the height of a line that holds every word, in units of the size, the same at every size."""
        min_leading = 0.0
        for paragraph in self.paragraphs:
            for piece in paragraph.pieces:
                for start, end in self._split_runs(paragraph, piece.start, piece.end):
                    text, font = _visible_text(paragraph.clusters[start:end]), paragraph.fonts[start]
                    if font == fonts.EMOJI or text.isascii():
                        continue
                    _, top, _, bottom = ink_bounds(
                        text, self._run_style(font, paragraph.levels[start], _MEASURING_PIXELS)
                    )
                    above = -top / _MEASURING_PIXELS - _OVERSHOOT - _ASCENT
                    below = bottom / _MEASURING_PIXELS - _OVERSHOOT - _DESCENT
                    min_leading = max(min_leading, 2 * max(above, below) + _ASCENT + _DESCENT + 0.01)
        return min_leading

    def _measure(self, paragraph: Paragraph, pieces: Sequence[UnbrokenRun]) -> list[MeasuredPiece]:
        """Return the pieces' widths in units of the size, measured at one size."""
        measured_pieces = []
        for piece in pieces:
            runs = self._split_runs(paragraph, piece.start, piece.end)
            width = sum(self._advance_of(paragraph, start, end, _MEASURING_PIXELS) for start, end in runs)
            space = sum(
                self._advance_of(paragraph, index, index + 1, _MEASURING_PIXELS)
                for index in range(piece.end, piece.next_start)
            )
            hyphen = (
                advance(piece.hyphen, self._run_style(fonts.INTER, 0, _MEASURING_PIXELS))
                if piece.hyphen
                else 0.0
            )
            scale = 1 / _MEASURING_PIXELS
            measured_pieces.append(MeasuredPiece(width * scale, space * scale, hyphen * scale, piece.cost))
        return measured_pieces

    @staticmethod
    def _split_runs(paragraph: Paragraph, start: int, end: int) -> list[tuple[int, int]]:
        """Return the stretches of one font, level and colour, in reading order."""
        runs: list[tuple[int, int]] = []
        for index in range(start, end):
            key = (paragraph.fonts[index], paragraph.levels[index], paragraph.accents[index])
            if runs:
                first = runs[-1][0]
                is_same = (paragraph.fonts[first], paragraph.levels[first], paragraph.accents[first]) == key
                if is_same:
                    runs[-1] = (first, index + 1)
                    continue
            runs.append((index, index + 1))
        return runs

    def _advance_of(self, paragraph: Paragraph, start: int, end: int, size: int) -> float:
        run_style = self._run_style(paragraph.fonts[start], paragraph.levels[start], size)
        return advance(_visible_text(paragraph.clusters[start:end]), run_style)

    def _run_style(self, font: str, level: int, size: int) -> RunStyle:
        return RunStyle(font, size, self.style.weight, self.style.optical, self.language, _direction(level))

    def largest_fit(self, largest: int, smallest: int, *, may_break: bool) -> Block | None:
        """Return the block at the largest size that fits, or smaller and more even, or `None` if no size fits."""
        low, high = smallest, largest
        best: int | None = None
        while low <= high:
            middle = (low + high) // 2
            if self._line_count_at(middle, may_break=may_break) is not None:
                best = middle
                low = middle + 1
            else:
                high = middle - 1
        while best is not None and best >= smallest:
            block = self._set_block(best, may_break=may_break)
            if block is not None:
                return self._prefer_even_lines(block, smallest, may_break=may_break)
            best -= 1
        return None

    def _prefer_even_lines(self, block: Block, smallest: int, *, may_break: bool) -> Block:
        """Return the block, or a somewhat smaller one if its lines are much more even, as with long words."""
        raggedness = self._raggedness(block.size, may_break=may_break)
        if raggedness < _ACCEPTED_RAGGEDNESS:
            return block
        costs = {block.size: raggedness}
        for share in _SMALLER_SHARES:
            size = max(smallest, round(block.size * share))
            if size not in costs:
                shrinking_cost = _SHRINKING_COST * (1 - size / block.size)
                costs[size] = self._raggedness(size, may_break=may_break) + shrinking_cost
        best = min(costs, key=lambda size: costs[size])
        return (self._set_block(best, may_break=may_break) or block) if best != block.size else block

    def _raggedness(self, size: int, *, may_break: bool) -> float:
        """Return the mean square of the lines' free shares, the last one's left out, or 0 for very few lines."""
        widths: list[float] = []
        for _, _, measured in self._pieces_at(size, may_break=may_break) or ():
            for first, end in balance_lines(measured, self.width / size):
                line_width = sum(piece.width + piece.space for piece in measured[first:end])
                widths.append(line_width - measured[end - 1].space + measured[end - 1].hyphen)
        if len(widths) < _MIN_LINES_FOR_RAGGEDNESS:
            return 0.0
        longest = max(widths)
        return sum((1 - width / longest) ** 2 for width in widths[:-1]) / (len(widths) - 1)

    def _pieces_at(
        self, size: int, *, may_break: bool
    ) -> list[tuple[Paragraph, list[UnbrokenRun], list[MeasuredPiece]]] | None:
        """Return each paragraph with its pieces at a size, or `None` if a piece is wider than the box."""
        width = self.width / size
        paragraph_pieces = []
        for paragraph, measured in zip(self.paragraphs, self.measured_pieces, strict=True):
            pieces, sizes = list(paragraph.pieces), measured
            if any(piece.width + piece.hyphen > width for piece in measured):
                if not may_break:
                    return None
                pieces, sizes = self._break_wide(paragraph, measured, width)
                if any(piece.width + piece.hyphen > width for piece in sizes):
                    return None
            paragraph_pieces.append((paragraph, pieces, sizes))
        return paragraph_pieces

    def _break_wide(
        self, paragraph: Paragraph, measured: list[MeasuredPiece], width: float
    ) -> tuple[list[UnbrokenRun], list[MeasuredPiece]]:
        """Break the pieces that are wider than `width` at good places, or anywhere if that isn't enough."""
        pieces: list[UnbrokenRun] = []
        measured_pieces: list[MeasuredPiece] = []
        clusters = list(paragraph.clusters)
        for piece, measured_piece in zip(paragraph.pieces, measured, strict=True):
            if measured_piece.width + measured_piece.hyphen <= width:
                pieces.append(piece)
                measured_pieces.append(measured_piece)
                continue
            for subpiece in break_piece(piece, clusters, anywhere=False):
                (measured_subpiece,) = self._measure(paragraph, [subpiece])
                if measured_subpiece.width + measured_subpiece.hyphen <= width:
                    pieces.append(subpiece)
                    measured_pieces.append(measured_subpiece)
                else:
                    smaller = break_piece(subpiece, clusters, anywhere=True, uncut_piece=piece)
                    pieces += smaller
                    measured_pieces += self._measure(paragraph, smaller)
        return pieces, measured_pieces

    def _line_count_at(self, size: int, *, may_break: bool) -> int | None:
        """Return the number of lines at a size, or `None` if they or a piece don't fit the box."""
        paragraph_pieces = self._pieces_at(size, may_break=may_break)
        if paragraph_pieces is None:
            return None
        counts = [count_lines(measured, self.width / size) or 1 for _, _, measured in paragraph_pieces]
        return sum(counts) if sum(counts) * size * self.leading <= self.height + 0.5 else None

    def _set_block(self, size: int, *, may_break: bool) -> Block | None:
        """Return the block at a size, or `None` if a line, its ink or the block turns out too large."""
        paragraph_pieces = self._pieces_at(size, may_break=may_break)
        if paragraph_pieces is None:
            return None
        lines: list[TextLine] = []
        line_height = size * self.leading
        above = (line_height - size * (_ASCENT + _DESCENT)) / 2 + size * _ASCENT
        for paragraph, pieces, measured in paragraph_pieces:
            for first, end in balance_lines(measured, self.width / size):
                baseline = len(lines) * line_height + above
                line = self._set_line(paragraph, pieces[first:end], baseline, size)
                if line.width > self.width + 0.5 or not self._is_ink_inside(line, size, line_height, above):
                    return None
                lines.append(line)
        height = len(lines) * line_height
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

    def _set_line(
        self, paragraph: Paragraph, pieces: Sequence[UnbrokenRun], baseline: float, size: int
    ) -> TextLine:
        """Return one line of pieces, its runs from left to right, with its hyphen if it ends within a word."""
        start, end = pieces[0].start, pieces[-1].end
        hyphen = pieces[-1].hyphen if end < len(paragraph.clusters) else ""
        runs: list[TextRun] = []
        run_levels: list[int] = []
        for first, last in self._split_runs(paragraph, start, end):
            text = _visible_text(paragraph.clusters[first:last]) + (hyphen if last == end else "")
            if not text:
                continue
            font, level = paragraph.fonts[first], paragraph.levels[first]
            width = advance(text, self._run_style(font, level, size))
            run_levels.append(level)
            runs.append(TextRun(text, font, 0.0, width, _direction(level), paragraph.accents[first]))
        ordered = visual_order(runs, run_levels)
        width = sum(run.width for run in ordered)
        start_x = self._line_start(ordered, self.width - width, size, is_rtl=paragraph.is_rtl)
        placed: list[TextRun] = []
        x = start_x
        for run in ordered:
            placed.append(
                TextRun(run.text, run.font, round(x, 2), round(run.width, 2), run.direction, run.is_accented)
            )
            x += run.width
        text = _visible_text(paragraph.clusters[start:end]) + hyphen
        return TextLine(text, round(start_x, 2), round(baseline, 2), round(width, 2), tuple(placed))

    def _line_start(self, runs: Sequence[TextRun], spare: float, size: int, *, is_rtl: bool) -> float:
        """Return a line's left edge in pixels, below 0 if its opening mark hangs out; `spare` pixels are left."""
        if self.style.align == "center":
            return spare / 2
        if (self.style.align == "start") is is_rtl:
            return spare
        if self.style.hang and not is_rtl and runs and runs[0].text[0] in _OPENING_MARKS:
            mark_width = advance(runs[0].text[0], self._run_style(runs[0].font, 0, size))
            return -min(self.style.hang, mark_width)
        return 0.0

    def _is_ink_inside(self, line: TextLine, size: int, line_height: float, above: float) -> bool:
        """Return whether the ink of a line, except emoji, stays near enough to the line and the box."""
        overshoot = _OVERSHOOT * size
        for run in line.runs:
            if run.font == fonts.EMOJI:
                continue
            left, top, right, bottom = ink_bounds(
                run.text, self._run_style(run.font, run.direction == "rtl", size)
            )
            if top < -above - overshoot or bottom > line_height - above + overshoot:
                return False
            if run.x + left < -self.style.hang - overshoot or run.x + right > self.width + overshoot:
                return False
        return True


def _visible_text(clusters: Sequence[str]) -> str:
    return "".join(cluster for cluster in clusters if not is_invisible(cluster))


def _direction(level: int) -> Direction:
    return "rtl" if level % 2 else "ltr"
