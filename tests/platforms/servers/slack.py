"""Slack's Web API as docs.slack.dev says: one app's bot in one channel, and one incoming webhook."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline import plugins
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture

TOKEN = "xoxb-1111111111-2222222222-abcdefghijklmnop"
HOOK = "/services/T0AAAAAAA/B0BBBBBBB/cccccccccccccccccccccccc"
CHANNEL = "C0123456789"


def refusal(error: str) -> Answer:
    return Answer(200, {"ok": False, "error": error})


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.next = 1795176000
        self.scopes = "chat:write,channels:history"
        self.hides_metadata = False
        self.others: list[dict[str, Any]] = []
        self.page = 100

    def is_commit(self, request: Request) -> bool:
        return request.path in {"/chat.postMessage", HOOK}

    def too_many(self) -> Answer:
        return Answer(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": "7"})

    def expired(self) -> Answer:
        return refusal("token_revoked")

    def handle(self, request: Request) -> Answer:
        if request.path == HOOK:
            return self.hook(request)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal("invalid_auth")
        if request.path == "/auth.test":
            who = {"url": "https://council.slack.com/", "team": "Council", "team_id": "T0AAAAAAA"}
            answer = {"ok": True, **who, "user": "news", "user_id": "U1", "bot_id": "B1"}
            return Answer(200, answer, {"X-OAuth-Scopes": self.scopes})
        if request.path == "/chat.postMessage":
            return self.post(request)
        if request.path == "/chat.delete":
            return self.delete(request.json())
        if request.path == "/conversations.history":
            return self.history(request)
        if request.path == "/chat.getPermalink":
            ts = request.query["message_ts"][0].replace(".", "")
            return Answer(
                200, {"ok": True, "permalink": f"https://council.slack.com/archives/{CHANNEL}/p{ts}"}
            )
        return refusal("unknown_method")

    def post(self, request: Request) -> Answer:
        if not request.headers.get("content-type", "").startswith("application/json"):
            return refusal("invalid_post_type")
        message = request.json()
        if message.get("channel") != CHANNEL:
            return refusal("channel_not_found")
        if not message.get("text") and not message.get("blocks"):
            return refusal("no_text")
        if len(message.get("text", "")) > 40_000:
            return refusal("msg_too_long")
        for block in message.get("blocks", []):
            if block["type"] == "section" and len(block["text"]["text"]) > 3000:
                return refusal("invalid_blocks")
            if block["type"] == "image" and not (
                block["alt_text"] and block["image_url"].startswith("https://")
            ):
                return refusal("invalid_blocks")
        self.next = max(self.next + 1, int(self.clock().timestamp()))
        ts = f"{self.next}.000100"
        self.posts.append({"ts": ts, **message})
        return Answer(200, {"ok": True, "channel": CHANNEL, "ts": ts, "message": {"text": message["text"]}})

    def hook(self, request: Request) -> Answer:
        message = request.json()
        if not message.get("text"):
            return Answer(400, b"no_text", {"Content-Type": "text/html"})
        self.posts.append(message)
        return Answer(200, b"ok", {"Content-Type": "text/html"})

    def delete(self, asked: dict[str, Any]) -> Answer:
        left = [post for post in self.posts if post["ts"] != asked["ts"]]
        if len(left) == len(self.posts):
            return refusal("message_not_found")
        self.posts = left
        return Answer(200, {"ok": True, "channel": CHANNEL, "ts": asked["ts"]})

    def history(self, request: Request) -> Answer:
        if "channels:history" not in self.scopes:
            return refusal("missing_scope")
        if request.query["channel"] != [CHANNEL]:
            return refusal("channel_not_found")
        oldest = float(request.query.get("oldest", ["0"])[0])
        shows = request.query.get("include_all_metadata") == ["true"] and not self.hides_metadata
        messages = [
            {
                "type": "message",
                "bot_id": "B1",
                "ts": post["ts"],
                "text": post["text"],
                **({"metadata": post["metadata"]} if shows else {}),
            }
            for post in self.posts
        ]
        found = [one for one in [*self.others, *messages[::-1]] if float(one["ts"]) > oldest]
        start = int(request.query.get("cursor", ["0"])[0])
        end = start + self.page
        answer: dict[str, Any] = {"ok": True, "messages": found[start:end], "has_more": end < len(found)}
        if answer["has_more"]:
            answer["response_metadata"] = {"next_cursor": str(end)}
        return Answer(200, answer)


def case(server: Server) -> Case:
    words = Payload(
        "gen_1", 1, "text", "Tram approved", "The council voted 14 to 9. 🚊", "text", language="en"
    )
    return Case(
        platform=plugins.get("platforms", "slack", Platform),
        account=Account(
            "out_1",
            config={"channel": CHANNEL},
            credentials={"token": TOKEN},
            profile={"limits": {"bot_id": "B1", "url": "https://council.slack.com/"}},
            base_url=server.url,
        ),
        payloads={
            "text": words,
            "image": replace(words, bucket="image", assets=(picture(), picture("second.png"))),
        },
    )
