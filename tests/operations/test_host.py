"""deploy/: units, the nginx site and the guide for a plain host agree with each other, the settings and the code."""

from __future__ import annotations

import configparser
import getpass
import re
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest
import requests
from django.core.management import get_commands
from django.urls import reverse

from accounts import limits as accounts_limits
from config import celery, server, urls
from config.core import limits
from pipeline import limits as pipeline_limits
from tests.documents.text import ROOT
from tests.faults.instance import Instance, free_port
from tests.operations.deployment import COMPOSE_ONLY, compose, env_example, settings_names

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SITE = (DEPLOY / "nginx/content-pipeline.conf").read_text()
HOME = "/opt/content-pipeline"


def unit(path):
    """Of systemd's form: a name may stand several times."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        name, sign, value = line.partition("=")
        if sign and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@pytest.fixture(params=UNITS, ids=lambda path: path.stem)
def one(request):
    return unit(request.param)


def test_every_unit_runs_as_the_same_user_in_the_same_place(one):
    assert (one["User"], one["Group"]) == (["content-pipeline"], ["content-pipeline"])
    assert one["WorkingDirectory"] == [HOME]
    assert one["EnvironmentFile"] == ["/etc/content-pipeline.env"]
    state = dict(pair.split("=") for pair in one["Environment"][0].split())
    assert state["DATA_DIR"] == f"/var/lib/{one['StateDirectory'][0]}"
    ours = {name for name in state if not name.startswith("PYTHON")}
    assert ours - settings_names() == set()


def test_the_fence_lets_the_feed_reader_limit_itself(one):
    """`setrlimit` is of the group @resources, and is refused with EPERM where that group is shut out."""
    assert one["SystemCallFilter"] == ["@system-service", "~@privileged"]


def test_every_command_of_a_unit_is_there(one):
    for command in one["ExecStart"]:
        program, *words = command.split()
        assert program.startswith(f"{HOME}/.venv/bin/")
        if words[0] == "manage.py":
            assert words[1] in get_commands()
        else:
            assert Path(program).name in {"gunicorn", "celery"}


def test_units_and_compose_start_the_same(one):
    services = compose(POSTGRES_PASSWORD="p")["services"]
    for name in ("web", "worker", "beat"):
        path = DEPLOY / f"systemd/content-pipeline-{name}.service"
        assert unit(path)["ExecStart"] == [f"{HOME}/.venv/bin/{' '.join(services[name]['command'])}"]


def test_an_end_is_waited_for_as_long_as_it_may_take():
    waits = {path.stem: int(unit(path).get("TimeoutStopSec", ["0"])[0]) for path in UNITS}
    assert waits["content-pipeline"] > server.GRACE_SECONDS
    assert waits["content-pipeline-web"] > server.GRACE_SECONDS
    for name in ("content-pipeline-worker", "content-pipeline-worker@"):
        assert waits[name] > celery.SHUTDOWN_SECONDS


def test_the_two_modes_exclude_each_other():
    for name in ("web", "worker", "beat"):
        conflicts = unit(DEPLOY / f"systemd/content-pipeline-{name}.service")["Conflicts"]
        assert conflicts == ["content-pipeline.service"]


def test_names_of_settings_in_the_guide_exist():
    named = set(re.findall(r"`([A-Z][A-Z_]{3,})(?:=[^`]*)?`", (DEPLOY / "README.md").read_text()))
    assert named
    assert named - settings_names() - COMPOSE_ONLY == set()


def test_commands_and_paths_in_the_guide_exist():
    text = (DEPLOY / "README.md").read_text()
    assert set(re.findall(r"manage\.py ([a-z_]+)", text)) - set(get_commands()) == set()
    paths = set(re.findall(r"\bdeploy/[\w./-]*\w", text))
    assert paths
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []
    assert HOME in text
    assert "/etc/content-pipeline.env" in text
    named = set(re.findall(r"content-pipeline(?:-\w+)?\.(?:service|timer)", text))
    assert {name for name in named if not (DEPLOY / "systemd" / name).exists()} == set()


def test_the_timer_starts_the_backup():
    timer = configparser.ConfigParser(strict=False, interpolation=None)
    timer.read(DEPLOY / "systemd/content-pipeline-backup.timer")
    assert timer["Timer"]["OnCalendar"] == "*-*-* 03:17:00"
    (command,) = unit(DEPLOY / "systemd/content-pipeline-backup.service")["ExecStart"]
    folder, keep = re.search(r"backup (\S+) --keep (\d+)$", command).groups()
    assert unit(DEPLOY / "systemd/content-pipeline-backup.service")["ReadWritePaths"] == [folder]
    assert env_example()["BACKUP_DIR"] == (True, folder)
    assert int(keep) >= 7


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_every_line():
    files = [str(path) for path in [*UNITS, *(DEPLOY / "systemd").glob("*.timer")]]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *files], capture_output=True, text=True, check=False
    )
    # The programs are on the host that it is installed on, not here.
    said = [line for line in done.stderr.splitlines() if "is not executable: No such file" not in line]
    assert [line for line in said if "content-pipeline" in line] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_every_unit_is_fenced_in(one, request):
    path = request.node.callspec.params["one"]
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    # 0 is fenced in wholly, 100 not at all; the threshold is in tenths of what is printed.
    assert done.returncode == 0, done.stdout[-300:]


# --- nginx -----------------------------------------------------------------------------------------------------------


SOME_ID = UUID(int=7)


def sizes_of_the_site():
    """The walls in bytes: the server's own first, then each location's with its pattern."""
    own = int(re.search(r"^    client_max_body_size (\d+)m;", SITE, re.MULTILINE)[1]) * 2**20
    located = re.findall(r"location ~ (\S+) \{\n        client_max_body_size (\d+)m;", SITE)
    return own, [(re.compile(pattern), int(size) * 2**20) for pattern, size in located]


def wall_of(path):
    own, located = sizes_of_the_site()
    return next((size for pattern, size in located if pattern.search(path)), own)


@pytest.mark.parametrize(
    ("path", "least"),
    [
        ("/v1/raw", limits.RAW_BODY_BYTES),
        ("/v1/uploads", pipeline_limits.UPLOAD_BODY_BYTES),
        ("/v1/uploads/", pipeline_limits.UPLOAD_BODY_BYTES),
        (reverse("making", args=[SOME_ID]), pipeline_limits.UPLOAD_BODY_BYTES),
        (reverse("persona_look", args=[SOME_ID, SOME_ID]), pipeline_limits.UPLOAD_IMAGE_BYTES + 64 * 1024),
        (reverse("sources_several", args=[SOME_ID]), pipeline_limits.OPML_FORM_BYTES),
        ("/hooks/" + "x" * 32, limits.BODY_BYTES),
    ],
)
def test_the_site_lets_every_allowed_body_through(path, least):
    assert least < wall_of(path) < least + 2**20 or wall_of(path) == sizes_of_the_site()[0] > least


def test_no_page_takes_more_than_the_site_lets_through():
    """A page with a limit of its own has a location of its own."""
    own, _located = sizes_of_the_site()
    marked = {
        pattern.name: pattern.callback.body_limit
        for entry in urls.urlpatterns
        for pattern in getattr(entry, "url_patterns", [entry])
        if getattr(getattr(pattern, "callback", None), "body_limit", 0) > own
    }
    assert set(marked) == {"making", "persona_look", "sources_several"}


def test_the_site_and_the_service_have_the_same_patience():
    assert f"client_header_timeout {limits.HEAD_SECONDS}s;" in SITE
    assert f"client_body_timeout {limits.PACE_SECONDS}s;" in SITE
    assert f"limit_conn content_pipeline_addresses {limits.CONNECTIONS_PER_ADDRESS};" in SITE
    kept = int(re.search(r"keepalive_timeout (\d+)s;", SITE)[1])
    assert kept < server.options(host="", workers=1)["keepalive"]
    # What it hands on as it comes, the service would have to wait for.
    assert "proxy_request_buffering off" not in SITE


def test_the_site_waits_longer_than_the_service():
    assert (
        int(re.search(r"proxy_read_timeout (\d+)s;", SITE)[1]) > server.options(host="", workers=1)["timeout"]
    )


needs_nginx = pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")


@pytest.mark.slow
@needs_nginx
# The certificate is made for this test alone.
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_requests_pass_through_the_real_site(tmp_path):
    http, https = free_port(), free_port()
    data = tmp_path / "data"
    data.mkdir()
    given = {"BEHIND_PROXY": "1", "TRUSTED_PROXIES": "1", "PUBLIC_URL": "https://pipeline.example"}
    with Instance(data, **given) as service:
        token = service.token()
        with nginx(tmp_path, service.port, http, https):
            _ask_all(http, https, token)
            _ask_in_the_clear(http, token)
            _upload(service, https, token)
            _be_slow(service, https, token)


def _ask_all(http, https, token):
    session = requests.Session()
    session.trust_env, session.verify = False, False
    session.headers["Host"] = "pipeline.example"

    def ask(method, path, **more):
        more.setdefault("headers", {})
        return session.request(method, f"https://127.0.0.1:{https}{path}", timeout=20, **more)

    moved = session.get(f"http://127.0.0.1:{http}/docs?x=1", timeout=20, allow_redirects=False)
    assert (moved.status_code, moved.headers["Location"]) == (301, "https://pipeline.example/docs?x=1")
    assert ask("GET", "/readyz").json()["status"] == "ok"
    # It knows that it is https: the cookies are for https alone, and HSTS is sent.
    login = ask("GET", "/admin/login/")
    assert "Secure" in login.headers["Set-Cookie"]
    assert login.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert ask("GET", "/metrics").status_code == 404
    bearer = {"Authorization": f"Bearer {token}"}
    large = {"title": "Large", "body": "word " * 800_000}
    assert ask("POST", "/v1/raw", json=large, headers=bearer).status_code == 202
    # Over the service's own limit, and so in its own words; over the wall's, in nginx's.
    refused = ask("POST", "/v1/raw", data=b"x" * (limits.RAW_BODY_BYTES + 1000), headers=bearer)
    assert (refused.status_code, refused.json()["error"]) == (413, "payload_too_large")
    # A client that claims another address is one and the same to the limits. However a minute's end divides so many
    # calls, more than are allowed fall into one of the two minutes.
    allowed = int(accounts_limits.BAD_TOKENS.removesuffix("/m"))
    spoofed = [
        ask(
            "GET",
            "/v1/workspace",
            headers={"Authorization": "Bearer no", "X-Forwarded-For": f"203.0.113.{n}"},
        )
        for n in range(2 * allowed + 1)
    ]
    assert {401, 429} == {answer.status_code for answer in spoofed}


def _ask_in_the_clear(http, token):
    """Port 80 hands nothing on, whatever it is asked."""
    session = requests.Session()
    session.trust_env = False
    session.headers.update({"Host": "pipeline.example", "Authorization": f"Bearer {token}"})
    paths = ["/", "/v1/uploads", "/v1/raw", "/v1/workspace", "/w/", f"/w/{SOME_ID}/new/", "/accounts/login/"]
    for path in [*paths, "/admin/", "/metrics", "/healthz", "/readyz", "/media/x/y", "/feeds/x", "/hooks/x"]:
        for method in ("GET", "POST"):
            answer = session.request(
                method, f"http://127.0.0.1:{http}{path}?a=1", allow_redirects=False, timeout=20, data=b"x"
            )
            expected = (301, f"https://pipeline.example{path}?a=1")
            assert (answer.status_code, answer.headers.get("Location")) == expected, (method, path)
            assert "X-Request-Id" not in answer.headers
    answer = session.get(f"http://127.0.0.1:{http}/.well-known/acme-challenge/none", timeout=20)
    assert (answer.status_code, answer.headers.get("Location")) == (404, None)


class Film:
    """A form with a file of so many bytes, none of them in memory; the service's own judgement is that it's no video."""

    def __init__(self, size):
        start = b'--e\r\nContent-Disposition: form-data; name="file"; filename="a.mp4"\r\n\r\n'
        self._parts = [start, size, b"\r\n--e--\r\n"]
        self.length = len(start) + size + len(self._parts[2])

    def __iter__(self):
        start, size, end = self._parts
        yield start
        for at in range(0, size, 2**20):
            yield b"\0" * min(2**20, size - at)
        yield end

    def __len__(self):
        return self.length


def _upload(service, https, token):
    """What the service says of it stands in its own words, so it came there whole."""
    session = requests.Session()
    session.trust_env, session.verify = False, False
    session.headers.update({"Host": "pipeline.example", "Authorization": f"Bearer {token}"})

    def send(path, size):
        kind = {"Content-Type": "multipart/form-data; boundary=e"}
        return session.post(
            f"https://127.0.0.1:{https}{path}", Film(size), headers=kind, timeout=120, allow_redirects=False
        )

    mib = 2**20
    for size in (7 * mib, 199 * mib):
        answer = send("/v1/uploads", size)
        assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_media_type"), answer.text
        # Who isn't logged in sends no large form; it is the service that says so.
        answer = send(reverse("making", args=[SOME_ID]), size)
        assert (answer.status_code, "nginx" in answer.text) == (413, False)
        assert "X-Request-Id" in answer.headers
    # Over the service's limit and under the wall, and over both.
    answer = send("/v1/uploads", pipeline_limits.UPLOAD_BODY_BYTES + 1000)
    assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")
    assert (send("/v1/uploads", 202 * mib).status_code, send("/v1/raw", 7 * mib).status_code) == (413, 413)
    assert service.is_ready()


def _be_slow(service, https, token):
    """Forty bodies that don't come on: nginx keeps them to itself."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    head = f"POST /v1/uploads HTTP/1.1\r\nHost: pipeline.example\r\nAuthorization: Bearer {token}\r\n"
    with ExitStack() as stack:
        for _ in range(40):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", https), timeout=20))
            sock = stack.enter_context(context.wrap_socket(plain, server_hostname="pipeline.example"))
            sock.sendall(f"{head}Content-Length: 100000\r\n\r\nx".encode())
        took = []
        for _ in range(20):
            began = time.monotonic()
            url, named = f"https://127.0.0.1:{https}/readyz", {"Host": "pipeline.example"}
            answer = requests.get(url, headers=named, timeout=20, verify=False, proxies={"https": ""})
            assert answer.status_code == 200
            took.append(time.monotonic() - began)
        assert sorted(took)[10] < 1, took
        # None of them has come to the service.
        listed = Path("/proc/net/tcp").read_text().splitlines()
        here = f"0100007F:{service.port:04X}"
        assert sum(line.split()[1] == here and line.split()[3] == "01" for line in listed) < 20


class nginx:  # noqa: N801
    """The site as it is, but for its ports, its certificate and the port of the service."""

    def __init__(self, folder, port, http, https):
        self.folder = folder
        key, certificate = folder / "key.pem", folder / "certificate.pem"
        make = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=pipeline.example",
        ]
        subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        site = SITE.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        site = re.sub(r"listen 80;\n    listen \[::\]:80;", f"listen 127.0.0.1:{http};", site)
        site = re.sub(r"listen 443 ssl http2;\n    listen \[::\]:443", f"listen 127.0.0.1:{https}", site)
        site = re.sub(r"ssl_certificate [^;]+", f"ssl_certificate {certificate}", site)
        site = re.sub(r"ssl_certificate_key [^;]+", f"ssl_certificate_key {key}", site)
        paths = "".join(
            f"{name}_temp_path {folder}/{name};"
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        self.config = folder / "nginx.conf"
        self.config.write_text(
            f"daemon off; user {getpass.getuser()}; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
            f"http {{ access_log off; {paths}\n{site}\n}}\n"
        )
        self.command = ["nginx", "-p", str(folder), "-e", f"{folder}/error.log", "-c", str(self.config)]

    def __enter__(self):
        done = subprocess.run([*self.command, "-t"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "warn" not in done.stderr
        self.process = subprocess.Popen(self.command)
        port = int(re.search(r"listen 127.0.0.1:(\d+) ssl", self.config.read_text())[1])
        _wait_for(port)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)


def _wait_for(port):
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.1)
        else:
            return
