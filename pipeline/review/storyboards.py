"""The storyboard of a film, read and changed by people: filmed again from it, and no writer is asked.

What stands on the screen is a film's body, line by line, so the body follows; its words are held against the source
anew. What is found wrong is a warning then: a person has written them, and a person decides.
"""

from __future__ import annotations

import json
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
from pipeline.render.typography.clusters import list_characters, missing
from pipeline.render.typography.typeset import typeset
from pipeline.render.video import storyboard_edits, storyboard_json, storyboard_rearrange
from pipeline.render.video.storyboard import outside, storyboard_faults
from pipeline.review import rerender
from pipeline.states import EDITABLE_ITEMS
from pipeline.text.typed_content import ItemWords, in_step

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


def stored_storyboard_in(there: Sequence[Asset]) -> StoredStoryboard | None:
    """The same out of the files of an item, in their order."""
    stored = next((one for one in there if one.role == ROLE), None)
    if stored is None:
        return None
    try:
        board = storyboard_json.from_json(json.loads(files.path_of(stored.path).read_bytes()))
    except (OSError, ValueError, Refused):
        # Its file was lost, or an earlier release wrote what this one can't film: the item is shown without.
        return None
    return StoredStoryboard(board, tuple(one for one in there if one.role == "frame"))


def read(data: Mapping[str, Any]) -> Storyboard:
    """The storyboard of a caller's JSON. Raises `Invalid`, naming the member."""
    try:
        return storyboard_json.read(data)
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
    if row.deleted_at is not None:
        raise Conflict.because(code="deleted", message="It was deleted.", field=None)
    if row.status in EDITABLE_ITEMS - {GeneratedItemStatus.READY}:
        is_scheduled = row.status == GeneratedItemStatus.SCHEDULED
        what = "is scheduled" if is_scheduled else "couldn't be published"
        first = "Unschedule it first" if is_scheduled else "Cancel the failed posts first"
        message = f"Its video {what}. {first}, then edit the storyboard."
        raise Conflict(Detail(ROLE, "drawn_words", message, {"status": row.status}))
    if row.status not in EDITABLE_ITEMS:
        message = f"It is {row.status}; its storyboard can be changed while it is ready."
        raise Conflict(Detail("status", "not_edited", message, {"status": row.status, "allowed": ["ready"]}))


def _filmable(before: Storyboard, board: Storyboard) -> Storyboard:
    """With what was written anew laid out. Raises `Invalid` with a sentence for each place that can't be filmed."""
    odd = [
        Detail(f"{ROLE}.overlays[{place}]", "bad_storyboard", said)
        for place, said in storyboard_edits.oddities(board)
    ]
    if odd:
        raise Invalid(*odd)
    try:
        laid = storyboard_edits.relaid(board)
    except storyboard_edits.Unfit as unfit:
        where = f"{ROLE}.overlays[{unfit.place[1:]}]"
        raise Invalid.one(field=where, code=unfit.code, message=unfit.message) from unfit
    found = list(_problems(before, laid))
    if found:
        raise Invalid(*found)
    return laid


def _problems(before: Storyboard, board: Storyboard) -> Iterator[Detail]:
    for name in _KEPT:
        if getattr(before, name) != getattr(board, name):
            message = f"It stays as it is, {getattr(before, name)}: the film is made for that."
            yield Detail(f"{ROLE}.{name}", "fixed", message)
    if before.caption_look != board.caption_look:
        yield Detail(
            f"{ROLE}.caption_look", "fixed", "How captions look stays as its engine has laid it out."
        )
    for sentence in storyboard_faults(board):
        where, _, said = sentence.partition(": ")
        yield Detail(f"{ROLE}.{where}", "bad_storyboard", said[:1].upper() + said[1:])
    strange = sorted(set(board.assets) - set(before.assets))
    if strange:
        message = f"The film has no file of the name {strange[0]}; its storyboard names those that it has."
        yield Detail(f"{ROLE}.scenes", "unknown_asset", message)
    yield from _problems_of_sound(before, board)
    covered = set(outside(board)) - set(outside(before))
    for text in storyboard_edits.texts(board):
        where = f"{ROLE}.overlays[{text.overlays[0]}]"
        if any(words in text.words for words in covered):
            yield Detail(where, "outside", f"An app covers these words: “{text.words[:60]}”.")
        absent = missing(text.words)
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
        yield Detail(f"{ROLE}.scenes", "fixed", storyboard_rearrange.why_fixed(before))
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
    body = followed(row.body, before, after, language=language)
    values: dict[str, Any] = {}
    if body != row.body:
        said = ItemWords(row.body, row.body_format, row.title, row.content, row.language)
        values = in_step(row.bucket, said, {"body": body})
        values["excerpt"] = generate.excerpt_of(body, row.body_format)
    return values


def followed(body: str, before: Storyboard, after: Storyboard, *, language: str) -> str:
    """The body whose lines stand on the screen, as they stand there now: other words, another order, fewer."""
    was, now = _said_by(before), _said_by(after)
    lines = body.splitlines()
    places: list[int] = []
    fresh: list[tuple[tuple[int, int], str]] = []
    order = {key: number for number, key in enumerate(now)}
    for place, line in enumerate(lines):
        said = storyboard_edits.plain(typeset(line.strip(), language))
        keys = next((keys for keys, words in _candidates(was) if words == said), None)
        if keys is None:
            continue
        places.append(place)
        if any(key in now for key in keys):
            words = [now[key] for key in keys if key in now]
            same = words == [was[key] for key in keys]
            shown = line.strip() if same else ": ".join(words)
            fresh.append(((order[next(key for key in keys if key in now)], place), shown))
    in_order = [words for _, words in sorted(fresh)]
    filled = dict(zip(places, in_order, strict=False))
    kept_lines = [
        filled.get(place, line) for place, line in enumerate(lines) if place not in places or place in filled
    ]
    return "\n".join(kept_lines) if places else body


def _said_by(board: Storyboard) -> dict[tuple[str, int], str]:
    """The words of each text by its name and how many of that name came before; they keep it wherever they go."""
    found: dict[tuple[str, int], str] = {}
    for text in storyboard_edits.texts(board):
        number = sum(name == text.name for name, _ in found)
        found[text.name, number] = storyboard_edits.plain(text.words)
    return found


def _candidates(said: Mapping[tuple[str, int], str]) -> Iterator[tuple[tuple[tuple[str, int], ...], str]]:
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
