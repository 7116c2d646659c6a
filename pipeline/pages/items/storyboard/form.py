"""Defines the form of a storyboard: for each scene its length, its position, and the text on it."""

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

    from pipeline.pages.items.storyboard.scene_display import ShownScene
    from pipeline.render.video.storyboard import Storyboard
    from pipeline.render.video.storyboard_edits import SceneText

_HIDDEN_FIELDS: Final = frozenset({"version", "began"})
_MAX_TEXT_CHARACTERS: Final = 500
_REMOVED: Final = "0"
"""The choice of a position that removes the scene."""
# Matches a path such as `storyboard.overlays[3].text` up to the index.
_ERROR_PATH: Final = re.compile(r"storyboard\.(scenes|overlays|captions)\[(\d+)\]")


@dataclass(frozen=True)
class SceneFields:
    """The fields of one scene, next to the stored scene as the page shows it.

    `place` and `seconds` are `None` if the scene has no such field.
    """

    seen: ShownScene
    place: BoundField | None
    seconds: BoundField | None
    text_fields: Sequence[BoundField]


class StoryboardForm(VersionedForm):
    """The form of one storyboard: the argument `board` is the stored one, `board()` returns the edited one."""

    began = forms.CharField(required=False, widget=forms.HiddenInput)
    """A JSON object with the text that each field held when the form was opened."""

    def __init__(self, *args: Any, board: Storyboard, version: int, **kwargs: Any) -> None:
        self._board = board
        self._texts = {_text_field_name(board, text): text for text in storyboard_edits.editable_texts(board)}
        self._order: list[int] = list(range(len(board.scenes)))
        self._edited_board: Storyboard | None = None
        super().__init__(*args, **kwargs)
        if not storyboard_rearrange.fixed_scenes_reason(board):
            self._add_scene_fields()
        self._add_text_fields()
        self.initial["version"] = version
        self.initial["began"] = json.dumps(
            {name: str(self.initial.get(name, "")) for name in self._editable_fields()}
        )

    def _add_scene_fields(self) -> None:
        """Add a field for the seconds of each scene and, if there are several, one for its position."""
        count = len(self._board.scenes)
        for index, scene in enumerate(self._board.scenes):
            self.fields[f"seconds_{index}"] = forms.FloatField(
                label=_("Seconds"),
                min_value=storyboard_rearrange.MIN_SCENE_SECONDS,
                max_value=MAX_FILM_SECONDS,
                widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
            )
            self.initial[f"seconds_{index}"] = f"{scene.end - scene.start:.2f}".rstrip("0").rstrip(".")
            if count > 1:
                numbers = [(str(number), str(number)) for number in range(1, count + 1)]
                self.fields[f"place_{index}"] = forms.ChoiceField(
                    label=_("Place"), choices=[*numbers, (_REMOVED, _("Remove"))]
                )
                self.initial[f"place_{index}"] = str(index + 1)

    def _add_text_fields(self) -> None:
        """Add a field for each text on the screen and for each caption."""
        for name, text in self._texts.items():
            self.fields[name] = forms.CharField(
                label=scene_name(text.name) or _("Text"),
                max_length=_MAX_TEXT_CHARACTERS,
                widget=forms.Textarea(attrs={"rows": 2 if len(text.words) > 30 else 1}),
            )
            self.initial[name] = storyboard_edits.normalize_text(text.words)
        for index, card in enumerate(self._board.captions):
            self.fields[f"caption_{index}"] = forms.CharField(
                label=_("Caption at %(second)s s") % {"second": f"{card.start:.1f}"},
                max_length=_MAX_TEXT_CHARACTERS,
            )
            self.initial[f"caption_{index}"] = join_words(word.t for word in card.words)

    def _editable_fields(self) -> list[str]:
        return [name for name in self.fields if name not in _HIDDEN_FIELDS]

    def scenes(self, shown_scenes: Sequence[ShownScene]) -> list[SceneFields]:
        """Return the scenes as the page shows them, each with its fields."""
        board = self._board
        scene_fields = []
        for index, shown_scene in enumerate(shown_scenes):
            text_fields = [self[name] for name, text in self._texts.items() if text.scene == index]
            text_fields += [
                self[f"caption_{number}"]
                for number, card in enumerate(board.captions)
                if storyboard_edits.scene_at(board, card.start) == index
            ]
            scene_fields.append(
                SceneFields(
                    shown_scene,
                    self._field_if_any(f"place_{index}"),
                    self._field_if_any(f"seconds_{index}"),
                    text_fields,
                )
            )
        return scene_fields

    def _field_if_any(self, name: str) -> BoundField | None:
        return self[name] if name in self.fields else None

    @property
    def orphaned_texts(self) -> Iterator[str]:
        """The texts that were typed in fields that no longer exist, because somebody changed the scenes."""
        opened_values = _parse_values(self.data.get("began", "")) if self.is_bound else {}
        for name in self.data if self.is_bound else ():
            is_orphaned = name.startswith(("text_", "caption_")) and name not in self.fields
            if is_orphaned and self.data[name] != opened_values.get(name):
                yield self.data[name]

    def merge_with_newest(self) -> None:
        """Update a form after somebody else saved: typed values stay, and every other field gets the newest one."""
        posted: Any = self.data
        merged = posted.copy()
        opened_values = _parse_values(merged.get("began", ""))
        for name in self._editable_fields():
            if name not in merged or merged[name] == opened_values.get(name):
                merged[name] = str(self.initial.get(name, ""))
        merged["version"] = str(self.initial["version"])
        merged["began"] = self.initial["began"]
        self.data = merged

    def board(self) -> Storyboard | None:
        """Return the edited storyboard, or `None` if the form has errors, which are added to its fields."""
        if self._edited_board is None and not self.errors:
            self._edited_board = self._apply_edits()
        return self._edited_board

    def _apply_edits(self) -> Storyboard | None:
        """Return the storyboard with all edits, or `None` if one can't be made, which becomes its field's error."""
        board = self._board
        # From the last text to the first: a text that is laid out again may take more overlays, or fewer.
        for name, text in reversed(self._texts.items()):
            typed_text = self.cleaned_data[name]
            if storyboard_edits.normalize_text(typed_text) != storyboard_edits.normalize_text(text.words):
                board = self._try_edit(
                    name,
                    lambda board=board, text=text, typed_text=typed_text: storyboard_edits.replace_text(
                        board, text, typed_text
                    ),
                )
        for index in range(len(self._board.captions)):
            name = f"caption_{index}"
            if name in self.changed_data:
                typed_text = self.cleaned_data[name]
                board = self._try_edit(
                    name,
                    lambda board=board, index=index, typed_text=typed_text: storyboard_edits.replace_caption(
                        board, index, typed_text
                    ),
                )
        if self.errors:
            return None
        self._order = self._read_scene_order()
        seconds = {
            index: self.cleaned_data[f"seconds_{index}"]
            for index in range(len(board.scenes))
            if f"seconds_{index}" in self.changed_data
        }
        try:
            return storyboard_rearrange.rearrange(board, self._order, seconds)
        except storyboard_edits.Unfit as unfit:
            # `place` is a scene's key, such as `s2`, or empty if the error is the whole film's.
            self.add_error(f"seconds_{unfit.place[1:]}" if unfit.place else None, unfit.message)
            return None

    def _try_edit(self, name: str, change: Any) -> Storyboard:
        """Return the storyboard with one edit.

        If the edit can't be made, that becomes the field's error and the stored storyboard is returned, so that
        the other edits are tried too and report their errors.
        """
        try:
            board: Storyboard = change()
        except storyboard_edits.Unfit as unfit:
            self.add_error(name, unfit.message)
            return self._board
        return board

    def _read_scene_order(self) -> list[int]:
        """Return the former indexes of the scenes in their new order, without removed ones.

        A scene that moves up comes before the scene at its new position, one that moves down after it.
        """
        ranked: list[tuple[float, int]] = []
        for index in range(len(self._board.scenes)):
            former_position = index + 1
            choice = self.cleaned_data.get(f"place_{index}", str(former_position))
            if choice == _REMOVED:
                continue
            # Half a position sorts a moved scene before or after the scene that has the position.
            new_position = float(choice)
            if new_position > former_position:
                new_position += 0.5
            elif new_position < former_position:
                new_position -= 0.5
            ranked.append((new_position, index))
        return [index for _position, index in sorted(ranked)]

    def field_of(self, path: str) -> str | None:
        """Return the name of the field at which an error of this path is shown, or `None` if there is none."""
        match = _ERROR_PATH.match(path)
        if match is None or self._edited_board is None:
            return None
        kind, number = match[1], int(match[2])
        if kind == "scenes" and number < len(self._order):
            return f"seconds_{self._order[number]}"
        if kind == "captions":
            return f"caption_{number}"
        return self._overlay_field_name(number) if kind == "overlays" else None

    def _overlay_field_name(self, number: int) -> str | None:
        """Return the name of the field whose text an overlay of the edited storyboard shows, or `None`."""
        if self._edited_board is None:
            return None
        for overlay_text in storyboard_edits.editable_texts(self._edited_board):
            if number not in overlay_text.overlays:
                continue
            scene = self._order[overlay_text.scene]
            for name, text in self._texts.items():
                if (text.name, text.scene) == (overlay_text.name, scene):
                    return name
        return None


def _text_field_name(board: Storyboard, text: SceneText) -> str:
    """Return the name of a text's field, which holds the scene's index and the text's index in the scene.

    The name stays the same when the text is edited.
    """
    texts_before = [
        board_text
        for board_text in storyboard_edits.editable_texts(board)
        if board_text.scene == text.scene and board_text.overlays < text.overlays
    ]
    return f"text_{text.scene}_{len(texts_before)}"


def _parse_values(text: str) -> Mapping[str, str]:
    """Return the values that a browser sent, or none if the text isn't a JSON object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
