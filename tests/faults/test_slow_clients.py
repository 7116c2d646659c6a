"""Clients that send or take slowly, or not at all: they cost no thread, so the service answers all others."""

from __future__ import annotations

import random
import re
import signal
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from itertools import count
from pathlib import Path

import pytest
import requests
from PIL import Image

from config.core import limits
from pipeline import limits as pipeline_limits
from tests.faults.instance import Instance
from tests.faults.separate import IS_POSSIBLE, Separate
from tests.sizes import IS_PROOF, size

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres_if_there,
    pytest.mark.minutes(4),
]
CROWD = 40
LARGE = "/static/fonts/inter-latin-ext.woff2"


def embedded(data, **settings):
    return Instance(data, **settings)


def separate(data, **settings):
    made = Separate(data, **settings)
    made.environment["WEB_PROCESSES"] = "2"
    return made


MODES = [embedded, separate] if IS_POSSIBLE else [embedded]
# Both serve with the same gunicorn: one of them for each run, both for `make prove-kills`.
TRIED = MODES if IS_PROOF else MODES[-1:]
STOPS = [signal.SIGTERM, signal.SIGINT][: size(1, 2)]


@pytest.fixture(scope="module", params=TRIED, ids=lambda mode: mode.__name__)
def service(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp("slow")) as running:
        yield running


@pytest.fixture(scope="module")
def token(service):
    return service.token("Slow", "--unlimited")


def connect(service, *, receives=None):
    made = socket.socket()
    if receives is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
    made.settimeout(45)
    made.connect(("127.0.0.1", service.port))
    return made


def head_of(method, path, *lines):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def answer_on(sock):
    """The head, and the body by its length."""
    read = b""
    while b"\r\n\r\n" not in read:
        more = sock.recv(65_536)
        assert more, f"The connection ended: {read[:200]!r}"
        read += more
    head, _, body = read.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while length and len(body) < int(length[1]):
        more = sock.recv(65_536)
        assert more
        body += more
    return head.decode(), body


def status_on(sock):
    return int(answer_on(sock)[0].split()[1])


@contextmanager
def dripping(sockets):
    """A byte a second on each."""
    is_over = threading.Event()

    def drip():
        while not is_over.wait(1):
            for one in sockets:
                with suppress(OSError):
                    one.sendall(b"x")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def half_open(service):
    made = connect(service)
    made.sendall(b"GET / HT")
    return made


def silent(service):
    return connect(service)


def slow_body(service):
    made = connect(service)
    made.sendall(
        head_of("POST", "/v1/raw", "Content-Length: 100000", "Content-Type: application/json") + b"{"
    )
    return made


def slow_chunks(service):
    made = connect(service)
    made.sendall(head_of("POST", "/v1/raw", "Transfer-Encoding: chunked") + b"ffff\r\n{")
    return made


def slow_reader(service):
    """Its window is full long before the answers are out, and it reads nothing."""
    made = connect(service, receives=1024)
    made.sendall(head_of("GET", LARGE) * 60)
    return made


def seconds_until_ready(service):
    """A connection of its own, as a probe's."""
    began = time.monotonic()
    answer = requests.get(f"{service.url}/readyz", timeout=10, proxies={"http": ""})
    assert answer.status_code == 200, answer.text
    return time.monotonic() - began


def assert_ready(service, times=20):
    """Within a second, but for the moments in which this machine is busy with something else."""
    took = sorted(seconds_until_ready(service) for _ in range(times))
    assert took[times // 2] < 1, took


@pytest.mark.parametrize("client", [half_open, silent, slow_body, slow_chunks, slow_reader])
def test_forty_slow_clients_stop_nobody(service, token, client):
    with ExitStack() as stack:
        crowd = [stack.enter_context(client(service)) for _ in range(CROWD)]
        writers = crowd if client in {half_open, slow_body, slow_chunks} else []
        stack.enter_context(dripping(writers))
        # All of them would have a thread by then, if they could.
        time.sleep(2)
        assert_ready(service)
        assert service.call("GET", "/v1/workspace", token).status_code == 200


def test_half_open_and_slow_at_once(service):
    with ExitStack() as stack:
        clients = [half_open] * CROWD + [slow_body] * CROWD
        crowd = [stack.enter_context(client(service)) for client in clients]
        stack.enter_context(dripping(crowd))
        assert_ready(service)


def test_a_head_that_isn_t_whole_in_time_is_refused(service):
    with half_open(service) as sock, connect(service) as quiet:
        began = time.monotonic()
        assert status_on(sock) == 408
        assert sock.recv(1) == b""
        assert limits.HEAD_SECONDS - 1 < time.monotonic() - began < limits.HEAD_SECONDS + 40
        assert quiet.recv(1) == b""


def test_a_byte_now_and_then_puts_the_head_s_end_off_no_further(service):
    with half_open(service) as sock, dripping([sock]):
        assert status_on(sock) == 408


def test_a_body_without_pace_is_refused(service):
    with slow_body(service) as sock, dripping([sock]):
        sock.settimeout(60)
        began = time.monotonic()
        assert status_on(sock) == 408
        assert time.monotonic() - began > limits.PACE_SECONDS - 1


def test_the_request_after_a_slow_one_is_answered(service):
    """What is left of a request that was refused is never taken for another one."""
    with half_open(service) as sock:
        assert status_on(sock) == 408
        with suppress(OSError):
            sock.sendall(b"TP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + head_of("GET", "/healthz"))
            assert sock.recv(1) == b""


def pieces(body, seconds, number=40):
    size = len(body) // number + 1
    for at in range(0, len(body), size):
        yield body[at : at + size]
        time.sleep(seconds / number)


def multipart(content):
    edge = "an-edge"
    start = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n'
    start += "Content-Type: text/plain\r\n\r\n"
    return start.encode() + content + f"\r\n--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def test_a_slow_but_honest_upload_passes(service, token):
    """Longer than one measure of the pace, at four times the slowest pace that is allowed."""
    body, kind = multipart(b"A word and another. " * 8000)
    lines = (f"Authorization: Bearer {token}", f"Content-Type: {kind}", f"Content-Length: {len(body)}")
    with connect(service) as sock:
        sock.sendall(head_of("POST", "/v1/uploads", *lines))
        for piece in pieces(body, limits.PACE_SECONDS + 8):
            sock.sendall(piece)
        assert status_on(sock) == 201


def test_a_large_body_arrives_as_it_was_sent(service, token):
    content = b"".join(b"Line %d of the text.\n" % number for number in range(180_000))
    assert len(content) > limits.BODY_MEMORY_BYTES
    body, kind = multipart(content)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
    answer = requests.post(
        f"{service.url}/v1/uploads", body, headers=headers, timeout=30, proxies={"http": ""}
    )
    assert answer.status_code == 201, answer.text
    assert answer.json()["bytes"] == len(content)


def raw(number):
    return b'{"title": "Number %d", "body": "The ferry leaves at seven, and the next one at eight."}' % number


NUMBERS = count()


@pytest.mark.parametrize("length", [10_000, 3_000_000])
def test_a_body_that_nobody_reads_is_passed_over(service, length):
    """What was said to be kept is kept: a proxy would answer its next request with 502."""
    push = head_of("POST", "/v1/raw", "Authorization: Bearer no", f"Content-Length: {length}") + b"x" * length
    with connect(service) as sock:
        sock.sendall(push)
        head, _body = answer_on(sock)
        assert " 401 " in head
        assert "keep-alive" in head
        sock.sendall(head_of("GET", "/healthz"))
        assert status_on(sock) == 200


def test_a_body_in_chunks_arrives_whole(service, token):
    body = raw(next(NUMBERS))
    chunks = b"".join(b"%x;x=y\r\n%b\r\n" % (len(one), one) for one in (body[:7], body[7:8], body[8:]))
    lines = (f"Authorization: Bearer {token}", "Content-Type: application/json", "Transfer-Encoding: chunked")
    whole = head_of("POST", "/v1/raw", *lines) + chunks + b"0\r\nX-Trailer: 1\r\n\r\n"
    with connect(service) as sock:
        for at in range(0, len(whole), 5):
            sock.sendall(whole[at : at + 5])
        assert status_on(sock) == 202
        # The connection goes on behind the trailer.
        sock.sendall(head_of("GET", "/healthz"))
        assert status_on(sock) == 200


def test_a_connection_is_kept_for_the_next_request(service):
    with connect(service) as sock:
        for _ in range(5):
            sock.sendall(head_of("GET", "/healthz"))
            head, _body = answer_on(sock)
            assert "200" in head
            assert "keep-alive" in head
        # It waits for the next one without a thread, and not for ever.
        assert sock.recv(1) == b""


def test_requests_that_come_in_one_piece_are_answered_in_their_order(service, token):
    body = raw(next(NUMBERS))
    lines = (f"Authorization: Bearer {token}", "Content-Type: application/json")
    push = head_of("POST", "/v1/raw", *lines, f"Content-Length: {len(body)}") + body
    with connect(service) as sock:
        sock.sendall(head_of("GET", "/healthz") + push + head_of("GET", "/nowhere", "Connection: close"))
        read = BytesIO()
        while more := sock.recv(65_536):
            read.write(more)
    assert re.findall(rb"HTTP/1.1 (\d+) ", read.getvalue()) == [b"200", b"202", b"404"]


def test_a_request_after_the_deadline_of_one_before_is_answered(service):
    """The time of each request's head begins with its first byte."""
    with connect(service) as sock:
        until = time.monotonic() + limits.HEAD_SECONDS + 3
        while time.monotonic() < until:
            sock.sendall(head_of("GET", "/healthz") + b"GET /healthz HTTP/1.1\r\n")
            assert status_on(sock) == 200
            time.sleep(2)
            sock.sendall(b"Host: 127.0.0.1\r\n\r\n")
            assert status_on(sock) == 200


def test_who_waits_for_a_word_before_the_body_gets_it_once(service, token):
    body = raw(next(NUMBERS))
    lines = (
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Expect: 100-continue",
    )
    with connect(service) as sock:
        sock.sendall(head_of("POST", "/v1/raw", *lines))
        assert answer_on(sock)[0].startswith("HTTP/1.1 100")
        sock.sendall(body)
        assert status_on(sock) == 202


def test_a_body_that_is_announced_as_too_large_is_refused_unread(service, token):
    lines = (
        f"Authorization: Bearer {token}",
        "Content-Type: multipart/form-data; boundary=x",
        f"Content-Length: {pipeline_limits.UPLOAD_BODY_BYTES + 1}",
        "Expect: 100-continue",
    )
    with connect(service) as sock:
        sock.sendall(head_of("POST", "/v1/uploads", *lines))
        head, body = answer_on(sock)
        assert " 413 " in head
        assert b"payload_too_large" in body
        assert "connection: close" in head.lower()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n", 400),
        (head_of("GET", "/healthz", "X-Long: " + "x" * limits.HEAD_BYTES), 431),
        (head_of("POST", "/v1/raw", "Content-Length: 5", "Content-Length: 6") + b"12345", 400),
        (head_of("POST", "/v1/raw", "Content-Length: +5") + b"12345", 400),
        (head_of("POST", "/v1/raw", "Content-Length: 5", "Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
    ],
)
def test_what_has_no_certain_end_is_refused_at_once(service, sent, status):
    with connect(service) as sock:
        sock.settimeout(limits.HEAD_SECONDS - 2)
        sock.sendall(sent)
        assert status_on(sock) == status


def test_an_answer_that_is_taken_slowly_is_whole(service):
    whole = requests.get(f"{service.url}/openapi.json", timeout=20, proxies={"http": ""}).content
    with connect(service, receives=4096) as sock:
        sock.sendall(head_of("GET", "/openapi.json", "Connection: close"))
        time.sleep(2)
        read = BytesIO()
        while more := sock.recv(1000 if read.tell() < 100_000 else 65_536):
            read.write(more)
    assert read.getvalue().partition(b"\r\n\r\n")[2] == whole


def test_a_file_is_sent_whole_and_in_ranges_to_who_takes_it_slowly(service, token):
    written = BytesIO()
    Image.frombytes("RGB", (900, 700), random.Random(1).randbytes(900 * 700 * 3)).save(written, "PNG")
    picture = written.getvalue()
    answer = requests.post(
        f"{service.url}/v1/uploads",
        files={"file": ("a.png", picture)},
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
        proxies={"http": ""},
    )
    assert answer.status_code == 201, answer.text
    ((secret, kind),) = service.query("SELECT secret, kind FROM upload WHERE kind <> 'text'")
    for wanted, expected in (("bytes=0-", picture), ("bytes=1000-1500000", picture[1000:1_500_001])):
        with connect(service, receives=4096) as sock:
            sock.sendall(
                head_of("GET", f"/media/{secret}/{kind}", f"Range: {wanted}") + head_of("GET", "/healthz")
            )
            time.sleep(1)
            head, body = answer_on(sock)
            assert " 206 " in head
            assert body[: len(expected)] == expected
            # The next answer follows at once.
            rest = body[len(expected) :]
            while b"healthy" not in rest and b"ok" not in rest:
                rest += sock.recv(1000)
            assert rest.startswith(b"HTTP/1.1 200")


def test_it_listens_at_this_machine_alone(service):
    listed = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listed += [line.split() for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]]
    listening = "0A"
    mine = [line[1] for line in listed if line[1].endswith(f":{service.port:04X}") and line[3] == listening]
    assert mine == [f"0100007F:{service.port:04X}"]


def test_who_doesn_t_close_after_the_last_answer_holds_nobody_up(service):
    with ExitStack() as stack:
        for _ in range(CROWD):
            sock = stack.enter_context(connect(service))
            sock.sendall(head_of("GET", "/healthz", "Connection: close"))
            assert status_on(sock) == 200
        assert_ready(service)


def test_one_address_has_so_many_connections_and_no_more(service):
    processes = 1 if type(service) is Instance else 2
    with ExitStack() as stack:
        most = limits.CONNECTIONS_PER_ADDRESS * processes
        crowd = [stack.enter_context(connect(service)) for _ in range(most + 20)]
        refused = 0
        for sock in crowd:
            sock.settimeout(0.05)
            with suppress(TimeoutError):
                refused += b" 429 " in sock.recv(1000)
        assert 20 <= refused <= most
    # Those that are closed make room again.
    assert seconds_until_ready(service) < 5
    assert "Further ones are refused" in service.log.read_text()


@pytest.mark.parametrize("mode", TRIED, ids=lambda mode: mode.__name__)
def test_behind_a_proxy_the_bound_doesn_t_hold_and_the_slowest_makes_room(mode, tmp_path):
    with mode(tmp_path, TRUSTED_PROXIES="1", BEHIND_PROXY="1") as service, ExitStack() as stack:
        for _ in range(2 * limits.CONNECTIONS + 50):
            stack.enter_context(half_open(service))
        assert max(seconds_until_ready(service) for _ in range(10)) < 3


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_waits_for_nobody_who_is_slow(tmp_path, number):
    with Instance(tmp_path) as service, ExitStack() as stack:
        for client in (half_open, silent, slow_body, slow_reader):
            for _ in range(10):
                stack.enter_context(client(service))
        time.sleep(0.5)
        assert service.stop(number) < 10
        assert "Traceback" not in service.log.read_text()
        assert "SIGKILL" not in service.log.read_text()


def test_a_kill_of_the_arbiter_waits_for_nobody_either(tmp_path):
    with Instance(tmp_path) as service, ExitStack() as stack:
        for client in (half_open, slow_body):
            for _ in range(10):
                stack.enter_context(client(service))
        service._process.kill()
        service._process.wait()
        service.start(waits=False)
        service.wait_until_ready()
