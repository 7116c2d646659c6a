"""Puts entity tags on answers, and refuses changes that name another version of the object."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rest_framework.response import Response

from config.core.api.jsonio import DumpedJson
from config.core.errors import Detail
from config.core.json_encoding import dump
from config.core.states import Overtaken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.db.models import Model
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


@contextmanager
def conditions_on(row: Model, request: Request, *, revision: int | None = None) -> Iterator[int | None]:
    """Give the version that a change must find, or `None` if the request names none.

    A request names a version by `If-Match`, and a revision in its body. Raises `Overtaken` (412) unless the
    row has both, and if the change finds another version: then the row has changed since it was read.

    Of a strong tag only the version is compared. The rest (the last poll, the delay) changes without a
    person, whose change must not fail for it. Weak tags never match.
    """
    header = request.META.get("HTTP_IF_MATCH", "").strip()
    tags = _split_tags(header)
    names_tags = bool(header) and "*" not in tags
    version: int = row.version  # type: ignore[attr-defined]  # every model that people change has one
    if names_tags and not any(_has_version(tag, version) for tag in tags):
        raise _changed(row)
    if revision is not None and revision != row.revision:  # type: ignore[attr-defined]  # only items have one
        raise _changed(row)
    is_conditional = names_tags or revision is not None
    try:
        yield version if is_conditional else None
    except Overtaken as error:
        if not is_conditional:
            raise
        row.refresh_from_db()
        raise _changed(row) from error


def _has_version(tag: str, version: int) -> bool:
    """Return whether a strong tag is one of this version: `"v4"`, or `"v4-…"` with what else it depends on."""
    return tag == f'"v{version}"' or tag.startswith(f'"v{version}-')


def _changed(row: Model) -> Overtaken:
    """Return the 412 that names the row's present version, and its revision if it has one."""
    version: int = row.version  # type: ignore[attr-defined]
    revision = getattr(row, "revision", None)
    present = f"version {version}" if revision is None else f"revision {revision}, version {version}"
    message = f"It has changed: it is at {present} now. Read it again."
    detail = Detail(None, "version_conflict", message)
    return Overtaken(detail, code="version_conflict", headers={"ETag": strong_tag(version)})
