"""TikTok's oEmbed, the one door that is open without a key: what a single link leads to."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urljoin, urlsplit

from config.core.http_client import AddressRefused, OutboundError
from pipeline.sources.tiktok.video import (
    SHORT_HOSTS,
    TikTokVideo,
    is_tiktok,
    of_oembed,
    plain_address,
    video_id_of,
)

if TYPE_CHECKING:
    from config.core.http_client import Client, Response

CALL_SECONDS: Final = 8
MAX_BYTES: Final = 512 * 1024
MAX_HOPS: Final = 3
SHORT_DEFAULT: Final = "https://vm.tiktok.com"
LONGEST_WAIT: Final = timedelta(hours=24)


class NoVideo(Exception):
    """`kind` is `unavailable` (deleted, private or a wrong link: TikTok doesn't tell which), `not_a_video`,
    `blocked`, `away` (no answer, or a fault of TikTok's own) or `late` (no time was left).
    """

    def __init__(self, kind: str, after: timedelta | None = None) -> None:
        super().__init__(kind)
        self.kind = kind
        self.after = after


@dataclass(frozen=True)
class OEmbed:
    """Asks until `deadline`, of the monotonic clock."""

    http: Client
    base: str
    short_base: str
    deadline: float

    def address_of(self, link: str) -> str:
        """The video's own address behind a link, which may be a short one; raises `NoVideo`."""
        address = link
        for _hop in range(MAX_HOPS):
            if video_id_of(address):
                return plain_address(address)
            if not is_tiktok(address):
                break
            response = self._get(self._reached_at(address))
            location = response.headers.get("Location", "")
            if response.status not in {301, 302, 303, 307, 308} or not location:
                _refuse(response)
                break
            try:
                address = urljoin(address, location)
                urlsplit(address)
            except ValueError:
                break
        raise NoVideo("unavailable")

    def video(self, address: str) -> TikTokVideo:
        """What TikTok says of a video's own address; raises `NoVideo`."""
        response = self._get(f"{self.base}/oembed?url={quote(address, safe='')}")
        _refuse(response)
        try:
            found = json.loads(response.body)
        except (ValueError, RecursionError):
            # A page for people, as those get it who are taken for robots.
            raise NoVideo("blocked") from None
        if not isinstance(found, dict):
            raise NoVideo("away")
        # It has answered with a fault in the body under status 200 too.
        if "title" not in found and ("code" in found or "status_msg" in found or "message" in found):
            raise NoVideo("unavailable")
        video = of_oembed(found, address)
        if video is None:
            raise NoVideo("not_a_video")
        return video

    def _reached_at(self, address: str) -> str:
        parts = urlsplit(address)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        if (parts.hostname or "").lower() not in SHORT_HOSTS:
            return self.base + path
        # The codes of the short hosts are each host's own.
        return address if self.short_base == SHORT_DEFAULT else self.short_base + path

    def _get(self, url: str) -> Response:
        left = self.deadline - monotonic()
        if left < 1:
            raise NoVideo("late")
        try:
            return self.http.get(url, timeout=min(CALL_SECONDS, left), max_bytes=MAX_BYTES)
        except AddressRefused:
            raise NoVideo("unavailable") from None
        except OutboundError:
            raise NoVideo("away") from None


def _refuse(response: Response) -> None:
    status = response.status
    if status in {401, 403, 429}:
        written = response.headers.get("Retry-After", "").strip()
        asked = timedelta(seconds=int(written)) if re.fullmatch(r"[0-9]{1,9}", written) else None
        raise NoVideo("blocked", min(asked, LONGEST_WAIT) if asked else None)
    if status >= 500:
        raise NoVideo("away")
    if status != 200:
        raise NoVideo("unavailable")
