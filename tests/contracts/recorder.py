"""Writes down requests and their answers, as text that reads the same in every run."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from tests.contracts.conftest import NOTHING, Api
from tests.documents.flow import PUBLIC_URL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GONE = "01jd4t5v7yf8zr3m6n2q9k0hcx"
"""What every id that never existed ends with."""
_LONG = 4_000
_WIDTH = 160
_ON_EVERY_ANSWER = {
    "Cache-Control": "private, no-store",
    "Content-Type": "application/json",
    "Cross-Origin-Opener-Policy": "same-origin",
    "RateLimit-Policy": '"workspace";q=120;w=120',
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-RateLimit-Limit": "120",
}
"""Left out where an answer has them as here; one that lacks them says so."""
_ABOUT_THE_RUN = {
    "Content-Length",
    "Date",
    "RateLimit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "X-Request-Id",
}
_TAGS = re.compile(r"<(script|style|svg|head)\b.*?</\1>|<[^>]*>", re.DOTALL)

# Group 1 is what stays readable of an id or secret; the rest is told by its order of appearance.
_PLACEHOLDERS = re.compile(
    r"\b([a-z]{2,3})_[0-7][0-9a-hjkmnp-tv-z]{25}\b"
    r"|\b(cpk_(?:live|test))_[A-Za-z0-9_]+"
    r"|\b(whsec)_[A-Za-z0-9+/=]+"
    r"|(?<=/)(feeds|hooks/websub|hooks/mail|hooks|media|subscribe/confirm|subscribe|u|l)/[A-Za-z0-9_-]{12,43}(?![A-Za-z0-9_-])"
    r"|(urn:uuid):[0-9a-f-]{36}"
)
_HEX = re.compile(r"\b[0-9a-f]{32}(?:[0-9a-f]{32})?\b|(?<=_)[0-9a-f]{32}\b")
_SHOWN_ONCE = re.compile(r'(?<=secret": ")[^"]+')
_CURSOR = re.compile(r'(?<="next_cursor": ")[^"]+|(?<=&cursor=)[^>&]+')
_TAG = re.compile(r'(?<=")[A-Za-z0-9_+/=-]{20,}(?=")')


class Recorder:
    """`entries` is what was asked and answered, in order, each as a block of lines."""

    def __init__(self, api: Api, step: Callable[[float], Any]) -> None:
        self.entries: list[str] = []
        self._api = api
        self._step = step
        self._known: dict[str, str] = {}
        self._secrets: set[str] = set()
        self.is_brief = False
        self._numbers: dict[str, count[int]] = {}

    def __call__(
        self, request: str, body: Any = NOTHING, *, api: Api | None = None, note: str = "", **more: Any
    ) -> Any:
        """One request of the API: `POST /raw`. Its answer's JSON, or the answer where it has none."""
        method, _, path = request.partition(" ")
        answer = (api or self._api).call(method, path, body, **more)
        sent = more.get("data", None if body is NOTHING else body)
        self._write(f"{method} /v1{path}", note, more.get("headers"), sent, answer)
        is_json = (
            answer.content and answer["Content-Type"] == "application/json" if not answer.streaming else False
        )
        return answer.json() if is_json else answer

    def public(
        self,
        request: str,
        data: Any = None,
        *,
        note: str = "",
        headers: dict[str, str] | None = None,
        kind: str = "application/json",
    ) -> Any:
        """One request without a token, at an address as the API shows it."""
        method, _, path = request.partition(" ")
        content = data if isinstance(data, bytes) else b"" if data is None else json.dumps(data).encode()
        answer = Api(None).client.generic(
            method, path.removeprefix(PUBLIC_URL), content, content_type=kind, headers=headers or {}
        )
        self._write(f"{method} {path.removeprefix(PUBLIC_URL)}", note, headers, data, answer)
        return answer

    @contextmanager
    def briefly(self) -> Iterator[None]:
        """Answers without their bodies, which have tests of their own."""
        self.is_brief = True
        yield
        self.is_brief = False

    @contextmanager
    def listening(self, note: str) -> Iterator[None]:
        """Whatever is asked through an `Api` meanwhile is written down too."""
        real = Api.call

        def call(api: Api, method: str, path: str, body: Any = NOTHING, **more: Any) -> Any:
            answer = real(api, method, path, body, **more)
            sent = more.get("data", None if body is NOTHING else body)
            self._write(f"{method} /v1{path}", note, more.get("headers"), sent, answer)
            return answer

        with patch.object(Api, "call", call):
            yield

    def _write(self, request: str, note: str, headers: dict[str, str] | None, sent: Any, answer: Any) -> None:
        lines = [f"## {request}" + (f"  ({note})" if note else "")]
        lines += [f"> {name}: {value}" for name, value in (headers or {}).items()]
        if sent is not None:
            lines += [f"> {line}" for line in _as_sent(sent)]
        lines.append(f"< {answer.status_code}")
        told = {name: value for name, value in answer.headers.items() if name not in _ABOUT_THE_RUN}
        lines += [
            f"< {name}: {_in_order(value) if name == 'Content-Security-Policy' else value}"
            for name, value in sorted(told.items())
            if _ON_EVERY_ANSWER.get(name) != value
        ]
        lines += [f"< without {name}" for name in sorted(_ON_EVERY_ANSWER.keys() - told.keys())]
        lines += [] if self.is_brief else _as_lines(answer)
        self.entries.append(self._stable("\n".join(lines)))
        self._step(1)

    def _stable(self, text: str) -> str:
        self._secrets.update(_SHOWN_ONCE.findall(text))
        for secret in self._secrets:
            text = text.replace(secret, "<secret>")
        text = _CURSOR.sub("<cursor>", text)
        text = _PLACEHOLDERS.sub(self._placeholder, text)
        text = _HEX.sub(lambda match: self._told(match[0], "hex"), text)
        # An entity tag over bytes that hold ids.
        return re.sub(
            r"^(<|>) (ETag|If-None-Match): (.*)$",
            lambda match: f"{match[1]} {match[2]}: {_TAG.sub('<digest>', match[3])}",
            text,
            flags=re.MULTILINE,
        )

    def _placeholder(self, match: re.Match[str]) -> str:
        kind = next(group for group in match.groups() if group)
        glue = "/" if match[4] else ":" if match[5] else "_"
        return f"{kind}{glue}{self._told(match[0], kind)}"

    def _told(self, known: str, kind: str) -> str:
        if known.endswith((GONE, "x" * 22)):
            return "<nobody's>"
        if known not in self._known:
            numbers = self._numbers.setdefault(kind, count(1))
            self._known[known] = f"<{next(numbers)}>"
        return self._known[known]


def _in_order(policy: str) -> str:
    """Its directives come from a set."""
    return "; ".join(sorted(policy.split("; ")))


def _as_sent(sent: Any) -> list[str]:
    text = json.dumps(sent.decode() if isinstance(sent, bytes) else sent, ensure_ascii=False)
    return [f"{len(text)} characters"] if len(text) > _LONG else _as_json(json.loads(text))


def _as_lines(answer: Any) -> list[str]:
    kind = answer.get("Content-Type", "").partition(";")[0]
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if not content:
        return []
    if kind == "text/html":
        words = _TAGS.sub(" ", content.decode())
        return [line for line in (" ".join(one.split()) for one in words.splitlines()) if line]
    if kind.startswith(("image/", "video/")):
        return [f"{kind} of some bytes"]
    return _as_json(json.loads(content)) if kind.endswith("json") else content.decode().splitlines()


def _as_json(value: Any, before: str = "", indent: str = "") -> list[str]:
    """As few lines as fit, so that a change is seen where it is. PostgreSQL has an order of its own for stored keys."""
    whole = indent + before + json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(whole) <= _WIDTH or not value or not isinstance(value, dict | list):
        return [whole]
    inner = indent + "  "
    if isinstance(value, list):
        lines = [line for one in value for line in _as_json(one, "", inner)]
    else:
        lines = [
            line
            for name, one in sorted(value.items())
            for line in _as_json(one, f"{json.dumps(name)}: ", inner)
        ]
    first, last = "[]" if isinstance(value, list) else "{}"
    return [f"{indent}{before}{first}", *lines, f"{indent}{last}"]
