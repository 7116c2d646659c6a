"""make up: from a fresh clone to a running service. Needs Python 3.11 and nothing else."""

import sys

OLDEST = (3, 11)
if sys.version_info < OLDEST:
    # Written so that an old Python can read it.
    sys.exit(
        "This needs Python 3.11 or newer, not "
        + sys.version.split()[0]
        + ". With another one: make up PYTHON=…"
    )

import base64
import contextlib
import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import textwrap
import time
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
ENV_FILE = ROOT / (os.environ.get("ENV_FILE") or ".env")
HEAD = """\
# Settings for development in this checkout, written once by `make install`. docs/settings.md lists the others, such as
# PORT, DATA_DIR and ANTHROPIC_API_KEY. A variable of the environment wins over its line here.
"""
KEYS_HEAD = "# Keep these with the data: secrets in the database can't be read without FIELD_KEYS.\n"
PROGRESS_SECONDS = 5.0
EXTRAS_SECONDS = 120.0
"""For what the service can do without; a network that is slow must not hold it up for longer."""
WITHOUT_EXTRAS = (
    "  Not installed, so films are silent with captions, and neither the videos of a TikTok account nor captions that "
    "YouTube refuses are read; the next `make up` tries again, and {log} says why."
)
WATCH_SECONDS = 0.3
TOLD_AGAIN_SECONDS = 60.0
"""A failure that repeats is told once in this time."""
TOLD_CHARACTERS = 200
FAILURE = re.compile(r"\S+ \[(?:error|critical) *\] (.+? \[[^]]+\])(.*)")
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """The sentence that the person at the terminal reads."""


def settings() -> dict[str, str]:
    """From the environment, then from .env, as the service reads them."""
    lines = ENV_FILE.read_text().splitlines() if ENV_FILE.exists() else []
    pairs = [line.removeprefix("export ").partition("=") for line in lines]
    return {key: value.strip().strip("'\"") for key, equals, value in pairs if equals} | dict(os.environ)


def setting(name: str, default: str) -> str:
    return settings().get(name) or default


def data_dir() -> Path:
    return (ROOT / setting("DATA_DIR", "var")).resolve()


def new_log(name: str) -> Path:
    """The log of this start; that of the last one stays beside it, and none before."""
    path = data_dir() / "log" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.replace(path.with_suffix(".log.1"))
    return path


def write_settings() -> None:
    """Write .env with keys of its own where there is none; those of an earlier start move into it."""
    if ENV_FILE.exists():
        return
    keys = {
        "secret_key": secrets.token_urlsafe(48),
        "field_keys": f"dev:{base64.urlsafe_b64encode(os.urandom(32)).decode()}",
    }
    earlier = data_dir() / "development-keys.json"
    if earlier.exists():
        keys = json.loads(earlier.read_text())
    lines = f"MODE=development\n{KEYS_HEAD}SECRET_KEY={keys['secret_key']}\nFIELD_KEYS={keys['field_keys']}\n"
    partial = ENV_FILE.with_name(f"{ENV_FILE.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(HEAD + lines)
    try:
        # A link fails where another process was first; its keys are then the ones to use.
        with contextlib.suppress(FileExistsError):
            os.link(partial, ENV_FILE)
    finally:
        partial.unlink()
    earlier.unlink(missing_ok=True)
    print(f"Wrote {ENV_FILE.name}: settings for development, with keys of its own.", flush=True)


def step(
    text: str,
    command: list[str],
    log: Path,
    environment: dict[str, str] | None = None,
    most: float | None = None,
) -> None:
    """Run one command with its output in the log, and say every few seconds that it still runs.

    It fails where it takes longer than `most` seconds.
    """
    print(f"{text} …", flush=True)
    started = time.monotonic()
    with log.open("ab") as output:
        output.write(f"\n$ {' '.join(command)}\n".encode())
        output.flush()
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        while True:
            try:
                code = process.wait(timeout=PROGRESS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                if most is not None and time.monotonic() - started > most:
                    process.kill()
                    continue
                print(f"  still at it, {time.monotonic() - started:.0f} s", flush=True)
    if code:
        raise Failed(f"{text} failed. {end_of(log)}")
    print(f"  done in {time.monotonic() - started:.1f} s", flush=True)


def install(lock: Path) -> None:
    """Bring `.venv` to what the lock file says; nothing where it is there already."""
    if VENV_PYTHON.exists() and is_noted(lock, "installed-lock"):
        return
    log = new_log("install")
    if not VENV_PYTHON.exists():
        uv = shutil.which("uv")
        command = [uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
        step("Making .venv", [*command, str(VENV)], log)
    count = lock.read_text().count("==")
    step(f"Installing {count} packages of {lock.name}", [*installer(), "-r", str(lock)], log)
    # The development lock holds all of the other one, at the same versions.
    note(covered_by(lock), "installed-lock")


def install_extras() -> None:
    """The system voice and yt-dlp; the service goes without them where they can't be had."""
    lock = ROOT / "requirements-extras.lock"
    if is_noted(lock, "installed-extras"):
        return
    log = new_log("install-extras")
    patience = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "15", "UV_HTTP_RETRIES": "1", "UV_HTTP_TIMEOUT": "15"}
    # Made for this machine or not at all: nothing is compiled.
    command = [*installer(), "--only-binary", ":all:", "-r", str(lock)]
    try:
        step("Installing the system voice and yt-dlp", command, log, patience | os.environ, EXTRAS_SECONDS)
    except Failed:
        print(WITHOUT_EXTRAS.format(log=log), flush=True)
    else:
        note([lock], "installed-extras")


def installer() -> list[str]:
    """The command that installs into `.venv` from a lock file and nothing else."""
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", str(VENV_PYTHON), "--no-deps", "--require-hashes"]
    # Compiling every module at once takes longer than to compile at the first start those that it needs.
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return [*command, "--no-compile", "--no-deps", "--require-hashes"]


def digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def is_noted(lock: Path, marker: str) -> bool:
    """Whether `.venv` was brought to this lock file."""
    path = VENV / marker
    return path.exists() and digest(lock) in path.read_text().split()


def note(locks: list[Path], marker: str) -> None:
    (VENV / marker).write_text("\n".join(map(digest, locks)) + "\n")


def covered_by(lock: Path) -> list[Path]:
    runtime = ROOT / "requirements.lock"
    return [lock] if lock == runtime else [lock, runtime]


def refuse_port_in_use(port: int) -> None:
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise Failed(
                f"Port {port} is in use: stop what listens there, or choose another one: make up PORT={port + 1}"
            )


def up() -> None:
    write_settings()
    port_text = setting("PORT", "8000")
    if not port_text.isdigit() or not 1 <= int(port_text) <= 65535:
        raise Failed(f"PORT must be a number from 1 to 65535, not {port_text!r}.")
    environment = {**os.environ, "PORT": port_text, "DATA_DIR": str(data_dir())}
    environment["MODE"] = setting("MODE", "development")
    # Every start would compile all modules anew, which takes longer than everything else that it does.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    refuse_port_in_use(int(port_text))
    install(ROOT / "requirements.lock")
    install_extras()
    video_tool = VENV_PYTHON.with_name("yt-dlp")
    # It goes out by itself, which only the one person of a development machine may decide by `make up` alone.
    if environment["MODE"] == "development" and "VIDEO_TOOL" not in settings() and video_tool.exists():
        environment["VIDEO_TOOL"] = str(video_tool)
    manage = [str(VENV_PYTHON), str(ROOT / "manage.py")]
    step("Preparing the database", [*manage, "migrate", "--no-input"], new_log("migrate"), environment)
    if environment["MODE"] == "development":
        # Before the service starts: it would take what is due in a past that is only lived through.
        step("Preparing the demo workspace", [*manage, "demo", "--prepare"], new_log("prepare"), environment)
    run(manage, environment)


def run(manage: list[str], environment: dict[str, str]) -> None:
    """The service until it ends, with what it says in its log; its end by itself is a failure."""
    log = new_log("service")
    print("Starting. Ctrl-C stops everything.", flush=True)
    print(f"  its log is {log}", flush=True)
    with log.open("ab") as output:
        # A group of its own: Ctrl-C reaches this process alone, which hands it on once.
        service = subprocess.Popen(
            [*manage, "serve"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509  there are no threads here
        )
    asked = hand_on_signals(service)
    demo = None
    if environment["MODE"] == "development":
        # It waits until the service answers, fills the demo workspace through it and prints what to open.
        with new_log("demo").open("ab") as output:
            demo = subprocess.Popen(
                [*manage, "demo"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=output
            )
    watch(service, demo, log, asked)
    if demo is not None:
        demo.terminate()
        demo.wait()
    if not asked:
        raise Failed(f"The service ended by itself, with code {service.returncode}. {end_of(log)}")
    print("\nStopped.", flush=True)


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it is killed; only Linux can."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def hand_on_signals(service: subprocess.Popen[bytes]) -> list[int]:
    """The signals that asked for the end, as they come; a closed terminal asks for it too."""
    asked: list[int] = []

    def hand_on(number: int, _frame: object) -> None:
        asked.append(number)
        service.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    return asked


def watch(
    service: subprocess.Popen[bytes], demo: subprocess.Popen[bytes] | None, log: Path, asked: list[int]
) -> None:
    """Until the service has ended: print one line for each thing that fails, but none into the demo's guide."""
    told: dict[str, float] = {}
    waiting: list[str] = []
    with log.open(errors="replace") as lines:
        has_ended = False
        while not has_ended:
            time.sleep(WATCH_SECONDS)
            # Asked before the log is read, so that its last lines are read too.
            has_ended = service.poll() is not None
            waiting += new_failures(lines, log, told)
            if demo is not None and demo.poll() is not None:
                if demo.returncode and not asked and not has_ended:
                    its_log = log.with_name("demo.log")
                    waiting.append(f"Failed: the demo workspace. {last_lines(its_log, 1)} More in {its_log}")
                demo = None
            if demo is None or has_ended:
                print("".join(f"{line}\n" for line in waiting), end="", flush=True)
                waiting.clear()


def new_failures(lines: Iterable[str], log: Path, told: dict[str, float]) -> list[str]:
    """What the lines of the log say of failures, each that wasn't told a moment ago."""
    found = []
    for line in lines:
        what, about = failure_in(line)
        if what and time.monotonic() - told.get(what, -TOLD_AGAIN_SECONDS) >= TOLD_AGAIN_SECONDS:
            told[what] = time.monotonic()
            said = textwrap.shorten(f"{what} {about}", TOLD_CHARACTERS, placeholder=" …")
            found.append(f"Failed: {said}. More in {log}")
    return found


def failure_in(line: str) -> tuple[str, str]:
    """The event with its logger, and its details, where the line is a record of the level ERROR; else nothing."""
    if line.startswith("{"):
        with contextlib.suppress(ValueError, KeyError):
            record = json.loads(line)
            if record["level"] in {"error", "critical"}:
                return f"{record['event']} [{record['logger']}]", str(record.get("error", ""))
        return "", ""
    match = FAILURE.match(line)
    return (" ".join(match[1].split()), match[2].strip()) if match else ("", "")


def end_of(log: Path) -> str:
    return f"The end of {log}:\n\n{last_lines(log, 12)}"


def last_lines(log: Path, count: int) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:])


def main() -> None:
    try:
        if sys.argv[1:2] == ["install"]:
            write_settings()
            install(ROOT / (sys.argv[2] if len(sys.argv) > 2 else "requirements.lock"))
        else:
            up()
    except Failed as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


if __name__ == "__main__":
    main()
