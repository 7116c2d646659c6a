"""The storyboard of a film, read and changed by people: filmed again from it, and no writer is asked.

What stands on the screen is a film's body, line by line, so the body follows; its words are held against the source
anew. What is found wrong is a warning then: a person has written them, and a person decides.
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
from pipeline import generate
from pipeline.media import files
from pipeline.models import Asset, GeneratedItemStatus
from pipeline.plugins import Refused
from pipeline.render.typography.clusters import list_characters, undrawable_clusters
from pipeline.render.typography.punctuation import typeset
from pipeline.render.video import storyboard_edits, storyboard_json, storyboard_rearrange
from pipeline.render.video.storyboard import storyboard_faults, texts_outside
from pipeline.review import rerender
from pipeline.states import EDITABLE_ITEMS
from pipeline.text.content_schema import ItemWords, in_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from pipeline.models import GeneratedItem
    from pipeline.render.video.storyboard import Storyboard

ROLE: Final = "storyboard"
_KEPT: Final = ("fps", "width", "height", "version")
"""What of a storyboard its renderer and its engine count on."""


@dataclass(frozen=True)
class StoredStoryboard:
    """A film's storyboard as it was filmed, and its frames in the order of the scenes."""

    board: Storyboard
    frames: tuple[Asset, ...]


def stored_storyboard(item: GeneratedItem) -> StoredStoryboard | None:
    """None where the item has no film, or not yet."""
    rows = Asset.everywhere.filter(item=item, revoked_at=None, role__in=(ROLE, "frame"))
    return stored_storyboard_in(list(rows.order_by("position", "id")))


def stored_storyboard_in(assets: Sequence[Asset]) -> StoredStoryboard | None:
    """The same out of the files of an item, in their order. None where there is none, or its file can't be read."""
    stored = next((asset for asset in assets if asset.role == ROLE), None)
    if stored is None:
        return None
    try:
        board = storyboard_json.from_json(json.loads(files.path_of(stored.path).read_bytes()))
    except (OSError, ValueError, Refused):
        # Its file was lost, or an earlier release wrote what this one can't film: the item is shown without.
        return None
    return StoredStoryboard(board, tuple(asset for asset in assets if asset.role == "frame"))


def read_board(data: Mapping[str, Any]) -> Storyboard:
    """The storyboard of a caller's JSON. Raises `Invalid`, naming the member."""
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
    """Film it from this storyboard: a new revision, which is generating meanwhile; nothing where nothing is changed.

    Raises `Invalid` naming each scene, overlay or caption that can't be filmed, `Conflict` unless it is ready, and
    `states.Overtaken` where the row has moved on from `expected_version`.
    """
    with transaction.atomic():
        row = rerender.lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_unless_ready(row)
        before = stored_storyboard(row)
        if before is None:
            raise Conflict.because(code="no_storyboard", message="It has no film whose storyboard is kept.")
        board = _filmable(before.board, board)
        if board == before.board:
            return row
        values = _values(row, before.board, board)
        rerender.write_revision(row, now, by=by, board=board, **values)
        rerender.draw_again(
            row, _written_alt_texts(row, before.board), now, board=storyboard_json.as_json(board)
        )
    return row


def _refuse_unless_ready(row: GeneratedItem) -> None:
    """Raises `Conflict`, with what to do first where its film is promised."""
    rerender.refuse_deleted(row)
    if row.status in EDITABLE_ITEMS - {GeneratedItemStatus.READY}:
        what, first = rerender.why_promised(row)
        message = f"Its video {what}. {first}, then edit the storyboard."
        raise Conflict(Detail(ROLE, "drawn_words", message, {"status": row.status}))
    if row.status not in EDITABLE_ITEMS:
        message = f"It is {row.status}; its storyboard can be changed while it is ready."
        raise Conflict(Detail("status", "not_edited", message, {"status": row.status, "allowed": ["ready"]}))


def _filmable(before: Storyboard, board: Storyboard) -> Storyboard:
    """With what was written anew laid out. Raises `Invalid` with a sentence for each place that can't be filmed."""
    odd = [
        Detail(f"{ROLE}.overlays[{place}]", "bad_storyboard", message)
        for place, message in storyboard_edits.overlay_faults(board)
    ]
    if odd:
        raise Invalid(*odd)
    try:
        laid = storyboard_edits.lay_out_changed_texts(board)
    except storyboard_edits.Unfit as unfit:
        # `t3` names the text that begins with `overlays[3]`.
        where = f"{ROLE}.overlays[{unfit.place[1:]}]"
        raise Invalid.one(field=where, code=unfit.code, message=unfit.message) from unfit
    found = list(_problems(before, laid))
    if found:
        raise Invalid(*found)
    return laid


def _problems(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """Each change that a person can't make, and each place that can't be filmed or read."""
    for name in _KEPT:
        if getattr(before, name) != getattr(board, name):
            message = f"It stays as it is, {getattr(before, name)}: the film is made for that."
            yield Detail(f"{ROLE}.{name}", "fixed", message)
    if before.caption_look != board.caption_look:
        yield Detail(
            f"{ROLE}.caption_look", "fixed", "How captions look stays as its engine has laid it out."
        )
    for sentence in storyboard_faults(board):
        where, _, message = sentence.partition(": ")
        yield Detail(f"{ROLE}.{where}", "bad_storyboard", message[:1].upper() + message[1:])
    strange = sorted(set(board.assets) - set(before.assets))
    if strange:
        message = f"The film has no file of the name {strange[0]}; its storyboard names those that it has."
        yield Detail(f"{ROLE}.scenes", "unknown_asset", message)
    yield from _problems_of_sound(before, board)
    yield from _problems_of_words(before, board)


def _problems_of_words(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """Words that nobody sees: an app lies over them, and didn't before, or no font draws them."""
    covered = set(texts_outside(board)) - set(texts_outside(before))
    for text in storyboard_edits.editable_texts(board):
        where = f"{ROLE}.overlays[{text.overlays[0]}]"
        if any(words in text.words for words in covered):
            yield Detail(where, "outside", f"An app covers these words: “{text.words[:60]}”.")
        absent = undrawable_clusters(text.words)
        if absent:
            message = f"The fonts for films have no glyphs for {list_characters(absent)}."
            yield Detail(where, "missing_glyphs", message)


def _problems_of_sound(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    """What is heard goes on as it was recorded, so nothing that is tied to its moments moves."""
    if board.audio != before.audio:
        yield Detail(f"{ROLE}.audio", "fixed", "What is heard stays as it was recorded.")
    if not (before.audio.voice or before.audio.takes):
        return
    if _moments(board) != _moments(before):
        yield Detail(f"{ROLE}.scenes", "fixed", storyboard_rearrange.fixed_scenes_reason(before))
    if [(card.start, card.end) for card in board.captions] != [
        (card.start, card.end) for card in before.captions
    ]:
        yield Detail(
            f"{ROLE}.captions", "fixed", "Captions come and go with what is said; their words can change."
        )


def _moments(board: Storyboard) -> list[tuple[float, float, str, float]]:
    """When each scene is seen, and from which second of what."""
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


def _values(row: GeneratedItem, before: Storyboard, after: Storyboard) -> dict[str, Any]:
    """What of the item follows from the change: its body, and what follows that."""
    language = row.language or after.meta.language
    body = body_as_shown(row.body, before, after, language=language)
    values: dict[str, Any] = {}
    if body != row.body:
        said = ItemWords(row.body, row.body_format, row.title, row.content, row.language)
        values = in_step(row.bucket, said, {"body": body})
        values["excerpt"] = generate.excerpt_of(body, row.body_format)
    return values


def body_as_shown(body: str, before: Storyboard, after: Storyboard, *, language: str) -> str:
    """The body with its lines as the film now says them: reworded, reordered, or gone.

    Lines that stand on no screen stay.
    """
    was, now = _said_by(before), _said_by(after)
    lines = body.splitlines()
    shown = _shown_lines(lines, was, language)
    if not shown:
        return body
    order = {key: number for number, key in enumerate(now)}
    fresh: list[tuple[int, int, str]] = []
    for place, keys in shown.items():
        left = [key for key in keys if key in now]
        if left:
            words = [now[key] for key in left]
            is_same = words == [was[key] for key in keys]
            fresh.append((order[left[0]], place, lines[place].strip() if is_same else ": ".join(words)))
    # Fewer words than places: scenes were taken out.
    refilled = dict(zip(shown, (words for *_, words in sorted(fresh)), strict=False))
    return "\n".join(
        refilled.get(place, line)
        for place, line in enumerate(lines)
        if place not in shown or place in refilled
    )


_TextKey = tuple[str, int]
"""The name of a text, and how many of that name came before it; a text keeps it wherever it goes."""


def _shown_lines(
    lines: Sequence[str], said: Mapping[_TextKey, str], language: str
) -> dict[int, tuple[_TextKey, ...]]:
    """The texts that say a line, by the line's place, for each line that stands on the screen.

    Of equal lines the first is the first text's, the second the second's; where there are more lines than texts, the
    last ones are the first text's too.
    """
    by_words: defaultdict[str, list[tuple[_TextKey, ...]]] = defaultdict(list)
    for keys, words in _candidates(said):
        by_words[words].append(keys)
    found: dict[int, tuple[_TextKey, ...]] = {}
    taken: set[_TextKey] = set()
    for place, line in enumerate(lines):
        candidates = by_words.get(storyboard_edits.normalize_text(typeset(line.strip(), language)))
        if candidates:
            keys = next((keys for keys in candidates if taken.isdisjoint(keys)), candidates[0])
            found[place] = keys
            taken.update(keys)
    return found


def _said_by(board: Storyboard) -> dict[_TextKey, str]:
    """The words of each text, in the order in which they come in."""
    found: dict[_TextKey, str] = {}
    for text in storyboard_edits.editable_texts(board):
        number = sum(name == text.name for name, _ in found)
        found[text.name, number] = storyboard_edits.normalize_text(text.words)
    return found


def _candidates(said: Mapping[_TextKey, str]) -> Iterator[tuple[tuple[_TextKey, ...], str]]:
    """Each text, and each two in a row as a label and what it names."""
    pairs = list(said.items())
    for key, words in pairs:
        yield (key,), words
    for (one, label), (other, words) in pairwise(pairs):
        yield (one, other), f"{label}: {words}"


def _written_alt_texts(row: GeneratedItem, board: Storyboard) -> dict[str, str]:
    """By the file's name: what people wrote for it stays, what was made of the words is made anew."""
    rows = Asset.everywhere.filter(item=row, revoked_at=None).exclude(alt_text__in=("", board.meta.alt_text))
    return dict(rows.values_list("name", "alt_text"))
