"""A TikTok on loopback: oEmbed and short links, after what is documented and recorded of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from werkzeug import Response

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

SAMPLES = Path(__file__).parent / "samples" / "tiktok"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


class TikTokServer:
    """`captions` are by the number of the video; what isn't there is answered as TikTok answers for it."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("").rstrip("/")
        self.captions: dict[str, str] = {}
        self.short: dict[str, str] = {}
        self.answer: Response | None = None
        self.blocked_after: int | None = None
        self.asked: list[str] = []
        server.expect_request("/oembed").respond_with_handler(self.oembed)
        server.expect_request("").respond_with_handler(self.other)

    def oembed(self, request: Any) -> Response:
        address = request.args["url"]
        self.asked.append(address)
        if self.blocked_after is not None and len(self.asked) > self.blocked_after:
            return Response("Access Denied", status=403)
        if self.answer is not None:
            return Response(self.answer.data, status=self.answer.status_code, headers=self.answer.headers)
        number = re.findall("[0-9]+", address)[-1]
        if number not in self.captions:
            return Response('{"code": 400, "message": "Something went wrong"}', status=400)
        found = json.loads(sample("oembed.json")) | {
            "title": self.captions[number],
            "embed_product_id": number,
        }
        return Response(json.dumps(found), content_type="application/json")

    def other(self, request: Any) -> Response:
        self.asked.append(request.path)
        target = self.short.get(request.path)
        if target is None:
            return Response(status=302, headers={"Location": "https://www.tiktok.com/"})
        return Response(status=301, headers={"Location": target})
