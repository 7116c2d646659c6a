"""Runs one poll of a YouTube source: gives some videos as entries, lets others wait, withdraws lost ones.

A video is given once, and again only when its title or description changed; then with its captions again, so that
only the real changes differ. A video that waits (for the end of a broadcast, for captions, for a poll with time left)
is kept in the state and given by a later poll, also when the feed no longer shows it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.base import Entry, EntryMedia, Fetch, Note, have_notes_ended
from pipeline.sources.youtube.api import ApiFailed
from pipeline.sources.youtube.captions import NoCaptions
from pipeline.sources.youtube.listing import MAX_FEED_VIDEOS
from pipeline.sources.youtube.poll_state import UpcomingVideo, YouTubePollState, YouTubeRecord
from pipeline.sources.youtube.video import THUMBNAIL, Details, YouTubeVideo, prose_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources.youtube.api import DataApi
    from pipeline.sources.youtube.captions import CaptionReader, VideoTranscript
    from pipeline.sources.youtube.listing import VideoLister, VideoListing

MAX_CAPTIONS: Final = 15
"""The most videos whose captions one poll reads, which is the number that a feed shows."""
MAX_STALLED: Final = 2
"""The number of calls in a row without a result after which the rest is left for the next poll."""
BLOCKED_PAUSE: Final = timedelta(hours=6)
"""The time without calls after YouTube refused, because it refuses longer if the calls go on."""
CAPTIONS_COME_WITHIN: Final = timedelta(hours=6)
"""The time for which a new video may have no captions yet; automatic ones take minutes to hours."""
MAX_WAIT: Final = timedelta(hours=24)
"""The longest wait for captions while YouTube refuses them."""
RECHECK_AFTER: Final = timedelta(hours=1)
"""The time after which a video that waits is tried again; half of it if the cause may pass sooner."""
MAX_TRIES: Final = 3
"""The number of failures to read its captions after which a video is given without them."""
MIN_DESCRIPTION_CHARACTERS: Final = 200
"""The length below which a description says too little to make an item of."""
CHECK_EVERY: Final = timedelta(hours=6)
"""The time between two checks of the `CHECKED_WITH_KEY` newest videos by the Data API."""
CHECKED_WITH_KEY: Final = 10
CHECKED_WITHOUT_KEY: Final = 3
"""The most videos that one poll checks by oEmbed, with one call for each."""
MISSING_UNTIL_WITHDRAWN: Final = 2
"""The misses in a row after which a video is withdrawn; YouTube's lists have gaps that close again."""

_MESSAGES: Final = {
    "gone": "YouTube says that the video is no longer available.",
    "private": "The video is private.",
    "members_only": "The video is for members of the channel only.",
    "age_restricted": "YouTube shows the video to adults who are logged in only, and its description says too little.",
    "region": "YouTube doesn't show the video in this service's country, and its description says too little.",
    "no_captions": "It has no captions, and its description says too little to make anything of.",
    "captions_blocked": "YouTube didn't let this service read its captions, and its description says too little.",
    "captions_failed": "Its captions could not be read, and its description says too little.",
}
_WAIT_NOTES: Final = {
    "live": Note("live", "It is live or hasn't begun yet. It is imported afterwards."),
    "captions": Note("captions_awaited", "It waits for its captions, for a day at most."),
}
_INVISIBLE_KINDS: Final = frozenset({"gone", "private", "members_only"})
"""Kinds of videos that most people can't see, so that the description is of no use either."""


@dataclass
class Poll:
    """The work of one poll, run once; `caption_calls` counts all calls, `stalled` failed ones in a row."""

    state: YouTubePollState
    lister: VideoLister
    captions: CaptionReader
    now: datetime
    api: DataApi | None
    entries: list[Entry] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    details: dict[str, Details] = field(default_factory=dict)
    caption_calls: int = 0
    stalled: int = 0
    is_first: bool = False
    is_api_away: bool = False

    def run(self, listing: VideoListing) -> Fetch:
        """Return the entries of new, edited and waiting videos, and withdrawals of those that were taken back."""
        state, is_same = self.state, listing.origin == "same"
        self.is_first = not state.begun
        self.notes += listing.notes
        todo = self._videos_to_read(listing)
        checks = self._videos_to_check(listing)
        self._load_details(todo, checks)
        for video in todo:
            self._read_video(video)
        self._check_given(checks, listing)
        if self.is_first:
            state.begun = self._now_seconds
            is_cut_off = len(listing.videos) >= MAX_FEED_VIDEOS
            state.floor = min(map(_published, listing.videos)) if is_cut_off else 0
        state.title = listing.title or state.title
        # The Data API's list has no digest, so the feed is read again when it is back.
        state.digest = listing.digest
        self._add_notes()
        notes_have_ended = have_notes_ended(self.notes, previous_count=state.told)
        state.told = len(self.notes)
        oldest = datetime.min.replace(tzinfo=UTC)
        self.entries.sort(key=lambda entry: entry.published_at or oldest, reverse=True)
        return Fetch(
            entries=tuple(self.entries),
            state=state.as_state(),
            not_modified=is_same and not self.entries and not notes_have_ended,
            malformed=listing.malformed,
            title=state.title,
            notes=tuple(self.notes),
        )

    @property
    def _now_seconds(self) -> int:
        """The moment of the poll in seconds since 1970."""
        return int(self.now.timestamp())

    # --- What there is to do ---

    def _videos_to_read(self, listing: VideoListing) -> list[YouTubeVideo]:
        """Return new, edited and waiting videos that are due, newest first."""
        state, due = self.state, {}
        for video in listing.videos:
            waiting, record = state.waiting.get(video.id), state.records.get(video.id)
            is_todo = False
            if waiting is not None:
                waiting.video = video
            elif record is None:
                is_todo = not self._is_old_video(video)
            else:
                record.is_unlisted = False
                # The Data API may give another wording of a description than the feed.
                is_edited = listing.is_from_usual_origin and record.fingerprint != video.fingerprint
                is_todo = is_edited or record.fate == "withdrawn"
            if is_todo:
                due[video.id] = video
        for video_id, waiting in state.waiting.items():
            if waiting.next <= self._now_seconds:
                due[video_id] = waiting.video
        oldest = datetime.min.replace(tzinfo=UTC)
        return sorted(due.values(), key=lambda video: video.published_at or oldest, reverse=True)

    def _is_old_video(self, video: YouTubeVideo) -> bool:
        """Return whether a video is older than the first feed, so that a newer one must have left the feed."""
        return not self.state.place.startswith("playlist:") and 0 < _published(video) < self.state.floor

    def _videos_to_check(self, listing: VideoListing) -> list[str]:
        """Return the ids of given videos that may be gone: missed before, missing now, or (with a key) the newest."""
        records = {key: record for key, record in self.state.records.items() if record.fate == "given"}
        doubtful = [key for key, record in records.items() if record.missing]
        is_time = self._now_seconds - self.state.checked >= CHECK_EVERY.total_seconds()
        if self.api is not None:
            newest = sorted(records, key=lambda key: records[key].published, reverse=True)[:CHECKED_WITH_KEY]
            return list(dict.fromkeys([*doubtful, *(newest if is_time else [])]))
        if listing.origin == "video":
            return [] if listing.videos else list(records)
        if listing.origin != "feed" or self.state.place.startswith("playlist:"):
            return doubtful[:CHECKED_WITHOUT_KEY]
        # The feed shows the newest: a video missing between others was taken back, or is unlisted now.
        listed_ids = {video.id for video in listing.videos}
        oldest = min((_published(video) for video in listing.videos if video.published_at), default=0)
        gaps = [
            key
            for key, record in records.items()
            if oldest and record.published > oldest and key not in listed_ids and not record.is_unlisted
        ]
        return list(dict.fromkeys([*doubtful, *gaps]))[:CHECKED_WITHOUT_KEY]

    def _load_details(self, todo: list[YouTubeVideo], checks: list[str]) -> None:
        """Load the details of videos from the Data API, if it may be called; a failure becomes a note."""
        ids = list(dict.fromkeys([*(video.id for video in todo), *checks]))
        if self.api is None or not ids:
            return
        try:
            self.details = self.api.details_of(ids, now=self.now)
        except ApiFailed as error:
            if error.until is not None:
                self.state.api_after = int(error.until.timestamp())
            self.notes.append(Note(error.code, str(error)))
            self.is_api_away = True

    # --- One video ---

    def _read_video(self, video: YouTubeVideo) -> None:
        """Give a video, leave it out, or let it wait."""
        details = self.details.get(video.id, Details())
        if details.is_private:
            self._give_without_captions(video, details, "private")
        elif details.live != "none":
            starts = details.starts_at or self.now
            self._wait_for(video, "live", until=max(starts, self.now + RECHECK_AFTER / 2))
        else:
            self._read_captions(video, details)

    def _read_captions(self, video: YouTubeVideo, details: Details) -> None:
        """Give a video with its captions if they can be read now, else postpone it or give it without."""
        if self.state.captions_after > self._now_seconds:
            self._postpone(video, details, "captions_blocked")
            return
        if self.caption_calls >= MAX_CAPTIONS or self.stalled >= MAX_STALLED:
            self._postpone(video, details, "late")
            return
        self.caption_calls += 1
        try:
            transcript = self.captions.read(video.id, language=details.language)
        except NoCaptions as error:
            self._handle_no_captions(video, details, error.kind)
            return
        self.stalled = 0
        self._give(video, details, transcript)

    def _handle_no_captions(self, video: YouTubeVideo, details: Details, kind: str) -> None:
        """Let a video wait, or give it without captions, by the kind of `NoCaptions`."""
        self.stalled = self.stalled + 1 if kind in {"failed", "late"} else 0
        if kind == "blocked":
            self.state.captions_after = int((self.now + BLOCKED_PAUSE).timestamp())
            self._postpone(video, details, "captions_blocked")
        elif kind == "upcoming":
            self._wait_for(video, "live", until=self.now + RECHECK_AFTER)
        elif kind == "none":
            published = video.published_at
            if published is not None and self.now - published < CAPTIONS_COME_WITHIN:
                self._wait_for(video, "captions", until=self.now + RECHECK_AFTER)
            else:
                self._give_without_captions(video, details, "no_captions")
        elif kind in {"failed", "late"}:
            self._postpone(video, details, "captions_failed" if kind == "failed" else "late")
        else:
            self._give_without_captions(video, details, kind)

    def _postpone(self, video: YouTubeVideo, details: Details, reason: str) -> None:
        """Let a video wait whose captions can't be read now, or give it without them.

        A video given with captions always waits. Others are given at the first poll, as they would look new later;
        after `MAX_TRIES` failures; and while YouTube refuses, if the description says enough or after `MAX_WAIT`.
        """
        record, waiting = self.state.records.get(video.id), self.state.waiting.get(video.id)
        tries = (waiting.tries if waiting else 0) + (reason == "captions_failed")
        had_captions = record is not None and record.fate == "given" and record.has_captions
        has_waited = waiting is not None and self._now_seconds - waiting.first >= MAX_WAIT.total_seconds()
        is_description_enough = len(prose_of(video.description)) >= MIN_DESCRIPTION_CHARACTERS
        if reason == "captions_blocked":
            gives_up = self.is_first or is_description_enough or has_waited
        else:
            gives_up = self.is_first or tries >= MAX_TRIES
        # A new version without the captions of the last one would lose most of the text.
        if had_captions or not gives_up:
            until = self.now if reason == "late" else self.now + RECHECK_AFTER / 2
            self._wait_for(video, "captions", until=until, tries=tries)
        else:
            self._give_without_captions(video, details, "captions_failed" if reason == "late" else reason)

    def _wait_for(self, video: YouTubeVideo, reason: str, *, until: datetime, tries: int = 0) -> None:
        """Let a video wait until a moment. A new one gets an entry that is left out, so that people see it."""
        waiting = self.state.waiting.get(video.id)
        first = waiting.first if waiting else self._now_seconds
        if waiting is None and video.id not in self.state.records:
            self._add_entry(video, Details(), None, left_out=_WAIT_NOTES[reason])
        due = int(until.timestamp())
        self.state.waiting[video.id] = UpcomingVideo(video, reason, first=first, next=due, tries=tries)

    def _give_without_captions(self, video: YouTubeVideo, details: Details, reason: str) -> None:
        """Give a video by its description, or leave it out if that says too little or people can't see it."""
        record = self.state.records.get(video.id)
        if reason in _INVISIBLE_KINDS and record is not None and record.fate == "given":
            # It was edited and is hidden now: later checks tell whether it stays hidden.
            self.state.waiting.pop(video.id, None)
            record.missing = max(record.missing, 1)
            record.fingerprint = video.fingerprint
            return
        if reason not in _INVISIBLE_KINDS and len(prose_of(video.description)) >= MIN_DESCRIPTION_CHARACTERS:
            self._give(video, details, None)
            return
        left_out = Note(reason, _MESSAGES.get(reason, _MESSAGES["no_captions"]))
        self._add_entry(video, details, None, left_out=left_out)
        record = YouTubeRecord(video.fingerprint, "left_out", published=_published(video))
        self.state.records[video.id] = record

    def _give(self, video: YouTubeVideo, details: Details, transcript: VideoTranscript | None) -> None:
        """Give a video as an entry, and record it."""
        self._add_entry(video, details, transcript)
        self.state.records[video.id] = YouTubeRecord(
            video.fingerprint, "given", has_captions=transcript is not None, published=_published(video)
        )

    def _add_entry(
        self,
        video: YouTubeVideo,
        details: Details,
        transcript: VideoTranscript | None,
        left_out: Note | None = None,
    ) -> None:
        """Add the entry of a video, which doesn't wait any more."""
        self.state.waiting.pop(video.id, None)
        spoken_text = transcript.text if transcript else ""
        body = "\n\n".join(text for text in (prose_of(video.description), spoken_text) if text)
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

    def _check_given(self, checks: Iterable[str], listing: VideoListing) -> None:
        """Withdraw videos that the feed says were deleted, and check those that may have been taken back."""
        for video_id in listing.deleted:
            record = self.state.records.get(video_id)
            if record is not None and record.fate == "given":
                self._withdraw(video_id, record)
        if self.is_api_away:
            return
        if self.api is not None and checks:
            self.state.checked = self._now_seconds
        for video_id in checks:
            record = self.state.records.get(video_id)
            if record is not None and record.fate == "given" and monotonic() < self.captions.deadline:
                self._check_one(video_id, record)

    def _check_one(self, video_id: str, record: YouTubeRecord) -> None:
        """Check one given video, and withdraw it if it is private or after several misses."""
        details = self.details.get(video_id)
        if details is not None and details.is_private:
            record.missing = MISSING_UNTIL_WITHDRAWN
        elif details is not None or (self.api is None and self.lister.is_public(video_id)):
            record.missing = 0
            # Without this mark every poll would make a request for the video.
            record.is_unlisted = self.api is None
        else:
            record.missing += 1
        if record.missing >= MISSING_UNTIL_WITHDRAWN:
            self._withdraw(video_id, record)

    def _withdraw(self, video_id: str, record: YouTubeRecord) -> None:
        """Withdraw the entry of a video."""
        record.fate, record.missing = "withdrawn", 0
        self.state.waiting.pop(video_id, None)
        video = YouTubeVideo(video_id, "")
        self.entries.append(Entry(external_id=video.external_id, url=video.url, withdrawn=True))

    # --- Notes for people ---

    def _add_notes(self) -> None:
        """Add notes on captions that are blocked and on videos that wait."""
        state = self.state
        if state.captions_after > self._now_seconds:
            until = datetime.fromtimestamp(state.captions_after, tz=UTC)
            message = (
                "YouTube doesn't let this service read captions at the moment, as it does with many addresses of "
                f"data centres. They are asked for again after {until:%d %B, %H:%M} UTC; until then entries come "
                "with title and description."
            )
            self.notes.append(Note("captions_blocked", message))
        live = sum(1 for upcoming in state.waiting.values() if upcoming.why == "live")
        if live:
            message = f"{_count_videos(live)} live or yet to begin: imported afterwards."
            self.notes.append(Note("live", message))
        if len(state.waiting) > live:
            message = f"{_count_videos(len(state.waiting) - live)} waiting for captions, for a day at most."
            self.notes.append(Note("captions_awaited", message))


def _count_videos(number: int) -> str:
    """Return a number of videos in words."""
    return f"{number} videos" if number != 1 else "1 video"


def _published(video: YouTubeVideo) -> int:
    """Return the video's moment of publication in seconds since 1970, or 0 if it isn't known."""
    return int(video.published_at.timestamp()) if video.published_at else 0


def _metadata(video: YouTubeVideo, details: Details, transcript: VideoTranscript | None) -> dict[str, Any]:
    """Return the metadata that is stored with the raw item of a video."""
    duration = details.duration_seconds or (transcript.duration_seconds if transcript else None)
    metadata: dict[str, Any] = {"video_id": video.id, "channel": video.channel, "duration_seconds": duration}
    metadata["captions"] = None
    if transcript:
        metadata["captions"] = {"language": transcript.language, "kind": transcript.kind, "by": transcript.by}
    if details.licence:
        metadata["licence"] = details.licence
    return metadata
