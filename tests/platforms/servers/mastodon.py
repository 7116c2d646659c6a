"""A Mastodon server as its documents describe it: statuses, files, an account, an instance."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs

from pipeline import plugins
from pipeline.platforms.base import Account, Platform
from pipeline.platforms.payload_types import Payload, PayloadAsset
from pipeline.text.links import find_links
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture
from tests.platforms.servers.forms import fields_of, files_of

TOKEN = "ZA-Yj3aBD8U8Cm7lKUp-lm9O9BmDgdhHzDeqsY8tlL0"
ACCOUNT = "109364722837465121"
FIRST_STATUS = 115_583_000_000_000_000
PUBLIC = {"public", "unlisted", "private", "direct"}
FILES = ["image/jpeg", "image/png", "image/gif", "image/webp", "video/mp4", "video/webm"]
MENTION = re.compile(r"(?<![=/:\w])@(\w+)@[\w.-]+")


class Server(LedgerServer):
    software = "4.4.3"
    source_url = "https://github.com/mastodon/mastodon"

    def __init__(self) -> None:
        super().__init__()
        self.number = FIRST_STATUS
        self.first_by_key: dict[str, dict[str, Any]] = {}
        self.honours_keys = True
        self.has_v2 = True
        self.has_source = True
        self.is_bot = True
        self.scopes = ["read", "write"]
        self.limit = 500
        self.files: dict[str, dict[str, Any]] = {}
        self.working = 0
        """How often a new file is still being worked on when it is asked for."""
        self.missing_page: bytes | None = None
        """What it answers instead of JSON where a post is missing: Takahe 0.11 has a page for that."""
        self.is_walled = False
        """A proxy answers every call by that page."""
        self.ways: list[str] = []
        """How status calls end that aren't faults of the line: `422`, `403`, one for each, else `ok`."""

    def is_commit(self, request: Request) -> bool:
        return request.method == "POST" and request.path == "/api/v1/statuses"

    def too_many(self) -> Answer:
        reset = (
            (self.clock() + timedelta(seconds=7)).isoformat(timespec="microseconds").replace("+00:00", "Z")
        )
        headers = {"X-RateLimit-Limit": "300", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}
        return Answer(429, {"error": "Too many requests"}, headers)

    def expired(self) -> Answer:
        return Answer(401, {"error": "The access token was revoked"})

    def handle(self, request: Request) -> Answer:
        path = request.path.rstrip("/")
        if path == "/api/v2/instance":
            return Answer(200, self.instance()) if self.has_v2 else Answer(404, {"error": "Not Found"})
        if path == "/api/v1/instance":
            return Answer(200, self.old_instance())
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Answer(401, {"error": "The access token is invalid"})
        place = path.removeprefix("/api/").split("/")
        if self.is_walled:
            return Answer(404, self.missing_page)
        if place[:2] == ["v1", "statuses"]:
            return self.post(request) if place[2:] == [] else self.status(request.method, *place[2:])
        if request.method == "POST":
            return self.upload(request) if place == ["v2", "media"] else missing()
        return self.read(request, place)

    def read(self, request: Request, place: list[str]) -> Answer:
        match place:
            case ["v1", "accounts", "verify_credentials"]:
                return Answer(200, self.account())
            case ["v1", "apps", "verify_credentials"]:
                return Answer(200, {"name": "pipeline", "scopes": self.scopes})
            case ["v1", "accounts", account, "statuses"] if account == ACCOUNT:
                return self.statuses(request)
            case ["v1", "media", number]:
                return self.file(number)
        return missing()

    def instance(self) -> dict[str, Any]:
        statuses = {
            "max_characters": self.limit,
            "max_media_attachments": 4,
            "characters_reserved_per_url": 23,
        }
        media = {
            "description_limit": 1500,
            "supported_mime_types": FILES,
            "image_size_limit": 16_777_216,
            "image_matrix_limit": 33_177_600,
            "video_size_limit": 103_809_024,
            "video_frame_rate_limit": 120,
            "video_matrix_limit": 8_294_400,
        }
        return {
            "domain": "social.example",
            "title": "Social",
            "version": self.software,
            "source_url": self.source_url,
            "description": "A server.",
            "configuration": {"statuses": statuses, "media_attachments": media},
            "api_versions": {"mastodon": 6},
        }

    def old_instance(self) -> dict[str, Any]:
        return {
            **self.instance(),
            "uri": "social.example",
            "short_description": "A server.",
            "email": "a@social.example",
        }

    def account(self) -> dict[str, Any]:
        return {
            "id": ACCOUNT,
            "username": "writer",
            "acct": "writer",
            "display_name": "Writer",
            "url": "https://social.example/@writer",
            "bot": self.is_bot,
            "created_at": "2024-01-01T00:00:00.000Z",
        }

    def statuses(self, request: Request) -> Answer:
        def asked(name: str) -> str:
            return request.query.get(name, [""])[0]

        found = sorted(self.posts, key=lambda one: int(one["id"]))
        limit = min(int(asked("limit") or 20), 40)
        if asked("min_id"):
            # The ones next to it, newest first.
            newer = [one for one in found if int(one["id"]) > int(asked("min_id"))]
            return Answer(200, newer[:limit][::-1])
        return Answer(200, found[::-1][:limit])

    def upload(self, request: Request) -> Answer:
        file = files_of(request).get("file")
        if file is None or not file.content:
            return Answer(422, {"error": "Validation failed: File can't be blank"})
        if file.mime_type not in FILES:
            return Answer(422, {"error": "Validation failed: File content type is invalid"})
        number = str(len(self.files) + 501)
        kind = file.mime_type.split("/")[0]
        self.files[number] = {
            "id": number,
            "type": kind,
            "url": None if self.working else f"{self.url}/media/{number}",
            "description": fields_of(request).get("description"),
            "left": self.working,
        }
        return Answer(202 if self.working else 200, shown(self.files[number]))

    def file(self, number: str) -> Answer:
        if number not in self.files:
            return missing()
        file = self.files[number]
        file["left"] -= 1
        if file["left"] > 0:
            return Answer(206, shown(file))
        file["url"] = f"{self.url}/media/{number}"
        return Answer(200, shown(file))

    def post(self, request: Request) -> Answer:
        given = given_in(request)
        key = request.headers.get("idempotency-key", "")
        if self.honours_keys and key in self.first_by_key:
            first = self.first_by_key[key]
            return Answer(200, first) if first in self.posts else missing()
        way = self.ways.pop(0) if self.ways else "ok"
        if way != "ok":
            errors = {
                "422": "Validation failed: Text character limit of 500 exceeded",
                "403": "Your login is currently disabled",
            }
            return Answer(int(way), {"error": errors[way]})
        files = given.get("media_ids") or []
        wrong = self.wrong_with(given, files)
        if wrong:
            return Answer(422, {"error": f"Validation failed: {wrong}"})
        answers = given.get("in_reply_to_id")
        if answers and answers not in {one["id"] for one in self.posts}:
            return missing()
        made = self.made(given, files)
        self.posts.append(made)
        if key:
            self.first_by_key[key] = made
        return Answer(200, made)

    def wrong_with(self, given: dict[str, Any], files: list[str]) -> str:
        status = given.get("status") or ""
        if not status and not files:
            return "Text can't be blank"
        if given.get("visibility", "public") not in PUBLIC:
            return "Visibility is not included in the list"
        if any(one not in self.files for one in files):
            return "Media attachments not found"
        if any(self.files[one]["url"] is None for one in files):
            return "Cannot attach files that have not finished processing. Try again in a moment!"
        if len(files) > 1 and any(self.files[one]["type"] == "video" for one in files):
            return "Cannot attach a video to a post that already contains images"
        return ""

    def made(self, given: dict[str, Any], files: list[str]) -> dict[str, Any]:
        self.number += 65_536
        number = str(self.number)
        status = given.get("status") or ""
        return {
            "id": number,
            "created_at": self.clock().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "in_reply_to_id": given.get("in_reply_to_id"),
            "sensitive": bool(given.get("sensitive")),
            "spoiler_text": given.get("spoiler_text", ""),
            "visibility": given.get("visibility", "public"),
            "language": given.get("language"),
            "uri": f"https://social.example/users/writer/statuses/{number}",
            "url": f"https://social.example/@writer/{number}",
            "replies_count": 0,
            "reblogs_count": 0,
            "favourites_count": 0,
            "quotes_count": 0,
            "content": as_html(status),
            "source": status,
            "reblog": None,
            "account": self.account(),
            "media_attachments": [shown(self.files[one]) for one in files],
        }

    def status(self, method: str, number: str, *rest: str) -> Answer:
        found = next((one for one in self.posts if one["id"] == number), None)
        if self.missing_page is not None and found is None:
            return Answer(404, self.missing_page)
        if found is None or (rest and not self.has_source):
            return missing()
        if method == "DELETE":
            self.posts.remove(found)
            return Answer(200, found)
        if rest == ("source",):
            return Answer(200, {"id": number, "text": found["source"], "spoiler_text": found["spoiler_text"]})
        return Answer(200, found)


def given_in(request: Request) -> dict[str, Any]:
    """JSON, or a form whose lists are written as `media_ids[]`."""
    if request.headers["content-type"] == "application/json":
        given: dict[str, Any] = request.json()
        return given
    fields = parse_qs(request.body.decode())
    return {
        name.removesuffix("[]"): values if name.endswith("[]") else values[0]
        for name, values in fields.items()
    }


def missing() -> Answer:
    return Answer(404, {"error": "Record not found"})


def shown(file: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in file.items() if name != "left"}


def as_html(status: str) -> str:
    """As the server shows it: links cut for the eye, mentions without their server, paragraphs."""
    out, position = "", 0
    for link in find_links(status):
        if not link.has_scheme:
            continue
        out += html.escape(status[position : link.start])
        scheme, _, rest = link.url.partition("://")
        out += (
            f'<a href="{html.escape(link.url)}"><span class="invisible">{scheme}://</span>'
            f'<span class="ellipsis">{html.escape(rest[:30])}</span><span class="invisible">{html.escape(rest[30:])}</span></a>'
        )
        position = link.end
    out += html.escape(status[position:])
    out = MENTION.sub(
        r'<span class="h-card"><a href="https://other.example/@\1">@<span>\1</span></a></span>', out
    )
    paragraphs = out.split("\n\n")
    return "".join(f"<p>{one}</p>" for one in paragraphs).replace("\n", "<br />") if status else ""


def film() -> PayloadAsset:
    picture_of_it = picture("film.mp4", alt_text="A tram.")
    return PayloadAsset(
        url=picture_of_it.url,
        mime_type="video/mp4",
        role="video",
        alt_text="A tram.",
        bytes=picture_of_it.bytes,
        name="film.mp4",
        width=640,
        height=360,
        duration=12.0,
        open=picture_of_it.open,
    )


def account(server: Server, **config: Any) -> Account:
    return Account(
        outlet="out_1",
        config={"server": server.url, "visibility": "public", **config},
        credentials={"access_token": TOKEN},
        profile={"external_id": ACCOUNT},
    )


def payload(
    bucket: Any = "text", body: str = "The council voted 14 to 9 for the tram.", **given: Any
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
    platform = plugins.get("platforms", "mastodon", Platform)
    payloads: dict[Any, Payload] = {
        "text": payload(
            body="The council voted 14 to 9, says @alice@other.example: https://example.com/news?a=1&b=2"
        ),
        "image": payload("image", assets=(picture(), picture("second.png", alt_text="Another square."))),
        "video": payload("video", assets=(film(),)),
    }
    return Case(platform, account(server), payloads)
