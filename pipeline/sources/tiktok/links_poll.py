"""Links to videos of TikTok, each asked for once by oEmbed and looked at again from time to time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pipeline.plugins import TryLater
from pipeline.sources.base import Entry, Fetch, Note
from pipeline.sources.tiktok.memory import TikTokMemory, TikTokRecord
from pipeline.sources.tiktok.oembed import NoVideo, OEmbed
from pipeline.sources.tiktok.video import external_id, video_id_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources.tiktok.video import TikTokVideo

LINKS_PER_POLL: Final = 50
AGAIN_PER_POLL: Final = 5
"""Links that were taken in, and whose turn it is to be looked at again."""
LOOK_AGAIN: Final = timedelta(days=7)
UNAVAILABLE_AGAIN: Final = timedelta(days=1)
MAX_MISSES: Final = 3
"""A link that never led to a video is asked for so many times, a day apart."""
MISSES_UNTIL_WITHDRAWN: Final = 2
MAX_STALLED: Final = 2
BLOCKED_PAUSE: Final = timedelta(hours=6)

UNAVAILABLE: Final = "TikTok shows no such video: it was deleted, it is private, or the link is wrong."
_LEFT_OUT: Final = {
    "unavailable": UNAVAILABLE,
    "not_a_video": "The link leads to something else than a video. Give a video's own address.",
}


@dataclass
class Links:
    """The work of one poll; `run` may be called once."""

    memory: TikTokMemory
    oembed: OEmbed
    now: datetime
    entries: list[Entry] = field(default_factory=list)
    failure: NoVideo | None = None
    stalled: int = 0

    def run(self, links: Iterable[str]) -> Fetch:
        """Raises `TryLater` where TikTok gave nothing at all."""
        memory = self.memory
        wanted = list(links)
        # What is no longer named isn't asked for any more.
        memory.records = {link: memory.records[link] for link in wanted if link in memory.records}
        new = [link for link in wanted if link not in memory.records]
        due = [link for link, one in memory.records.items() if 0 < one.next <= self._seconds]
        due.sort(key=lambda link: memory.records[link].next)
        is_paused = memory.paused_until > self._seconds
        todo = [] if is_paused else [*new[:LINKS_PER_POLL], *due[:AGAIN_PER_POLL]]
        asked = sum(1 for link in todo if self._ask(link))
        if self.failure is not None and not asked:
            raise _as_try_later(self.failure)
        memory.begun = memory.begun or self._seconds
        notes = self._notes(sum(1 for link in wanted if link not in memory.records))
        # Of what is as it was, the notes of the last poll hold on; that there are none any more is news.
        is_as_told = bool(notes) or not memory.told
        memory.told = len(notes)
        return Fetch(
            entries=tuple(self.entries),
            state=memory.as_state(),
            not_modified=not self.entries and is_as_told,
            notes=tuple(notes),
        )

    @property
    def _seconds(self) -> int:
        return int(self.now.timestamp())

    def _ask(self, link: str) -> bool:
        """Whether TikTok said anything of this link."""
        if self.failure is not None and (
            self.failure.kind in {"blocked", "late"} or self.stalled >= MAX_STALLED
        ):
            return False
        record = self.memory.records.get(link, TikTokRecord())
        try:
            record.address = record.address or self.oembed.address_of(link)
            video = self.oembed.video(record.address)
        except NoVideo as error:
            if error.kind in {"blocked", "away", "late"}:
                self._put_off(error)
                return False
            self._missing(link, record, error.kind)
        else:
            self._found(link, record, video)
        self.stalled = 0
        return True

    def _put_off(self, error: NoVideo) -> None:
        self.failure = error
        self.stalled += 1
        if error.kind == "blocked":
            self.memory.paused_until = int((self.now + (error.after or BLOCKED_PAUSE)).timestamp())

    def _found(self, link: str, record: TikTokRecord, video: TikTokVideo) -> None:
        others = [one for key, one in self.memory.records.items() if key != link]
        is_double = any(one.video_id == video.id and one.fate == "given" for one in others)
        is_news = record.fate != "given" or record.fingerprint != video.fingerprint
        if is_news and not is_double:
            self.entries.append(video.entry)
        record.video_id, record.fingerprint, record.missing = video.id, video.fingerprint, 0
        record.fate = "double" if is_double else "given"
        # A second link to the same video has nothing to add.
        record.next = 0 if is_double else int((self.now + LOOK_AGAIN).timestamp())
        self.memory.records[link] = record

    def _missing(self, link: str, record: TikTokRecord, kind: str) -> None:
        record.missing += 1
        record.next = int((self.now + UNAVAILABLE_AGAIN).timestamp())
        if record.fate == "given":
            if record.missing >= MISSES_UNTIL_WITHDRAWN:
                record.fate, record.next = "withdrawn", 0
                self.entries.append(
                    Entry(external_id=external_id(record.video_id), url=record.address, withdrawn=True)
                )
        else:
            if not record.fate:
                note = Note(kind, _LEFT_OUT[kind])
                self.entries.append(
                    Entry(
                        external_id=external_id(video_id_of(record.address) or link), url=link, left_out=note
                    )
                )
            record.fate = "left_out"
            if kind == "not_a_video" or record.missing >= MAX_MISSES:
                record.next = 0
        self.memory.records[link] = record

    def _notes(self, left: int) -> list[Note]:
        if self.memory.paused_until > self._seconds:
            until = datetime.fromtimestamp(self.memory.paused_until, tz=UTC)
            message = (
                f"TikTok refuses this service at the moment; it is asked again after {until:%d %B, %H:%M} UTC. "
                f"Links that wait: {left}."
            )
            return [Note("blocked", message)]
        return [Note("links_wait", f"Links that wait for the next poll: {left}.")] if left else []


def _as_try_later(error: NoVideo) -> TryLater:
    if error.kind == "blocked":
        message = "TikTok refuses this service at the moment; it will be asked again later."
        return TryLater(message, code="blocked", after=error.after or BLOCKED_PAUSE)
    message = "TikTok didn't answer, or has a fault of its own; it will be asked again later."
    return TryLater(message, code="tiktok_away")
