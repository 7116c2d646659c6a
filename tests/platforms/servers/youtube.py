"""YouTube's resumable uploads and Data API by Google's documents (read on 20 November 2026), with a ledger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pipeline.platforms.base import Account
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.platforms.youtube import PLUGIN, SCOPE
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, opened, picture
from tests.platforms.servers.tokens import TokenAddress

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = "an-access-token-of-google"
CHANNEL = {
    "id": "UC_x5XG1OV2P6uZZ5FSM9Ttw",
    "snippet": {"title": "The Paper", "customUrl": "@thepaper"},
    "status": {"longUploadsStatus": "allowed"},
}
GRANULE = 256 * 1024


def error(status: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    details = {"code": status, "message": message, "errors": [{"domain": "youtube", "reason": reason}]}
    return Answer(status, {"error": details}, headers or {})


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.oauth = TokenAddress(uses_basic=False, rotates=False, lives_for=3599, scope=SCOPE)
        self.oauth.access_tokens.add(TOKEN)
        self.channel: dict[str, Any] | None = CHANNEL
        self.sessions: dict[str, dict[str, Any]] = {}
        self.thumbnails: dict[str, bytes] = {}

    def is_commit(self, request: Request) -> bool:
        match = re.fullmatch(r"bytes \d+-(\d+)/(\d+)", request.headers.get("content-range", ""))
        return match is not None and int(match[1]) + 1 == int(match[2])

    def too_many(self) -> Answer:
        return error(429, "rateLimitExceeded", "Too many requests.", {"Retry-After": "7"})

    def expired(self) -> Answer:
        return error(401, "authError", "Invalid Credentials")

    def handle(self, request: Request) -> Answer:
        if request.path == "/o/oauth2/v2/auth":
            return self.oauth.authorize(request)
        if request.path == "/token":
            return self.oauth.answer(request)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.oauth.access_tokens:
            return self.expired()
        query = {name: values[0] for name, values in request.query.items()}
        match (request.method, request.path):
            case ("GET", "/youtube/v3/channels"):
                return Answer(200, {"items": [self.channel]} if self.channel else {"items": []})
            case ("POST", "/upload/youtube/v3/videos"):
                return self.begin(request, query)
            case ("PUT", "/upload/youtube/v3/videos"):
                return self.take(request, query["upload_id"])
            case ("POST", "/upload/youtube/v3/thumbnails/set"):
                return self.thumbnail(request, query["videoId"])
            case ("GET", "/youtube/v3/videos"):
                return self.count(query["id"].split(","))
            case ("DELETE", "/youtube/v3/videos"):
                return self.delete(query["id"])
        return error(404, "notFound", "No such address.")

    def begin(self, request: Request, query: dict[str, str]) -> Answer:
        if query.get("uploadType") != "resumable" or query.get("part") != "snippet,status":
            return error(400, "badRequest", "Wrong parameters.")
        body = request.json()
        title = body["snippet"]["title"]
        if not 0 < len(title) <= 100 or re.search("[<>]", title):
            return error(400, "invalidTitle", "The request metadata specifies an invalid video title.")
        if len(body["snippet"]["description"].encode()) > 5000 or re.search(
            "[<>]", body["snippet"]["description"]
        ):
            return error(400, "invalidDescription", "The description is invalid.")
        if body["status"]["privacyStatus"] not in {"public", "unlisted", "private"}:
            return error(400, "invalidVideoMetadata", "The metadata is invalid.")
        identity = f"session{len(self.sessions)}"
        self.sessions[identity] = {
            "total": int(request.headers["x-upload-content-length"]),
            "body": body,
            "content": b"",
            "video": None,
            "query": query,
        }
        address = f"{self.url}/upload/youtube/v3/videos?uploadType=resumable&upload_id={identity}"
        return Answer(200, b"", {"Location": address})

    def take(self, request: Request, identity: str) -> Answer:
        one = self.sessions.get(identity)
        if one is None:
            return error(404, "notFound", "The session is gone.")
        if one["video"] is not None:
            return self.made(one)
        given = request.headers.get("content-range", "")
        if given == f"bytes */{one['total']}":
            return self.unfinished(one)
        match = re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", given)
        if match is None:
            return error(400, "badContentRange", "The range can't be read.")
        start, end, total = (int(number) for number in match.groups())
        is_last = end + 1 == total
        if total != one["total"] or end + 1 - start != len(request.body) or start != len(one["content"]):
            return error(400, "badContentRange", "The range doesn't fit.")
        if not is_last and len(request.body) % GRANULE:
            return error(400, "badContentRange", "Send multiples of 256 KiB.")
        one["content"] += request.body
        if not is_last:
            return self.unfinished(one)
        one["video"] = f"vid{len(self.posts):08d}"
        self.posts.append({"id": one["video"], "body": one["body"], "content": one["content"]})
        return self.made(one)

    def unfinished(self, one: dict[str, Any]) -> Answer:
        there = len(one["content"])
        return Answer(308, b"", {"Range": f"bytes=0-{there - 1}"} if there else {})

    def made(self, one: dict[str, Any]) -> Answer:
        return Answer(200, {"kind": "youtube#video", "id": one["video"], **one["body"]})

    def thumbnail(self, request: Request, identity: str) -> Answer:
        if request.headers.get("content-type") not in {"image/png", "image/jpeg"}:
            return error(400, "mediaBodyRequired", "Send an image.")
        self.thumbnails[identity] = request.body
        return Answer(200, {"items": []})

    def count(self, ids: list[str]) -> Answer:
        there = [one["id"] for one in self.posts if one["id"] in ids]
        statistics = {"viewCount": "500", "likeCount": "30", "favoriteCount": "0", "commentCount": "4"}
        return Answer(200, {"items": [{"id": one, "statistics": statistics} for one in there]})

    def delete(self, identity: str) -> Answer:
        if all(one["id"] != identity for one in self.posts):
            return error(404, "videoNotFound", "The video cannot be found.")
        self.posts = [one for one in self.posts if one["id"] != identity]
        return Answer(204)


def film(size: int = 3 * GRANULE + 7) -> PayloadAsset:
    return PayloadAsset(
        url="https://media.example.com/film.mp4",
        mime_type="video/mp4",
        role="video",
        bytes=size,
        name="film.mp4",
        duration=12.0,
        open=opened(bytes(number % 251 for number in range(1000)) * (size // 1000) + b"z" * (size % 1000)),
    )


def thumbnail() -> PayloadAsset:
    there = picture("thumbnail.png")
    return PayloadAsset(
        url=there.url, mime_type="image/png", role="thumbnail", bytes=there.bytes, open=there.open
    )


def account(server: LedgerServer, **credentials: str) -> Account:
    return Account(
        outlet="out_01m80wxp87eh3rnr6xcszcrb9t",
        config=PLUGIN.clean_config({}),
        credentials={"access_token": TOKEN, **credentials},
        profile={"external_id": CHANNEL["id"], "limits": {}},
        base_url=server.url,
        api_version="3",
    )


def payload(body: str = "It moves.", *assets: PayloadAsset, **changes: Any) -> Payload:
    given: dict[str, Any] = {
        "item": "gen_01m80wxp87eh3rnr6xcszcrb9t",
        "revision": 1,
        "bucket": "video",
        "title": "The tram",
        "body": body,
        "body_format": "text",
        "language": "en",
        "assets": assets or (film(),),
        "is_ai_generated": True,
    }
    return Payload(**{**given, **changes})


def case(server: LedgerServer) -> Case:
    return Case(PLUGIN, account(server), {"video": payload("It moves.", film(), thumbnail())})
