"""Replays the Dockerfile without Docker: every step in a clean root of its own, then the service in it.

    sudo python3 tools/replay_dockerfile.py [--base FOLDER]

It needs root, debootstrap and a kernel with overlayfs. What differs from a build by Docker: the base is Debian's own
minimal system with Debian's Python 3.11 in the place of the image that FROM names, and the network is this machine's.
Everything else is taken from the Dockerfile; an instruction that it doesn't know ends the replay. The service then runs
as compose.yaml would run it: root file system read only, volumes and /tmp writable.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "var" / "tools" / "base-bookworm"
INSIDE = "REPLAY_INSIDE"
HEALTHY_SECONDS = 120
HOST = "pipeline.example"
# What a container would be given by its operator.
GIVEN = {
    "PUBLIC_URL": f"https://{HOST}",
    "OPERATOR_CONTACT": f"operator@{HOST}",
    "SECRET_KEY": "s" * 40,
    "FIELD_KEYS": f"k1:{'A' * 43}=",
    "LOG_LEVEL": "WARNING",
}
FIRST_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# How this machine reaches its package index; Docker would take the same from the operator's build settings.
WAY_OUT = re.compile(r"PIP_.*|(https?|no)_proxy|(HTTPS?|NO)_PROXY")


class Failed(Exception):
    pass


@dataclass
class Stage:
    """One FROM: its root, and what the steps so far have said."""

    name: str
    root: Path
    workdir: str = "/"
    user: str = ""
    env: dict[str, str] = field(default_factory=lambda: {"PATH": FIRST_PATH})
    volumes: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    health_options: dict[str, str] = field(default_factory=dict)

    def path(self, inside: str) -> Path:
        """As the steps name it; relative to the working folder."""
        return self.root / (Path(self.workdir) / inside).as_posix().lstrip("/")

    def argv(self, command: list[str], **more: str) -> list[str]:
        who = [f"--userspec={self.user}:{self.user}"] if self.user else []
        home = f"/home/{self.user}" if self.user else "/root"
        given = {**self.env, "HOME": home, **more}
        pairs = [f"{name}={value}" for name, value in given.items()]
        cd = f'cd {shlex.quote(self.workdir)} && exec "$@"'
        return ["chroot", *who, str(self.root), "env", "-i", *pairs, "sh", "-c", cd, "sh", *command]

    def run(self, command: list[str], **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.argv(command, **more), capture_output=True, text=True, check=False)


def steps(text: str) -> list[tuple[str, str]]:
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    split = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, _, rest in split]


def say(text: str) -> None:
    print(text, flush=True)


def must(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        message = f"{what} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}"
        raise Failed(message)


def mount(*words: str) -> None:
    must(subprocess.run(["mount", *words], capture_output=True, text=True, check=False), f"mount {words}")


def make_base(base: Path) -> None:
    """Debian's minimal system, made once and kept."""
    if (base / "replay-base").exists():
        return
    say(f"Making the base in {base}; that takes a minute or two, once.")
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    include = "--include=python3,python3-venv,ca-certificates"
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", include, "bookworm", str(base)],
        capture_output=True,
        text=True,
        check=False,
    )
    must(done, "debootstrap")
    # The official image calls it so.
    for name in ("python", "python3"):
        (base / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
    (base / "replay-base").touch()


def make_devices(folder: Path) -> None:
    """Of its own: nothing that happens to this root can reach the machine's."""
    mount("-t", "tmpfs", "tmpfs", str(folder))
    for name, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        (folder / name).chmod(0o666)
    (folder / "shm").mkdir()
    mount("-t", "tmpfs", "tmpfs", str(folder / "shm"))
    (folder / "fd").symlink_to("/proc/self/fd")


class Replay:
    def __init__(self, work: Path, base: Path) -> None:
        self.work, self.base = work, base
        self.stages: dict[str, Stage] = {}
        self.stage: Stage | None = None

    @property
    def now(self) -> Stage:
        if self.stage is None:
            message = "A step stands before the first FROM."
            raise Failed(message)
        return self.stage

    def build(self) -> Stage:
        for word, rest in steps((ROOT / "Dockerfile").read_text()):
            step = getattr(self, f"do_{word.lower()}", None)
            if step is None:
                message = f"{word} can't be replayed; teach tools/replay_dockerfile.py to."
                raise Failed(message)
            started = time.monotonic()
            step(rest)
            say(f"  {word} {rest[:90]} ({time.monotonic() - started:.1f} s)")
        return self.now

    def do_from(self, rest: str) -> None:
        image, _, name = rest.partition(" AS ")
        if not image.startswith("python:3.11-") or "bookworm" not in image:
            message = f"The base of the replay is Debian bookworm with Python 3.11, not {image}."
            raise Failed(message)
        folder = self.work / f"stage-{len(self.stages)}"
        upper, scratch, root = (folder / part for part in ("upper", "scratch", "root"))
        for one in (upper, scratch, root):
            one.mkdir(parents=True)
        options = f"lowerdir={self.base},upperdir={upper},workdir={scratch}"
        mount("-t", "overlay", "overlay", "-o", options, str(root))
        mount("-t", "proc", "proc", str(root / "proc"))
        make_devices(root / "dev")
        # The ways to the package registries are this machine's.
        for given in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(given).exists():
                shutil.copyfile(given, root / given.lstrip("/"))
        self.stage = Stage(name or str(len(self.stages)), root)
        self.stages[self.stage.name] = self.stage

    def do_workdir(self, rest: str) -> None:
        self.now.workdir = rest
        self.now.path(".").mkdir(parents=True, exist_ok=True)

    def do_env(self, rest: str) -> None:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            self.now.env[name] = re.sub(r"\$(\w+)", lambda match: self.now.env.get(match[1], ""), value)

    def do_run(self, rest: str) -> None:
        ways = {name: value for name, value in os.environ.items() if WAY_OUT.fullmatch(name)}
        must(self.now.run(["sh", "-c", rest], **ways), f"RUN {rest}")

    def do_copy(self, rest: str) -> None:
        words = shlex.split(rest)
        origin = ROOT
        if words[0].startswith("--from="):
            origin = self.stages[words.pop(0).removeprefix("--from=")].root
        *sources, target = words
        to = self.now.path(target)
        for source in sources:
            there = origin / source.lstrip("/")
            if not there.exists():
                message = f"COPY {source}: there is no such file."
                raise Failed(message)
            if there.is_dir():
                # As Docker does: the content of the folder.
                ignored = shutil.ignore_patterns("__pycache__") if origin == ROOT else None
                shutil.copytree(there, to, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                to.mkdir(parents=True, exist_ok=True) if target.endswith(("/", ".")) else None
                shutil.copy2(there, to)

    def do_user(self, rest: str) -> None:
        self.now.user = rest

    def do_volume(self, rest: str) -> None:
        self.now.volumes += rest.split()

    def do_expose(self, rest: str) -> None:
        del rest

    def do_healthcheck(self, rest: str) -> None:
        options, _, command = rest.partition("CMD ")
        self.now.health = json.loads(command)
        self.now.health_options = dict(re.findall(r"--([a-z-]+)=(\S+)", options))

    def do_cmd(self, rest: str) -> None:
        self.now.command = json.loads(rest)


# --- The service in it ------------------------------------------------------------------------------------------------


def close_up(stage: Stage) -> None:
    """As compose.yaml has it: only volumes and /tmp can be written to."""
    inside = str(stage.root)
    for volume in [*stage.volumes, "/tmp"]:  # noqa: S108  the container's own
        folder = stage.root / volume.lstrip("/")
        owner = folder.stat()
        mount("-t", "tmpfs", "tmpfs", str(folder))
        os.chown(folder, owner.st_uid, owner.st_gid)
        folder.chmod(owner.st_mode & 0o7777)
    mount("-o", "remount,ro", inside)


def wait_until_healthy(stage: Stage, port: int, process: subprocess.Popen[bytes], log: Path) -> float:
    started = time.monotonic()
    while True:
        done = stage.run(stage.health, PORT=str(port), **GIVEN)
        if done.returncode == 0:
            return time.monotonic() - started
        if process.poll() is not None or time.monotonic() - started > HEALTHY_SECONDS:
            message = f"It did not become healthy:\n{done.stderr[-500:]}\n{log.read_text()[-3000:]}"
            raise Failed(message)
        time.sleep(0.5)


def owners(leader: int) -> set[int]:
    """The user ids of a process and of all that it started."""
    found: set[int] = set()
    left = [leader]
    while left:
        pid = left.pop()
        # A short child, or a thread, may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            said = Path(f"/proc/{pid}/status").read_text()
            found |= {int(one) for one in re.search(r"^Uid:\s+(.*)$", said, re.MULTILINE)[1].split()}  # type: ignore[index]
            left += [child for task in Path(f"/proc/{pid}/task").iterdir() for child in children_of(task)]
    return found


def children_of(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def status_of(port: int, path: str) -> int:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": HOST, "X-Forwarded-Proto": "https"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def try_out(stage: Stage, log: Path) -> dict[str, object]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    close_up(stage)
    with log.open("wb") as output:
        process = subprocess.Popen(
            stage.argv(stage.command, PORT=str(port), **GIVEN), stdout=output, stderr=output
        )
    try:
        healthy = wait_until_healthy(stage, port, process, log)
        migrations = stage.run(["python", "manage.py", "migrate", "--check"], **GIVEN)
        clients = stage.run(["sh", "-c", "pg_dump --version && pg_restore --version && psql --version"])
        video_tool = stage.run(["sh", "-c", "$VIDEO_TOOL --version"])
        voice = stage.run(["python", "-c", "import espeakng_loader"])
        write = stage.run(["touch", "/app/written"])
        told: dict[str, object] = {
            "healthy_seconds": round(healthy, 1),
            "user_ids": sorted(owners(process.pid)),
            "readyz": status_of(port, "/readyz"),
            "login": status_of(port, "/admin/login/"),
            "static": status_of(port, "/static/admin/css/base.css"),
            "migrations_applied": migrations.returncode == 0,
            "client_programs": clients.stdout.split("\n")[0] if clients.returncode == 0 else clients.stderr,
            "has_video_tool": video_tool.returncode == 0,
            "has_voice": voice.returncode == 0,
            "can_write_to_its_code": write.returncode == 0,
        }
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        told["exit_code"] = process.wait(timeout=60)
        told["ended_seconds"] = round(time.monotonic() - started, 1)
    finally:
        if process.poll() is None:
            process.kill()
    return told


WANTED = {
    "readyz": 200,
    "login": 200,
    "static": 200,
    "migrations_applied": True,
    "has_video_tool": True,
    "has_voice": True,
    "can_write_to_its_code": False,
    "exit_code": 0,
}


def faults(told: dict[str, object]) -> list[str]:
    wrong = [
        f"{name} is {told[name]!r}, not {value!r}" for name, value in WANTED.items() if told[name] != value
    ]
    if told["user_ids"] != [10001]:
        wrong.append(f"it runs as {told['user_ids']}, not as 10001 alone")
    if not str(told["client_programs"]).startswith("pg_dump (PostgreSQL) 15."):
        wrong.append(f"pg_dump is not of version 15: {told['client_programs']!r}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Replay the Dockerfile in a clean root and try the service in it."
    )
    parser.add_argument("--base", type=Path, default=BASE, help="where the base system is kept (%(default)s)")
    base: Path = parser.parse_args().base.absolute()
    missing = [name for name in ("debootstrap", "unshare", "chroot", "mount") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        say(f"It needs root{' and ' + ', '.join(missing) if missing else ''}.")
        return 2
    if INSIDE in os.environ:
        return inside(Path(os.environ[INSIDE]), base)
    make_base(base)
    # Namespaces of their own: every mount and every process ends with them, and only then is the folder deleted.
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words += [sys.executable, *sys.argv]
        return subprocess.run(words, env={**os.environ, INSIDE: folder}, check=False).returncode


def inside(work: Path, base: Path) -> int:
    try:
        stage = Replay(work, base).build()
        told = try_out(stage, work / "service.log")
    except Failed as error:
        say(str(error))
        return 1
    say(json.dumps(told))
    found = faults(told)
    for fault in found:
        say(f"WRONG: {fault}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
