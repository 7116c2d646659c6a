"""The Bot API as core.telegram.org/bots/api says (Bot API 10.0): one bot, one channel."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pipeline import plugins
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture, video
from tests.platforms.servers.forms import fields_of, files_of

TOKEN = "123456789:AAF-a_secret_token_of_a_bot_000000000"
CHANNEL = -1001234567890
NAME = "council_news"


def ok(result: object) -> Answer:
    return Answer(200, {"ok": True, "result": result})


def refusal(status: int, description: str, **parameters: Any) -> Answer:
    answer = {"ok": False, "error_code": status, "description": description}
    return Answer(status, {**answer, **({"parameters": parameters} if parameters else {})})


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.next = 100
        self.member: dict[str, Any] = {"status": "administrator", "can_post_messages": True}
        self.moved_from = ""

    def is_commit(self, request: Request) -> bool:
        return "/send" in request.path

    def too_many(self) -> Answer:
        return refusal(429, "Too Many Requests: retry after 7", retry_after=7)

    def expired(self) -> Answer:
        return refusal(401, "Unauthorized")

    def handle(self, request: Request) -> Answer:
        token, _, method = request.path.removeprefix("/bot").partition("/")
        if not request.path.startswith("/bot") or token != TOKEN:
            return refusal(401, "Unauthorized")
        fields = fields_of(request)
        if method == "getMe":
            return ok({"id": 123456789, "is_bot": True, "username": "council_bot"})
        chat = fields.get("chat_id", "")
        if self.moved_from and chat == self.moved_from:
            words = "Bad Request: group chat was upgraded to a supergroup chat"
            return refusal(400, words, migrate_to_chat_id=CHANNEL)
        if chat not in {f"@{NAME}", str(CHANNEL)}:
            return refusal(400, "Bad Request: chat not found")
        if method == "getChat":
            return ok({"id": CHANNEL, "type": "channel", "title": "Council news", "username": NAME})
        if method == "getChatMember":
            return ok(self.member) if fields["user_id"] == "123456789" else refusal(400, "user not found")
        if method == "deleteMessage":
            return self.delete(int(fields["message_id"]))
        return self.send(method, fields, request)

    def delete(self, number: int) -> Answer:
        left = [post for post in self.posts if number not in post["numbers"]]
        if len(left) == len(self.posts):
            return refusal(400, "Bad Request: message to delete not found")
        self.posts = left
        return ok(result=True)

    def send(self, method: str, fields: dict[str, str], request: Request) -> Answer:
        files = files_of(request)
        if method == "sendMessage":
            text = fields.get("text", "")
            if not text:
                return refusal(400, "Bad Request: message text is empty")
            if len(text.encode("utf-16-le")) // 2 > 4096:
                return refusal(400, "Bad Request: message is too long")
            return ok(self.file(fields, [text], ()))
        if method in {"sendPhoto", "sendVideo"}:
            name = method.removeprefix("send").lower()
            if name not in files or not files[name].content:
                return refusal(400, f"Bad Request: there is no {name} in the request")
            return self.captioned(fields, fields.get("caption", ""), [files[name].file_name])
        if method == "sendMediaGroup":
            media = json.loads(fields["media"])
            names = [one["media"].removeprefix("attach://") for one in media]
            if not 2 <= len(media) <= 10 or set(names) != set(files):
                return refusal(400, "Bad Request: wrong file identifier/HTTP URL specified")
            return self.captioned(
                fields, media[0].get("caption", ""), [files[one].file_name for one in names]
            )
        return refusal(404, "Not Found")

    def captioned(self, fields: dict[str, str], caption: str, names: list[str | None]) -> Answer:
        if len(caption.encode("utf-16-le")) // 2 > 1024:
            return refusal(400, "Bad Request: message caption is too long")
        result = self.file(fields, [caption] + [""] * (len(names) - 1), names)
        return ok(result if len(names) > 1 else result[0])

    def file(self, fields: dict[str, str], texts: list[str], names: Any) -> Any:
        numbers = [self.next + index for index in range(len(texts))]
        self.next += len(texts)
        self.posts.append({"numbers": numbers, "fields": fields, "text": texts[0], "files": list(names)})
        chat = {"id": CHANNEL, "username": NAME, "type": "channel"}
        result = [{"message_id": number, "chat": chat} for number in numbers]
        return result if names else result[0]


def case(server: Server) -> Case:
    words = Payload(
        "gen_1", 1, "text", "Tram approved", "The council voted 14 to 9. 🚊", "text", language="en"
    )
    return Case(
        platform=plugins.get("platforms", "telegram", Platform),
        account=Account(
            "out_1", config={"chat": f"@{NAME}"}, credentials={"token": TOKEN}, base_url=server.url
        ),
        payloads={
            "text": words,
            "image": replace(words, bucket="image", assets=(picture(), picture("second.png"))),
            "video": replace(words, bucket="video", assets=(video(),)),
        },
        finds_what_was_sent=False,
    )
