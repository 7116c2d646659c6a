"""Calls TikTok's oEmbed endpoint, which needs no API key, to read what a single link leads to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from config.core.http_client import AddressRefused, OutboundError, read_retry_after
from pipeline.sources.tiktok.video import (
    SHORT_HOSTS,
    TikTokVideo,
    from_oembed,
    is_tiktok,
    plain_address,
    video_id_of,
)

if TYPE_CHECKING:
    from datetime import datetime

    from config.core.http_client import Client, Response

CALL_SECONDS: Final = 8
MAX_BYTES: Final = 512 * 1024
MAX_HOPS: Final = 3
DEFAULT_SHORT_BASE: Final = "https://vm.tiktok.com"
MAX_WAIT: Final = timedelta(hours=24)


class NoVideo(Exception):
    """Raised if a link gives no video.

    `kind` is `unavailable` (deleted, private or a wrong link: TikTok doesn't tell which), `not_a_video`,
    `blocked`, `away` (no answer, or a fault at TikTok) or `late` (no time was left). `after` is the wait that
    TikTok asks for, if it is `blocked`.
    """

    def __init__(self, kind: str, after: timedelta | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.after = after


@dataclass(frozen=True)
class OEmbed:
    """Calls TikTok until `deadline`, in seconds of `time.monotonic()`; `now` is the moment of the poll.

    `base` and `short_base` are the addresses of TikTok and of its short links.
    """

    http: Client
    base: str
    short_base: str
    deadline: float
    now: datetime

    def resolve_link(self, link: str) -> str:
        """Return the address of the video that a link leads to; the link may be a short one.

        Raises `NoVideo` if it leads to none within `MAX_HOPS` redirects, or TikTok doesn't answer.
        """
        address = link
        for _hop in range(MAX_HOPS):
            if video_id_of(address):
                return plain_address(address)
            if not is_tiktok(address):
                break
            response = self._get(self._request_url(address))
            location = response.headers.get("Location", "")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                _raise_for_status(response, now=self.now)
                break
            try:
                address = urljoin(address, location)
                urlsplit(address)
            except ValueError:
                break
        raise NoVideo("unavailable")

    def video(self, address: str) -> TikTokVideo:
        """Return the video at a video's address. Raises `NoVideo` if TikTok doesn't describe one."""
        response = self._get(f"{self.base}/oembed?url={quote(address, safe='')}")
        _raise_for_status(response, now=self.now)
        try:
            answer = json.loads(response.body)
        except (ValueError, RecursionError):
            # A page of HTML, which TikTok sends to callers that it takes for robots.
            raise NoVideo("blocked") from None
        if not isinstance(answer, dict):
            raise NoVideo("away")
        # TikTok may report an error in the body under status 200, too.
        if "title" not in answer and ("code" in answer or "status_msg" in answer or "message" in answer):
            raise NoVideo("unavailable")
        video = from_oembed(answer, address)
        if video is None:
            raise NoVideo("not_a_video")
        return video

    def _request_url(self, address: str) -> str:
        """Return the URL to call for an address: with the operator's base addresses in place of TikTok's."""
        parts = urlsplit(address)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if (parts.hostname or "").lower() not in SHORT_HOSTS:
            return self.base + path
        # A code of a short host means nothing on another host, so the host stays.
        return address if self.short_base == DEFAULT_SHORT_BASE else self.short_base + path

    def _get(self, url: str) -> Response:
        """Return the response of a URL. Raises `NoVideo` if there is no time left or no response."""
        left = self.deadline - monotonic()
        if left < 1:
            raise NoVideo("late")
        try:
            return self.http.get(url, timeout=min(CALL_SECONDS, left), max_bytes=MAX_BYTES)
        except AddressRefused:
            raise NoVideo("unavailable") from None
        except OutboundError:
            raise NoVideo("away") from None


def _raise_for_status(response: Response, *, now: datetime) -> None:
    """Raise `NoVideo` for a status other than 200."""
    status = response.status
    if status in {401, 403, 429}:
        wait = read_retry_after(response.headers, now=now, longest=MAX_WAIT)
        raise NoVideo("blocked", wait or None)
    if status >= 500:
        raise NoVideo("away")
    if status != 200:
        raise NoVideo("unavailable")
