"""A YouTube on loopback: feeds, pages, captions and the Data API, after what is documented and recorded of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from werkzeug import Response

if TYPE_CHECKING:
    import threading

    from pytest_httpserver import HTTPServer

SAMPLES = Path(__file__).parent / "samples" / "youtube"
CHANNEL = "UCabcdefghijklmnopqrstuv"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = "AIza-the-operators-own-key-000"
LONG = "This is what the video is about, told in a sentence that says something of its own. " * 4


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


@dataclass
class FakeVideo:
    """`player` is what the player answers, `captions` the document behind its tracks."""

    id: str
    title: str = ""
    description: str = LONG
    published_at: datetime = NOW - timedelta(days=2)
    player: Any = None
    captions: str = ""
    is_listed: bool = True
    is_there: bool = True
    listed_at: datetime | None = None
    details: dict[str, Any] = field(default_factory=dict)


def unplayable(status: str, reason: str) -> dict[str, Any]:
    return {"playabilityStatus": {"status": status, "reason": reason}}


NO_TRACKS = {"playabilityStatus": {"status": "OK"}, "captions": {}}
BLOCKED = unplayable("LOGIN_REQUIRED", "Sign in to confirm you’re not a bot")


class YouTubeServer:
    """What it holds may be changed between polls; `asked` counts the calls by kind."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("").rstrip("/")
        self.videos: list[FakeVideo] = []
        self.asked: list[str] = []
        self.feed_status, self.feed_headers, self.feed_body = 200, {}, ""
        self.watch_body, self.watch_status = sample("watch.html"), 200
        self.handle_body, self.handle_status, self.channel_status = sample("channel.html"), 200, 200
        self.api_status, self.api_body = 200, ""
        self.api_keys: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        self.views = 0
        self.needs_consent = False
        self.over: threading.Event | None = None
        self.is_feed_slow = False
        for path, handler in (
            ("/feeds/videos.xml", self.feed),
            ("/watch", self.watch),
            ("/@harbour", self.handle),
            ("/user/harbour", self.handle),
            ("/c/Harbour", self.handle),
            (f"/channel/{CHANNEL}", self.channel),
            ("/youtubei/v1/player", self.player),
            ("/api/timedtext", self.timedtext),
            ("/oembed", self.oembed),
            ("/youtube/v3/videos", self.api_videos),
            ("/youtube/v3/playlistItems", self.api_playlist),
            ("/youtube/v3/channels", self.api_channels),
        ):
            server.expect_request(path).respond_with_handler(self._noting(path, handler))

    def _noting(self, path: str, handler: Any) -> Any:
        name = path.rsplit("/", 1)[-1]

        def answer(request: Any) -> Response:
            self.asked.append(name)
            self.headers.append(dict(request.headers))
            if self.over is not None and (name != "videos.xml" or self.is_feed_slow):
                self.over.wait(60)
            return handler(request)

        return answer

    def add(self, *videos: FakeVideo) -> None:
        self.videos[:0] = videos

    def one(self, video_id: str) -> FakeVideo:
        return next(video for video in self.videos if video.id == video_id)

    def count(self, name: str) -> int:
        return self.asked.count(name)

    # --- The site ---

    def feed(self, _request: Any) -> Response:
        if self.feed_status != 200 or self.feed_body:
            return Response(self.feed_body or "no", status=self.feed_status, headers=self.feed_headers)
        self.views += 1
        head, _, rest = sample("channel.xml").partition("<entry>")
        template, _, tail = rest.partition("</entry>")
        entries = [self._entry(template, video) for video in self.videos if video.is_listed][:15]
        return Response(head + "".join(entries) + tail, content_type="text/xml; charset=UTF-8")

    def _entry(self, template: str, video: FakeVideo) -> str:
        start, _, rest = template.partition("<media:description>")
        end = rest.partition("</media:description>")[2]
        text = (
            f"<entry>{start}<media:description>{escape(video.description)}</media:description>{end}</entry>"
        )
        title = escape(video.title or f"Video {video.id}")
        at = video.published_at.strftime("%Y-%m-%dT%H:%M:%S+00:00")
        for old, new in (
            ("ryeBread003", video.id),
            ("Rye &amp; salt: the third loaf", title),
            ("2026-11-18T15:00:12+00:00", at),
            ('views="20415"', f'views="{20415 + self.views}"'),
        ):
            text = text.replace(old, new)
        return text

    def handle(self, _request: Any) -> Response:
        return Response(self.handle_body, status=self.handle_status, content_type="text/html")

    def channel(self, _request: Any) -> Response:
        return Response(sample("channel.html"), status=self.channel_status, content_type="text/html")

    def watch(self, request: Any) -> Response:
        if self.needs_consent and "CONSENT=YES+cb." not in request.headers.get("Cookie", ""):
            return Response(sample("consent.html"), content_type="text/html")
        return Response(self.watch_body, status=self.watch_status, content_type="text/html")

    def player(self, request: Any) -> Response:
        video_id = request.get_json()["videoId"]
        video = self.one(video_id)
        answer = video.player or json.loads(sample("player.json").replace("ryeBread003", video_id))
        return Response(
            answer if isinstance(answer, str) else json.dumps(answer), content_type="application/json"
        )

    def timedtext(self, request: Any) -> Response:
        if request.args.get("fmt") == "json3":
            return Response(sample("timedtext.json"), content_type="application/json")
        video = self.one(request.args["v"])
        name = "timedtext_automatic.xml" if request.args.get("kind") == "asr" else "timedtext.xml"
        return Response(video.captions or sample(name), content_type="text/xml")

    def oembed(self, request: Any) -> Response:
        video = self.one(request.args["url"].rpartition("=")[2])
        told = {"title": video.title, "author_name": "Harbour", "type": "video"}
        body = json.dumps(told) if video.is_there else "Not Found"
        return Response(body, status=200 if video.is_there else 404)

    # --- The Data API ---

    def _api(self, request: Any, answer: Any) -> Response:
        self.api_keys.append(request.headers.get("X-Goog-Api-Key"))
        if self.api_status != 200 or self.api_body:
            return Response(self.api_body or "{}", status=self.api_status)
        return Response(json.dumps(answer), content_type="application/json")

    def api_videos(self, request: Any) -> Response:
        ids = request.args["id"].split(",")
        items = []
        for video in self.videos:
            if video.id in ids and video.is_there:
                item = json.loads(sample("videos.json"))["items"][0] | {"id": video.id}
                for part, changes in video.details.items():
                    item[part] = item.get(part, {}) | changes
                items.append(item)
        return self._api(request, {"items": items})

    def api_playlist(self, request: Any) -> Response:
        shape = json.loads(sample("playlist_items.json"))["items"]
        items = []
        for video in self.videos:
            at = video.published_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            listed = (video.listed_at or video.published_at).strftime("%Y-%m-%dT%H:%M:%SZ")
            title = video.title or f"Video {video.id}"
            snippet = shape[0]["snippet"] | {
                "publishedAt": listed,
                "title": title,
                "description": video.description,
            }
            items.append(
                {"snippet": snippet, "contentDetails": {"videoId": video.id, "videoPublishedAt": at}}
            )
        items.append(shape[1])
        begin = int(request.args.get("pageToken", "0"))
        answer = {"items": items[begin : begin + 50]}
        if begin + 50 < len(items):
            answer["nextPageToken"] = str(begin + 50)
        return self._api(request, answer)

    def api_channels(self, request: Any) -> Response:
        known = request.args.get("forHandle") == "@harbour" or request.args.get("forUsername") == "harbour"
        return self._api(request, {"items": [{"id": CHANNEL}]} if known else {"pageInfo": {}})
