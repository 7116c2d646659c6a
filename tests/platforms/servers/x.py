"""X's API v2 by its documents (docs.x.com, read on 20 November 2026), with a ledger."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any

from pipeline.platforms.base import Account
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.platforms.x import PLUGIN
from pipeline.text.weighted_length import weighted_length
from tests.platforms.servers.base import NOW, Answer, Case, LedgerServer, Request, opened, picture
from tests.platforms.servers.tokens import TokenAddress

if TYPE_CHECKING:
    from pipeline.engines.base import Bucket

SCOPES = "tweet.read tweet.write users.read media.write offline.access"
TOKEN = "an-access-token-of-x"
USER = {"id": "2244994945", "name": "The Paper", "username": "thepaper", "protected": False}
FORBIDDEN = "https://api.x.com/2/problems/"


def problem(status: int, kind: str, detail: str) -> Answer:
    return Answer(status, {"type": FORBIDDEN + kind, "title": kind, "detail": detail, "status": status})


def form_of(request: Request) -> dict[str, bytes]:
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    assert message.get_content_type() == "multipart/form-data"
    return {
        str(part.get_param("name", header="content-disposition")): bytes(part.get_payload(decode=True))
        for part in message.iter_parts()
    }


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.oauth = TokenAddress(uses_basic=True, rotates=True, lives_for=7200, scope=SCOPES)
        self.oauth.access_tokens.add(TOKEN)
        self.media: dict[str, dict[str, Any]] = {}
        self.polls_until_done = 2
        self.number = 1_000

    def is_commit(self, request: Request) -> bool:
        return request.method == "POST" and request.path == "/2/tweets"

    def too_many(self) -> Answer:
        reset = str(int(NOW.timestamp()) + 7)
        return Answer(
            429,
            {
                "title": "Too Many Requests",
                "detail": "Too Many Requests",
                "type": "about:blank",
                "status": 429,
            },
            {"x-rate-limit-reset": reset, "x-rate-limit-remaining": "0"},
        )

    def expired(self) -> Answer:
        return Answer(
            401, {"title": "Unauthorized", "type": "about:blank", "status": 401, "detail": "Unauthorized"}
        )

    def handle(self, request: Request) -> Answer:
        if request.path == "/i/oauth2/authorize":
            return self.oauth.authorize(request)
        if request.path == "/2/oauth2/token":
            return self.oauth.answer(request)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.oauth.access_tokens:
            return self.expired()
        if request.path.startswith("/2/media/"):
            return self.handle_media(request)
        return self.handle_post(request)

    def handle_post(self, request: Request) -> Answer:
        if (request.method, request.path) == ("GET", "/2/users/me"):
            return Answer(200, {"data": USER})
        if (request.method, request.path) == ("POST", "/2/tweets"):
            return self.create(request)
        if (request.method, request.path) == ("GET", f"/2/users/{USER['id']}/tweets"):
            newest = self.posts[::-1][: int(request.query["max_results"][0])]
            data = [{name: one[name] for name in ("id", "text", "created_at", "entities")} for one in newest]
            meta: dict[str, Any] = {"result_count": len(data)}
            if len(self.posts) > len(newest):
                meta["next_token"] = "more"
            return Answer(200, {"data": data, "meta": meta} if data else {"meta": meta})
        if (request.method, request.path) == ("GET", "/2/tweets"):
            return self.count(request)
        if request.method == "DELETE" and request.path.startswith("/2/tweets/"):
            return self.delete(request.path.rpartition("/")[2])
        return problem(404, "resource-not-found", f"{request.path} isn't there.")

    def create(self, request: Request) -> Answer:
        if request.headers.get("content-type") != "application/json":
            return problem(400, "invalid-request", "Send JSON.")
        body = request.json()
        unknown = set(body) - {"text", "media", "made_with_ai"}
        text, ids = body.get("text", ""), body.get("media", {}).get("media_ids", [])
        if unknown or not (text or ids) or not 0 <= len(ids) <= 4:
            return problem(400, "invalid-request", "One or more parameters to your request was invalid.")
        if not all(self.is_usable(one) for one in ids):
            return problem(400, "invalid-request", "Your media IDs are invalid.")
        if weighted_length(text) > 280:
            return problem(403, "not-permitted", "You are not permitted to perform this action.")
        if any(one["sent"] == text for one in self.posts):
            return Answer(
                403,
                {
                    "detail": "You are not allowed to create a Tweet with duplicate content.",
                    "type": "about:blank",
                    "title": "Forbidden",
                    "status": 403,
                },
            )
        return self.file(body, text, ids)

    def file(self, body: dict[str, Any], text: str, ids: list[str]) -> Answer:
        self.number += 1
        urls: list[dict[str, Any]] = []
        shown = text
        for number, match in enumerate(re.findall(r"https?://\S+", text)):
            short = f"https://t.co/{number}"
            shown = shown.replace(match, short)
            urls.append({"url": short, "expanded_url": match, "display_url": "…"})
        shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        if ids:
            short = "https://t.co/m"
            target = f"https://x.com/thepaper/status/{self.number}/photo/1"
            shown = f"{shown} {short}".strip()
            urls.append({"url": short, "expanded_url": target, "media_key": "3_1"})
        for one in urls:
            one["start"] = shown.index(one["url"])
            one["end"] = one["start"] + len(one["url"])
        self.posts.append(
            {
                "id": str(self.number),
                "text": shown,
                "sent": text,
                "created_at": self.clock().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "entities": {"urls": urls},
                "body": body,
            }
        )
        return Answer(201, {"data": {"id": str(self.number), "text": shown}})

    def delete(self, identity: str) -> Answer:
        there = [one for one in self.posts if one["id"] == identity]
        if not there:
            return problem(404, "resource-not-found", "Could not find tweet.")
        self.posts.remove(there[0])
        return Answer(200, {"data": {"deleted": True}})

    def count(self, request: Request) -> Answer:
        data = []
        for one in self.posts:
            if one["id"] not in request.query["ids"][0].split(","):
                continue
            public = {
                "impression_count": 900,
                "like_count": 30,
                "reply_count": 4,
                "repost_count": 2,
                "quote_count": 1,
                "bookmark_count": 0,
            }
            found = {"id": one["id"], "text": one["text"], "public_metrics": public}
            if "non_public_metrics" in request.query["post.fields"][0]:
                found["non_public_metrics"] = {"url_link_clicks": 12}
            data.append(found)
        return Answer(200, {"data": data})

    # --- media

    def is_usable(self, identity: str) -> bool:
        one = self.media.get(identity)
        return one is not None and one["is_final"] and one["polls"] == 0

    def handle_media(self, request: Request) -> Answer:
        if request.method == "GET":
            one = self.media[request.query["media_id"][0]]
            one["polls"] = max(0, one["polls"] - 1)
            state = "in_progress" if one["polls"] else "succeeded"
            info = {"state": state, **({"check_after_secs": 1} if one["polls"] else {})}
            return Answer(200, {"data": {"id": one["id"], "processing_info": info}})
        words = request.path.removeprefix("/2/media/").split("/")
        if words == ["metadata"]:
            body = request.json()
            self.media[body["id"]]["alt"] = body["metadata"]["alt_text"]["text"]
            return Answer(200, {"data": {"id": body["id"]}})
        if words == ["upload"]:
            form = form_of(request)
            if form["media_category"] != b"tweet_image":
                return problem(400, "invalid-request", "Videos are uploaded in parts.")
            one = self.new_media(len(form["media"]))
            one.update(content=form["media"], is_final=True)
            return Answer(200, {"data": {"id": one["id"], "expires_after_secs": 86400}})
        if words == ["upload", "initialize"]:
            body = request.json()
            if set(body) != {"media_type", "total_bytes", "media_category"}:
                return problem(400, "invalid-request", "The fields are wrong.")
            return Answer(200, {"data": {"id": self.new_media(body["total_bytes"])["id"]}})
        return self.part(request, self.media[words[1]], words[2])

    def part(self, request: Request, one: dict[str, Any], act: str) -> Answer:
        if act == "append":
            form = form_of(request)
            if not 0 < len(form["media"]) <= 5 * 1024 * 1024:
                return problem(413, "invalid-request", "The part is too large.")
            one["parts"][int(form["segment_index"])] = form["media"]
            return Answer(200, {"data": {"expires_at": 1}})
        content = b"".join(one["parts"][number] for number in sorted(one["parts"]))
        if len(content) != one["total"] or sorted(one["parts"]) != list(range(len(one["parts"]))):
            return problem(400, "invalid-request", "Parts are missing.")
        one.update(content=content, is_final=True, polls=self.polls_until_done)
        info = {"state": "pending", "check_after_secs": 1}
        return Answer(200, {"data": {"id": one["id"], "expires_after_secs": 86400, "processing_info": info}})

    def new_media(self, total: int) -> dict[str, Any]:
        identity = str(1_710_000_000_000 + len(self.media))
        self.media[identity] = {"id": identity, "total": total, "parts": {}, "is_final": False, "polls": 0}
        return self.media[identity]


def film(size: int = 5 * 1024 * 1024 + 7) -> PayloadAsset:
    return PayloadAsset(
        url="https://media.example.com/film.mp4",
        mime_type="video/mp4",
        role="video",
        bytes=size,
        name="film.mp4",
        width=1280,
        height=720,
        duration=12.0,
        open=opened(bytes(number % 251 for number in range(1000)) * (size // 1000) + b"z" * (size % 1000)),
    )


def account(server: LedgerServer, **credentials: str) -> Account:
    return Account(
        outlet="out_01m80wxp87eh3rnr6xcszcrb9t",
        config=PLUGIN.clean_config({}),
        credentials={"access_token": TOKEN, **credentials},
        profile={"external_id": USER["id"], "handle": USER["username"]},
        base_url=f"{server.url}/2",
        api_version="2",
    )


def payload(bucket: Bucket, body: str, *assets: PayloadAsset) -> Payload:
    return Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9t",
        revision=1,
        bucket=bucket,
        title="",
        body=body,
        body_format="text",
        assets=assets,
        is_ai_generated=True,
    )


def case(server: LedgerServer) -> Case:
    return Case(
        PLUGIN,
        account(server),
        {
            "text": payload("text", "The council & the tram: 14 to 9 👍🏽 https://example.com/tram?a=1&b=2"),
            "image": payload("image", "A red square.", picture(), picture("second.png", alt_text="")),
            "video": payload("video", "It moves.", film()),
        },
    )
