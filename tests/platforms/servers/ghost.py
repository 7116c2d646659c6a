"""Ghost's Admin API as its documents say: tokens, versions, drafts, collisions, newsletters that are sent once."""

from __future__ import annotations

import re
from email.parser import BytesParser
from email.policy import HTTP as MIME
from typing import Any

import jwt

from pipeline.platforms.base import Account
from pipeline.platforms.ghost import PLUGIN
from pipeline.platforms.payload_types import Payload
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture

SECRET = "5f2b0c6e9d8a7b6c5d4e3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c"
KEY_ID = "5f9f1b3c2a7d8e6f4b0c1d2e"
FIELDS = frozenset(
    {
        *("status", "slug", "title", "html", "codeinjection_head", "custom_excerpt", "tags", "feature_image"),
        *(
            "feature_image_alt",
            "canonical_url",
            "email_subject",
            "meta_description",
            "updated_at",
            "email_only",
        ),
    }
)


def error(status: int, kind: str, message: str = "Something is wrong.", code: str | None = None) -> Answer:
    return Answer(status, {"errors": [{"message": message, "context": None, "type": kind, "code": code}]})


class Server(LedgerServer):
    def __init__(self) -> None:
        super().__init__()
        self.articles: dict[str, dict[str, Any]] = {}
        self.images: list[str] = []
        self.emails: list[str] = []
        """The posts whose email was sent, in that order."""
        self.newsletters = [
            {"slug": "weekly", "status": "active"},
            {"slug": "old", "status": "archived"},
        ]
        self.version = "6.3"
        self._last = 0

    def is_commit(self, request: Request) -> bool:
        is_one = re.fullmatch(r"/ghost/api/admin/posts/[0-9a-f]{24}/", request.path) is not None
        return request.method == "PUT" and is_one and request.json()["posts"][0].get("status") == "published"

    def too_many(self) -> Answer:
        answer = error(429, "TooManyRequestsError", "Too many requests.")
        return Answer(429, answer.body, {"Retry-After": "7"})

    def expired(self) -> Answer:
        return error(401, "UnauthorizedError", "Unknown Admin API Key", "UNKNOWN_ADMIN_API_KEY")

    def handle(self, request: Request) -> Answer:
        path = request.path.removeprefix("/ghost/api/admin/")
        if path == request.path:
            return Answer(404, "<html>Not found</html>", {"Content-Type": "text/html"})
        if path == "site/":
            return Answer(
                200, {"site": {"title": "Tram news", "url": f"{self.url}/", "version": self.version}}
            )
        refused = self._refusal(request)
        if refused is not None:
            return refused
        if path == "newsletters/":
            return Answer(200, {"newsletters": self.newsletters})
        if path == "images/upload/" and request.method == "POST":
            return self._image(request)
        if path == "posts/":
            return self._add(request) if request.method == "POST" else self._browse(request)
        number = path.removeprefix("posts/").rstrip("/")
        if number not in self.articles:
            return error(404, "NotFoundError", "Post not found.")
        if request.method == "PUT":
            return self._edit(self.articles[number], request)
        return Answer(200, {"posts": [self._shown(self.articles[number])]})

    def _refusal(self, request: Request) -> Answer | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            head = jwt.get_unverified_header(token)
            # The tests' moment isn't the machine's.
            checks = {"verify_exp": False, "verify_iat": False}
            claims = jwt.decode(
                token, bytes.fromhex(SECRET), algorithms=["HS256"], audience="/admin/", options=checks
            )
        except jwt.PyJWTError as failed:
            return error(401, "UnauthorizedError", f"Invalid token: {failed}", "INVALID_JWT")
        if scheme != "Ghost" or not 0 < claims["exp"] - claims["iat"] <= 300:
            return error(401, "UnauthorizedError", "Invalid token: maxAge exceeded", "INVALID_JWT")
        if head["kid"] != KEY_ID:
            return self.expired()
        wanted = re.fullmatch(r"v(\d+)\.\d+", request.headers.get("accept-version", ""))
        if wanted is None or int(wanted[1]) > int(self.version.partition(".")[0]):
            return error(406, "RequestNotAcceptableError", "Request not acceptable.", "UPDATE_GHOST")
        return None

    def _image(self, request: Request) -> Answer:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser(policy=MIME).parsebytes(head + request.body)
        fields = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        content = fields["file"].get_payload(decode=True)
        if not isinstance(content, bytes) or not content.startswith(b"\x89PNG"):
            return error(415, "UnsupportedMediaTypeError", "Please select a valid image.")
        self.images.append(fields["ref"].get_content().strip())
        url = f"{self.url}/content/images/{len(self.images)}-{fields['file'].get_filename()}"
        return Answer(201, {"images": [{"url": url, "ref": self.images[-1]}]})

    def _browse(self, request: Request) -> Answer:
        found = []
        filter_ = request.query["filter"][0]
        for one in self.articles.values():
            for field, operator, quoted in re.findall(r"(\w+):(~\^)?'((?:[^'\\]|\\.)*)'(?:,|$)", filter_):
                value = re.sub(r"\\(.)", r"\1", quoted)
                there = str(one[field])
                if there == value or (operator and there.startswith(value)):
                    found.append(one)
                    break
        return Answer(200, {"posts": [self._shown(one) for one in found], "meta": {"pagination": {}}})

    def _add(self, request: Request) -> Answer:
        assert request.query["source"] == ["html"]
        self._last += 1
        number = f"{self._last:024x}"
        self.articles[number] = {"id": number, "email": None, "codeinjection_head": None, "updated_at": ""}
        answer = self._write(self.articles[number], request.json()["posts"][0])
        if answer.status != 200:
            del self.articles[number]
            return answer
        return Answer(201, answer.body)

    def _edit(self, one: dict[str, Any], request: Request) -> Answer:
        values = request.json()["posts"][0]
        if "updated_at" not in values:
            return error(422, "ValidationError", "Validation failed for updated_at.")
        has_changes = any(one.get(name) != value for name, value in values.items() if name != "updated_at")
        if values["updated_at"] != one["updated_at"] and has_changes:
            message = "Saving failed! Someone else is editing this post."
            return error(409, "UpdateCollisionError", message, "UPDATE_COLLISION")
        was = one["status"]
        newsletter = request.query.get("newsletter", [""])[0]
        if newsletter and not any(
            known["slug"] == newsletter and known["status"] == "active" for known in self.newsletters
        ):
            return error(422, "ValidationError", "Newsletter not found.")
        answer = self._write(one, values)
        if answer.status == 200 and one["status"] == "published" and was == "draft":
            self.posts.append(one)
            if newsletter and one["email"] is None:
                one["email"] = {"status": "pending", "segment": request.query["email_segment"][0]}
                self.emails.append(one["id"])
            if one.get("email_only") and newsletter:
                one["status"] = "sent"
        if one["status"] == "draft" and was == "published":
            self.posts = [other for other in self.posts if other is not one]
        return Answer(200, {"posts": [self._shown(one)]}) if answer.status == 200 else answer

    def _write(self, one: dict[str, Any], values: dict[str, Any]) -> Answer:
        if not set(values) <= FIELDS:
            return error(422, "ValidationError", f"Unknown: {set(values) - FIELDS}")
        if len(values.get("title", "x")) > 255 or not values.get("title", "x"):
            return error(
                422, "ValidationError", "Value in [posts.title] exceeds maximum length of 255 characters."
            )
        if len(values.get("custom_excerpt") or "") > 300:
            return error(422, "ValidationError", "Value in [posts.custom_excerpt] exceeds maximum length.")
        taken = {other.get("slug") for other in self.articles.values() if other is not one}
        slug = values.get("slug", one.get("slug"))
        one.update(values, slug=f"{slug}-2" if slug in taken else slug)
        self._last += 1
        one["updated_at"] = f"2026-11-20T12:00:{self._last:02d}.000Z"
        return Answer(200, {"posts": [self._shown(one)]})

    def _shown(self, one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "url": f"{self.url}/{one['slug']}/", "count": {"clicks": 5}}


def case(server: LedgerServer) -> Case:
    account = Account(
        outlet="out_01m80wxp87eh3rnr6xcszcrb9t",
        config={"site": server.url, "newsletter": "weekly", "segment": "status:free", "email_only": False},
        credentials={"admin_key": f"{KEY_ID}:{SECRET}"},
        api_version="v6.0",
    )
    blog = Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9t",
        revision=1,
        bucket="blog",
        title="It's a tram",
        body="The council voted **14 to 9**.\n\n## Next\n\n![Rails](https://media.example.com/rails.png)",
        body_format="markdown",
        content={"slug": "tram-approved", "tags": ["Trams", "R&D"], "meta_description": "Fourteen to nine."},
        assets=(picture("lead.png"), picture("rails.png")),
    )
    newsletter = Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9z",
        revision=1,
        bucket="newsletter",
        title="",
        body="The tram is **coming**.",
        body_format="markdown",
        content={"subject": "The tram comes", "preheader": "Fourteen to nine."},
    )
    return Case(PLUGIN, account, {"blog": blog, "newsletter": newsletter})
