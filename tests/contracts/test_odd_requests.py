"""What clients, proxies and scanners send over a socket: each is answered as the contract has it, in both server modes.

The tests of single rules (test_request_forms.py, test_strict_input.py) use Django's client, which writes no malformed
request and passes gunicorn by.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
from contextlib import suppress
from dataclasses import dataclass

import pytest

from tests.faults.instance import Instance
from tests.faults.separate import IS_POSSIBLE, Separate

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

MODES = [Instance, Separate] if IS_POSSIBLE else [Instance]
NEVER = "00000000000000000000000000"
ITEM = f"/v1/generated/gen_{NEVER}"
STATUS_BY_CODE = {
    "invalid_cursor": 400,
    "invalid_request": 400,
    "malformed_json": 400,
    "unauthenticated": 401,
    "not_found": 404,
    "method_not_allowed": 405,
    "not_acceptable": 406,
    "payload_too_large": 413,
    "unsupported_media_type": 415,
}


@dataclass(frozen=True)
class Odd:
    """A request as bytes; `TOKEN` in it is replaced. `expected` is an error code, or the status of an answer without error."""

    name: str
    request: bytes
    expected: str | int


def written(
    method: str,
    path: str,
    *lines: str,
    body: bytes | str = b"",
    token: bool = True,
    version: str = "HTTP/1.1",
    length: bool = True,
    closes: bool = True,
) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    head = [f"{method} {path} {version}", "Host: 127.0.0.1", *(["Connection: close"] if closes else [])]
    head += ["Authorization: Bearer TOKEN"] if token else []
    head += list(lines)
    head += [f"Content-Length: {len(data)}"] if data and length else []
    return "\r\n".join([*head, "", ""]).encode("latin-1") + data


JSON = "Content-Type: application/json"
PUSH = json.dumps({"title": "Odd", "body": "The harbour opens at six. " * 8, "language": "en"})


def odd(name: str, expected: str | int, method: str, path: str, *lines: str, **more: object) -> Odd:
    return Odd(name, written(method, path, *lines, **more), expected)  # type: ignore[arg-type]


def pushed(name: str, expected: str | int, body: bytes | str, *lines: str, kind: str = JSON) -> Odd:
    return odd(name, expected, "POST", "/v1/raw", *([kind] if kind else []), *lines, body=body)


ROWS = [
    # Methods.
    *(
        odd(f"{method} {path}", "method_not_allowed", method, path)
        for method in ("PUT", "TRACE", "PROPFIND", "QUERY", "FOO", "OPTIONS")
        for path in ("/v1/raw", "/v1/sources", ITEM, "/v1/workspace")
    ),
    odd("a method in small letters", "invalid_request", "GET".lower(), "/v1/raw"),
    odd("DELETE of a list", "method_not_allowed", "DELETE", "/v1/raw"),
    odd("PATCH of a list", "method_not_allowed", "PATCH", "/v1/generated"),
    odd("POST of an object", "method_not_allowed", "POST", ITEM),
    odd("CONNECT", "method_not_allowed", "CONNECT", "/v1/raw"),
    odd("a method of 300 letters", "invalid_request", "A" * 300, "/v1/raw"),
    odd("a method with a colon", "invalid_request", "GE:T", "/v1/raw"),
    odd("HEAD", 200, "HEAD", "/v1/raw"),
    odd("HEAD of nothing", 404, "HEAD", ITEM),
    # Paths.
    odd("an unknown path", "not_found", "GET", "/v1/nope"),
    odd("the root", "not_found", "GET", "/v1"),
    odd("the root with a slash", "not_found", "GET", "/v1/"),
    odd("two slashes", "not_found", "GET", "/v1//raw"),
    odd("a slash at the end", 200, "GET", "/v1/raw/"),
    odd("dots", "not_found", "GET", "/v1/../v1/nope"),
    odd("encoded dots", "not_found", "GET", "/v1/%2e%2e/secret"),
    odd("an encoded slash", "not_found", "GET", "/v1/raw%2fnope"),
    odd("NUL in the path", "not_found", "GET", "/v1/raw/%00"),
    odd("bytes that are no UTF-8", "not_found", "GET", "/v1/raw/%ff%fe"),
    odd("a broken escape", "not_found", "GET", "/v1/raw/%zz"),
    odd("a letter beyond ASCII", "invalid_request", "GET", "/v1/r\xe4w"),
    odd("an id in capitals", "not_found", "GET", f"/v1/raw/RAW_{NEVER}"),
    odd("an id of another kind", "not_found", "GET", f"/v1/raw/src_{NEVER}"),
    odd("an id that is too long", "not_found", "GET", f"/v1/raw/raw_{'0' * 500}"),
    odd("an id with a quote", "not_found", "GET", "/v1/raw/raw_'%20OR%201=1"),
    odd("another version of the API", "not_found", "GET", "/v2/raw"),
    odd("capitals", "not_found", "GET", "/V1/RAW"),
    odd("an absolute address", 200, "GET", "http://127.0.0.1/v1/raw"),
    odd("a fragment", 200, "GET", "/v1/raw#top"),
    odd("a path of 9,000 letters", 414, "GET", f"/v1/raw/{'a' * 9000}"),
    odd("outside of /v1, JSON wanted", "not_found", "GET", "/nope", "Accept: application/json"),
    odd("in the guide, JSON wanted", "not_found", "GET", "/docs/nope", "Accept: application/json"),
    odd("outside of /v1, JSON sent", "method_not_allowed", "POST", "/healthz", JSON, body="{}"),
    # Queries.
    *(
        odd(f"query {query[:40]}", "invalid_request", "GET", f"/v1/generated?{query}")
        for query in (
            "nope=1",
            "limit=0",
            "limit=-1",
            "limit=101",
            "limit=1e1",
            "limit=",
            "limit=%31%30%00",
            "limit=1&limit=2",
            "limit[]=1",
            "order=up",
            "order[]=asc",
            "status=nope",
            "status[]=nope",
            "status=ready,nope",
            "status=",
            "created_after=yesterday",
            "created_after=2026-02-30",
            "created_after=2026-11-20T09:30:00",
            "from=2026-11-21&to=2026-11-20",
            "from=2026-11-20&created_after=2026-11-20",
            "source=src_1",
            "source=%00",
            "page=2",
            "offset=10",
            "sort=created_at",
            "q=",
            "q=%00",
            "bucket=film",
            "include=nope",
            "variant_group={}",
            "a" * 3000,
            "&".join(f"p{number}=1" for number in range(900)),
            "%ff=1",
            "limit=%ff",
            "=1",
        )
    ),
    *(
        odd(f"query {query}", 200, "GET", f"/v1/generated?{query}")
        for query in (
            "",
            "&&",
            "status=ready&status=failed",
            "status[]=ready&status[]=failed",
            "status=ready,failed",
            "status%5B%5D=ready",
            "created_after=2026-11-20T09:30:00+02:00",
            "created_after=2026-11-20T09:30:00%2B02:00",
            "created_before=2026-11-20",
            "limit=100",
            "limit=01",
            "order=asc",
        )
    ),
    *(
        odd(f"cursor {cursor!r}", "invalid_cursor", "GET", f"/v1/generated?cursor={cursor}")
        for cursor in ("", "nope", "a" * 2000)
    ),
    # Tokens.
    odd("no token", "unauthenticated", "GET", "/v1/raw", token=False),
    *(
        odd(
            f"token {value[:30]!r}",
            "unauthenticated",
            "GET",
            "/v1/raw",
            f"Authorization: {value}",
            token=False,
        )
        for value in (
            "",
            "Bearer",
            "Bearer ",
            "Bearer x",
            "Basic dXNlcjpwYXNz",
            "Token TOKEN",
            "TOKEN",
            "Bearer TOKEN x",
            "Bearer \xff\xfe",
            f"Bearer {'a' * 5000}",
            "Digest a=b",
        )
    ),
    odd("bearer in small letters", 200, "GET", "/v1/raw", "Authorization: bearer TOKEN", token=False),
    odd("the token in the query", "unauthenticated", "GET", "/v1/raw?token=TOKEN", token=False),
    odd("two tokens", "unauthenticated", "GET", "/v1/raw", "Authorization: Bearer TOKEN"),
    # Bodies.
    *(
        pushed(f"body {body[:30]!r}", "malformed_json", body)
        for body in (
            "{",
            "}",
            '{"title": "a",}',
            "{'title': 'a'}",
            '{"title": NaN}',
            '{"title": Infinity}',
            '{"title": "a" "b"}',
            '{"title": "\\ud800"}x',
            "\x00",
            b"\xff\xfe{\x00}\x00",
            b'{"title": "\xff"}',
            '{"title": "a", "title": "b"}',
            "title=a&body=b",
            "<raw/>",
            "null null",
            '{"title": "a\nb"}',
            "// {}",
        )
    ),
    *(
        pushed(f"body {body[:30]!r}", "invalid_request", body)
        for body in (
            "",
            "{}",
            "[]",
            "null",
            "1",
            '"text"',
            "true",
            "[{}]",
            '{"items": {}}',
            '{"items": []}',
            '{"title": 1}',
            '{"nope": 1}',
            "[" * 5000,
            '{"a":' * 2000,
            '{"title": null}',
            '{"title": "\\u0000", "body": "b"}',
            '{"title": "a", "body": "b", "variants": 1e999}',
            '{"title": "a", "body": "b", "variants": 99999999999999999999999}',
            '{"title": "a", "body": "b", "variants": true}',
            '{"title": "a", "body": "b", "engines": "Short Post"}',
            '{"title": "a", "body": "b", "published_at": "2026-13-01"}',
            '{"__proto__": {}, "constructor": 1}',
        )
    ),
    pushed("a BOM", 202, b"\xef\xbb\xbf" + PUSH.encode()),
    pushed("white space around", 202, f"\r\n\t {PUSH.replace('Odd', 'Odd space')} \n"),
    pushed(
        "a charset",
        202,
        PUSH.replace("Odd", "Odd charset"),
        kind="Content-Type: application/json; charset=UTF-8",
    ),
    pushed("a kind of JSON", 202, PUSH.replace("Odd", "Odd kind"), kind="Content-Type: APPLICATION/JSON"),
    pushed("gzip", 202, gzip.compress(PUSH.replace("Odd", "Odd gzip").encode()), "Content-Encoding: gzip"),
    pushed("identity", 202, PUSH.replace("Odd", "Odd identity"), "Content-Encoding: identity"),
    pushed(
        "latin-1", "unsupported_media_type", PUSH, kind="Content-Type: application/json; charset=iso-8859-1"
    ),
    pushed("no type", "unsupported_media_type", PUSH, kind=""),
    pushed("text", "unsupported_media_type", PUSH, kind="Content-Type: text/plain"),
    pushed(
        "a form", "unsupported_media_type", "title=a", kind="Content-Type: application/x-www-form-urlencoded"
    ),
    pushed(
        "a multipart form",
        "unsupported_media_type",
        "--x--",
        kind="Content-Type: multipart/form-data; boundary=x",
    ),
    pushed("XML", "unsupported_media_type", "<a/>", kind="Content-Type: application/xml"),
    pushed("a type that is none", "unsupported_media_type", PUSH, kind="Content-Type: json"),
    pushed("brotli", "unsupported_media_type", b"\x00\x01", "Content-Encoding: br"),
    pushed("gzip that is none", "malformed_json", PUSH, "Content-Encoding: gzip"),
    pushed("a body that is too large", "payload_too_large", " " * 6_000_000),
    odd("a query beside a body", "invalid_request", "POST", "/v1/raw?dry_run=1", JSON, body=PUSH),
    odd("a body on a read", 200, "GET", "/v1/raw", JSON, body="{}"),
    # Lengths and chunks.
    odd("a length that is no number", "invalid_request", "POST", "/v1/raw", JSON, "Content-Length: ten"),
    odd("a negative length", "invalid_request", "POST", "/v1/raw", JSON, "Content-Length: -1"),
    odd(
        "two lengths",
        "invalid_request",
        "POST",
        "/v1/raw",
        JSON,
        "Content-Length: 2",
        "Content-Length: 3",
        body="{}",
        length=False,
    ),
    odd(
        "a length and chunks",
        "invalid_request",
        "POST",
        "/v1/raw",
        JSON,
        "Content-Length: 2",
        "Transfer-Encoding: chunked",
        body="0\r\n\r\n",
        length=False,
    ),
    odd(
        "an unknown coding",
        "invalid_request",
        "POST",
        "/v1/raw",
        JSON,
        "Transfer-Encoding: nope",
        body="{}",
        length=False,
    ),
    odd(
        "a broken chunk",
        "invalid_request",
        "POST",
        "/v1/raw",
        JSON,
        "Transfer-Encoding: chunked",
        body="zz\r\n{}\r\n0\r\n\r\n",
        length=False,
    ),
    odd(
        "chunks",
        "invalid_request",
        "POST",
        "/v1/raw",
        JSON,
        "Transfer-Encoding: chunked",
        body="2\r\n{}\r\n0\r\n\r\n",
        length=False,
    ),
    # Headers.
    odd("a header without a colon", "invalid_request", "GET", "/v1/raw", "Nope"),
    odd("a header with a space in its name", "invalid_request", "GET", "/v1/raw", "No pe: 1"),
    odd("a header of 20,000 bytes", 431, "GET", "/v1/raw", f"X-Long: {'a' * 20_000}"),
    odd("300 headers", 431, "GET", "/v1/raw", *(f"X-{number}: 1" for number in range(300))),
    odd("a folded header", "invalid_request", "GET", "/v1/raw", "X-Folded: a\r\n b"),
    odd("an expectation", 200, "GET", "/v1/raw", "Expect: 100-continue"),
    odd("an unknown expectation", 417, "GET", "/v1/raw", "Expect: nope"),
    odd("an upgrade", 200, "GET", "/v1/raw", "Upgrade: h2c"),
    odd("a range", 200, "GET", "/v1/raw", "Range: bytes=0-10"),
    odd("an underscore", 200, "GET", "/v1/raw", "X_Request_Id: spoofed"),
    odd("the method overridden", 200, "GET", "/v1/raw", "X-HTTP-Method-Override: DELETE"),
    odd("the host of somebody else", 200, "GET", "/v1/raw", "X-Forwarded-Host: other.example"),
    *(
        odd(f"If-None-Match {value}", status, "GET", "/v1/raw", f"If-None-Match: {value}")
        for value, status in (
            ("*", 304),
            ('"nope"', 200),
            ("nope", 200),
            ('W/"nope", "other"', 200),
            ("", 200),
        )
    ),
    odd(
        "a stale If-Match on what isn't there", "not_found", "PATCH", ITEM, JSON, 'If-Match: "v1"', body="{}"
    ),
    *(
        odd(f"Accept {value}", expected, "GET", "/v1/raw", f"Accept: {value}")
        for value, expected in (
            ("text/html", "not_acceptable"),
            ("text/csv", "not_acceptable"),
            ("image/*", "not_acceptable"),
            ("application/json;q=0", "not_acceptable"),
            ("*/*", 200),
            ("application/*", 200),
            ("text/html, */*;q=0.1", 200),
            ("application/json; indent=4", 200),
            ("nope", 200),
            ("", 200),
        )
    ),
    *(
        pushed(f"Idempotency-Key {value[:20]!r}", "invalid_request", PUSH, f"Idempotency-Key: {value}")
        for value in ("", "a" * 300, "\xe4", '"', '""')
    ),
    *(
        odd(f"X-Request-Id {value[:20]!r}", 200, "GET", "/v1/raw", f"X-Request-Id: {value}")
        for value in ("a", "a" * 64, "a" * 65, "", "\xe4", "a b", "<script>")
    ),
    # Lines that are no request.
    Odd("HTTP/9.9", b"GET /v1/raw HTTP/9.9\r\nHost: a\r\n\r\n", "invalid_request"),
    Odd("HTTP/1.0 without a host", b"GET /v1/raw HTTP/1.0\r\nAuthorization: Bearer TOKEN\r\n\r\n", 200),
    Odd(
        "HTTP/1.1 without a host",
        b"GET /v1/raw HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer TOKEN\r\n\r\n",
        200,
    ),
    Odd("HTTP/0.9", b"GET /v1/raw\r\n\r\n", "invalid_request"),
    Odd("TLS on a plain port", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "invalid_request"),
    Odd("SSH", b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "invalid_request"),
    Odd("white space in the line", b"GET  /v1/raw  HTTP/1.1\r\nHost: a\r\n\r\n", "invalid_request"),
    Odd(
        "an empty line first",
        b"\r\nGET /v1/nope HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        "unauthenticated",
    ),
    Odd("line feeds alone", b"GET /v1/nope HTTP/1.1\nHost: 127.0.0.1\n\n", "invalid_request"),
    Odd(
        "a proxy's line", b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET /v1/raw HTTP/1.1\r\n\r\n", "invalid_request"
    ),
    odd("a star", "not_found", "OPTIONS", "*"),
]


@pytest.fixture(scope="module", params=MODES, ids=lambda mode: mode.__name__)
def service(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("odd")) as running:
        yield running


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def answered(port: int, request: bytes) -> Answer:
    """Send the bytes, read all that comes back until the server closes or has sent the whole answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        # It may answer a body that is too large before all of it was sent.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
        read = b""
        while not _is_whole(read, is_head=request.startswith(b"HEAD ")):
            try:
                more = connection.recv(65_536)
            except ConnectionResetError:
                break
            if not more:
                break
            read += more
    head, _, body = read.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.split()[1]) if first else 0, headers, body)


def _is_whole(read: bytes, *, is_head: bool) -> bool:
    head, separator, body = read.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
    if not separator or length is None:
        return False
    return is_head or len(body) >= int(length[1])


def fault_of(row: Odd, answer: Answer) -> str:
    """What is wrong with the answer, or an empty text."""
    code = ""
    if answer.body:
        try:
            code = json.loads(answer.body).get("error", "")
        except ValueError:
            return f"no JSON: {answer.status} {answer.body[:80]!r}"
        if not answer.headers.get("content-type", "").startswith("application/json"):
            return f"Content-Type {answer.headers.get('content-type')}"
    if answer.status >= 500:
        return f"{answer.status} {code}"
    if "x-request-id" not in answer.headers:
        return f"{answer.status} {code} without X-Request-Id"
    expected = (
        (row.expected, row.expected)
        if isinstance(row.expected, int)
        else (STATUS_BY_CODE[row.expected], row.expected)
    )
    got = (answer.status, answer.status if isinstance(row.expected, int) else code)
    return "" if got == expected else f"{answer.status} {code or answer.body[:60]!r}, expected {row.expected}"


def test_each_odd_request_is_answered_in_the_contracts_form(service):
    assert len(ROWS) >= 150
    token = service.token("Odd", "--unlimited").encode()
    faults = []
    for row in ROWS:
        answer = answered(service.port, row.request.replace(b"TOKEN", token))
        if fault := fault_of(row, answer):
            faults.append(f"{row.name}: {fault}")
    assert not faults, "\n".join(faults)
    # Each of them left a service that works.
    assert service.is_ready()


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/raw", b"400"), ("/v1/nope", b"404"), ("/healthz", b"405")]
)
def test_nothing_behind_malformed_chunks_is_read_as_a_request(service, path, status):
    """Whether the view reads them or not."""
    hidden = b"GET /v1/nope HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = written(
        "POST", path, "Transfer-Encoding: chunked", body="zz\r\n{}\r\n0\r\n\r\n", length=False, closes=False
    )
    token = service.token("Odd").encode()
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(head.replace(b"TOKEN", token) + hidden)
        connection.shutdown(socket.SHUT_WR)
        read = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert read.startswith(b"HTTP/1.1 " + status), read
    assert read.count(b"HTTP/1.1 ") == 1, read
    assert "Traceback" not in service.log.read_text()
