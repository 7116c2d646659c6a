"""The form of a storyboard: for each scene how long it is, where it stands, and what is written on it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.utils.translation import gettext as _

from pipeline.pages.items.display import scene_name
from pipeline.pages.items.forms import VersionedForm
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video import storyboard_edits, storyboard_rearrange
from pipeline.render.video.storyboard import MAX_FILM_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.forms import BoundField

    from pipeline.pages.items.scene_display import SceneSeen
    from pipeline.render.video.storyboard import Storyboard
    from pipeline.render.video.storyboard_edits import SceneText

_HIDDEN: Final = frozenset({"version", "began"})
_CHARACTERS: Final = 500
_LEFT_OUT: Final = "0"
_PLACED: Final = re.compile(r"storyboard\.(scenes|overlays|captions)\[(\d+)\]")


@dataclass(frozen=True)
class SceneFields:
    """The fields of one scene, beside what it is now."""

    seen: SceneSeen
    place: BoundField | None
    seconds: BoundField | None
    words: Sequence[BoundField]


class StoryboardForm(VersionedForm):
    """`board` is the storyboard as it is kept; `board()` what the form makes of it."""

    began = forms.CharField(required=False, widget=forms.HiddenInput)
    """What each field had in it when the form was opened."""

    def __init__(self, *args: Any, board: Storyboard, version: int, **kwargs: Any) -> None:
        self._board = board
        self._texts = {_name_of(board, one): one for one in storyboard_edits.editable_texts(board)}
        self._order: list[int] = list(range(len(board.scenes)))
        self._made: Storyboard | None = None
        super().__init__(*args, **kwargs)
        if not storyboard_rearrange.fixed_scenes_reason(board):
            self._add_scenes()
        self._add_words()
        self.initial["version"] = version
        self.initial["began"] = json.dumps(
            {name: str(self.initial.get(name, "")) for name in self._written()}
        )

    def _add_scenes(self) -> None:
        count = len(self._board.scenes)
        for place, scene in enumerate(self._board.scenes):
            self.fields[f"seconds_{place}"] = forms.FloatField(
                label=_("Seconds"),
                min_value=storyboard_rearrange.MIN_SCENE_SECONDS,
                max_value=MAX_FILM_SECONDS,
                widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
            )
            self.initial[f"seconds_{place}"] = f"{scene.end - scene.start:.2f}".rstrip("0").rstrip(".")
            if count > 1:
                numbers = [(str(number), str(number)) for number in range(1, count + 1)]
                self.fields[f"place_{place}"] = forms.ChoiceField(
                    label=_("Place"), choices=[*numbers, (_LEFT_OUT, _("Remove"))]
                )
                self.initial[f"place_{place}"] = str(place + 1)

    def _add_words(self) -> None:
        for name, text in self._texts.items():
            self.fields[name] = forms.CharField(
                label=scene_name(text.name) or _("Text"),
                max_length=_CHARACTERS,
                widget=forms.Textarea(attrs={"rows": 2 if len(text.words) > 30 else 1}),
            )
            self.initial[name] = storyboard_edits.normalize_text(text.words)
        for place, card in enumerate(self._board.captions):
            self.fields[f"caption_{place}"] = forms.CharField(
                label=_("Caption at %(second)s s") % {"second": f"{card.start:.1f}"}, max_length=_CHARACTERS
            )
            self.initial[f"caption_{place}"] = join_words(word.t for word in card.words)

    def _written(self) -> list[str]:
        return [name for name in self.fields if name not in _HIDDEN]

    def scenes(self, seen: Sequence[SceneSeen]) -> list[SceneFields]:
        """As the page shows them: each with its fields."""
        board = self._board
        found = []
        for place, one in enumerate(seen):
            words = [self[name] for name, text in self._texts.items() if text.scene == place]
            words += [
                self[f"caption_{number}"]
                for number, card in enumerate(board.captions)
                if storyboard_edits.scene_at(board, card.start) == place
            ]
            found.append(
                SceneFields(one, self._field(f"place_{place}"), self._field(f"seconds_{place}"), words)
            )
        return found

    def _field(self, name: str) -> BoundField | None:
        return self[name] if name in self.fields else None

    @property
    def homeless(self) -> Iterator[str]:
        """What was typed in fields that are no more, because somebody has changed the scenes meanwhile."""
        began = _read(self.data.get("began", "")) if self.is_bound else {}
        for name in self.data if self.is_bound else ():
            is_words = name.startswith(("text_", "caption_")) and name not in self.fields
            if is_words and self.data[name] != began.get(name):
                yield self.data[name]

    def merge_with_newest(self) -> None:
        """Of a form that was overtaken: what was typed stays, and every other field has what it says now."""
        sent: Any = self.data
        again = sent.copy()
        began = _read(again.get("began", ""))
        for name in self._written():
            if name not in again or again[name] == began.get(name):
                again[name] = str(self.initial.get(name, ""))
        again["version"] = str(self.initial["version"])
        again["began"] = self.initial["began"]
        self.data = again

    def board(self) -> Storyboard | None:
        """The storyboard as the form says; None where that can't be, and then it is said at the fields."""
        if self._made is None and not self.errors:
            self._made = self._make()
        return self._made

    def _make(self) -> Storyboard | None:
        made = self._board
        # From the last one: what is laid out anew may take more overlays, or fewer.
        for name, text in reversed(self._texts.items()):
            words = self.cleaned_data[name]
            if storyboard_edits.normalize_text(words) != storyboard_edits.normalize_text(text.words):
                made = self._tried(
                    name,
                    lambda made=made, text=text, words=words: storyboard_edits.replace_text(
                        made, text, words
                    ),
                )
        for place in range(len(self._board.captions)):
            name = f"caption_{place}"
            if name in self.changed_data:
                words = self.cleaned_data[name]
                made = self._tried(
                    name,
                    lambda made=made, place=place, words=words: storyboard_edits.replace_caption(
                        made, place, words
                    ),
                )
        if self.errors:
            return None
        self._order = self._ordered()
        seconds = {
            place: self.cleaned_data[f"seconds_{place}"]
            for place in range(len(made.scenes))
            if f"seconds_{place}" in self.changed_data
        }
        try:
            return storyboard_rearrange.rearrange(made, self._order, seconds)
        except storyboard_edits.Unfit as unfit:
            self.add_error(f"seconds_{unfit.place[1:]}" if unfit.place else None, unfit.message)
            return None

    def _tried(self, name: str, change: Any) -> Storyboard:
        """What can't be done is told where it was typed, and the rest is tried all the same."""
        try:
            made: Storyboard = change()
        except storyboard_edits.Unfit as unfit:
            self.add_error(name, unfit.message)
            return self._board
        return made

    def _ordered(self) -> list[int]:
        """The scenes in their order: one that moves up comes
        before the one that is there, one that moves down after.
        """
        wanted: list[tuple[float, int]] = []
        for place in range(len(self._board.scenes)):
            number = self.cleaned_data.get(f"place_{place}", str(place + 1))
            if number != _LEFT_OUT:
                at = int(number)
                wanted.append((at + (0.5 if at > place + 1 else -0.5 if at < place + 1 else 0.0), place))
        return [place for _at, place in sorted(wanted)]

    def field_of(self, path: str) -> str | None:
        """The scene, the words or the caption that a fault is of."""
        found = _PLACED.match(path)
        if found is None or self._made is None:
            return None
        kind, number = found[1], int(found[2])
        if kind == "scenes" and number < len(self._order):
            return f"seconds_{self._order[number]}"
        if kind == "captions":
            return f"caption_{number}"
        return self._text_at(number) if kind == "overlays" else None

    def _text_at(self, number: int) -> str | None:
        made = self._made
        shown = (
            [one for one in storyboard_edits.editable_texts(made) if number in one.overlays] if made else []
        )
        for one in shown:
            scene = self._order[one.scene]
            for name, text in self._texts.items():
                if (text.name, text.scene) == (one.name, scene):
                    return name
        return None


def _name_of(board: Storyboard, text: SceneText) -> str:
    """The scene, and which of its texts: the same after an edit of words."""
    before = [
        one
        for one in storyboard_edits.editable_texts(board)
        if one.scene == text.scene and one.overlays < text.overlays
    ]
    return f"text_{text.scene}_{len(before)}"


def _read(sums: str) -> Mapping[str, str]:
    try:
        found = json.loads(sums)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
