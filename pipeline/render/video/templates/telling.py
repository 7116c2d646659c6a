"""Plans films of the template `telling`: a persona tells a story in hook, passages and end card, with captions."""

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
from pipeline.render.picture_types import DrawnText
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
    LABELLED_TEXT,
    LEAVE_SECONDS,
    LEFT,
    RIGHT,
    TITLE,
    WIDTH,
    WIPE_SECONDS,
    Cast,
    Parts,
    TextBox,
    TimedPassage,
    whole_frames,
)
from pipeline.text.prose.sentences import sentence_ends
from pipeline.text.prose.verbatim_edits import width_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.render.find_figures import Figure
    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.storyboard import Caption, Word
    from pipeline.render.video.templates.parts import SceneColours

NAME: Final = "telling"
MAX_PASSAGES: Final = 3
HOOK_SECONDS: Final = 2.5
CALL_SECONDS: Final = 4.0
CALL_WORDS: Final = 11
FILM_SECONDS: Final = (15.0, 60.0)
SLOTS: Final[Mapping[str, TextBox]] = {
    "hook": TextBox(72, WIDTH, float(TITLE_BAND[1] - TITLE_BAND[0]), 112, 40),
    "passage": TextBox(420, WIDTH, 0.0, 0, 0),
    "call": TextBox(80, WIDTH, 300.0, 92, 40),
    "end": TextBox(72, WIDTH, 150.0, 64, 28),
}
_MIN_HOOK_SECONDS: Final = 1.6
_SCENE_LEAD_SECONDS: Final = 0.08
"""The time by which a scene begins before its first word."""
_SILENT_REST_SECONDS: Final = 0.5
"""The time between the last word and the end card, if nothing is spoken over the card."""
_END_SECONDS: Final = 2.2
_MIN_BEAT_SECONDS: Final = 1.2
"""The shortest time for which a figure or face is shown; shorter ones aren't noticed."""
_MIN_LAST_BEAT_SECONDS: Final = 0.9
"""The same for a figure before the scene's end, because the last words may be gone sooner."""
_CAPTION_Y: Final = 1200.0
_NUMBER: Final = Style(weight=800, optical=32, line_height=1.0)
_UNIT: Final = Style(weight=700, optical=32, line_height=1.12)
_KICKER: Final = Style(weight=600, optical=28, line_height=1.18)
_NUMBER_SIZES: Final = (320, 100)
_UNIT_BOX: Final = TextBox(80, WIDTH, 230.0, 84, 48)
_FACE_Y: Final = 470
_FACE: Final = 380


@dataclass(frozen=True)
class Telling:
    """The story's texts as they were written; `call`, the call to action, may be empty."""

    hook: str
    passages: tuple[str, ...]
    call: str
    end: str

    @property
    def says_hook(self) -> bool:
        """Whether the voice speaks the hook; a longer hook is only shown, while the first passage is spoken."""
        silent = narration.silent(NarrationScript((self.hook,), ""))
        return silent.words[-1].end <= HOOK_SECONDS if silent.words else False

    def script(self, language: str, *, rate: int = RATE, pitch: int = PITCH) -> NarrationScript:
        passages = (
            *((self.hook,) if self.says_hook else ()),
            *self.passages,
            *((self.call,) if self.call else ()),
        )
        return NarrationScript(passages, language, rate, pitch)


def plan(
    telling: Telling, cast: Cast, *, language: str, heard: Narration | None = None, alt_text: str = ""
) -> Storyboard:
    """Plan the film of a story; `heard` is its narration as it was spoken, or `None` for a silent film.

    Raises `Refused` if the film is too short or long, a passage can't be spoken, or a text can't be laid out.
    """
    return Film(telling, cast, language, heard).build_board(alt_text)


class Film(Parts):
    """Lays a story out; other templates put their own pictures between its hook and its end card."""

    def __init__(self, telling: Telling, cast: Cast, language: str, heard: Narration | None) -> None:
        super().__init__(cast, language, first=telling.hook)
        self._telling = telling
        self._narration = heard or narration.silent(telling.script(language))

    def build_board(self, alt_text: str) -> Storyboard:
        """Return the storyboard of hook, passages and end card. Raises `Refused` if its length is wrong."""
        hook, passages, end = self._timed_passages()
        if not FILM_SECONDS[0] <= end.end <= FILM_SECONDS[1]:
            message = f"The film would be {end.end:.1f} seconds long; it takes {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f}."
            raise Refused(message, code="wrong_length")
        dark = self.dark_colours()
        palettes = [dark, *(self._colours_of(index) for index in range(len(passages))), dark]
        spans = [hook, *passages, end]
        scenes = tuple(
            Scene(
                span.start,
                span.end,
                Visual("colour", colour=colours.ground, colour_to=colours.ground_to),
                Transition("wipe", WIPE_SECONDS) if index else Transition(),
            )
            for index, (span, colours) in enumerate(zip(spans, palettes, strict=True))
        )
        overlays = [*self._hook_overlays(hook, palettes[0])]
        for index, span in enumerate(passages):
            overlays += self._passage_overlays(span, palettes[index + 1])
        overlays += self._end_overlays(end, palettes[-1])
        return Storyboard(
            scenes=scenes,
            overlays=tuple(overlays),
            captions=self._caption_cards(end.end),
            caption_look=self._caption_style(),
            audio=Audio(voice=self._narration.voice),
            meta=Meta(
                title=self._telling.hook,
                alt_text=alt_text,
                language=self.language,
                template=NAME,
                thumbnail_at=round(hook.end - 0.5, 4),
            ),
        )

    # Times

    def _timed_passages(self) -> tuple[TimedPassage, list[TimedPassage], TimedPassage]:
        """Return hook, passages and end card, one after the other, with times by the narration."""
        telling = self._telling
        word_groups = list(self._narration.passages)
        for number, passage in enumerate(telling.passages, start=1):
            if not narration.silent(NarrationScript((passage,), "")).words:
                message = f"Passage {number} has no word that can be said."
                raise Refused(message, code="nothing_said")
        hook_words = word_groups.pop(0) if telling.says_hook else ()
        call_words = word_groups.pop() if telling.call else ()
        starts = [self._hook_end(hook_words, word_groups[0])]
        starts += [whole_frames(words[0].start - _SCENE_LEAD_SECONDS) for words in word_groups[1:]]
        last = word_groups[-1][-1].end
        end_start = call_words[0].start - _SCENE_LEAD_SECONDS if call_words else last + _SILENT_REST_SECONDS
        starts.append(whole_frames(end_start))
        call_end = call_words[-1].end + LAST_CARD_HOLD_SECONDS + 0.1 if call_words else 0.0
        ends = whole_frames(max(starts[-1] + _END_SECONDS, call_end))
        passages = [
            TimedPassage(text, words, start, end)
            for text, words, (start, end) in zip(telling.passages, word_groups, pairwise(starts), strict=True)
        ]
        return (
            TimedPassage(telling.hook, hook_words, 0.0, starts[0]),
            passages,
            TimedPassage(telling.end, call_words, starts[-1], ends),
        )

    def _hook_end(self, hook_words: Sequence[Word], first: Sequence[Word]) -> float:
        """Return the hook's end: before the first passage, or before another word if that is too early or late."""
        target = first[0].start - _SCENE_LEAD_SECONDS
        if hook_words and target >= _MIN_HOOK_SECONDS:
            # A rest that begins in time may last a little longer.
            return whole_frames(min(target, HOOK_SECONDS))
        starts = [word.start - _SCENE_LEAD_SECONDS for word in (*hook_words, *first)]
        candidates = [start for start in starts if _MIN_HOOK_SECONDS <= start <= HOOK_SECONDS]
        return whole_frames(candidates[-1] if candidates else HOOK_SECONDS)

    def _caption_cards(self, film_seconds: float) -> tuple[Caption, ...]:
        style = self._caption_style()
        title = self._telling.hook if self._telling.says_hook else ""
        return caption_cards(
            self._narration.words, style=style, language=self.language, film_seconds=film_seconds, title=title
        )

    def _caption_style(self) -> CaptionStyle:
        return CaptionStyle(y=_CAPTION_Y, accent=colour.readable(self.accent, CaptionStyle().outline, 7.0))

    # Colours

    def _colours_of(self, index: int) -> SceneColours:
        """Return a scene's colours, dark enough for captions and different from those of its neighbours."""
        if index % 2:
            return self.dark_colours()
        ground = colour.readable(colour.mix(self.primary, colour.WHITE, 0.22), colour.WHITE, 5.5)
        return self.scene_colours(ground, colour.mix(ground, INK, 0.45), colour.WHITE)

    # Scenes

    def _hook_overlays(self, passage: TimedPassage, colours: SceneColours) -> Iterator[Overlay]:
        """Yield the hook, complete from the first frame on, which is all that people who scroll past see."""
        title = self.fit("hook", SLOTS["hook"], passage.text, TITLE)
        yield from self.scenery_overlays(0.0, passage.end, colours)
        yield self.bar_overlay(0.0, passage.end, 262, colours, delay=0.1)
        yield Overlay(
            0.0,
            passage.end,
            (DrawnText(float(LEFT), float(TITLE_BAND[0]), title, colours.words, colours.accent),),
            leave=Motion("rise", LEAVE_SECONDS, 46.0),
            name="title",
        )
        yield from self.person_overlays(0.0, passage.end, colours, enter_seconds=0.25, y=690)

    def _passage_overlays(self, passage: TimedPassage, colours: SceneColours) -> Iterator[Overlay]:
        """Yield the kicker, each figure while its sentence is spoken, and the persona's face at other times."""
        first_start = round(passage.start + 0.12, 4)
        yield from self.scenery_overlays(passage.start, passage.end, colours)
        yield from self._kicker_overlays((first_start, passage.end), colours)
        beats = list(self._find_beats(passage))
        first_figure = beats[0][0] if beats else passage.end
        if first_figure - first_start >= _MIN_BEAT_SECONDS:
            yield from self._face_overlays((first_start, first_figure), colours)
        for index, (spoken, sentence_end, figure) in enumerate(beats):
            start = round(max(spoken, first_start), 4)
            end = beats[index + 1][0] if index + 1 < len(beats) else passage.end
            # A figure isn't shown beside a sentence about something else.
            if sentence_end >= start + _MIN_BEAT_SECONDS and end - sentence_end >= _MIN_BEAT_SECONDS:
                yield from self._face_overlays((sentence_end, end), colours)
                end = sentence_end
            yield from self._figure_overlays(figure, (start, end), colours)

    def _find_beats(self, passage: TimedPassage) -> Iterator[tuple[float, float, Figure]]:
        """Yield (second, end of its sentence, figure) for each figure of a passage that can be shown long enough."""
        starts = [token.start for token in written_words(passage.text)]
        ends = sentence_ends(passage.text)
        previous_start = passage.start - _MIN_BEAT_SECONDS
        for figure in figures_in(passage.text, self.language):
            number = bisect_right(starts, figure.start) - 1
            if not 0 <= number < len(passage.words) or not figure.says_what:
                continue
            # A figure that was spoken while the hook was shown comes with the scene.
            start = round(max(passage.words[number].start - 0.05, passage.start + 0.12), 4)
            if start - previous_start >= _MIN_BEAT_SECONDS and passage.end - start >= _MIN_LAST_BEAT_SECONDS:
                previous_start = start
                sentence_end = next((end for end in ends if end > figure.start), len(passage.text))
                last_word = passage.words[min(bisect_right(starts, sentence_end - 1), len(passage.words)) - 1]
                yield start, round(last_word.end + LAST_CARD_HOLD_SECONDS, 4), figure

    def _kicker_overlays(self, times: tuple[float, float], colours: SceneColours) -> Iterator[Overlay]:
        """Yield the hook in small, and the persona's handle, for people who see only a part of the film."""
        title = self.fit("hook", TextBox(72, WIDTH, 110.0, 42, 24), self._telling.hook, _KICKER)
        yield Overlay(
            *times,
            (DrawnText(float(LEFT), 276.0, title, colours.faint, colours.faint),),
            enter=Motion("fade", 0.3),
            leave=Motion("fade", LEAVE_SECONDS),
            name="kicker",
        )
        yield from self.handle_overlays(times, colours)

    def _face_overlays(self, times: tuple[float, float], colours: SceneColours) -> Iterator[Overlay]:
        """Yield the persona's face, with its name below, each if there is one."""
        face = self.face_items(colours, _FACE_Y, _FACE)
        if face:
            yield Overlay(
                *times,
                face,
                enter=Motion("rise", 0.45, 70.0),
                leave=Motion("rise", LEAVE_SECONDS, 46.0),
                name="face",
            )
        name = " ".join(self.cast.name.split())
        if name:
            block = self.fit_name(typeset(name, self.language), _UNIT, (60, 36))
            yield Overlay(
                round(times[0] + 0.07, 4),
                times[1],
                (DrawnText(float(LEFT), float(_FACE_Y + _FACE + 36), block, colours.words, colours.accent),),
                enter=Motion("rise", 0.45, 70.0),
                leave=Motion("rise", LEAVE_SECONDS, 46.0),
                name="person",
            )

    def _figure_overlays(
        self, figure: Figure, span: tuple[float, float], colours: SceneColours
    ) -> Iterator[Overlay]:
        number = self._fit_number(figure.value)
        left, top, right, bottom = ink_box(number)
        x = RIGHT - right if self.is_rtl else LEFT - left
        # Number and unit are centred together, whatever their sizes.
        height = bottom - top
        unit = self.fit("figure", _UNIT_BOX, figure.of, _UNIT) if figure.of else None
        y = 770.0 - (height + (unit.height + 44 if unit else 0.0)) / 2
        yield Overlay(
            *span,
            (DrawnText(round(x, 2), round(y - top, 2), number, colours.accent, colours.accent),),
            enter=Motion("rise", 0.35, 80.0),
            leave=Motion("rise", LEAVE_SECONDS, 46.0),
            name="figure",
        )
        if unit is not None:
            yield from self.line_overlays(
                unit, y + height + 44, (round(span[0] + 0.06, 4), span[1]), colours, name="of"
            )

    def _fit_number(self, value: str) -> Block:
        """Lay a number out as large as possible, on one line unless it is too long for that."""
        for size in range(_NUMBER_SIZES[0], _NUMBER_SIZES[1], -20):
            try:
                return layout(
                    value,
                    (WIDTH, size * _NUMBER.line_height * 1.5),
                    _NUMBER,
                    largest=size,
                    smallest=size,
                    direction="ltr",
                )
            except TextDoesNotFit:
                continue
        return layout(value, (WIDTH, 400), _NUMBER, largest=_NUMBER_SIZES[1], smallest=40, direction="ltr")

    def _end_overlays(self, passage: TimedPassage, colours: SceneColours) -> Iterator[Overlay]:
        """Yield the end card: the call if there is one, the persona, and the text with its label."""
        start, end = passage.start, passage.end
        match = LABELLED_TEXT.fullmatch(passage.text)
        label, address = (match[1], match[2]) if match else ("", passage.text)
        yield from self.scenery_overlays(start + 0.1, end, colours)
        yield self.bar_overlay(start + 0.15, end, 262, colours, delay=0.0)
        if self._telling.call:
            call = self.fit("call", SLOTS["call"], self._telling.call, TITLE)
            yield from self.line_overlays(
                call, 300.0, (round(start + 0.15, 4), end), colours, name="call", is_last=True
            )
        yield from self.person_overlays(start + 0.1, end, colours, enter_seconds=0.3, is_last=True, y=690)
        text = self.fit_address(SLOTS["end"], address)
        label_block = self.fit_line(typeset(label, self.language), LABEL, (36, 28)) if label else None
        height = text.height + (label_block.height + 4 if label_block else 0.0)
        # Scripts with taller lines begin higher.
        y = min(1320.0 if self._telling.call else 360.0, SAFE_AREA[3] - height)
        if label_block is not None:
            yield self._overlay((start + 0.25, end), label_block, y, colours.accent, "label")
            y += label_block.height + 4
        yield self._overlay((start + 0.3, end), text, y, colours.words, "end")

    def _overlay(self, times: tuple[float, float], block: Block, y: float, ink: str, name: str) -> Overlay:
        return Overlay(
            round(times[0], 4),
            times[1],
            (DrawnText(float(LEFT), round(y, 2), block, ink, ink),),
            enter=Motion("rise", 0.4, 50.0),
            name=name,
        )


def length_fault(telling: Telling) -> str | None:
    """Return the message for the first part with too many characters, or `None` if all fit."""
    parts = [("The hook", "hook", telling.hook)]
    parts += [(f"Passage {number}", "passage", text) for number, text in enumerate(telling.passages, start=1)]
    parts += [("The call to action", "call", telling.call), ("The end card", "end", telling.end)]
    faults = (width_fault(name, text, SLOTS[slot].characters) for name, slot, text in parts)
    return next(filter(None, faults), None)
