"""Discord's webhooks as discord-api-docs says (API v10): one webhook in one channel."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pipeline import plugins
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture, video
from tests.platforms.servers.forms import fields_of, files_of

IDENTITY = "223704706495545344"
TOKEN = "3d89bb7572e0fb30d8128367b3b1b44fecd1726de135cbe28a41f8b2f777c372ba2939e72279b94526ff5d1bd4358d65cf11"
GUILD, CHANNEL, THREAD = "199737254929760256", "199737254929760300", "199737254929760400"


def refusal(status: int, code: int, message: str) -> Answer:
    return Answer(status, {"code": code, "message": message})


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.next = 900_000_000_000_000_000

    def is_commit(self, request: Request) -> bool:
        return request.method == "POST"

    def too_many(self) -> Answer:
        body = {"message": "You are being rate limited.", "retry_after": 6.5, "global": False}
        return Answer(429, body, {"X-RateLimit-Scope": "shared"})

    def expired(self) -> Answer:
        return refusal(401, 50027, "Invalid Webhook Token")

    def handle(self, request: Request) -> Answer:
        if not request.headers.get("user-agent"):
            return refusal(403, 40333, "internal network error")
        steps = request.path.strip("/").split("/")
        if steps[:2] != ["v10", "webhooks"]:
            return refusal(404, 0, "404: Not Found")
        if steps[2] != IDENTITY:
            return refusal(404, 10015, "Unknown Webhook")
        if steps[3] != TOKEN:
            return refusal(401, 50027, "Invalid Webhook Token")
        thread = request.query.get("thread_id", [""])[0]
        if thread not in {"", THREAD}:
            return refusal(404, 10003, "Unknown Channel")
        if request.method == "GET" and len(steps) == 4:
            return Answer(
                200, {"id": IDENTITY, "type": 1, "name": "News", "guild_id": GUILD, "channel_id": CHANNEL}
            )
        if request.method == "DELETE" and steps[4] == "messages":
            return self.delete(steps[5], thread)
        if request.method == "POST" and len(steps) == 4:
            return self.post(request, thread)
        return refusal(405, 0, "405: Method Not Allowed")

    def delete(self, number: str, thread: str) -> Answer:
        left = [post for post in self.posts if (post["id"], post["thread"]) != (number, thread)]
        if len(left) == len(self.posts):
            return refusal(404, 10008, "Unknown Message")
        self.posts = left
        return Answer(204)

    def post(self, request: Request, thread: str) -> Answer:
        is_form = request.headers.get("content-type", "").startswith("multipart/")
        message: dict[str, Any] = (
            json.loads(fields_of(request)["payload_json"]) if is_form else request.json()
        )
        files = files_of(request) if is_form else {}
        if len(message.get("content", "").encode("utf-16-le")) // 2 > 2000:
            return refusal(400, 50035, "Invalid Form Body")
        for card in message.get("embeds", []):
            if len(card["title"]) > 256 or len(card["description"].encode("utf-16-le")) // 2 > 4096:
                return refusal(400, 50035, "Invalid Form Body")
        if not message.get("content") and not message.get("embeds") and not files:
            return refusal(400, 50006, "Cannot send an empty message")
        wanted = {f"files[{one['id']}]" for one in message.get("attachments", [])}
        if len(files) > 10 or wanted != set(files) or not all(one.content for one in files.values()):
            return refusal(400, 50035, "Invalid Form Body")
        self.next += 1
        post = {
            "id": str(self.next),
            "thread": thread,
            **message,
            "files": [one.file_name for one in files.values()],
        }
        self.posts.append(post)
        if request.query.get("wait") != ["true"]:
            return Answer(204)
        return Answer(
            200, {"id": post["id"], "channel_id": thread or CHANNEL, "content": message.get("content", "")}
        )


def case(server: Server) -> Case:
    words = Payload(
        "gen_1", 1, "text", "Tram approved", "The council voted 14 to 9. 🚊", "text", language="en"
    )
    return Case(
        platform=plugins.get("platforms", "discord", Platform),
        account=Account(
            "out_1",
            credentials={"webhook_url": f"https://discord.com/api/webhooks/{IDENTITY}/{TOKEN}"},
            profile={"limits": {"guild_id": GUILD, "channel_id": CHANNEL}},
            base_url=server.url,
            api_version="v10",
        ),
        payloads={
            "text": words,
            "image": replace(words, bucket="image", assets=(picture(), picture("second.png"))),
            "video": replace(words, bucket="video", assets=(video(),)),
            "blog": replace(words, bucket="blog", link="https://example.com/news", assets=(picture(),)),
        },
        finds_what_was_sent=False,
    )
