"""One poll of a YouTube source: which videos are told now, which wait, and which were taken back.

A video is listed once, and again only when its title or description changed; then with its captions again, so that
only what really changed differs. What waits (a broadcast, captions that YouTube has yet to make, a budget that is used
up) is kept in the state and listed by a later poll, also when the feed no longer shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.base import Entry, EntryMedia, Fetch, Note
from pipeline.sources.youtube.api import ApiFailed
from pipeline.sources.youtube.captions import NoCaptions
from pipeline.sources.youtube.listing import FEED_VIDEOS
from pipeline.sources.youtube.memory import UpcomingVideo, YouTubeMemory, YouTubeRecord
from pipeline.sources.youtube.video import THUMBNAIL, Details, YouTubeVideo, prose_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources.youtube.api import DataApi
    from pipeline.sources.youtube.captions import Captions, VideoTranscript
    from pipeline.sources.youtube.listing import Finder, VideoListing

MAX_CAPTIONS: Final = 15
"""Videos whose captions one poll asks for: as many as a feed shows."""
MAX_STALLED: Final = 2
"""After so many calls in a row that brought nothing, the rest is left for the next poll."""
BLOCKED_PAUSE: Final = timedelta(hours=6)
"""Asking on while YouTube refuses only makes it refuse longer."""
CAPTIONS_COME_WITHIN: Final = timedelta(hours=6)
"""How long a new video may have no captions before it counts as having none; automatic ones take minutes to hours."""
WAITS_AT_MOST: Final = timedelta(hours=24)
LOOK_AGAIN: Final = timedelta(hours=1)
MAX_TRIES: Final = 3
LEAST_DESCRIPTION_CHARACTERS: Final = 200
"""A shorter description says too little to make anything of."""
CHECK_EVERY: Final = timedelta(hours=6)
CHECKED_WITH_KEY: Final = 10
CHECKED_WITHOUT_KEY: Final = 3
MISSING_UNTIL_WITHDRAWN: Final = 2
"""YouTube's lists and answers have gaps that close again, so one miss is none."""

_LEFT_OUT: Final = {
    "gone": "YouTube says that the video is no longer available.",
    "private": "The video is private.",
    "members_only": "The video is for members of the channel only.",
    "age_restricted": "YouTube shows the video to adults who are logged in only, and its description says too little.",
    "region": "YouTube doesn't show the video in this service's country, and its description says too little.",
    "no_captions": "It has no captions, and its description says too little to make anything of.",
    "captions_blocked": "YouTube didn't let this service read its captions, and its description says too little.",
    "captions_failed": "Its captions could not be read, and its description says too little.",
}
_WAITS: Final = {
    "live": Note("live", "It is broadcast live or has yet to begin; it is taken in afterwards."),
    "captions": Note("captions_awaited", "It waits for its captions, for a day at most."),
}
_FINAL: Final = frozenset({"gone", "private", "members_only"})
"""Whoever can't see the video has no use of its description either."""


@dataclass
class Poll:
    """The work of one poll; `run` may be called once."""

    memory: YouTubeMemory
    finder: Finder
    captions: Captions
    now: datetime
    api: DataApi | None
    entries: list[Entry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    details: dict[str, Details] = field(default_factory=dict)
    asked: int = 0
    stalled: int = 0
    is_first: bool = False
    is_api_away: bool = False

    def run(self, listing: VideoListing) -> Fetch:
        memory, is_same = self.memory, listing.by == "same"
        self.is_first = not memory.begun
        self.notes += listing.notes
        todo = self._todo(listing)
        checks = self._checks(listing)
        self._ask_details(todo, checks)
        for video in todo:
            self._work(video)
        self._check(checks, listing)
        if self.is_first:
            memory.begun = self._seconds
            is_cut_off = len(listing.videos) >= FEED_VIDEOS
            memory.floor = min(map(_epoch, listing.videos)) if is_cut_off else 0
        memory.title = listing.title or memory.title
        # The Data API's list says nothing of the feed, which is read anew when it is back.
        memory.digest = listing.digest
        self._tell()
        # Of a list that is as it was, the notes of the last poll hold on; that there are none any more is news.
        is_as_told = bool(self.notes) or not memory.told
        memory.told = len(self.notes)
        oldest = datetime.min.replace(tzinfo=UTC)
        self.entries.sort(key=lambda entry: entry.published_at or oldest, reverse=True)
        return Fetch(
            entries=tuple(self.entries),
            state=memory.as_state(),
            not_modified=is_same and not self.entries and is_as_told,
            malformed=listing.malformed,
            title=memory.title,
            notes=tuple(self.notes),
        )

    @property
    def _seconds(self) -> int:
        return int(self.now.timestamp())

    # --- What there is to do ---

    def _todo(self, listing: VideoListing) -> list[YouTubeVideo]:
        """What is new, what was edited and what has waited long enough, newest first."""
        memory, found = self.memory, {}
        for video in listing.videos:
            waiting, record = memory.waiting.get(video.id), memory.records.get(video.id)
            is_todo = False
            if waiting is not None:
                waiting.video = video
            elif record is None:
                is_todo = not self._is_from_below(video)
            else:
                record.is_unlisted = False
                # The Data API may word a description otherwise than the feed does.
                is_edited = listing.is_usual and record.fingerprint != video.fingerprint
                is_todo = is_edited or record.fate == "withdrawn"
            if is_todo:
                found[video.id] = video
        for video_id, waiting in memory.waiting.items():
            if waiting.next <= self._seconds:
                found[video_id] = waiting.video
        oldest = datetime.min.replace(tzinfo=UTC)
        return sorted(found.values(), key=lambda video: video.published_at or oldest, reverse=True)

    def _is_from_below(self, video: YouTubeVideo) -> bool:
        """Whether it came into a channel's feed because a newer one left it: that makes an old video no news."""
        return not self.memory.place.startswith("playlist:") and 0 < _epoch(video) < self.memory.floor

    def _checks(self, listing: VideoListing) -> list[str]:
        """Videos that were given and may have been taken back since."""
        given = {key: one for key, one in self.memory.records.items() if one.fate == "given"}
        doubtful = [key for key, one in given.items() if one.missing]
        is_time = self._seconds - self.memory.checked >= CHECK_EVERY.total_seconds()
        if self.api is not None:
            newest = sorted(given, key=lambda key: given[key].published, reverse=True)[:CHECKED_WITH_KEY]
            return list(dict.fromkeys([*doubtful, *(newest if is_time else [])]))
        if listing.by == "video":
            return [] if listing.videos else list(given)
        if listing.by != "feed" or self.memory.place.startswith("playlist:"):
            return doubtful[:CHECKED_WITHOUT_KEY]
        # The feed shows the newest: one that is missing between others was taken back, or is listed no more.
        listed = {video.id for video in listing.videos}
        oldest = min((_epoch(video) for video in listing.videos if video.published_at), default=0)
        gaps = [
            key
            for key, one in given.items()
            if oldest and one.published > oldest and key not in listed and not one.is_unlisted
        ]
        return list(dict.fromkeys([*doubtful, *gaps]))[:CHECKED_WITHOUT_KEY]

    def _ask_details(self, todo: list[YouTubeVideo], checks: list[str]) -> None:
        ids = list(dict.fromkeys([*(video.id for video in todo), *checks]))
        if self.api is None or not ids:
            return
        try:
            self.details = self.api.details_of(ids, now=self.now)
        except ApiFailed as error:
            if error.until is not None:
                self.memory.api_after = int(error.until.timestamp())
            self.notes.append(Note(error.code, str(error)))
            self.is_api_away = True

    # --- One video ---

    def _work(self, video: YouTubeVideo) -> None:
        details = self.details.get(video.id, Details())
        if details.is_private:
            self._without(video, details, "private")
        elif details.live != "none":
            starts = details.starts_at or self.now
            self._wait(video, "live", until=max(starts, self.now + LOOK_AGAIN / 2))
        else:
            self._with_captions(video, details)

    def _with_captions(self, video: YouTubeVideo, details: Details) -> None:
        if self.memory.captions_after > self._seconds:
            self._not_now(video, details, "captions_blocked")
            return
        if self.asked >= MAX_CAPTIONS or self.stalled >= MAX_STALLED:
            self._not_now(video, details, "late")
            return
        self.asked += 1
        try:
            transcript = self.captions.of(video.id, language=details.language)
        except NoCaptions as error:
            self._has_none(video, details, error.kind)
            return
        self.stalled = 0
        self._give(video, details, transcript)

    def _has_none(self, video: YouTubeVideo, details: Details, kind: str) -> None:
        self.stalled = self.stalled + 1 if kind in {"failed", "late"} else 0
        if kind == "blocked":
            self.memory.captions_after = int((self.now + BLOCKED_PAUSE).timestamp())
            self._not_now(video, details, "captions_blocked")
        elif kind == "upcoming":
            self._wait(video, "live", until=self.now + LOOK_AGAIN)
        elif kind == "none":
            published = video.published_at
            if published is not None and self.now - published < CAPTIONS_COME_WITHIN:
                self._wait(video, "captions", until=self.now + LOOK_AGAIN)
            else:
                self._without(video, details, "no_captions")
        elif kind in {"failed", "late"}:
            self._not_now(video, details, "captions_failed" if kind == "failed" else "late")
        else:
            self._without(video, details, kind)

    def _not_now(self, video: YouTubeVideo, details: Details, why: str) -> None:
        """It may have captions that can't be had at this moment.

        At the first poll nothing waits for that: what were listed later would be news then, and it is none.
        """
        record, waiting = self.memory.records.get(video.id), self.memory.waiting.get(video.id)
        tries = (waiting.tries if waiting else 0) + (why == "captions_failed")
        had_captions = record is not None and record.fate == "given" and record.has_captions
        is_waited = waiting is not None and self._seconds - waiting.first >= WAITS_AT_MOST.total_seconds()
        can_stand_alone = len(prose_of(video.description)) >= LEAST_DESCRIPTION_CHARACTERS
        if why == "captions_blocked":
            gives_up = self.is_first or can_stand_alone or is_waited
        else:
            gives_up = self.is_first or tries >= MAX_TRIES
        # A new version without the captions that the last one had would take most of it away.
        if had_captions or not gives_up:
            until = self.now if why == "late" else self.now + LOOK_AGAIN / 2
            self._wait(video, "captions", until=until, tries=tries)
        else:
            self._without(video, details, "captions_failed" if why == "late" else why)

    def _wait(self, video: YouTubeVideo, why: str, *, until: datetime, tries: int = 0) -> None:
        before = self.memory.waiting.get(video.id)
        first = before.first if before else self._seconds
        if before is None and video.id not in self.memory.records:
            # Listed now as well, so that people see what became of it.
            self._list(video, Details(), None, left_out=_WAITS[why])
        again = int(until.timestamp())
        self.memory.waiting[video.id] = UpcomingVideo(video, why, first=first, next=again, tries=tries)

    def _without(self, video: YouTubeVideo, details: Details, why: str) -> None:
        record = self.memory.records.get(video.id)
        if why in _FINAL and record is not None and record.fate == "given":
            # It was edited, and now nobody sees it: the checks find out whether it stays so.
            self.memory.waiting.pop(video.id, None)
            record.missing = max(record.missing, 1)
            record.fingerprint = video.fingerprint
            return
        if why not in _FINAL and len(prose_of(video.description)) >= LEAST_DESCRIPTION_CHARACTERS:
            self._give(video, details, None)
            return
        self._list(video, details, None, left_out=Note(why, _LEFT_OUT.get(why, _LEFT_OUT["no_captions"])))
        self.memory.records[video.id] = YouTubeRecord(video.fingerprint, "left_out", published=_epoch(video))

    def _give(self, video: YouTubeVideo, details: Details, transcript: VideoTranscript | None) -> None:
        self._list(video, details, transcript)
        self.memory.records[video.id] = YouTubeRecord(
            video.fingerprint, "given", has_captions=transcript is not None, published=_epoch(video)
        )

    def _list(
        self,
        video: YouTubeVideo,
        details: Details,
        transcript: VideoTranscript | None,
        left_out: Note | None = None,
    ) -> None:
        self.memory.waiting.pop(video.id, None)
        said = transcript.text if transcript else ""
        body = "\n\n".join(text for text in (prose_of(video.description), said) if text)
        self.entries.append(
            Entry(
                external_id=video.external_id,
                url=video.url,
                title=video.title,
                body=body,
                body_format="text",
                author=video.channel,
                language=transcript.language if transcript else details.language,
                published_at=video.published_at,
                media=(EntryMedia(THUMBNAIL.format(video_id=video.id), "image/jpeg"), EntryMedia(video.url)),
                metadata=_metadata(video, details, transcript),
                left_out=left_out,
            )
        )

    # --- What was taken back ---

    def _check(self, checks: Iterable[str], listing: VideoListing) -> None:
        for video_id in listing.deleted:
            record = self.memory.records.get(video_id)
            if record is not None and record.fate == "given":
                self._withdraw(video_id, record)
        if self.is_api_away:
            return
        if self.api is not None and checks:
            self.memory.checked = self._seconds
        for video_id in checks:
            record = self.memory.records.get(video_id)
            if record is not None and record.fate == "given" and monotonic() < self.captions.deadline:
                self._check_one(video_id, record)

    def _check_one(self, video_id: str, record: YouTubeRecord) -> None:
        details = self.details.get(video_id)
        if details is not None and details.is_private:
            record.missing = MISSING_UNTIL_WITHDRAWN
        elif details is not None or (self.api is None and self.finder.is_there(video_id)):
            record.missing = 0
            # Asked again at every poll it would cost a request for each.
            record.is_unlisted = self.api is None
        else:
            record.missing += 1
        if record.missing >= MISSING_UNTIL_WITHDRAWN:
            self._withdraw(video_id, record)

    def _withdraw(self, video_id: str, record: YouTubeRecord) -> None:
        record.fate, record.missing = "withdrawn", 0
        self.memory.waiting.pop(video_id, None)
        video = YouTubeVideo(video_id, "")
        self.entries.append(Entry(external_id=video.external_id, url=video.url, withdrawn=True))

    # --- What people are told ---

    def _tell(self) -> None:
        memory = self.memory
        if memory.captions_after > self._seconds:
            until = datetime.fromtimestamp(memory.captions_after, tz=UTC)
            self.notes.append(
                Note(
                    "captions_blocked",
                    "YouTube doesn't let this service read captions at the moment, as it does with many addresses of "
                    f"data centres. They are asked for again after {until:%d %B, %H:%M} UTC; until then entries come "
                    "with title and description.",
                )
            )
        live = sum(1 for one in memory.waiting.values() if one.why == "live")
        if live:
            words = f"{_videos(live)} live or yet to begin: taken in afterwards."
            self.notes.append(Note("live", words))
        if len(memory.waiting) > live:
            words = f"{_videos(len(memory.waiting) - live)} waiting for captions, for a day at most."
            self.notes.append(Note("captions_awaited", words))


def _videos(number: int) -> str:
    return f"{number} videos" if number != 1 else "1 video"


def _epoch(video: YouTubeVideo) -> int:
    return int(video.published_at.timestamp()) if video.published_at else 0


def _metadata(video: YouTubeVideo, details: Details, transcript: VideoTranscript | None) -> dict[str, Any]:
    duration = details.duration_seconds or (transcript.duration_seconds if transcript else None)
    found: dict[str, Any] = {"video_id": video.id, "channel": video.channel, "duration_seconds": duration}
    found["captions"] = (
        {"language": transcript.language, "kind": transcript.kind, "by": transcript.by}
        if transcript
        else None
    )
    if details.licence:
        found["licence"] = details.licence
    return found
