"""A personal data server as the AT Protocol's lexicons describe it, with the public counts of an AppView beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

import regex

from pipeline import plugins
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import NOW, Answer, Case, LedgerServer, Request, picture

DID = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
OTHER = "did:plc:z72i7hdynmk6r22z27h6tvur"
HANDLE = "writer.example.com"
APP_PASSWORD = "abcd-efgh-ijkl-mnop"
POSTS = "app.bsky.feed.post"
TID = re.compile(r"[234567abcdefghij][234567abcdefghijklmnopqrstuvwxyz]{12}")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def token(scope: str, *, ends: datetime, number: int = 0) -> str:
    """A token that says of itself what the server's own do; its signature is made up."""
    claims = {"scope": scope, "sub": DID, "exp": int(ends.timestamp()), "jti": number}
    parts = ({"typ": "at+jwt", "alg": "HS256"}, claims)
    head, body = (base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=").decode() for one in parts)
    return f"{head}.{body}.bm90LXNpZ25lZA"


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.live: dict[str, datetime] = {}
        self.refreshing: set[str] = set()
        self.sessions = 0
        self.is_suspended = False
        self.blobs: dict[str, dict[str, Any]] = {}
        self.handles = {"alice.example.com": OTHER}
        self.counts: dict[str, dict[str, int]] = {}

    def is_commit(self, request: Request) -> bool:
        return request.path == "/xrpc/com.atproto.repo.applyWrites"

    def too_many(self) -> Answer:
        reset = str(int((self.now + timedelta(seconds=7)).timestamp()))
        headers = {"RateLimit-Limit": "5000", "RateLimit-Remaining": "0", "RateLimit-Reset": reset}
        return Answer(429, {"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}, headers)

    def expired(self) -> Answer:
        return error(401, "AuthenticationRequired", "Authentication Required")

    def handle(self, request: Request) -> Answer:
        name = request.path.removeprefix("/xrpc/")
        answers = {
            ("POST", "com.atproto.server.createSession"): self.create_session,
            ("POST", "com.atproto.server.refreshSession"): self.refresh_session,
            ("GET", "com.atproto.identity.resolveHandle"): self.resolve,
            ("GET", "com.atproto.repo.getRecord"): self.get_record,
            ("GET", "app.bsky.feed.getPosts"): self.get_posts,
        }
        private = {
            ("GET", "com.atproto.server.getSession"): self.get_session,
            ("POST", "com.atproto.repo.uploadBlob"): self.upload,
            ("POST", "com.atproto.repo.applyWrites"): self.apply,
            ("POST", "com.atproto.repo.deleteRecord"): self.delete,
        }
        what = (request.method, name)
        if what in answers:
            return answers[what](request)
        if what in private:
            return self.refusal(request) or private[what](request)
        return error(404, "XRPCNotSupported", "XRPCNotSupported")

    def refusal(self, request: Request) -> Answer | None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or not given:
            return error(401, "AuthMissing", "Authentication Required")
        if given not in self.live:
            return error(400, "InvalidToken", "Token could not be verified")
        if self.live[given] <= self.now:
            return error(400, "ExpiredToken", "Token has expired")
        if self.is_suspended:
            return error(401, "AccountTakedown", "Account has been taken down")
        return None

    def new_session(self) -> dict[str, Any]:
        self.sessions += 1
        access = token("com.atproto.appPass", ends=self.now + timedelta(hours=2), number=self.sessions)
        refresh = token("com.atproto.refresh", ends=self.now + timedelta(days=90), number=self.sessions)
        self.live[access] = self.now + timedelta(hours=2)
        self.refreshing.add(refresh)
        service = {"id": "#atproto_pds", "type": "AtprotoPersonalDataServer", "serviceEndpoint": self.url}
        return {
            "accessJwt": access,
            "refreshJwt": refresh,
            "handle": HANDLE,
            "did": DID,
            "didDoc": {"id": DID, "service": [service]},
            "active": True,
        }

    def create_session(self, request: Request) -> Answer:
        given = request.json()
        if given.keys() != {"identifier", "password"}:
            return error(400, "InvalidRequest", "Input must have the property identifier")
        if given["identifier"] not in {HANDLE, DID} or given["password"] != APP_PASSWORD:
            return error(401, "AuthenticationRequired", "Invalid identifier or password")
        return Answer(200, self.new_session())

    def refresh_session(self, request: Request) -> Answer:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.body:
            return error(400, "InvalidRequest", "A request body was provided when none was expected")
        if given not in self.refreshing:
            return error(400, "ExpiredToken", "Token has been revoked")
        self.refreshing.discard(given)
        return Answer(200, self.new_session())

    def get_session(self, request: Request) -> Answer:
        return Answer(200, {"handle": HANDLE, "did": DID, "active": True})

    def resolve(self, request: Request) -> Answer:
        did = self.handles.get(request.query["handle"][0])
        if did is None:
            return error(400, "InvalidRequest", "Unable to resolve handle")
        return Answer(200, {"did": did})

    def upload(self, request: Request) -> Answer:
        mime_type = request.headers.get("content-type", "")
        if not mime_type.startswith("image/") or not request.body:
            return error(400, "InvalidMimeType", "Wrong mime type")
        raw = b"\x01\x55\x12\x20" + hashlib.sha256(request.body).digest()
        cid = "b" + base64.b32encode(raw).decode().lower().rstrip("=")
        blob = {"$type": "blob", "ref": {"$link": cid}, "mimeType": mime_type, "size": len(request.body)}
        self.blobs[cid] = blob
        return Answer(200, {"blob": blob})

    def apply(self, request: Request) -> Answer:
        given = request.json()
        if request.headers["content-type"] != "application/json" or given["repo"] != DID:
            return error(400, "InvalidRequest", "Invalid input")
        there = {one["rkey"] for one in self.posts}
        coming = []
        for write in given["writes"]:
            wrong = self.wrong_with(write)
            if wrong:
                return error(400, *wrong)
            if write["rkey"] in there:
                # The tree of records has no name for it.
                return error(500, "InternalServerError", "Internal Server Error")
            coming.append(
                {"rkey": write["rkey"], "uri": f"at://{DID}/{POSTS}/{write['rkey']}", "value": write["value"]}
            )
        self.posts += coming
        results = [
            {"$type": "com.atproto.repo.applyWrites#createResult", "uri": one["uri"]} for one in coming
        ]
        return Answer(200, {"commit": {"cid": "bafyrei", "rev": "3l"}, "results": results})

    def wrong_with(self, write: dict[str, Any]) -> tuple[str, str] | None:
        record = write["value"]
        if write["$type"] != "com.atproto.repo.applyWrites#create" or write["collection"] != POSTS:
            return "InvalidRequest", "Input/writes must be an union"
        if not TID.fullmatch(write["rkey"]):
            return "InvalidRequest", "Invalid record key"
        if record["$type"] != POSTS or not MOMENT.fullmatch(record["createdAt"]):
            return "InvalidRequest", "Invalid app.bsky.feed.post record: Record/createdAt must be a datetime"
        text = record["text"]
        if len(regex.findall(r"\X", text)) > 300 or len(text.encode()) > 3000:
            return (
                "InvalidRequest",
                "Invalid app.bsky.feed.post record: Record/text must not be longer than 300 graphemes",
            )
        for facet in record.get("facets", []):
            index = facet["index"]
            # Cut elsewhere than between two signs, it can't be read.
            text.encode()[index["byteStart"] : index["byteEnd"]].decode()
        for image in record.get("embed", {}).get("images", []):
            blob = image["image"]
            if not isinstance(image["alt"], str):
                return "InvalidRequest", "Record/embed/images/0/alt must be a string"
            if blob["size"] > 2_000_000:
                return "BlobTooLarge", "This file is too large"
            if self.blobs.get(blob["ref"]["$link"]) != blob:
                return "BlobNotFound", "Could not find blob"
        return None

    def get_record(self, request: Request) -> Answer:
        if request.query["repo"] != [DID] or request.query["collection"] != [POSTS]:
            return error(400, "InvalidRequest", "Could not find repo")
        for post in self.posts:
            if [post["rkey"]] == request.query["rkey"]:
                return Answer(200, {"uri": post["uri"], "cid": "bafyrei", "value": post["value"]})
        return error(400, "RecordNotFound", f"Could not locate record: {request.query['rkey'][0]}")

    def delete(self, request: Request) -> Answer:
        given = request.json()
        if given.keys() != {"repo", "collection", "rkey"}:
            return error(400, "InvalidRequest", "Invalid input")
        self.posts = [post for post in self.posts if post["rkey"] != given["rkey"]]
        return Answer(200, {})

    def get_posts(self, request: Request) -> Answer:
        uris = [unquote(uri) for uri in request.query["uris"]]
        if len(uris) > 25:
            return error(400, "InvalidRequest", "uris must not have more than 25 elements")
        none = {"likeCount": 0, "repostCount": 0, "replyCount": 0, "quoteCount": 0, "bookmarkCount": 0}
        there = [post["uri"] for post in self.posts if post["uri"] in uris]
        return Answer(200, {"posts": [{"uri": uri, **none, **self.counts.get(uri, {})} for uri in there]})


def error(status: int, name: str, message: str) -> Answer:
    return Answer(status, {"error": name, "message": message})


def account(server: Server, **credentials: str) -> Account:
    """An account whose session was kept; another credential takes the place of its own."""
    with server.lock:
        session = server.new_session()
    kept = {
        "app_password": APP_PASSWORD,
        "access_token": session["accessJwt"],
        "refresh_token": session["refreshJwt"],
    }
    return Account(
        outlet="out_1",
        config={"handle": HANDLE, "server": server.url, "pds": server.url, "appview": server.url},
        credentials=kept | credentials,
        profile={"external_id": DID},
    )


def payload(
    bucket: Any = "text", body: str = "The council voted 14 to 9 for the tram. #tram", **given: Any
) -> Payload:
    return Payload(
        **{
            "item": "gen_1",
            "revision": 1,
            "bucket": bucket,
            "title": "Tram approved",
            "body": body,
            "body_format": "text",
            "language": "en",
            **given,
        }
    )


def case(server: Server) -> Case:
    platform = plugins.get("platforms", "bluesky", Platform)
    payloads: dict[Any, Payload] = {
        "text": payload(
            body="The council voted 14 to 9, says @alice.example.com. #tram https://example.com/news"
        ),
        "image": payload("image", assets=(picture(), picture("second.png", alt_text="Another square."))),
    }
    return Case(platform, account(server), payloads)
