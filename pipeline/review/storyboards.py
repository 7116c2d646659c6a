"""Reads and changes a video's storyboard, from which the video is rendered again without a writer.

The text on the screen is the video's body, line by line, so the body follows the change and is checked against the
source again. Failed checks are warnings then, because a person wrote the text and a person decides.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.errors import Conflict, Detail, Invalid
from pipeline.media import files
from pipeline.models import Asset, GeneratedItemStatus
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import list_characters, undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video import storyboard_edits, storyboard_json, storyboard_rearrange
from pipeline.render.video.storyboard import storyboard_faults, texts_outside
from pipeline.review import rerender
from pipeline.states import EDITABLE_ITEMS
from pipeline.text.content_schema import ItemWords, sync_changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pipeline.models import GeneratedItem
    from pipeline.render.video.storyboard import Storyboard

ROLE: Final = "storyboard"
_FIXED_MEMBERS: Final = ("fps", "width", "height", "version")
"""The members of a storyboard that a person can't change, as renderer and engine rely on them."""


@dataclass(frozen=True)
class StoredStoryboard:
    """A video's storyboard as it was rendered, and its frames in the order of the scenes."""

    board: Storyboard
    frames: tuple[Asset, ...]


def stored_storyboard(item: GeneratedItem) -> StoredStoryboard | None:
    """Return the item's storyboard, or `None` if it has no video yet or its file can't be read."""
    rows = Asset.everywhere.filter(item=item, revoked_at=None, role__in=(ROLE, "frame"))
    return stored_storyboard_in(list(rows.order_by("position", "id")))


def stored_storyboard_in(assets: Sequence[Asset]) -> StoredStoryboard | None:
    """Return the storyboard of `stored_storyboard` from an item's files, which are in their order."""
    stored = next((asset for asset in assets if asset.role == ROLE), None)
    if stored is None:
        return None
    try:
        board = storyboard_json.from_json(json.loads(files.path_of(stored.path).read_bytes()))
    except (OSError, ValueError, Refused):
        # The file was lost, or this release can't render that of an earlier one: the item is shown without it.
        return None
    return StoredStoryboard(board, tuple(asset for asset in assets if asset.role == "frame"))


def read_board(data: Mapping[str, Any]) -> Storyboard:
    """Return the storyboard in a caller's JSON. Raises `Invalid`, with the member, if it is malformed."""
    try:
        return storyboard_json.parse(data)
    except storyboard_json.BadStoryboard as bad:
        raise Invalid.one(field=bad.where or ROLE, code=bad.code, message=bad.said) from bad


def edit(
    item: GeneratedItem,
    board: Storyboard,
    *,
    by: str,
    now: datetime,
    expected_version: int | None = None,
) -> GeneratedItem:
    """Write a new revision with this storyboard, and a run that renders it; nothing if the storyboard is the same.

    Raises `Invalid`, with each scene, overlay or caption that can't be rendered, `Conflict` if the item isn't ready
    or has no storyboard, and `states.Overtaken` if it isn't at the expected version.
    """
    with transaction.atomic():
        row = rerender.lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_unless_ready(row)
        before = stored_storyboard(row)
        if before is None:
            raise Conflict.because(code="no_storyboard", message="It has no film whose storyboard is kept.")
        board = _validate_board(before.board, board)
        if board == before.board:
            return row
        values = _follow_up_values(row, before.board, board)
        rerender.write_revision(row, now, by=by, board=board, **values)
        rerender.draw_again(
            row, _manual_alt_texts(row, before.board), now, board=storyboard_json.as_json(board)
        )
    return row


def _refuse_unless_ready(row: GeneratedItem) -> None:
    """Raise `Conflict` if the item was deleted or isn't ready, with the step to take first if it is scheduled."""
    rerender.refuse_deleted(row)
    if row.status in EDITABLE_ITEMS - {GeneratedItemStatus.READY}:
        state, first_step = rerender.why_promised(row)
        message = f"Its video {state}. {first_step}, then edit the storyboard."
        raise Conflict(Detail(ROLE, "drawn_words", message, {"status": row.status}))
    if row.status not in EDITABLE_ITEMS:
        message = f"It is {row.status}; its storyboard can be changed while it is ready."
        raise Conflict(Detail("status", "not_edited", message, {"status": row.status, "allowed": ["ready"]}))


def _validate_board(before: Storyboard, board: Storyboard) -> Storyboard:
    """Return the storyboard with changed text laid out again.

    Raises `Invalid`, with each member that can't be rendered or changed.
    """
    details = [
        Detail(f"{ROLE}.overlays[{index}]", "bad_storyboard", message)
        for index, message in storyboard_edits.overlay_faults(board)
    ]
    if details:
        raise Invalid(*details)
    try:
        laid_out = storyboard_edits.lay_out_changed_texts(board)
    except storyboard_edits.Unfit as unfit:
        # The place `t3` stands for the text that begins with `overlays[3]`.
        field = f"{ROLE}.overlays[{unfit.place[1:]}]"
        raise Invalid.one(field=field, code=unfit.code, message=unfit.message) from unfit
    problems = list(_problems(before, laid_out))
    if problems:
        raise Invalid(*problems)
    return laid_out


def _problems(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """Yield each change that a person can't make, and each member that can't be rendered or read."""
    for name in _FIXED_MEMBERS:
        if getattr(before, name) != getattr(board, name):
            message = f"It stays as it is, {getattr(before, name)}: the film is made for that."
            yield Detail(f"{ROLE}.{name}", "fixed", message)
    if before.caption_look != board.caption_look:
        yield Detail(
            f"{ROLE}.caption_look", "fixed", "How captions look stays as its engine has laid it out."
        )
    for sentence in storyboard_faults(board):
        field, _, message = sentence.partition(": ")
        yield Detail(f"{ROLE}.{field}", "bad_storyboard", message[:1].upper() + message[1:])
    unknown_assets = sorted(set(board.assets) - set(before.assets))
    if unknown_assets:
        message = (
            f"The film has no file of the name {unknown_assets[0]}; its storyboard names those that it has."
        )
        yield Detail(f"{ROLE}.scenes", "unknown_asset", message)
    yield from _problems_of_sound(before, board)
    yield from _problems_of_words(before, board)


def _problems_of_words(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """Yield each text that isn't visible, because an app's controls newly cover it or glyphs are missing."""
    covered = set(texts_outside(board)) - set(texts_outside(before))
    for text in storyboard_edits.editable_texts(board):
        field = f"{ROLE}.overlays[{text.overlays[0]}]"
        if any(words in text.words for words in covered):
            yield Detail(field, "outside", f"An app covers these words: “{text.words[:60]}”.")
        missing = undrawable_clusters(text.words)
        if missing:
            message = f"The fonts for films have no glyphs for {list_characters(missing)}."
            yield Detail(field, "missing_glyphs", message)


def _problems_of_sound(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """Yield changes of the sound, which stays as recorded, and of the times that depend on it."""
    if board.audio != before.audio:
        yield Detail(f"{ROLE}.audio", "fixed", "What is heard stays as it was recorded.")
    if not (before.audio.voice or before.audio.takes):
        return
    if _scene_times(board) != _scene_times(before):
        yield Detail(f"{ROLE}.scenes", "fixed", storyboard_rearrange.fixed_scenes_reason(before))
    if [(card.start, card.end) for card in board.captions] != [
        (card.start, card.end) for card in before.captions
    ]:
        yield Detail(
            f"{ROLE}.captions", "fixed", "Captions come and go with what is said; their words can change."
        )


def _scene_times(board: Storyboard) -> list[tuple[float, float, str, float]]:
    """Return each scene's start and end, its asset, and the second at which a clip begins."""
    return [
        (
            scene.start,
            scene.end,
            scene.visual.asset,
            scene.visual.since if scene.visual.kind == "clip" else 0.0,
        )
        for scene in board.scenes
    ]


# --- Words -----------------------------------------------------------------------------------------------------------


def _follow_up_values(row: GeneratedItem, before: Storyboard, after: Storyboard) -> dict[str, Any]:
    """Return the item's fields that change with the storyboard: its body, and those that follow from it."""
    language = row.language or after.meta.language
    body = body_as_shown(row.body, before, after, language=language)
    if body == row.body:
        return {}
    old_words = ItemWords(row.body, row.body_format, row.title, row.content, row.language)
    return sync_changes(row.bucket, old_words, {"body": body})


def body_as_shown(body: str, before: Storyboard, after: Storyboard, *, language: str) -> str:
    """Return the body with its lines as the video now shows them, reworded, reordered or removed.

    Lines that aren't shown on the screen stay.
    """
    old_texts, new_texts = _texts_by_key(before), _texts_by_key(after)
    lines = body.splitlines()
    shown_lines = _shown_lines(lines, old_texts, language)
    if not shown_lines:
        return body
    order = {key: number for number, key in enumerate(new_texts)}
    new_lines: list[tuple[int, int, str]] = []
    for line_index, keys in shown_lines.items():
        remaining = [key for key in keys if key in new_texts]
        if remaining:
            new_words = [new_texts[key] for key in remaining]
            is_same = new_words == [old_texts[key] for key in keys]
            new_lines.append(
                (
                    order[remaining[0]],
                    line_index,
                    lines[line_index].strip() if is_same else ": ".join(new_words),
                )
            )
    # There are fewer texts than lines if scenes were removed.
    refilled = dict(zip(shown_lines, (new_words for *_, new_words in sorted(new_lines)), strict=False))
    return "\n".join(
        refilled.get(line_index, line)
        for line_index, line in enumerate(lines)
        if line_index not in shown_lines or line_index in refilled
    )


_TextKey = tuple[str, int]
"""A text's name, and the number of texts of that name before it; moving the text doesn't change it."""


def _shown_lines(
    lines: Sequence[str], texts: Mapping[_TextKey, str], language: str
) -> dict[int, tuple[_TextKey, ...]]:
    """Return, by index, the lines that are shown on the screen, with the texts that show them.

    Of equal lines the first belongs to the first text, the second to the second; if there are more lines than
    texts, the last ones belong to the first text too.
    """
    by_words: defaultdict[str, list[tuple[_TextKey, ...]]] = defaultdict(list)
    for keys, words in _line_candidates(texts):
        by_words[words].append(keys)
    lines_shown: dict[int, tuple[_TextKey, ...]] = {}
    used_keys: set[_TextKey] = set()
    for line_index, line in enumerate(lines):
        candidates = by_words.get(storyboard_edits.normalize_text(typeset(line.strip(), language)))
        if candidates:
            keys = next((keys for keys in candidates if used_keys.isdisjoint(keys)), candidates[0])
            lines_shown[line_index] = keys
            used_keys.update(keys)
    return lines_shown


def _texts_by_key(board: Storyboard) -> dict[_TextKey, str]:
    """Return the words of each text, in the order in which they appear."""
    texts: dict[_TextKey, str] = {}
    for text in storyboard_edits.editable_texts(board):
        number = sum(name == text.name for name, _ in texts)
        texts[text.name, number] = storyboard_edits.normalize_text(text.words)
    return texts


def _line_candidates(texts: Mapping[_TextKey, str]) -> Iterator[tuple[tuple[_TextKey, ...], str]]:
    """Yield each text, and each two in a row as a label with its text."""
    pairs = list(texts.items())
    for key, words in pairs:
        yield (key,), words
    for (first, label), (second, words) in pairwise(pairs):
        yield (first, second), f"{label}: {words}"


def _manual_alt_texts(row: GeneratedItem, board: Storyboard) -> dict[str, str]:
    """Return the alt texts that people wrote, by file name; the others are derived from the text again."""
    rows = Asset.everywhere.filter(item=row, revoked_at=None).exclude(alt_text__in=("", board.meta.alt_text))
    return dict(rows.values_list("name", "alt_text"))
