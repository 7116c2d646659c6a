"""Pages through lists by keyset, with signed cursors that are bound to their list and filters."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings

from config.core import limits
from config.core.api.etags import respond_with_tag, weak_tag
from config.core.api.jsonio import DumpedJson
from config.core.api.query_params import Parameter, choice
from config.core.errors import AppError
from config.core.json_encoding import dump

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request
    from rest_framework.response import Response


def _page_size() -> Parameter:
    """Return the parameter `limit`, a number of rows from 1 to `PAGE_ROWS`."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= limits.PAGE_ROWS:
            message = f"Give a number from 1 to {limits.PAGE_ROWS}."
            raise ValueError(message)
        return int(text)

    schema = {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.PAGE_ROWS,
        "default": limits.PAGE_ROWS_DEFAULT,
    }
    return Parameter(read, schema=schema)


PAGING: Final[Mapping[str, Parameter]] = {
    "limit": _page_size(),
    "cursor": Parameter(str, description="The `next_cursor` of the previous page."),
    "order": choice("asc", "desc"),
}


class InvalidCursor(AppError):
    """Raised for a cursor that is malformed, forged, or of another list."""

    code = "invalid_cursor"


@dataclass(frozen=True)
class Page:
    """One page of a list; `next_cursor` and `next_link` are `None` on the last page."""

    rows: Sequence[Any]
    has_more: bool
    next_cursor: str | None
    next_link: str | None

    def respond(self, request: Request, data: list[Any]) -> Response:
        """Return the response for this page; `data` are its serialized rows."""
        headers = {"Link": f'<{self.next_link}>; rel="next"'} if self.next_link else {}
        body = DumpedJson(dump({"data": data, "has_more": self.has_more, "next_cursor": self.next_cursor}))
        return respond_with_tag(request, body, tag=weak_tag(body), headers=headers)


def page(
    request: Request,
    rows: QuerySet[Any],
    query: Mapping[str, Any],
    *,
    key: str = "id",
    key_of: Callable[[Any], Any] | None = None,
) -> Page:
    """Return one page of `rows` by keyset on `key`, newest first unless `order` is `asc`.

    The cost doesn't grow with the depth. `query` has the parameters of `PAGING` as `read_query` returns them.
    `rows` may give dicts or instances. `key` names a field with UUIDs or whole numbers; `key_of` reads it from a
    row that has it under another name. Raises `InvalidCursor` for a cursor that isn't this list's.
    """

    def fetch(after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> list[Any]:
        remaining = (
            rows if after is None else rows.filter(**{f"{key}__{'gt' if is_ascending else 'lt'}": after})
        )
        return list(remaining.order_by(key if is_ascending else f"-{key}")[:max_rows])

    def read_key(row: Any) -> UUID | int:
        value: UUID | int = row[key] if isinstance(row, dict) else getattr(row, key)
        return value

    return page_by(request, fetch, query, key_of=key_of or read_key)


class PageQuery(Protocol):
    """Fetches at most `max_rows` rows in the order of keys, those beyond `after` unless it is `None`."""

    def __call__(self, after: UUID | int | None, max_rows: int, *, is_ascending: bool) -> Sequence[Any]: ...


def page_by(
    request: Request, fetch: PageQuery, query: Mapping[str, Any], *, key_of: Callable[[Any], UUID | int]
) -> Page:
    """Return a page as `page` does, for a list whose rows `fetch` reads and whose keys `key_of` returns."""
    size = query.get("limit", limits.PAGE_ROWS_DEFAULT)
    binding = _binding(request)
    after = _open_cursor(query["cursor"], binding) if "cursor" in query else None
    rows = fetch(after, size + 1, is_ascending=query.get("order") == "asc")
    has_more = len(rows) > size
    rows = rows[:size]
    cursor = link = None
    if has_more:
        cursor = _seal_cursor(key_of(rows[-1]), binding)
        parameters = [
            (name, text) for name, texts in request.query_params.lists() for text in texts if name != "cursor"
        ]
        link = f"{settings.PUBLIC_URL}{request.path}?{urlencode([*parameters, ('cursor', cursor)])}"
    return Page(rows, has_more, cursor, link)


def _binding(request: Request) -> bytes:
    """Return a digest of list, filters, order and workspace, by which other lists refuse the cursor."""
    filters = sorted(
        (name.removesuffix("[]"), part)
        for name, texts in request.query_params.lists()
        for text in texts
        for part in text.split(",")
        if name not in {"cursor", "limit"}
    )
    return _digest(request, request.path.rstrip("/"), filters)


def _digest(request: Request, *also: object) -> bytes:
    """Return eight bytes that identify a list of one workspace's live or test rows."""
    caller: Any = request.auth
    return hashlib.sha256(repr((caller.workspace.pk.hex, caller.test, *also)).encode()).digest()[:8]


def _cursor_mac(content: bytes) -> bytes:
    return hmac.digest(settings.SECRET_KEY.encode(), b"cursor" + content, "sha256")[:12]


def _seal_cursor(key: UUID | int, binding: bytes) -> str:
    # `n` marks a number, whose nine bytes `_open_cursor` tells from the sixteen of a UUID.
    position = key.bytes if isinstance(key, UUID) else b"n" + key.to_bytes(8, "big")
    content = binding + position
    return base64.urlsafe_b64encode(_cursor_mac(content) + content).rstrip(b"=").decode()


def _open_cursor(cursor: str, binding: bytes) -> UUID | int:
    """Return the key in the cursor. Raises `InvalidCursor` if it is malformed, forged or another list's."""
    try:
        decoded = base64.b64decode(
            cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        )
    except ValueError as error:
        raise InvalidCursor from error
    mac, content = decoded[:12], decoded[12:]
    if not hmac.compare_digest(mac, _cursor_mac(content)) or content[: len(binding)] != binding:
        raise InvalidCursor
    position = content[len(binding) :]
    return UUID(bytes=position) if len(position) == 16 else int.from_bytes(position[1:], "big")


def seal_position(request: Request, position: int, kind: str) -> str:
    """Return a position in the caller's feed of this kind as an opaque cursor."""
    return _seal_cursor(position, _digest(request, kind))


def open_position(request: Request, cursor: str, kind: str) -> int:
    """Return the position in a cursor that `seal_position` returned.

    Raises `InvalidCursor` for any other text, and for a cursor of another kind, workspace or mode.
    """
    position = _open_cursor(cursor, _digest(request, kind))
    if not isinstance(position, int):
        raise InvalidCursor
    return position
