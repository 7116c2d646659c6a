"""The template `telling`: somebody tells a story in a hook, one to three passages and an end card, with captions."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.audio import narration
from pipeline.render.audio.narration import PITCH, RATE, Narration, NarrationScript
from pipeline.render.audio.word_timing import written_words
from pipeline.render.captions import LAST_CARD_HOLD_SECONDS, caption_cards
from pipeline.render.find_figures import figures_in
from pipeline.render.picture_plan import DrawnText
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box, layout
from pipeline.render.video.storyboard import (
    SAFE_AREA,
    TITLE_BAND,
    Audio,
    CaptionStyle,
    Meta,
    Motion,
    Overlay,
    Scene,
    Storyboard,
    Transition,
    Visual,
)
from pipeline.render.video.templates.parts import (
    INK,
    LABEL,
    LABELLED,
    LEAVE,
    LEFT,
    RIGHT,
    ROOM,
    TITLE,
    WIPE,
    Cast,
    Parts,
    TextBox,
    TimedPassage,
    handle_of,
    whole_frames,
)
from pipeline.text.prose.sentences import sentence_ends
from pipeline.text.prose.verbatim_edits import too_wide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.render.find_figures import Figure
    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.storyboard import Caption, Word
    from pipeline.render.video.templates.parts import SceneColours

NAME: Final = "telling"
PASSAGES_MOST: Final = 3
HOOK_SECONDS: Final = 2.5
CALL_SECONDS: Final = 4.0
CALL_WORDS: Final = 11
SECONDS: Final = (15.0, 60.0)
SLOTS: Final[Mapping[str, TextBox]] = {
    "hook": TextBox(72, ROOM, float(TITLE_BAND[1] - TITLE_BAND[0]), 112, 40),
    "passage": TextBox(420, ROOM, 0.0, 0, 0),
    "call": TextBox(80, ROOM, 300.0, 92, 40),
    "end": TextBox(72, ROOM, 150.0, 64, 28),
}
_HOOK_LEAST: Final = 1.6
_LEAD: Final = 0.08
"""Seconds by which a scene comes before its first word."""
_REST: Final = 0.5
"""Between the last word of a passage and the end card, where nothing is said on it."""
_END_SECONDS: Final = 2.2
_BEAT: Final = 1.2
"""What stands on the screen for a shorter time isn't seen."""
_LAST_BEAT: Final = 0.9
"""The same before the scene ends: what is said last may go sooner."""
_CAPTION_Y: Final = 1200.0
_NUMBER: Final = Style(weight=800, optical=32, line_height=1.0)
_OF: Final = Style(weight=700, optical=32, line_height=1.12)
_KICKER: Final = Style(weight=600, optical=28, line_height=1.18)
_NUMBER_SIZES: Final = (320, 100)
_FACE_Y: Final = 470
_FACE_SIZE: Final = 380


@dataclass(frozen=True)
class Telling:
    """The words as they were written; `call` may be empty."""

    hook: str
    passages: tuple[str, ...]
    call: str
    end: str

    @property
    def says_hook(self) -> bool:
        """A longer hook stands on the screen while the voice begins with the first passage."""
        said = narration.silent(NarrationScript((self.hook,), ""))
        return said.words[-1].end <= HOOK_SECONDS if said.words else False

    def script(self, language: str, *, rate: int = RATE, pitch: int = PITCH) -> NarrationScript:
        said = (
            *((self.hook,) if self.says_hook else ()),
            *self.passages,
            *((self.call,) if self.call else ()),
        )
        return NarrationScript(said, language, rate, pitch)


def plan(
    telling: Telling, cast: Cast, *, language: str, heard: Narration | None = None, alt_text: str = ""
) -> Storyboard:
    """The film of these words; `heard` is their script as it was spoken, None for a silent film.

    Raises `MissingGlyphs`, `TextDoesNotFit`, or `Refused` for a film that is too short or too long, or of which a passage
    can't be said.
    """
    return Film(telling, cast, language, heard).board(alt_text)


class Film(Parts):
    """Other templates that tell lay their own pictures between its hook and its end card."""

    def __init__(self, telling: Telling, cast: Cast, language: str, heard: Narration | None) -> None:
        super().__init__(cast, language, first=telling.hook)
        self._telling = telling
        self._heard = heard or narration.silent(telling.script(language))

    def board(self, alt_text: str) -> Storyboard:
        hook, passages, end = self._spans()
        if not SECONDS[0] <= end.end <= SECONDS[1]:
            message = f"The film would be {end.end:.1f} seconds long; it takes {SECONDS[0]:.0f} to {SECONDS[1]:.0f}."
            raise Refused(message, code="wrong_length")
        looks = [self.dark(), *(self._of_passage(place) for place in range(len(passages))), self.dark()]
        spans = [hook, *passages, end]
        scenes = tuple(
            Scene(
                span.start,
                span.end,
                Visual("colour", colour=look.ground, colour_to=look.ground_to),
                Transition("wipe", WIPE) if place else Transition(),
            )
            for place, (span, look) in enumerate(zip(spans, looks, strict=True))
        )
        overlays = [*self._hook(hook, looks[0])]
        for place, span in enumerate(passages):
            overlays += self._passage(span, looks[place + 1])
        overlays += self._end(end, looks[-1])
        return Storyboard(
            scenes=scenes,
            overlays=tuple(overlays),
            captions=self._captions(end.end),
            caption_look=self._caption_look(),
            audio=Audio(voice=self._heard.voice),
            meta=Meta(
                title=self._telling.hook,
                alt_text=alt_text,
                language=self.language,
                template=NAME,
                thumbnail_at=round(hook.end - 0.5, 4),
            ),
        )

    # Times

    def _spans(self) -> tuple[TimedPassage, list[TimedPassage], TimedPassage]:
        """Hook, passages and end card, one after the other, as the words are heard."""
        telling = self._telling
        said = list(self._heard.passages)
        for place, one in enumerate(telling.passages, start=1):
            if not narration.silent(NarrationScript((one,), "")).words:
                message = f"Passage {place} has no word that can be said."
                raise Refused(message, code="nothing_said")
        hooked = said.pop(0) if telling.says_hook else ()
        called = said.pop() if telling.call else ()
        begins = [self._hook_end(hooked, said[0])]
        begins += [whole_frames(words[0].start - _LEAD) for words in said[1:]]
        last = said[-1][-1].end
        begins.append(whole_frames(called[0].start - _LEAD if called else last + _REST))
        spoken = called[-1].end + LAST_CARD_HOLD_SECONDS + 0.1 if called else 0.0
        ends = whole_frames(max(begins[-1] + _END_SECONDS, spoken))
        passages = [
            TimedPassage(text, words, start, end)
            for text, words, (start, end) in zip(telling.passages, said, pairwise(begins), strict=True)
        ]
        return (
            TimedPassage(telling.hook, hooked, 0.0, begins[0]),
            passages,
            TimedPassage(telling.end, called, begins[-1], ends),
        )

    def _hook_end(self, hooked: Sequence[Word], first: Sequence[Word]) -> float:
        """Before the first passage, where it is said; else, or where that is too early, before a word of it."""
        wanted = first[0].start - _LEAD
        if hooked and wanted >= _HOOK_LEAST:
            # A rest that begins in time may last a little longer.
            return whole_frames(min(wanted, HOOK_SECONDS))
        starts = [word.start - _LEAD for word in (*hooked, *first)]
        early = [one for one in starts if _HOOK_LEAST <= one <= HOOK_SECONDS]
        return whole_frames(early[-1] if early else HOOK_SECONDS)

    def _captions(self, until: float) -> tuple[Caption, ...]:
        look = self._caption_look()
        title = self._telling.hook if self._telling.says_hook else ""
        return caption_cards(
            self._heard.words, style=look, language=self.language, film_seconds=until, title=title
        )

    def _caption_look(self) -> CaptionStyle:
        look = CaptionStyle()
        return CaptionStyle(y=_CAPTION_Y, accent=colour.readable(self.accent, look.outline, 7.0))

    # Colours

    def _of_passage(self, place: int) -> SceneColours:
        """Each ground is dark enough for captions, and none is that of its neighbour."""
        if place % 2:
            return self.dark()
        ground = colour.readable(colour.mix(self.primary, colour.WHITE, 0.22), colour.WHITE, 5.5)
        return self.look(ground, colour.mix(ground, INK, 0.45), colour.WHITE)

    # Scenes

    def _hook(self, span: TimedPassage, look: SceneColours) -> Iterator[Overlay]:
        """All of it stands there from the first frame on: it is what somebody sees who scrolls past."""
        title = self.set("hook", SLOTS["hook"], span.text, TITLE)
        yield from self.scenery(0.0, span.end, look)
        yield self.bar(0.0, span.end, 262, look, delay=0.1)
        yield Overlay(
            0.0,
            span.end,
            (DrawnText(float(LEFT), float(TITLE_BAND[0]), title, look.words, look.accent),),
            leave=Motion("rise", LEAVE, 46.0),
            name="title",
        )
        yield from self.person(0.0, span.end, look, comes=0.25, y=690)

    def _passage(self, span: TimedPassage, look: SceneColours) -> Iterator[Overlay]:
        begun = round(span.start + 0.12, 4)
        yield from self.scenery(span.start, span.end, look)
        yield from self._kicker((begun, span.end), look)
        at = begun
        beats = list(self._beats(span))
        first = beats[0][0] if beats else span.end
        if first - begun >= _BEAT:
            yield from self._face_card((begun, first), look)
        for place, (start, until, figure) in enumerate(beats):
            at = round(max(start, begun), 4)
            end = beats[place + 1][0] if place + 1 < len(beats) else span.end
            # It doesn't stand beside what is said of something else.
            if until >= at + _BEAT and end - until >= _BEAT:
                yield from self._face_card((until, end), look)
                end = until
            yield from self._figure(figure, (at, end), look)

    def _beats(self, span: TimedPassage) -> Iterator[tuple[float, float, Figure]]:
        """The figures of a passage: each from the moment at which it is said, and when its sentence is over."""
        places = [token.start for token in written_words(span.text)]
        ends = sentence_ends(span.text)
        last = span.start - _BEAT
        for figure in figures_in(span.text, self.language):
            number = bisect_right(places, figure.start) - 1
            if not 0 <= number < len(span.words) or not figure.says_what:
                continue
            # What was said while the hook stood there comes with the scene.
            start = round(max(span.words[number].start - 0.05, span.start + 0.12), 4)
            if start - last >= _BEAT and span.end - start >= _LAST_BEAT:
                last = start
                sentence_end = next((end for end in ends if end > figure.start), len(span.text))
                final = span.words[min(bisect_right(places, sentence_end - 1), len(span.words)) - 1]
                yield start, round(final.end + LAST_CARD_HOLD_SECONDS, 4), figure

    def _kicker(self, span: tuple[float, float], look: SceneColours) -> Iterator[Overlay]:
        """What the film is about, and whose it is, for whoever comes later."""
        title = self.set("hook", TextBox(72, ROOM, 110.0, 42, 24), self._telling.hook, _KICKER)
        yield Overlay(
            *span,
            (DrawnText(float(LEFT), 276.0, title, look.faint, look.faint),),
            enter=Motion("fade", 0.3),
            leave=Motion("fade", LEAVE),
            name="kicker",
        )
        handle = handle_of(self.cast)
        if handle:
            small = self.line(handle, LABEL, (36, 26))
            yield Overlay(
                *span,
                (DrawnText(float(LEFT), 1384.0, small, look.faint, look.faint),),
                enter=Motion("fade", 0.3),
                leave=Motion("fade", LEAVE),
                name="handle",
            )

    def _face_card(self, span: tuple[float, float], look: SceneColours) -> Iterator[Overlay]:
        face = self.face(look, _FACE_Y, _FACE_SIZE)
        if face:
            yield Overlay(
                *span,
                face,
                enter=Motion("rise", 0.45, 70.0),
                leave=Motion("rise", LEAVE, 46.0),
                name="face",
            )
        name = " ".join(self.cast.name.split())
        if name:
            block = self.one_line(typeset(name, self.language), _OF, (60, 36))
            yield Overlay(
                round(span[0] + 0.07, 4),
                span[1],
                (DrawnText(float(LEFT), float(_FACE_Y + _FACE_SIZE + 36), block, look.words, look.accent),),
                enter=Motion("rise", 0.45, 70.0),
                leave=Motion("rise", LEAVE, 46.0),
                name="person",
            )

    def _figure(self, figure: Figure, span: tuple[float, float], look: SceneColours) -> Iterator[Overlay]:
        number = self._number(figure.value)
        left, top, right, bottom = ink_box(number)
        x = RIGHT - right if self.is_rtl else LEFT - left
        # The number and what it counts stand on the same middle, whatever their sizes.
        height = bottom - top
        of = self.set("figure", TextBox(80, ROOM, 230.0, 84, 48), figure.of, _OF) if figure.of else None
        y = 770.0 - (height + (of.height + 44 if of else 0.0)) / 2
        yield Overlay(
            *span,
            (DrawnText(round(x, 2), round(y - top, 2), number, look.accent, look.accent),),
            enter=Motion("rise", 0.35, 80.0),
            leave=Motion("rise", LEAVE, 46.0),
            name="figure",
        )
        if of is not None:
            yield from self.lines(of, y + height + 44, (round(span[0] + 0.06, 4), span[1]), look, name="of")

    def _number(self, value: str) -> Block:
        """On one line, as large as it can be."""
        for size in range(_NUMBER_SIZES[0], _NUMBER_SIZES[1], -20):
            try:
                return layout(
                    value,
                    (ROOM, size * _NUMBER.line_height * 1.5),
                    _NUMBER,
                    largest=size,
                    smallest=size,
                    direction="ltr",
                )
            except TextDoesNotFit:
                continue
        return layout(value, (ROOM, 400), _NUMBER, largest=_NUMBER_SIZES[1], smallest=40, direction="ltr")

    def _end(self, span: TimedPassage, look: SceneColours) -> Iterator[Overlay]:
        start, end = span.start, span.end
        matched = LABELLED.fullmatch(span.text)
        label, said = (matched[1], matched[2]) if matched else ("", span.text)
        yield from self.scenery(start + 0.1, end, look)
        yield self.bar(start + 0.15, end, 262, look, delay=0.0)
        if self._telling.call:
            call = self.set("call", SLOTS["call"], self._telling.call, TITLE)
            yield from self.lines(call, 300.0, (round(start + 0.15, 4), end), look, name="call", is_last=True)
        yield from self.person(start + 0.1, end, look, comes=0.3, is_last=True, y=690)
        text = self.address(SLOTS["end"], said)
        small = self.line(typeset(label, self.language), LABEL, (36, 28)) if label else None
        height = text.height + (small.height + 4 if small else 0.0)
        # Scripts with taller lines begin higher.
        y = min(1320.0 if self._telling.call else 360.0, SAFE_AREA[3] - height)
        if small is not None:
            yield self._rising((start + 0.25, end), small, y, look.accent, "label")
            y += small.height + 4
        yield self._rising((start + 0.3, end), text, y, look.words, "end")

    def _rising(self, span: tuple[float, float], block: Block, y: float, ink_of: str, name: str) -> Overlay:
        return Overlay(
            round(span[0], 4),
            span[1],
            (DrawnText(float(LEFT), round(y, 2), block, ink_of, ink_of),),
            enter=Motion("rise", 0.4, 50.0),
            name=name,
        )


def too_long(telling: Telling) -> str | None:
    """The sentence for the first part with more characters than it takes; None where all have room."""
    parts = [("The hook", "hook", telling.hook)]
    parts += [(f"Passage {place}", "passage", one) for place, one in enumerate(telling.passages, start=1)]
    parts += [("The call to action", "call", telling.call), ("The end card", "end", telling.end)]
    for called, slot, words in parts:
        fault = too_wide(called, words, SLOTS[slot].characters)
        if fault is not None:
            return fault
    return None
