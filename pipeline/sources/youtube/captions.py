"""Reads the captions of a YouTube video: by youtube-transcript-api through our client, else by yt-dlp."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import youtube_transcript_api as transcript_api

from config.core.http_client import OutboundError
from pipeline.sources import yt_dlp
from pipeline.sources.caption_text import Cue, read_json3, read_timed_text, to_text
from pipeline.sources.youtube.video import SITE, watch_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client

CALL_SECONDS: Final = 10
MIN_CALL_SECONDS: Final = 2
"""The time left below which no further call is made."""
MAX_BYTES: Final = 5 * 1024 * 1024
"""The largest answer. A page to watch a video on has about 1.5 MB."""

_UNPLAYABLE_REASONS: Final = (
    ("blocked", r"not a bot"),
    ("upcoming", r"live event will begin|Premieres? (?:will begin )?in|will begin in"),
    ("members_only", r"members|Join this channel"),
    ("private", r"private"),
    ("age_restricted", r"confirm your age|age-restricted|inappropriate for some users"),
    ("region", r"in your country|in your region"),
    ("gone", r"unavailable|removed|no longer available|terminated"),
)


@dataclass(frozen=True)
class VideoTranscript:
    """The words spoken in a video.

    `kind` is `manual` or `automatic`; `by` names the reader: `captions` (the library) or `tool` (yt-dlp).
    """

    text: str
    language: str
    kind: str
    by: str
    duration_seconds: int | None = None


class NoCaptions(Exception):
    """Raised if no captions can be read, because there are none or because YouTube doesn't give them.

    `kind` is `none`, `blocked`, `gone`, `private`, `members_only`, `age_restricted`, `region`, `upcoming`,
    `late` (no time was left) or `failed`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True)
class CaptionReader:
    """Reads captions until `deadline` (of `monotonic()`). `tool` is the path of yt-dlp, or empty."""

    http: Client
    base: str
    tool: str
    deadline: float

    def read(self, video_id: str, *, language: str = "") -> VideoTranscript:
        """Return the transcript of a video, in the language that is spoken in it: `language`, if it is known.

        yt-dlp is used if the library is blocked or fails. Raises `NoCaptions` if neither reads any captions.
        """
        try:
            return self._by_library(video_id, language)
        except NoCaptions as error:
            if not self.tool or error.kind not in {"blocked", "failed"}:
                raise
        return self._by_tool(video_id, language)

    def _by_library(self, video_id: str, language: str) -> VideoTranscript:
        """Read the captions by youtube-transcript-api. Raises `NoCaptions` if that isn't possible."""
        session = _GuardedSession(self.http, self.base, self.deadline)
        # The library uses no more of a session than `_GuardedSession` has.
        reader = transcript_api.YouTubeTranscriptApi(http_client=cast("Any", session))
        try:
            track = _choose_track(list(reader.list(video_id)), language)
            # The session keeps the captions that this call downloads.
            track.fetch()
        except transcript_api.CouldNotRetrieveTranscript as error:
            raise NoCaptions(_failure_kind(error)) from None
        except OutboundError:
            raise NoCaptions("failed") from None
        # The library raises these for answers of a shape that it doesn't expect.
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError):
            raise NoCaptions("failed") from None
        return _to_transcript(
            read_timed_text(session.captions),
            language=track.language_code,
            kind="automatic" if track.is_generated else "manual",
            by="captions",
        )

    def _by_tool(self, video_id: str, language: str) -> VideoTranscript:
        """Read the captions that yt-dlp finds. Raises `NoCaptions` if that isn't possible."""
        left = self.deadline - monotonic()
        if left < MIN_CALL_SECONDS:
            raise NoCaptions("late")
        try:
            seconds = min(yt_dlp.TIMEOUT_SECONDS, left)
            video_data = yt_dlp.ask(
                self.tool, "--dump-json", "--no-playlist", address=watch_address(video_id), seconds=seconds
            )
        except yt_dlp.ToolFailed as error:
            kinds = {"blocked", "gone", "private", "members_only", "age_restricted", "region", "upcoming"}
            raise NoCaptions(error.kind if error.kind in kinds else "failed") from None
        track = _choose_tool_track(video_data, language)
        if track is None:
            raise NoCaptions("none")
        session = _GuardedSession(self.http, self.base, self.deadline)
        try:
            session.get(track.url).raise_for_status()
            document = json.loads(session.captions)
        except (OutboundError, ValueError, RecursionError):
            raise NoCaptions("failed") from None
        duration = video_data.get("duration")
        if not isinstance(duration, int | float) or not 0 < duration < 10**6:
            duration = None
        return _to_transcript(
            read_json3(document),
            language=track.language,
            kind=track.kind,
            by="tool",
            duration=None if duration is None else int(duration),
        )


def _to_transcript(
    cues: list[Cue], *, language: str, kind: str, by: str, duration: int | None = None
) -> VideoTranscript:
    """Return the cues as a transcript. Raises `NoCaptions` if they hold no text."""
    text = to_text(cues)
    if not text:
        raise NoCaptions("none")
    is_language = re.fullmatch("[A-Za-z0-9-]{1,35}", str(language)) is not None
    return VideoTranscript(text, language if is_language else "", kind, by, duration)


def _failure_kind(error: transcript_api.CouldNotRetrieveTranscript) -> str:
    """Return the kind of `NoCaptions` that the library's error means."""
    if isinstance(error, transcript_api.VideoUnplayable):
        reasons = " ".join(str(reason) for reason in (error.reason, *error.sub_reasons))
        return next(
            (kind for kind, pattern in _UNPLAYABLE_REASONS if re.search(pattern, reasons, re.IGNORECASE)),
            "failed",
        )
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (transcript_api.RequestBlocked, "blocked"),
        (transcript_api.PoTokenRequired, "blocked"),
        (transcript_api.FailedToCreateConsentCookie, "blocked"),
        (transcript_api.AgeRestricted, "age_restricted"),
        (transcript_api.VideoUnavailable, "gone"),
        (transcript_api.InvalidVideoId, "gone"),
        (transcript_api.TranscriptsDisabled, "none"),
        (transcript_api.NoTranscriptFound, "none"),
    )
    return next((kind for error_type, kind in kinds if isinstance(error, error_type)), "failed")


def _choose_track(tracks: list[transcript_api.Transcript], language: str) -> transcript_api.Transcript:
    """Return written captions in the spoken language, else automatic, else any. Raises `NoCaptions` if none exist."""
    automatic = [track for track in tracks if track.is_generated]
    manual = [track for track in tracks if not track.is_generated]
    spoken_language = language or (automatic[0].language_code if automatic else "")
    for track in [*manual, *automatic]:
        if spoken_language and _is_same_language(track.language_code, spoken_language):
            return track
    if automatic or manual:
        return (automatic or manual)[0]
    raise NoCaptions("none")


def _is_same_language(language: str, other: str) -> bool:
    """Return whether two tags name the same language, regardless of region."""
    return language.lower().split("-")[0] == other.lower().split("-")[0]


class ToolTrack(NamedTuple):
    """Captions that yt-dlp lists; `kind` is `manual` or `automatic`."""

    language: str
    kind: str
    url: str


def _choose_tool_track(video_data: Mapping[str, Any], language: str) -> ToolTrack | None:
    """Return the captions in the spoken language, else automatic ones, else any, or `None` if there are none."""
    video_language = video_data.get("language")
    spoken_language = language or (video_language if isinstance(video_language, str) else "")
    manual = _json3_addresses(video_data.get("subtitles"))
    # `automatic_captions` also holds machine translations into a hundred languages.
    automatic = _json3_addresses(video_data.get("automatic_captions"))
    original = {name: url for name, url in automatic.items() if name.endswith("-orig")}
    of_language = [
        _to_track(name, kind, url)
        for tracks, kind in ((manual, "manual"), (original, "automatic"), (automatic, "automatic"))
        for name, url in tracks.items()
        if spoken_language and _is_same_language(name, spoken_language)
    ]
    of_any_language = [
        _to_track(name, kind, url)
        for tracks, kind in ((original, "automatic"), (manual, "manual"))
        for name, url in tracks.items()
    ]
    return next(iter([*of_language, *of_any_language]), None)


def _to_track(name: str, kind: str, url: str) -> ToolTrack:
    """Return a track whose name is its language, with `-orig` for automatic ones in the spoken language."""
    return ToolTrack(name.removesuffix("-orig"), kind, url)


def _json3_addresses(listed: object) -> dict[str, str]:
    """Return the addresses of captions in the format `json3` by language."""
    addresses = {}
    for name, formats in (listed if isinstance(listed, dict) else {}).items():
        for track_format in formats if isinstance(formats, list) else []:
            if (
                isinstance(track_format, dict)
                and track_format.get("ext") == "json3"
                and isinstance(track_format.get("url"), str)
            ):
                addresses[str(name)] = track_format["url"]
    addresses.pop("live_chat", None)
    return addresses


# --- The HTTP session that `youtube_transcript_api` is given in place of a `requests.Session` ------------------------


class _UnexpectedAnswer(ValueError):
    """Raised for a status that the library has no error for, and for captions on another host."""


class _GuardedSession:
    """Calls YouTube's base address and nothing else, through the guarded client, until the deadline."""

    def __init__(self, http: Client, base: str, deadline: float) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = _SessionCookies()
        self.captions = ""
        self._http = http
        self._base = base
        self._deadline = deadline

    def get(self, url: str) -> _SessionResponse:
        """Fetch an address.

        Captions are stored in `captions`, and the result for the library is an empty document. Raises `NoCaptions` if
        no time is left, `OutboundError` if there is no answer, and `_UnexpectedAnswer` for another host.
        """
        answer = self._ask("GET", url)
        if "/api/timedtext" not in url or answer.status_code != 200:
            return answer
        # The library parses cues in quadratic time of their length, which the uploader of captions chooses. So it
        # gets an empty document, and the cues are parsed here.
        self.captions = answer.text
        return _SessionResponse(200, "<transcript/>")

    def post(self, url: str, json: object) -> _SessionResponse:
        """Send JSON to an address. Raises the errors of `get`."""
        return self._ask("POST", url, json)

    def _ask(self, method: str, url: str, body: object = None) -> _SessionResponse:
        """Make a call before the deadline.

        Raises `NoCaptions` if no time is left, `OutboundError` if there is no answer, and `_UnexpectedAnswer`
        for an address on another host.
        """
        left = self._deadline - monotonic()
        if left < MIN_CALL_SECONDS:
            raise NoCaptions("late")
        if not url.startswith(f"{SITE}/"):
            message = "The captions lie on another host."
            raise _UnexpectedAnswer(message)
        headers = {**self.headers, **self.cookies.as_header()}
        response = self._http.request(
            method,
            self._base + url.removeprefix(SITE),
            headers=headers,
            json=body,
            timeout=min(CALL_SECONDS, left),
            max_bytes=MAX_BYTES,
            max_redirects=2,
        )
        return _SessionResponse(response.status, response.body.decode(errors="replace"))


class _SessionCookies:
    """The cookies that the library sets, with safe values."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def set(self, name: str, value: str, **_attributes: str) -> None:
        """Set a cookie, without characters that a header can't hold, cut to 200 characters."""
        self._values[name] = re.sub(r"[^A-Za-z0-9+._=-]", "", value)[:200]

    def as_header(self) -> dict[str, str]:
        """Return the request header of the cookies, or an empty mapping if there are none."""
        pairs = "; ".join(f"{name}={value}" for name, value in self._values.items())
        return {"Cookie": pairs} if pairs else {}


class _SessionResponse:
    """An answer as the library reads it."""

    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text

    def raise_for_status(self) -> None:
        """Raise for a status that isn't a success: `NoCaptions` for a refusal, else `_UnexpectedAnswer`."""
        if self.status_code in {401, 403}:
            raise NoCaptions("blocked")
        if self.status_code >= 300:
            message = f"YouTube answered with status {self.status_code}."
            raise _UnexpectedAnswer(message)

    def json(self) -> Any:
        """Return the answer's JSON.

        Raises `NoCaptions` for a refusal, `_UnexpectedAnswer` for another failure, and `ValueError` if it isn't JSON.
        """
        self.raise_for_status()
        return json.loads(self.text)
