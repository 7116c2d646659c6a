"""A film of a changed storyboard, small and at once: looked at before it is saved, and kept nowhere.

It is made while its viewer waits, in a process of its own as every film is. Nothing of the item changes, so a kill in
the middle leaves a working folder, which is swept as those of films are.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.core.cache import caches
from redis.exceptions import RedisError

from config.core import limits
from config.core.errors import AppError, Conflict, Detail, Invalid
from pipeline import generate
from pipeline.media import pictures, text_to_speech, videos
from pipeline.plugins import Refused, TryLater
from pipeline.render.video import job as jobs
from pipeline.review import storyboards

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from pipeline.models import GeneratedItem
    from pipeline.render.video.storyboard import Storyboard

log = structlog.get_logger(__name__)

_IN_TIME: Final = jobs.Limits(seconds=limits.FILM_PREVIEW_SECONDS)
_MINUTE: Final = 60
_LASTING: Final = frozenset({"no_video", "render_memory", "render_slow"})
"""What the next try of the same film would meet again."""


class NoPreview(AppError):
    """It can't be made, or not in the time that somebody waits; the film itself may be made all the same."""

    def __init__(self, code: str, message: str, *, again_after: int | None = None) -> None:
        """`code` is the detail's; the answer's own follows: `rate_limited`, `conflict` or `unavailable`."""
        answer = (
            "rate_limited" if code == "rate_limited" else "conflict" if code in _LASTING else "unavailable"
        )
        headers = {} if again_after is None else {"Retry-After": str(again_after)}
        super().__init__(Detail(storyboards.ROLE, code, message), code=answer, headers=headers)


def preview(item: GeneratedItem, board: Storyboard) -> bytes:
    """The film as an MP4, half as large each way, encoded as quickly as can be; runs outside any transaction.

    Raises `Invalid` naming what can't be filmed, `Conflict` for an item without a film, and `NoPreview`.
    """
    before = storyboards.kept(item)
    if before is None:
        raise Conflict.because(code="no_storyboard", message="It has no film whose storyboard is kept.")
    board = storyboards.filmable(before.board, board)
    reason = jobs.why_not()
    if reason is not None:
        raise NoPreview("no_video", reason)
    _refuse_too_many(item.workspace_id)
    try:
        with jobs.telling_of_no_room(), _place():
            return _filmed(item, board)
    except TryLater as later:
        raise NoPreview(later.code, later.message) from later
    except jobs.RenderFailed as broken:
        log.warning("preview_failed", item=item.pk.hex, code=broken.code, log=broken.log)
        message = f"{broken.message} What was changed can be saved without a preview."
        raise NoPreview(broken.code, message) from broken
    except Refused as refused:
        raise Invalid.one(storyboards.ROLE, refused.code, refused.message) from refused


def _refuse_too_many(workspace_id: UUID) -> None:
    """The place is everybody's, so nobody has it without end."""
    counts, key = caches["counts"], f"film-previews:{workspace_id.hex}:{int(time.time()) // _MINUTE}"
    try:
        counts.add(key, 0, 2 * _MINUTE)
        count = counts.incr(key)
    # Without the cache nobody can be counted, and a key may end between the two; the place itself is the guard.
    except (RedisError, OSError, ValueError) as error:
        log.warning("previews_not_counted", error=str(error))
        return
    if count > limits.FILM_PREVIEWS_PER_MINUTE:
        message = f"More than {limits.FILM_PREVIEWS_PER_MINUTE} previews were asked for within a minute; wait a minute."
        raise NoPreview("rate_limited", message, again_after=_MINUTE)


@contextmanager
def _place() -> Iterator[None]:
    """Not waited for: whoever looks holds one of a few threads that everybody's requests need."""
    with ExitStack() as stack:
        try:
            stack.enter_context(jobs.slot(Path(settings.DATA_DIR) / "previews", limits.FILM_PREVIEWS_AT_ONCE))
        except jobs.Busy as busy:
            message = "Another preview is being made; try again in some seconds."
            raise NoPreview(busy.code, message) from busy
        yield


def _filmed(item: GeneratedItem, board: Storyboard) -> bytes:
    persona = generate.persona_card(item.persona_id, item.persona_version)
    portrait, _ = pictures.portrait_of(item.workspace_id, persona)
    try:
        return _filmed_with(item, board, portrait)
    except Refused as refused:
        if refused.code != videos.UNUSABLE_PORTRAIT or portrait is None:
            raise
        return _filmed_with(item, board, None)


def _filmed_with(item: GeneratedItem, board: Storyboard, portrait: bytes | None) -> bytes:
    if portrait is None:
        board = videos.without_portrait(board)
    voiced = text_to_speech.recalled(item, board.audio.voice)
    with jobs.working_folder(videos.root()) as folder:
        face = videos.portrait_in(folder, board, portrait)
        whole = jobs.Job(board, videos.named(item, board, voiced), portrait=face, shrink=videos.SHRINK)
        made = jobs.render(jobs.as_preview(whole), folder, limits=_IN_TIME)
        return made.files["film.mp4"].path.read_bytes()
