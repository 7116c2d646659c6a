"""The captions of one video of YouTube: by youtube-transcript-api through our own client, else by the operator's tool."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import youtube_transcript_api as library

from config.core.http_client import OutboundError
from pipeline.sources import yt_dlp
from pipeline.sources.caption_text import Cue, read_json3, read_timed_text, to_text
from pipeline.sources.youtube.video import SITE, watch_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from config.core.http_client import Client

CALL_SECONDS: Final = 10
LEAST_SECONDS: Final = 2
"""With less time left than this, no further call is begun."""
MAX_BYTES: Final = 5 * 1024 * 1024
"""A page to watch a video on is about 1.5 MB."""

_UNPLAYABLE: Final = (
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
    """What was said. `kind` is `manual` or `automatic`; `by` names who read it: `captions` or `tool`."""

    text: str
    language: str
    kind: str
    by: str
    duration_seconds: int | None = None


class NoCaptions(Exception):
    """`kind` says why there are none: `none`, `blocked`, `gone`, `private`, `members_only`, `age_restricted`,
    `region`, `upcoming`, `late` (no time was left) or `failed`.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True)
class Captions:
    """Reads captions until `deadline`, of the monotonic clock. `tool` is the path of yt-dlp, or empty."""

    http: Client
    base: str
    tool: str
    deadline: float

    def of(self, video_id: str, *, language: str = "") -> VideoTranscript:
        """What was said in a video, in the language that it is spoken in; raises `NoCaptions`."""
        try:
            return self._by_library(video_id, language)
        except NoCaptions as error:
            if not self.tool or error.kind not in {"blocked", "failed"}:
                raise
        return self._by_tool(video_id, language)

    def _by_library(self, video_id: str, language: str) -> VideoTranscript:
        session = _Session(self.http, self.base, self.deadline)
        # The library asks for nothing but these few attributes of a session.
        reader = library.YouTubeTranscriptApi(http_client=cast("Any", session))
        try:
            chosen = _choose(list(reader.list(video_id)), language)
            chosen.fetch()
        except library.CouldNotRetrieveTranscript as error:
            raise NoCaptions(_meaning_of(error)) from None
        except OutboundError:
            raise NoCaptions("failed") from None
        # What the library meets in an answer of another shape than the one it was written for.
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, RecursionError):
            raise NoCaptions("failed") from None
        return _transcript(
            read_timed_text(session.captions),
            language=chosen.language_code,
            kind="automatic" if chosen.is_generated else "manual",
            by="captions",
        )

    def _by_tool(self, video_id: str, language: str) -> VideoTranscript:
        left = self.deadline - monotonic()
        if left < LEAST_SECONDS:
            raise NoCaptions("late")
        try:
            seconds = min(yt_dlp.SECONDS, left)
            found = yt_dlp.ask(
                self.tool, "--dump-json", "--no-playlist", address=watch_address(video_id), seconds=seconds
            )
        except yt_dlp.ToolFailed as error:
            kinds = {"blocked", "gone", "private", "members_only", "age_restricted", "region", "upcoming"}
            raise NoCaptions(error.kind if error.kind in kinds else "failed") from None
        track = _track_of(found, language)
        if track is None:
            raise NoCaptions("none")
        session = _Session(self.http, self.base, self.deadline)
        try:
            session.get(track[2]).raise_for_status()
            document = json.loads(session.captions)
        except (OutboundError, ValueError, RecursionError):
            raise NoCaptions("failed") from None
        duration = found.get("duration")
        return _transcript(
            read_json3(document),
            language=track[0],
            kind=track[1],
            by="tool",
            duration=int(duration) if isinstance(duration, int | float) and 0 < duration < 10**6 else None,
        )


def _transcript(
    cues: list[Cue], *, language: str, kind: str, by: str, duration: int | None = None
) -> VideoTranscript:
    text = to_text(cues)
    if not text:
        raise NoCaptions("none")
    is_language = re.fullmatch("[A-Za-z0-9-]{1,35}", str(language)) is not None
    return VideoTranscript(text, language if is_language else "", kind, by, duration)


def _meaning_of(error: library.CouldNotRetrieveTranscript) -> str:
    if isinstance(error, library.VideoUnplayable):
        words = " ".join(str(each) for each in (error.reason, *error.sub_reasons))
        return next((kind for kind, form in _UNPLAYABLE if re.search(form, words, re.IGNORECASE)), "failed")
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (library.RequestBlocked, "blocked"),
        (library.PoTokenRequired, "blocked"),
        (library.FailedToCreateConsentCookie, "blocked"),
        (library.AgeRestricted, "age_restricted"),
        (library.VideoUnavailable, "gone"),
        (library.InvalidVideoId, "gone"),
        (library.TranscriptsDisabled, "none"),
        (library.NoTranscriptFound, "none"),
    )
    return next((kind for each, kind in kinds if isinstance(error, each)), "failed")


def _choose(tracks: list[library.Transcript], language: str) -> library.Transcript:
    """What people wrote in the language that is spoken, else what was heard, else what people wrote in another one."""
    heard = [track for track in tracks if track.is_generated]
    written = [track for track in tracks if not track.is_generated]
    spoken = language or (heard[0].language_code if heard else "")
    for track in [*written, *heard]:
        if spoken and _is_same(track.language_code, spoken):
            return track
    if heard or written:
        return (heard or written)[0]
    raise NoCaptions("none")


def _is_same(language: str, other: str) -> bool:
    return language.lower().split("-")[0] == other.lower().split("-")[0]


def _track_of(found: Mapping[str, Any], language: str) -> tuple[str, str, str] | None:
    """Language, kind and address of the captions that yt-dlp names."""
    said = found.get("language")
    spoken = language or (said if isinstance(said, str) else "")
    written = _addresses(found.get("subtitles"))
    # Beside what was heard, `automatic_captions` holds its translations into a hundred languages.
    heard = _addresses(found.get("automatic_captions"))
    original = {name: url for name, url in heard.items() if name.endswith("-orig")}
    choices: Iterable[tuple[dict[str, str], str]] = ((written, "manual"), (original, "automatic"))
    for tracks, kind in (*choices, (heard, "automatic")):
        for name, url in tracks.items():
            if spoken and _is_same(name, spoken):
                return name.removesuffix("-orig"), kind, url
    for tracks, kind in ((original, "automatic"), (written, "manual")):
        for name, url in tracks.items():
            return name.removesuffix("-orig"), kind, url
    return None


def _addresses(listed: object) -> dict[str, str]:
    found = {}
    for name, formats in (listed if isinstance(listed, dict) else {}).items():
        for one in formats if isinstance(formats, list) else []:
            if isinstance(one, dict) and one.get("ext") == "json3" and isinstance(one.get("url"), str):
                found[str(name)] = one["url"]
    found.pop("live_chat", None)
    return found


# --- What the library takes for a session of requests ----------------------------------------------------------------


class _Refused(ValueError):
    """An answer that the library has no name for."""


class _Session:
    """Goes out through the guarded client, to YouTube's base address and nowhere else, until the deadline."""

    def __init__(self, http: Client, base: str, deadline: float) -> None:
        self.headers: dict[str, str] = {}
        self.cookies = _Cookies()
        self.captions = ""
        self._http = http
        self._base = base
        self._deadline = deadline

    def get(self, url: str) -> _Answer:
        answer = self._ask("GET", url)
        if "/api/timedtext" not in url or answer.status_code != 200:
            return answer
        # The library's own reading of cues takes time by the square of their length, and whoever uploads captions
        # chooses that length. So it gets an empty document, and the cues are read here.
        self.captions = answer.text
        return _Answer(200, "<transcript/>")

    def post(self, url: str, json: object) -> _Answer:
        return self._ask("POST", url, json)

    def _ask(self, method: str, url: str, body: object = None) -> _Answer:
        left = self._deadline - monotonic()
        if left < LEAST_SECONDS:
            raise NoCaptions("late")
        if not url.startswith(f"{SITE}/"):
            message = "The captions lie on another host."
            raise _Refused(message)
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
        return _Answer(response.status, response.body.decode(errors="replace"))


class _Cookies:
    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def set(self, name: str, value: str, **_attributes: str) -> None:
        self._values[name] = re.sub(r"[^A-Za-z0-9+._=-]", "", value)[:200]

    def as_header(self) -> dict[str, str]:
        pairs = "; ".join(f"{name}={value}" for name, value in self._values.items())
        return {"Cookie": pairs} if pairs else {}


class _Answer:
    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text

    def raise_for_status(self) -> None:
        if self.status_code >= 500:
            _fail(f"YouTube answered with status {self.status_code}.")
        if self.status_code in {401, 403}:
            raise NoCaptions("blocked")
        if self.status_code >= 300:
            _fail(f"YouTube answered with status {self.status_code}.")

    def json(self) -> Any:
        self.raise_for_status()
        return json.loads(self.text)


def _fail(message: str) -> NoReturn:
    raise _Refused(message)
