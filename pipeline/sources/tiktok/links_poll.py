"""Polls links to single TikTok videos: each is read once by oEmbed, and checked again from time to time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline.plugins import TryLater
from pipeline.sources.base import Entry, Fetch, Note, have_notes_ended
from pipeline.sources.tiktok.oembed import NoVideo, OEmbed
from pipeline.sources.tiktok.poll_state import NEVER, TikTokPollState, TikTokRecord
from pipeline.sources.tiktok.video import external_id, video_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources.tiktok.video import TikTokVideo

LINKS_PER_POLL: Final = 50
"""The most new links that one poll reads; the others wait for the next poll."""
RECHECKS_PER_POLL: Final = 5
"""The most known links that one poll checks again, of those that are due."""
RECHECK_AFTER: Final = timedelta(days=7)
"""The time after which a link that led to a video is checked again."""
RECHECK_UNAVAILABLE_AFTER: Final = timedelta(days=1)
"""The time after which a link that led to no video is checked again."""
MAX_MISSES: Final = 3
"""The number of times, a day apart, that a link is tried that never led to a video."""
MISSES_UNTIL_WITHDRAWN: Final = 2
"""The number of checks in a row without its video after which an entry is withdrawn."""
MAX_STALLED: Final = 2
"""The number of links in a row without an answer after which the rest is left for the next poll."""
BLOCKED_PAUSE: Final = timedelta(hours=6)
"""The time without any call after TikTok refused this service and named no time."""

UNAVAILABLE: Final = "TikTok shows no such video: it was deleted, it is private, or the link is wrong."
_LEFT_OUT_MESSAGES: Final = {
    "unavailable": UNAVAILABLE,
    "not_a_video": "The link doesn't lead to a video. Give a video's own address.",
}


@dataclass
class SingleVideosPoll:
    """The work of one poll of links to single videos; `run` may be called once."""

    state: TikTokPollState
    oembed: OEmbed
    now: datetime
    entries: list[Entry] = field(default_factory=list)
    failure: NoVideo | None = None
    stalled: int = 0
    """The number of links in a row that TikTok didn't answer."""

    def run(self, links: Iterable[str]) -> Fetch:
        """Read new links and check due ones again. Raises `TryLater` if TikTok answered nothing at all."""
        state = self.state
        all_links = list(links)
        # Links that were removed from the settings aren't checked any more.
        state.records = {link: state.records[link] for link in all_links if link in state.records}
        new = [link for link in all_links if link not in state.records]
        due = [link for link, record in state.records.items() if NEVER < record.next <= self._now_seconds]
        due.sort(key=lambda link: state.records[link].next)
        is_paused = state.paused_until > self._now_seconds
        todo = [] if is_paused else [*new[:LINKS_PER_POLL], *due[:RECHECKS_PER_POLL]]
        answer_count = 0
        for link in todo:
            answer_count += self._read_link(link)
        if self.failure is not None and not answer_count:
            raise _as_try_later(self.failure)
        state.begun = state.begun or self._now_seconds
        notes = self._notes(sum(1 for link in all_links if link not in state.records))
        notes_have_ended = have_notes_ended(notes, previous_count=state.told)
        state.told = len(notes)
        return Fetch(
            entries=tuple(self.entries),
            state=state.as_state(),
            not_modified=not self.entries and not notes_have_ended,
            notes=tuple(notes),
        )

    @property
    def _now_seconds(self) -> int:
        """The moment of the poll in seconds since 1970."""
        return int(self.now.timestamp())

    def _read_link(self, link: str) -> bool:
        """Read a link and record the result. Return `True` if TikTok answered anything about it."""
        if self.failure is not None and (
            self.failure.kind in {"blocked", "late"} or self.stalled >= MAX_STALLED
        ):
            return False
        record = self.state.records.get(link, TikTokRecord())
        try:
            record.address = record.address or self.oembed.resolve_link(link)
            video = self.oembed.video(record.address)
        except NoVideo as error:
            if error.kind in {"blocked", "away", "late"}:
                self._record_failure(error)
                return False
            self._record_missing(link, record, error.kind)
        else:
            self._record_video(link, record, video)
        self.stalled = 0
        return True

    def _record_failure(self, error: NoVideo) -> None:
        """Record that TikTok couldn't be read; a block pauses all links."""
        self.failure = error
        self.stalled += 1
        if error.kind == "blocked":
            self.state.paused_until = int((self.now + (error.after or BLOCKED_PAUSE)).timestamp())

    def _record_video(self, link: str, record: TikTokRecord, video: TikTokVideo) -> None:
        """Record the video of a link, and add an entry if it is new or changed, and of no other link."""
        other_records = [record for key, record in self.state.records.items() if key != link]
        is_duplicate = any(
            each_record.video_id == video.id and each_record.fate == "given" for each_record in other_records
        )
        has_changed = record.fate != "given" or record.fingerprint != video.fingerprint
        if has_changed and not is_duplicate:
            self.entries.append(video.entry)
        record.video_id, record.fingerprint, record.missing = video.id, video.fingerprint, 0
        record.fate = "double" if is_duplicate else "given"
        # A second link to the same video has nothing to add.
        record.next = NEVER if is_duplicate else int((self.now + RECHECK_AFTER).timestamp())
        self.state.records[link] = record

    def _record_missing(self, link: str, record: TikTokRecord, kind: str) -> None:
        """Record that a link leads to no video.

        Its entry is withdrawn after `MISSES_UNTIL_WITHDRAWN` such checks in a row; a link that never had an
        entry gets one that is left out, at the first check.
        """
        record.missing += 1
        record.next = int((self.now + RECHECK_UNAVAILABLE_AFTER).timestamp())
        if record.fate == "given":
            if record.missing >= MISSES_UNTIL_WITHDRAWN:
                record.fate, record.next = "withdrawn", NEVER
                self.entries.append(
                    Entry(external_id=external_id(record.video_id), url=record.address, withdrawn=True)
                )
        else:
            if not record.fate:
                note = Note(kind, _LEFT_OUT_MESSAGES[kind])
                self.entries.append(
                    Entry(
                        external_id=external_id(video_id_of(record.address) or link), url=link, left_out=note
                    )
                )
            record.fate = "left_out"
            if kind == "not_a_video" or record.missing >= MAX_MISSES:
                record.next = NEVER
        self.state.records[link] = record

    def _notes(self, waiting: int) -> list[Note]:
        """Return a note on a pause or on links that wait for a later poll, or nothing."""
        if self.state.paused_until > self._now_seconds:
            until = datetime.fromtimestamp(self.state.paused_until, tz=UTC)
            message = (
                f"TikTok refuses this service at the moment. It is polled again after {until:%d %B, %H:%M} "
                f"UTC. Links that wait: {waiting}."
            )
            return [Note("blocked", message)]
        return [Note("links_wait", f"Links that wait for the next poll: {waiting}.")] if waiting else []


def _as_try_later(error: NoVideo) -> TryLater:
    """Return the plug-in error for a poll that read nothing."""
    if error.kind == "blocked":
        message = "TikTok refuses this service at the moment. It is polled again later."
        return TryLater(message, code="blocked", after=error.after or BLOCKED_PAUSE)
    message = "TikTok didn't answer, or has an internal error. It is polled again later."
    return TryLater(message, code="tiktok_away")
