"""WordPress's REST API as its handbook says: Basic authentication, drafts, slugs, terms, media, trash, comments."""

from __future__ import annotations

import re
from base64 import b64encode
from email.parser import BytesParser
from email.policy import HTTP as MIME
from typing import Any, ClassVar

from pipeline.platforms.base import Account
from pipeline.platforms.payload_types import Payload
from pipeline.platforms.wordpress import PLUGIN
from tests.platforms.servers.base import Answer, Case, LedgerServer, Request, picture

PASSWORD = "abcd EFGH 1234 ijkl MNOP 5678"
STATUSES = ("publish", "future", "draft", "pending", "private")


def error(status: int, code: str, message: str = "Something is wrong.", **data: Any) -> Answer:
    return Answer(status, {"code": code, "message": message, "data": {"status": status, **data}})


class Server(LedgerServer):
    capabilities: ClassVar = {"edit_posts": True, "publish_posts": True, "upload_files": True}

    def __init__(self) -> None:
        super().__init__()
        self.articles: dict[int, dict[str, Any]] = {}
        self.media: dict[int, dict[str, Any]] = {}
        self.terms: dict[str, dict[int, str]] = {"categories": {1: "News &amp; views"}, "tags": {}}
        self.comments = 3
        self.offers_passwords = True
        self._last = 100

    def is_commit(self, request: Request) -> bool:
        is_one = re.fullmatch(r"/wp-json/wp/v2/posts/\d+", request.path) is not None
        return request.method == "POST" and is_one and request.json().get("status") != "draft"

    def too_many(self) -> Answer:
        return Answer(429, {"code": "too_many_requests", "message": "Slow down."}, {"Retry-After": "7"})

    def expired(self) -> Answer:
        return error(401, "incorrect_password", "The provided password is an invalid application password.")

    def handle(self, request: Request) -> Answer:
        path = request.path.removeprefix("/wp-json")
        if request.path != f"/wp-json{path}" or not path.startswith("/"):
            return Answer(404, "<html><h1>Not found</h1></html>", {"Content-Type": "text/html"})
        if path == "/":
            offered: Any = {"application-passwords": {"endpoints": {}}} if self.offers_passwords else []
            index = {"name": "Tram news", "home": self.url, "namespaces": ["oembed/1.0", "wp/v2"]}
            return Answer(200, {**index, "authentication": offered})
        given = b64encode(f"ada:{PASSWORD}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {given}":
            return error(401, "rest_not_logged_in", "You are not currently logged in.")
        parts = path.removeprefix("/wp/v2/").split("/")
        answer = getattr(self, f"_{parts[0]}", None)
        if not path.startswith("/wp/v2/") or answer is None:
            return error(404, "rest_no_route", "No route was found matching the URL and request method.")
        found: Answer = answer(request, *parts[1:])
        return found

    def _users(self, request: Request, who: str) -> Answer:
        del request, who
        user = {"id": 7, "username": "ada", "slug": "ada", "name": "Ada", "roles": ["author"]}
        return Answer(200, {**user, "capabilities": self.capabilities})

    def _media(self, request: Request) -> Answer:
        if request.method == "GET":
            wanted = request.query["slug"][0]
            return Answer(200, [one for one in self.media.values() if one["slug"] == wanted])
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser(policy=MIME).parsebytes(head + request.body)
        fields = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}
        file = fields["file"]
        content = file.get_payload(decode=True)
        if not file.get_filename() or not isinstance(content, bytes) or not content.startswith(b"\x89PNG"):
            return error(400, "rest_upload_no_data", "No data supplied.")
        number = self._next()
        self.media[number] = {
            "id": number,
            "slug": fields["slug"].get_content().strip(),
            "alt_text": fields["alt_text"].get_content().strip(),
            "source_url": f"{self.url}/wp-content/uploads/{file.get_filename()}",
        }
        return Answer(201, self.media[number])

    def _terms(self, request: Request, taxonomy: str) -> Answer:
        there = self.terms[taxonomy]
        if request.method == "GET":
            word = request.query["search"][0].casefold()
            return Answer(
                200, [{"id": n, "name": name} for n, name in there.items() if word in name.casefold()]
            )
        name = request.json()["name"].replace("&", "&amp;")
        kept = next((number for number, known in there.items() if known.casefold() == name.casefold()), None)
        if kept is not None:
            return error(400, "term_exists", "A term with the name provided already exists.", term_id=kept)
        if taxonomy == "categories":
            return error(403, "rest_cannot_create", "Sorry, you are not allowed to create terms.")
        number = self._next()
        there[number] = name
        return Answer(201, {"id": number, "name": name})

    def _categories(self, request: Request) -> Answer:
        return self._terms(request, "categories")

    def _tags(self, request: Request) -> Answer:
        return self._terms(request, "tags")

    def _comments(self, request: Request) -> Answer:
        there = int(request.query["post"][0]) in self.articles
        total = self.comments if there else 0
        return Answer(200, [{"id": 1}][:total], {"X-WP-Total": str(total), "X-WP-TotalPages": str(total)})

    def _posts(self, request: Request, number: str = "") -> Answer:
        if not number:
            return self._list(request) if request.method == "GET" else self._create(request.json())
        one = self.articles.get(int(number))
        if one is None:
            return error(404, "rest_post_invalid_id", "Invalid post ID.")
        if request.method == "DELETE":
            return self._trash(one)
        if request.method == "POST":
            return self._update(one, request.json())
        return Answer(200, self._shown(one))

    def _list(self, request: Request) -> Answer:
        assert request.query["status"] == ["any"]
        rows = [one for one in self.articles.values() if one["status"] != "trash"]
        if "slug" in request.query:
            rows = [one for one in rows if one["slug"] == request.query["slug"][0]]
        if "search" in request.query:
            rows = [one for one in rows if request.query["search"][0] in one["content"]]
        return Answer(200, [self._shown(one) for one in rows])

    def _create(self, values: dict[str, Any]) -> Answer:
        number = self._next()
        self.articles[number] = {"id": number, "slug": "", "status": "draft", "title": "", "content": ""}
        answer = self._update(self.articles[number], values)
        return Answer(201 if answer.status == 200 else answer.status, answer.body)

    def _update(self, one: dict[str, Any], values: dict[str, Any]) -> Answer:
        if values.get("status", "draft") not in STATUSES:
            return error(400, "rest_invalid_param", "Invalid parameter(s): status")
        tags = {**self.terms["tags"]}
        if any(tag not in tags for tag in values.get("tags", [])):
            return error(400, "rest_invalid_param", "Invalid parameter(s): tags")
        image = values.get("featured_media", 0)
        if image and image not in self.media:
            return error(400, "rest_invalid_featured_media", "Invalid featured media ID.")
        was = one["status"]
        one.update(values)
        if not one["slug"] and one["status"] != "draft":
            one["slug"] = re.sub(r"[^a-z0-9]+", "-", one["title"].lower()).strip("-")
        taken = {other["slug"] for other in self.articles.values() if other is not one}
        if one["slug"] in taken:
            one["slug"] += "-2"
        if one["status"] == "publish" and was != "publish":
            self.posts.append(one)
        return Answer(200, self._shown(one))

    def _trash(self, one: dict[str, Any]) -> Answer:
        if one["status"] == "trash":
            return error(410, "rest_already_trashed", "The post has already been deleted.")
        one["status"] = "trash"
        one["slug"] += "__trashed"
        self.posts = [other for other in self.posts if other is not one]
        return Answer(200, self._shown(one))

    def _shown(self, one: dict[str, Any]) -> dict[str, Any]:
        link = f"{self.url}/{one['slug']}/" if one["status"] == "publish" else f"{self.url}/?p={one['id']}"
        return {**one, "content": {"raw": one["content"]}, "link": link}

    def _next(self) -> int:
        self._last += 1
        return self._last


def case(server: LedgerServer) -> Case:
    account = Account(
        outlet="out_01m80wxp87eh3rnr6xcszcrb9t",
        config={"site": server.url, "username": "ada", "status": "publish", "category": "News & Views"},
        credentials={"application_password": PASSWORD},
    )
    payload = Payload(
        item="gen_01m80wxp87eh3rnr6xcszcrb9t",
        revision=1,
        bucket="blog",
        title="Tram approved",
        body="The council voted **14 to 9**.\n\n## Next\n\n![Rails](https://media.example.com/rails.png)",
        body_format="markdown",
        content={"slug": "tram-approved", "tags": ["Trams", "R&D"], "meta_description": "Fourteen to nine."},
        assets=(picture("lead.png"), picture("rails.png")),
    )
    return Case(PLUGIN, account, {"blog": payload})
