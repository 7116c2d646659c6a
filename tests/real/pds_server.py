"""A PDS, the server that Bluesky's accounts live on, with the directory of DIDs beside it: both real, both on loopback.

Its packages come from npm once, into a folder of var/ that is named after what is pinned.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
OURS = Path(__file__).parent / "pds"
INSTALLED = ROOT / "var" / "test" / "npm"
# The compiler is for better-sqlite3, which npm has no program of.
PROGRAMS = ("node", "npm", "make", "g++")
INSTALL_SECONDS = 900
BOOT_SECONDS = 120


@dataclass(frozen=True)
class Account:
    handle: str
    did: str
    password: str
    app_password: str


class Pds:
    """What a test asks of the server; `account` is there from the start."""

    def __init__(self, url: str, *, jwt_secret: str, admin_password: str) -> None:
        self.url = url
        self._jwt_secret = jwt_secret
        self._admin = ("admin", admin_password)
        self._session = requests.Session()
        self._session.trust_env = False
        self.account = self.new_account()

    def new_account(self) -> Account:
        name = f"writer-{secrets.token_hex(4)}"
        password = secrets.token_urlsafe(16)
        made = self.call(
            "com.atproto.server.createAccount",
            {"handle": f"{name}.test", "email": f"{name}@example.com", "password": password},
        )
        app_password = self.call(
            "com.atproto.server.createAppPassword", {"name": "pipeline"}, token=made["accessJwt"]
        )
        return Account(made["handle"], made["did"], password, app_password["password"])

    def call(self, method: str, body: Any, *, token: str = "") -> Any:
        """What a procedure answers; anything but success fails the test."""
        answer = self._session.post(
            f"{self.url}/xrpc/{method}",
            json=body,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=60,
        )
        assert answer.status_code == 200, answer.text
        return answer.json() if answer.content else None

    def expired(self, token: str) -> str:
        """The same token as it will be when its time is over: two hours for access, months for refreshing."""
        head, claims, _signature = token.split(".")
        told = json.loads(base64.urlsafe_b64decode(claims + "=="))
        over = int(time.time()) - 60
        claims = _as_part(json.dumps(told | {"iat": over - 60, "exp": over}).encode())
        signed = hmac.digest(self._jwt_secret.encode(), f"{head}.{claims}".encode(), "sha256")
        return f"{head}.{claims}.{_as_part(signed)}"

    def take_down(self, account: Account, *, applied: bool = True) -> None:
        """What a moderator does to an account; and what undoes it."""
        answer = self._session.post(
            f"{self.url}/xrpc/com.atproto.admin.updateSubjectStatus",
            json={
                "subject": {"$type": "com.atproto.admin.defs#repoRef", "did": account.did},
                "takedown": {"applied": applied},
            },
            auth=self._admin,
            timeout=60,
        )
        assert answer.status_code == 200, answer.text


def require_pds() -> None:
    """Skips the test, or fails it, where a PDS can't be installed."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if not lacking:
        return
    message = f"There is no PDS to talk to; missing: {', '.join(lacking)}."
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(message)
    pytest.skip(message)


@contextmanager
def running(folder: Path, *, rate_limits: bool = False) -> Iterator[Pds]:
    """A PDS with one account, which keeps everything in this folder and is gone with it."""
    require_pds()
    modules = _install()
    jwt_secret, admin_password = secrets.token_hex(16), secrets.token_hex(16)
    environment = {
        "PATH": os.environ["PATH"],
        "MODULES": str(modules),
        "FOLDER": str(folder),
        "PLC_PORT": str(_free_port()),
        "PDS_PORT": str(_free_port()),
        "JWT_SECRET": jwt_secret,
        "ADMIN_PASSWORD": admin_password,
        "ROTATION_KEY": secrets.token_hex(32),
        "RATE_LIMITS": "1" if rate_limits else "0",
        "LOG_ENABLED": "true",
        "LOG_LEVEL": "warn",
    }
    log = folder / "pds.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["node", str(OURS / "server.mjs")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )
    try:
        url = _ready(process, log)["url"]
        yield Pds(url, jwt_secret=jwt_secret, admin_password=admin_password)
    finally:
        _end(process)
        shutil.rmtree(folder, ignore_errors=True)


def _ready(process: subprocess.Popen[bytes], log: Path) -> Any:
    """The line in which the server says that it listens."""
    until = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < until:
        for line in log.read_text(errors="replace").splitlines(keepends=True):
            if line.startswith('{"ready":true') and line.endswith("\n"):
                return json.loads(line)
        if process.poll() is not None:
            pytest.fail(f"The PDS ended with {process.returncode}:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    pytest.fail(f"The PDS was not ready within {BOOT_SECONDS} seconds:\n{log.read_text(errors='replace')}")


def _install() -> Path:
    """The folder with node_modules. A compiled module is of use to one version of Node alone."""
    version = subprocess.run(["node", "--version"], capture_output=True, check=True).stdout
    pinned = [(OURS / name).read_bytes() for name in ("package.json", "package-lock.json")]
    folder = INSTALLED / f"pds-{hashlib.sha256(b''.join([version, *pinned])).hexdigest()[:12]}"
    if folder.exists():
        return folder
    INSTALLED.mkdir(parents=True, exist_ok=True)
    # Tests in another process may want it at the same moment.
    with (INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            coming = INSTALLED / "pds-coming"
            shutil.rmtree(coming, ignore_errors=True)
            coming.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(OURS / name, coming)
            _npm(coming, "ci", "--ignore-scripts")
            _npm(coming, "rebuild", "better-sqlite3")
            coming.rename(folder)
    return folder


def _npm(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "NODE_GYP_FORCE_PYTHON": sys.executable}
    # A compiled program would be fetched from a place that needn't be reachable.
    environment["npm_config_build_from_source"] = "true"
    # All of SQLite is compiled; the level that it asks for takes twice as long and makes no test faster.
    environment |= {"CFLAGS": "-O1", "CXXFLAGS": "-O1"}
    prefix = Path(shutil.which("node") or "").resolve().parents[1]
    if (prefix / "include" / "node" / "node.h").exists():
        # Node's headers would be fetched, too.
        environment["npm_config_nodedir"] = str(prefix)
    command = ["npm", *arguments, "--no-audit", "--no-fund"]
    log = folder / "npm.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        ended = f"ended with {process.wait(INSTALL_SECONDS)}"
    except subprocess.TimeoutExpired:
        ended = f"was not done within {INSTALL_SECONDS} seconds"
    finally:
        # A compiler of its own would go on in the background.
        _end(process)
    if ended != "ended with 0":
        pytest.fail(f"{' '.join(command)} {ended}:\n{log.read_text(errors='replace')}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin:
        process.stdin.close()


def _as_part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
