"""A receiver as pipeline/platforms/README.md says: it verifies the signature, takes each id once, and can be asked."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import replace

from pipeline import plugins
from pipeline.engines.base import BUCKETS
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture

SECRET = "whsec_" + base64.b64encode(b"thirty-two bytes of a secret key").decode()


class Server(LedgerServer):
    def is_commit(self, request: Request) -> bool:
        return request.method == "POST"

    def too_many(self) -> Answer:
        return Answer(429, {"error": "Slow down"}, {"Retry-After": "7"})

    def expired(self) -> Answer:
        return Answer(401, {"error": "Wrong signature"})

    def is_signed(self, request: Request) -> bool:
        key = base64.b64decode(SECRET.removeprefix("whsec_"))
        identity, moment = request.headers.get("webhook-id", ""), request.headers.get("webhook-timestamp", "")
        signed = f"{identity}.{moment}.".encode() + request.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return f"v1,{expected}" in request.headers.get("webhook-signature", "").split(" ")

    def handle(self, request: Request) -> Answer:
        if not self.is_signed(request):
            return self.expired()
        key = request.headers["webhook-id"]
        found = next((post for post in self.posts if post["publication"] == key), None)
        if request.method == "GET":
            if request.query["publication"] != [key]:
                return Answer(400, {"error": "Another publication was signed"})
            return Answer(
                200, {"found": True, "id": found["id"], "url": found["url"]} if found else {"found": False}
            )
        if request.headers.get("content-type") != "application/json":
            return Answer(415, {"error": "JSON, please"})
        if found is None:
            number = f"{len(self.posts) + 1}"
            found = {**request.json(), "id": number, "url": f"https://council.example.com/posts/{number}"}
            assert found["publication"] == key
            self.posts.append(found)
            return Answer(201, {"id": found["id"], "url": found["url"]})
        return Answer(409, {"id": found["id"], "url": found["url"]})


def case(server: Server) -> Case:
    words = Payload(
        "gen_1", 1, "text", "Tram approved", "The council voted 14 to 9. 🚊", "text", language="en"
    )
    address = f"{server.url}/posts"
    return Case(
        platform=plugins.get("platforms", "signed_webhook", Platform),
        account=Account(
            "out_1",
            config={"address": address, "lost_answer": "ask", "allows_http": True},
            credentials={"secret": SECRET},
        ),
        payloads={bucket: replace(words, bucket=bucket, assets=(picture(),)) for bucket in BUCKETS},
    )
