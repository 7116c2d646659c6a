"""Puts entity tags on answers, and refuses changes that name another version of the object."""

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
    """Return the strong entity tag of a version, and of the values in `also` that the answer depends on."""
    return '"' + "-".join(str(part) for part in (f"v{version}", *also)) + '"'


def weak_tag(body: Any) -> str:
    """Return a weak entity tag computed from the JSON body."""
    content = body if isinstance(body, DumpedJson) else dump(body)
    return f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'


def _split_tags(header: str) -> list[str]:
    """Return the tags of an `If-Match` or `If-None-Match` header."""
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def respond_with_tag(
    request: Request, body: Any, *, tag: str, headers: Mapping[str, str] | None = None, status: int = 200
) -> Response:
    """Return the response with its tag, or 304 without a body if `If-None-Match` has the tag or `*`.

    The tags are compared weakly, as RFC 9110 says.
    """
    all_headers = {"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})}
    client_tags = _split_tags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    if "*" in client_tags or tag.removeprefix("W/") in [
        client_tag.removeprefix("W/") for client_tag in client_tags
    ]:
        return Response(status=304, headers=all_headers)
    return Response(body, status=status, headers=all_headers)


def refuse_unless_match(request: Request, version: int) -> bool:
    """Return True if `If-Match` names this version, and False without the header or with `*`.

    Raises `Overtaken` (412) if it names only other versions. Only the version is compared: the rest of a strong
    tag (the last poll, the delay) changes without a person, whose change must not fail for it. Weak tags never
    match.
    """
    header = request.META.get("HTTP_IF_MATCH", "").strip()
    tags = _split_tags(header)
    if not header or "*" in tags:
        return False
    version_prefix = f'"v{version}'
    if not any(tag == f'{version_prefix}"' or tag.startswith(f"{version_prefix}-") for tag in tags):
        raise Overtaken(code="version_conflict")
    return True


@contextmanager
def as_version_conflict() -> Iterator[None]:
    """Raise `Overtaken` of the block as a version conflict: the row changed between being read and locked."""
    try:
        yield
    except Overtaken as error:
        raise Overtaken(code="version_conflict") from error
