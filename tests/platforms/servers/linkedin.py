"""LinkedIn's Posts API by MS Learn (read on 20 November 2026), with a ledger."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pipeline.platforms.base import Account
from pipeline.platforms.linkedin import PLUGIN
from pipeline.platforms.payload_types import Payload, PayloadAsset
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, opened, picture
from tests.platforms.servers.tokens import TokenAddress

if TYPE_CHECKING:
    from pipeline.engines.base import Bucket

TOKEN = "an-access-token-of-linkedin"
ACTIVE_VERSIONS = frozenset({"202511", "202610"})
PERSON = "782bbtaQ"
AUTHOR = f"urn:li:person:{PERSON}"
PART = 4 * 1024 * 1024
FIELDS = {
    "author",
    "commentary",
    "visibility",
    "distribution",
    "lifecycleState",
    "isReshareDisabledByAuthor",
}


def error(status: int, code: str, message: str) -> Answer:
    return Answer(status, {"status": status, "code": code, "message": message})


def shown(commentary: str) -> str:
    """As people see it: LinkedIn cuts the post at the first reserved sign that isn't escaped, and answers success."""
    out, position = "", 0
    while position < len(commentary):
        rest = commentary[position:]
        if tag := re.match(r"\{hashtag\|\\#\|((?:\\.|[^\\|{}])+)\}", rest):
            word = re.sub(r"\\(.)", r"\1", tag[1])
            out, position = f"{out}#{word}", position + tag.end()
        elif link := re.match(r"https?://[^\s|{}\[\]()<>*\\]+", rest):
            out, position = out + link[0], position + link.end()
        elif rest[0] == "\\" and len(rest) > 1:
            out, position = out + rest[1], position + 2
        elif rest[0] in "\\|{}[]()<>@#*_~":
            return out
        else:
            out, position = out + rest[0], position + 1
    return out


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.oauth = TokenAddress(
            uses_basic=False,
            rotates=False,
            lives_for=5_184_000,
            scope="openid,profile,w_member_social",
            gives_refresh=False,
            needs_pkce=False,
        )
        self.oauth.access_tokens.add(TOKEN)
        self.media: dict[str, dict[str, Any]] = {}
        self.polls_until_done = 2
        self.number = 7_000

    def is_commit(self, request: Request) -> bool:
        return request.method == "POST" and request.path == "/rest/posts"

    def too_many(self) -> Answer:
        answer = error(429, "TOO_MANY_REQUESTS", "Resource level throttle limit is reached")
        return Answer(429, answer.body, {"Retry-After": "7"})

    def expired(self) -> Answer:
        return Answer(
            401,
            {
                "status": 401,
                "serviceErrorCode": 65602,
                "code": "EXPIRED_ACCESS_TOKEN",
                "message": "The token used in the request has expired",
            },
        )

    def handle(self, request: Request) -> Answer:
        if request.path == "/oauth/v2/authorization":
            return self.oauth.authorize(request)
        if request.path == "/oauth/v2/accessToken":
            return self.oauth.answer(request)
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.oauth.access_tokens:
            return self.expired()
        if request.path == "/v2/userinfo":
            return Answer(200, {"sub": PERSON, "name": "Ada Paper", "locale": "en"})
        if request.path.startswith("/dms-uploads/"):
            return self.store(request)
        if request.headers.get("x-restli-protocol-version") != "2.0.0":
            return error(400, "ILLEGAL_ARGUMENT", "Protocol version is missing")
        version = request.headers.get("linkedin-version", "")
        if version not in ACTIVE_VERSIONS:
            return error(426, "NONEXISTENT_VERSION", f"Requested version {version} is not active")
        return self.versioned(request)

    def versioned(self, request: Request) -> Answer:
        words = [unquote(word) for word in request.path.removeprefix("/rest/").split("/")]
        if request.method == "POST" and words == ["posts"]:
            return self.create(request)
        if request.method == "DELETE" and words[0] == "posts":
            self.posts = [one for one in self.posts if one["id"] != words[1]]
            return Answer(204)
        if request.method == "GET" and words[0] == "videos":
            return self.video(words[1])
        if request.method == "POST" and words[0] in {"images", "videos"}:
            return self.upload(words[0], request.query["action"][0], request.json())
        if words == ["memberCreatorPostAnalytics"]:
            return error(403, "ACCESS_DENIED", "Not enough permissions to access: memberCreatorPostAnalytics")
        return error(404, "RESOURCE_NOT_FOUND", "No such resource")

    def create(self, request: Request) -> Answer:
        body = request.json()
        if set(body) - {"content"} != FIELDS or body["author"] != AUTHOR:
            return error(422, "MISSING_FIELD", "Fields are missing or unknown")
        if len(body["commentary"]) > 3000:
            return error(422, "FIELD_LENGTH_TOO_LONG", "commentary is too long")
        for urn in urns_of(body.get("content", {})):
            if not self.media.get(urn, {}).get("is_ready"):
                return error(422, "INVALID_CONTENT", f"{urn} isn't there")
        for one in self.posts:
            if one["body"] == body:
                return error(422, "DUPLICATE_POST", f"Content is a duplicate of {one['id']}")
        self.number += 1
        urn = f"urn:li:share:{self.number}"
        self.posts.append({"id": urn, "body": body, "text": shown(body["commentary"])})
        return Answer(201, b"", {"x-restli-id": urn})

    def upload(self, what: str, action: str, body: Any) -> Answer:
        if action == "finalizeUpload":
            wish = body["finalizeUploadRequest"]
            one = self.media[wish["video"]]
            if wish["uploadedPartIds"] != [f"etag-{number}" for number in range(len(one["parts"]))]:
                return error(400, "ILLEGAL_ARGUMENT", "The parts don't match")
            content = b"".join(one["parts"][number] for number in sorted(one["parts"]))
            if len(content) != one["size"] or wish["uploadToken"] != "token":
                return error(400, "ILLEGAL_ARGUMENT", "Parts are missing")
            one.update(content=content, polls=self.polls_until_done)
            return Answer(200)
        wish = body["initializeUploadRequest"]
        if wish["owner"] != AUTHOR:
            return error(403, "ACCESS_DENIED", "Not the owner")
        number = len(self.media)
        urn = f"urn:li:{what.removesuffix('s')}:C5{number}"
        url = f"{self.url}/dms-uploads/{number}"
        if what == "images":
            self.media[urn] = {"number": number, "is_ready": False}
            return Answer(200, {"value": {"uploadUrl": f"{url}/0", "image": urn, "uploadUrlExpiresAt": 1}})
        size = wish["fileSizeBytes"]
        self.media[urn] = {"number": number, "is_ready": False, "size": size, "parts": {}, "polls": None}
        parts = [
            {
                "uploadUrl": f"{url}/{start // PART}",
                "firstByte": start,
                "lastByte": min(start + PART, size) - 1,
            }
            for start in range(0, size, PART)
        ]
        return Answer(200, {"value": {"video": urn, "uploadToken": "token", "uploadInstructions": parts}})

    def store(self, request: Request) -> Answer:
        _, number, part = request.path.strip("/").split("/")
        one = next(one for one in self.media.values() if one["number"] == int(number))
        if request.method != "PUT" or request.headers.get("content-type") != "application/octet-stream":
            return Answer(400, b"<html>Send the bytes.</html>")
        if "parts" not in one:
            one.update(content=request.body, is_ready=True)
            return Answer(201)
        one["parts"][int(part)] = request.body
        return Answer(200, b"", {"ETag": f"etag-{part}"})

    def video(self, urn: str) -> Answer:
        one = self.media[urn]
        one["polls"] -= 1
        one["is_ready"] = one["polls"] <= 0
        return Answer(200, {"id": urn, "status": "AVAILABLE" if one["is_ready"] else "PROCESSING"})


def urns_of(content: dict[str, Any]) -> list[str]:
    images = content.get("multiImage", {}).get("images", [])
    media = [content["media"]] if "media" in content else []
    return [one["id"] for one in [*images, *media]]


def film(size: int = PART + 1_000) -> PayloadAsset:
    return PayloadAsset(
        url="https://media.example.com/film.mp4",
        mime_type="video/mp4",
        role="video",
        bytes=size,
        name="film.mp4",
        duration=12.0,
        open=opened(bytes(number % 251 for number in range(1000)) * (size // 1000) + b"z" * (size % 1000)),
    )


def account(server: LedgerServer, **credentials: str) -> Account:
    return Account(
        outlet="out_01m80wxp87eh3rnr6xcszcrb9t",
        config=PLUGIN.clean_config({}),
        credentials={"access_token": TOKEN, **credentials},
        profile={"external_id": PERSON, "name": "Ada Paper"},
        base_url=server.url,
        api_version="202610",
    )


def payload(bucket: Bucket, body: str, *assets: PayloadAsset) -> Payload:
    return Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9t",
        revision=1,
        bucket=bucket,
        title="The tram",
        body=body,
        body_format="text",
        assets=assets,
    )


def case(server: LedgerServer) -> Case:
    return Case(
        PLUGIN,
        account(server),
        {
            "text": payload("text", "The council (14 to 9) wants a #tram: https://example.com/a_b?c=1"),
            "image": payload("image", "Red squares.", picture(), picture("second.png", alt_text="")),
            "video": payload("video", "It moves.", film()),
        },
        finds_what_was_sent=False,
    )
