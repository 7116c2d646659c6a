"""A web site of a dictionary: answers by address, and what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core.http_client import Policy, Response
from config.core.http_client.messages import Headers

if TYPE_CHECKING:
    from collections.abc import Mapping

USER_AGENT = "content-pipeline/0.9.0 (+https://pipeline.example; ops@pipeline.example)"


def reply(
    body: bytes | str = b"", *, status: int = 200, kind: str = "text/html; charset=utf-8", **headers: str
) -> Response:
    """Header names are written with underscores."""
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Response(
        status=status,
        headers=Headers([("Content-Type", kind), *pairs] if kind else pairs),
        body=body.encode() if isinstance(body, str) else body,
        url="",
        truncated=False,
        redirects=(),
    )


class FakeSite:
    """What is not in `pages` answers 404; an exception is raised. `asked` lists addresses in their order."""

    policy = Policy(user_agent=USER_AGENT)

    def __init__(self, pages: Mapping[str, Response | Exception | str]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        self.options: dict[str, dict[str, Any]] = {}

    def get(self, url: str, **options: Any) -> Response:
        self.asked.append(url)
        self.options[url] = options
        found = self.pages.get(url, reply("<p>No such page</p>", status=404))
        if isinstance(found, Exception):
            raise found
        if isinstance(found, str):
            found = reply(found)
        etag = found.headers.get("ETag")
        if etag and options["headers"].get("If-None-Match") == etag:
            found = reply(status=304, kind="", ETag=etag)
        return Response(found.status, found.headers, found.body, url, truncated=False, redirects=())
