"""Entity tags: an answer has one, and a change may name the one that it is of."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rest_framework.response import Response

from config.core.api.jsonio import DumpedJson, dump
from config.core.states import Overtaken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rest_framework.request import Request


def strong_tag(version: int, *also: object) -> str:
    return '"' + "-".join(str(part) for part in (f"v{version}", *also)) + '"'


def weak_tag(body: Any) -> str:
    content = body if isinstance(body, DumpedJson) else dump(body)
    return f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def respond_with_tag(
    request: Request, body: Any, *, tag: str, headers: Mapping[str, str] | None = None, status: int = 200
) -> Response:
    """304 where `If-None-Match` names the tag, compared weakly as RFC 9110 says."""
    all_headers = {"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})}
    wanted = _tags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    if "*" in wanted or tag.removeprefix("W/") in [one.removeprefix("W/") for one in wanted]:
        return Response(status=304, headers=all_headers)
    return Response(body, status=status, headers=all_headers)


def refuse_unless_match(request: Request, version: int) -> bool:
    """412 where `If-Match` names other versions; True where it names this one, False where it doesn't bind.

    Only the version is compared: what else a strong tag holds (the last poll, how late it is) changes by itself, and
    a person's change must not fail for it. Weak tags never match.
    """
    header = request.META.get("HTTP_IF_MATCH", "").strip()
    tags = _tags(header)
    if not header or "*" in tags:
        return False
    mine = f'"v{version}'
    if not any(tag == f'{mine}"' or tag.startswith(f"{mine}-") for tag in tags):
        raise Overtaken(code="version_conflict")
    return True


@contextmanager
def as_version_conflict() -> Iterator[None]:
    """Answer `Overtaken` as `refuse_unless_match` would: somebody was faster between the look at the row and its lock."""
    try:
        yield
    except Overtaken as error:
        raise Overtaken(code="version_conflict") from error
