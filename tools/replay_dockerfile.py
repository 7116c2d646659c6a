"""Replays the Dockerfile without Docker: runs every step in a clean root, then the service in it.

    sudo python3 tools/replay_dockerfile.py [--base FOLDER]

It needs root, debootstrap and a kernel with overlayfs. It differs from a build by Docker in two ways: the base is
Debian's own minimal system with Debian's Python 3.11 in the place of the image that FROM names, and the network is this
machine's. Everything else is taken from the Dockerfile; an unknown instruction ends the replay. The service then runs
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
INSIDE_VARIABLE = "REPLAY_INSIDE"
HEALTHY_SECONDS = 120
HOST = "pipeline.example"
# The settings that an operator would set for a container.
OPERATOR_ENVIRONMENT = {
    "PUBLIC_URL": f"https://{HOST}",
    "OPERATOR_CONTACT": f"operator@{HOST}",
    "SECRET_KEY": "s" * 40,
    "FIELD_KEYS": f"k1:{'A' * 43}=",
    "LOG_LEVEL": "WARNING",
}
DEFAULT_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
# The variables by which this machine reaches its package index; Docker would take them from its build settings.
PACKAGE_INDEX_VARIABLE = re.compile(r"PIP_.*|(https?|no)_proxy|(HTTPS?|NO)_PROXY")


class Failed(Exception):
    """Raised if the replay can't go on; the message has the reason."""


@dataclass
class Stage:
    """The stage of one FROM: its root, and the values that the steps so far have set."""

    name: str
    root: Path
    workdir: str = "/"
    user: str = ""
    env: dict[str, str] = field(default_factory=lambda: {"PATH": DEFAULT_PATH})
    volumes: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    health_options: dict[str, str] = field(default_factory=dict)

    def path(self, inner_path: str) -> Path:
        """Return the path outside of the root for one inside, which may be relative to the working folder."""
        return self.root / (Path(self.workdir) / inner_path).as_posix().lstrip("/")

    def argv(self, command: list[str], **extra: str) -> list[str]:
        """Return the command line that runs a command in the root, as the stage's user and environment."""
        user_option = [f"--userspec={self.user}:{self.user}"] if self.user else []
        home = f"/home/{self.user}" if self.user else "/root"
        environment = {**self.env, "HOME": home, **extra}
        pairs = [f"{name}={value}" for name, value in environment.items()]
        cd = f'cd {shlex.quote(self.workdir)} && exec "$@"'
        return ["chroot", *user_option, str(self.root), "env", "-i", *pairs, "sh", "-c", cd, "sh", *command]

    def run(self, command: list[str], **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.argv(command, **extra), capture_output=True, text=True, check=False)


def parse_steps(text: str) -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions, each as its name and its arguments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    split = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(word.upper(), rest.strip()) for word, _, rest in split]


def print_now(text: str) -> None:
    print(text, flush=True)


def raise_if_failed(completed: subprocess.CompletedProcess[str], label: str) -> None:
    if completed.returncode:
        output = (completed.stdout + completed.stderr)[-3000:]
        raise Failed(f"{label} ended with {completed.returncode}:\n{output}")


def mount(*words: str) -> None:
    completed = subprocess.run(["mount", *words], capture_output=True, text=True, check=False)
    raise_if_failed(completed, f"mount {words}")


def make_base(base: Path) -> None:
    """Make Debian's minimal system, which is kept for the next replay. Raises `Failed` if debootstrap fails."""
    if (base / "replay-base").exists():
        return
    print_now(f"Making the base in {base}; that takes a minute or two, once.")
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    include = "--include=python3,python3-venv,ca-certificates"
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", include, "bookworm", str(base)],
        capture_output=True,
        text=True,
        check=False,
    )
    raise_if_failed(done, "debootstrap")
    # Python has this path in the official image.
    for name in ("python", "python3"):
        (base / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
    (base / "replay-base").touch()


def make_devices(folder: Path) -> None:
    """Make device files in the root, so that nothing in it can reach the machine's."""
    mount("-t", "tmpfs", "tmpfs", str(folder))
    for name, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)):
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        (folder / name).chmod(0o666)
    (folder / "shm").mkdir()
    mount("-t", "tmpfs", "tmpfs", str(folder / "shm"))
    (folder / "fd").symlink_to("/proc/self/fd")


class Replay:
    """Builds the stages; each `do_…` method replays the instruction of that name."""

    def __init__(self, work: Path, base: Path) -> None:
        self.work, self.base = work, base
        self.stages: dict[str, Stage] = {}
        self.stage: Stage | None = None

    @property
    def current_stage(self) -> Stage:
        if self.stage is None:
            message = "A step stands before the first FROM."
            raise Failed(message)
        return self.stage

    def build(self) -> Stage:
        for word, rest in parse_steps((ROOT / "Dockerfile").read_text()):
            step = getattr(self, f"do_{word.lower()}", None)
            if step is None:
                message = f"{word} can't be replayed; teach tools/replay_dockerfile.py to."
                raise Failed(message)
            started = time.monotonic()
            step(rest)
            print_now(f"  {word} {rest[:90]} ({time.monotonic() - started:.1f} s)")
        return self.current_stage

    def do_from(self, rest: str) -> None:
        image, _, name = rest.partition(" AS ")
        if not image.startswith("python:3.11-") or "bookworm" not in image:
            message = f"The base of the replay is Debian bookworm with Python 3.11, not {image}."
            raise Failed(message)
        folder = self.work / f"stage-{len(self.stages)}"
        upper, scratch, root = (folder / part for part in ("upper", "scratch", "root"))
        for folder_part in (upper, scratch, root):
            folder_part.mkdir(parents=True)
        options = f"lowerdir={self.base},upperdir={upper},workdir={scratch}"
        mount("-t", "overlay", "overlay", "-o", options, str(root))
        mount("-t", "proc", "proc", str(root / "proc"))
        make_devices(root / "dev")
        # Packages are fetched with this machine's settings.
        for path in ("/etc/resolv.conf", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
            if Path(path).exists():
                shutil.copyfile(path, root / path.lstrip("/"))
        self.stage = Stage(name or str(len(self.stages)), root)
        self.stages[self.stage.name] = self.stage

    def do_workdir(self, rest: str) -> None:
        self.current_stage.workdir = rest
        self.current_stage.path(".").mkdir(parents=True, exist_ok=True)

    def do_env(self, rest: str) -> None:
        env = self.current_stage.env
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            env[name] = re.sub(r"\$(\w+)", lambda match: env.get(match[1], ""), value)

    def do_run(self, rest: str) -> None:
        index_settings = {
            name: value for name, value in os.environ.items() if PACKAGE_INDEX_VARIABLE.fullmatch(name)
        }
        raise_if_failed(self.current_stage.run(["sh", "-c", rest], **index_settings), f"RUN {rest}")

    def do_copy(self, rest: str) -> None:
        """Copy files from the checkout or another stage. Raises `Failed` if one doesn't exist."""
        words = shlex.split(rest)
        origin = ROOT
        if words[0].startswith("--from="):
            origin = self.stages[words.pop(0).removeprefix("--from=")].root
        *sources, target = words
        destination = self.current_stage.path(target)
        for source in sources:
            path = origin / source.lstrip("/")
            if not path.exists():
                message = f"COPY {source}: there is no such file."
                raise Failed(message)
            if path.is_dir():
                # Docker copies a folder's content, not the folder.
                ignored = shutil.ignore_patterns("__pycache__") if origin == ROOT else None
                shutil.copytree(path, destination, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                destination.mkdir(parents=True, exist_ok=True) if target.endswith(("/", ".")) else None
                shutil.copy2(path, destination)

    def do_user(self, rest: str) -> None:
        self.current_stage.user = rest

    def do_volume(self, rest: str) -> None:
        self.current_stage.volumes += rest.split()

    def do_expose(self, rest: str) -> None:
        del rest

    def do_healthcheck(self, rest: str) -> None:
        options, _, command = rest.partition("CMD ")
        self.current_stage.health = json.loads(command)
        self.current_stage.health_options = dict(re.findall(r"--([a-z-]+)=(\S+)", options))

    def do_cmd(self, rest: str) -> None:
        self.current_stage.command = json.loads(rest)


# --- The service in it -----------------------------------------------------------------------------------------------


def make_read_only(stage: Stage) -> None:
    """Make the root read only, except volumes and /tmp, as compose.yaml does."""
    for volume in [*stage.volumes, "/tmp"]:  # noqa: S108  the container's own
        folder = stage.root / volume.lstrip("/")
        owner = folder.stat()
        mount("-t", "tmpfs", "tmpfs", str(folder))
        os.chown(folder, owner.st_uid, owner.st_gid)
        folder.chmod(owner.st_mode & 0o7777)
    mount("-o", "remount,ro", str(stage.root))


def wait_until_healthy(stage: Stage, port: int, process: subprocess.Popen[bytes], log: Path) -> float:
    started = time.monotonic()
    while True:
        done = stage.run(stage.health, PORT=str(port), **OPERATOR_ENVIRONMENT)
        if done.returncode == 0:
            return time.monotonic() - started
        if process.poll() is not None or time.monotonic() - started > HEALTHY_SECONDS:
            message = f"It did not become healthy:\n{done.stderr[-500:]}\n{log.read_text()[-3000:]}"
            raise Failed(message)
        time.sleep(0.5)


def user_ids_of(leader: int) -> set[int]:
    """Return the user ids of a process and of all that it started."""
    user_ids: set[int] = set()
    pending = [leader]
    while pending:
        pid = pending.pop()
        # A child or thread may have ended meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            status = Path(f"/proc/{pid}/status").read_text()
            user_ids |= {
                int(user_id) for user_id in re.search(r"^Uid:\s+(.*)$", status, re.MULTILINE)[1].split()
            }  # type: ignore[index]
            pending += [child for task in Path(f"/proc/{pid}/task").iterdir() for child in children_of(task)]
    return user_ids


def children_of(task: Path) -> list[int]:
    try:
        return [int(child) for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def fetch_status(port: int, path: str) -> int:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": HOST, "X-Forwarded-Proto": "https"}
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return int(error.code)


def try_service(stage: Stage, log: Path) -> dict[str, object]:
    """Run the service in the stage, and return what was measured and checked."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    make_read_only(stage)
    with log.open("wb") as output:
        process = subprocess.Popen(
            stage.argv(stage.command, PORT=str(port), **OPERATOR_ENVIRONMENT), stdout=output, stderr=output
        )
    try:
        healthy_seconds = wait_until_healthy(stage, port, process, log)
        migrations = stage.run(["python", "manage.py", "migrate", "--check"], **OPERATOR_ENVIRONMENT)
        clients = stage.run(["sh", "-c", "pg_dump --version && pg_restore --version && psql --version"])
        video_tool = stage.run(["sh", "-c", "$VIDEO_TOOL --version"])
        voice = stage.run(["python", "-c", "import espeakng_loader"])
        write = stage.run(["touch", "/app/written"])
        results: dict[str, object] = {
            "healthy_seconds": round(healthy_seconds, 1),
            "user_ids": sorted(user_ids_of(process.pid)),
            "readyz": fetch_status(port, "/readyz"),
            "login": fetch_status(port, "/admin/login/"),
            "static": fetch_status(port, "/static/admin/css/base.css"),
            "migrations_applied": migrations.returncode == 0,
            "client_programs": clients.stdout.split("\n")[0] if clients.returncode == 0 else clients.stderr,
            "has_video_tool": video_tool.returncode == 0,
            "has_voice": voice.returncode == 0,
            "can_write_to_its_code": write.returncode == 0,
        }
        started = time.monotonic()
        process.send_signal(signal.SIGTERM)
        results["exit_code"] = process.wait(timeout=60)
        results["ended_seconds"] = round(time.monotonic() - started, 1)
    finally:
        if process.poll() is None:
            process.kill()
    return results


EXPECTED_RESULTS = {
    "readyz": 200,
    "login": 200,
    "static": 200,
    "migrations_applied": True,
    "has_video_tool": True,
    "has_voice": True,
    "can_write_to_its_code": False,
    "exit_code": 0,
}


def find_faults(results: dict[str, object]) -> list[str]:
    faults = [
        f"{name} is {results[name]!r}, not {value!r}"
        for name, value in EXPECTED_RESULTS.items()
        if results[name] != value
    ]
    if results["user_ids"] != [10001]:
        faults.append(f"it runs as {results['user_ids']}, not as 10001 alone")
    if not str(results["client_programs"]).startswith("pg_dump (PostgreSQL) 15."):
        faults.append(f"pg_dump is not of version 15: {results['client_programs']!r}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Replay the Dockerfile in a clean root and try the service in it."
    )
    parser.add_argument("--base", type=Path, default=BASE, help="where the base system is kept (%(default)s)")
    base: Path = parser.parse_args().base.absolute()
    missing = [name for name in ("debootstrap", "unshare", "chroot", "mount") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        print_now(f"It needs root{' and ' + ', '.join(missing) if missing else ''}.")
        return 2
    if INSIDE_VARIABLE in os.environ:
        return replay_inside(Path(os.environ[INSIDE_VARIABLE]), base)
    make_base(base)
    # Every mount and every process ends with the new namespaces, and only then is the folder deleted.
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command += [sys.executable, *sys.argv]
        return subprocess.run(command, env={**os.environ, INSIDE_VARIABLE: folder}, check=False).returncode


def replay_inside(work: Path, base: Path) -> int:
    try:
        stage = Replay(work, base).build()
        results = try_service(stage, work / "service.log")
    except Failed as error:
        print_now(str(error))
        return 1
    print_now(json.dumps(results))
    faults = find_faults(results)
    for fault in faults:
        print_now(f"WRONG: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
