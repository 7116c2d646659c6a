"""Runs `make up` and `make install`, from a fresh clone to a running service, with Python 3.11 and nothing else."""

import sys

MIN_PYTHON = (3, 11)
if sys.version_info < MIN_PYTHON:
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
ENV_FILE_HEAD = """\
# Settings for development in this checkout, written once by `make install`. docs/settings.md lists the others, such as
# PORT, DATA_DIR and ANTHROPIC_API_KEY. A variable of the environment wins over its line here.
"""
KEYS_HEAD = "# Keep these with the data: secrets in the database can't be read without FIELD_KEYS.\n"
PROGRESS_SECONDS = 5.0
"""The time between two messages that a command still runs."""
EXTRAS_SECONDS = 120.0
"""The longest installation of packages that the service can do without, so that a slow network doesn't delay it."""
WITHOUT_EXTRAS = (
    "  Not installed, so films are silent with captions, and neither the videos of a TikTok account nor captions that "
    "YouTube refuses are read; the next `make up` tries again, and {log} says why."
)
WATCH_SECONDS = 0.3
"""The time between two reads of the service's log."""
REPEAT_SECONDS = 60.0
"""A repeating failure is reported once in this time."""
MAX_MESSAGE_CHARACTERS = 200
# For example "2026-11-30T07:00:00Z [error    ] poll_failed [pipeline.ingest] source=src_1".
FAILURE = re.compile(r"\S+ \[(?:error|critical) *\] (.+? \[[^]]+\])(.*)")
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """Raised if the start can't go on; the message is for the person at the terminal."""


def read_settings() -> dict[str, str]:
    """Return the settings of .env and of the environment, which come first, as the service reads them."""
    lines = ENV_FILE.read_text().splitlines() if ENV_FILE.exists() else []
    pairs = [line.removeprefix("export ").partition("=") for line in lines]
    return {key: value.strip().strip("'\"") for key, equals, value in pairs if equals} | dict(os.environ)


def setting(name: str, default: str) -> str:
    """Return one setting, or the default if it is empty or missing."""
    return read_settings().get(name) or default


def data_dir() -> Path:
    return (ROOT / setting("DATA_DIR", "var")).resolve()


def rotate_log(name: str) -> Path:
    """Return the path of a new log; keep the previous start's log as `<name>.log.1`."""
    path = data_dir() / "log" / f"{name}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.replace(path.with_suffix(".log.1"))
    return path


def write_settings() -> None:
    """Write .env with new keys if there is none; the keys of an earlier start move into it."""
    if ENV_FILE.exists():
        return
    keys = {
        "secret_key": secrets.token_urlsafe(48),
        "field_keys": f"dev:{base64.urlsafe_b64encode(os.urandom(32)).decode()}",
    }
    earlier_keys = data_dir() / "development-keys.json"
    if earlier_keys.exists():
        keys = json.loads(earlier_keys.read_text())
    lines = f"MODE=development\n{KEYS_HEAD}SECRET_KEY={keys['secret_key']}\nFIELD_KEYS={keys['field_keys']}\n"
    partial = ENV_FILE.with_name(f"{ENV_FILE.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(ENV_FILE_HEAD + lines)
    try:
        # A link fails if another process was first; its keys are used then.
        with contextlib.suppress(FileExistsError):
            os.link(partial, ENV_FILE)
    finally:
        partial.unlink()
    earlier_keys.unlink(missing_ok=True)
    print(f"Wrote {ENV_FILE.name}: settings for development, with keys of its own.", flush=True)


def run_step(
    text: str,
    command: list[str],
    log: Path,
    environment: dict[str, str] | None = None,
    max_seconds: float | None = None,
) -> None:
    """Run a command with its output in the log, and print every few seconds that it still runs.

    Raises `Failed` if it fails, or takes longer than `max_seconds`.
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
                if max_seconds is not None and time.monotonic() - started > max_seconds:
                    process.kill()
                    continue
                print(f"  still at it, {time.monotonic() - started:.0f} s", flush=True)
    if code:
        raise Failed(f"{text} failed. {end_of(log)}")
    print(f"  done in {time.monotonic() - started:.1f} s", flush=True)


def install(lock: Path) -> None:
    """Install the packages of the lock file into `.venv`, unless they are installed.

    Raises `Failed` if a step fails.
    """
    if VENV_PYTHON.exists() and is_installed(lock, "installed-lock"):
        return
    log = rotate_log("install")
    if not VENV_PYTHON.exists():
        uv = shutil.which("uv")
        command = [uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
        run_step("Making .venv", [*command, str(VENV)], log)
    count = lock.read_text().count("==")
    run_step(f"Installing {count} packages of {lock.name}", [*installer(), "-r", str(lock)], log)
    # The development lock has all packages of the other one, in the same versions.
    note_installed(locks_covered_by(lock), "installed-lock")


def install_extras() -> None:
    """Install the system voice and yt-dlp; the service goes without them if they can't be installed."""
    lock = ROOT / "requirements-extras.lock"
    if is_installed(lock, "installed-extras"):
        return
    log = rotate_log("install-extras")
    short_timeouts = {
        "PIP_RETRIES": "1",
        "PIP_TIMEOUT": "15",
        "UV_HTTP_RETRIES": "1",
        "UV_HTTP_TIMEOUT": "15",
    }
    # Only built packages are installed, so that nothing has to be compiled.
    command = [*installer(), "--only-binary", ":all:", "-r", str(lock)]
    try:
        run_step(
            "Installing the system voice and yt-dlp",
            command,
            log,
            short_timeouts | os.environ,
            EXTRAS_SECONDS,
        )
    except Failed:
        print(WITHOUT_EXTRAS.format(log=log), flush=True)
    else:
        note_installed([lock], "installed-extras")


def installer() -> list[str]:
    """Return the command that installs into `.venv` from a lock file and nothing else."""
    uv = shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", str(VENV_PYTHON), "--no-deps", "--require-hashes"]
    # It is faster to compile the modules that are used at the first start than to compile all of them here.
    command = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    return [*command, "--no-compile", "--no-deps", "--require-hashes"]


def digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()


def is_installed(lock: Path, marker: str) -> bool:
    """Return whether this lock file's packages are installed in `.venv`, as `marker` says."""
    path = VENV / marker
    return path.exists() and digest(lock) in path.read_text().split()


def note_installed(locks: list[Path], marker: str) -> None:
    """Note in `marker` that the packages of these lock files are installed in `.venv`."""
    (VENV / marker).write_text("\n".join(map(digest, locks)) + "\n")


def locks_covered_by(lock: Path) -> list[Path]:
    """Return the lock files that an installation of this one fulfils."""
    runtime = ROOT / "requirements.lock"
    return [lock] if lock == runtime else [lock, runtime]


def refuse_port_in_use(port: int) -> None:
    """Raise `Failed` if another program listens at the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", port)) == 0:
            raise Failed(
                f"Port {port} is in use: stop what listens there, or choose another one: make up PORT={port + 1}"
            )


def up() -> None:
    """Prepare settings, packages, database and demo, and run the service until it ends.

    Raises `Failed` if the port is invalid or in use, a step fails, or the service ends without a signal.
    """
    write_settings()
    port_text = setting("PORT", "8000")
    if not port_text.isdigit() or not 1 <= int(port_text) <= 65535:
        raise Failed(f"PORT must be a number from 1 to 65535, not {port_text!r}.")
    environment = {**os.environ, "PORT": port_text, "DATA_DIR": str(data_dir())}
    environment["MODE"] = setting("MODE", "development")
    # With this variable every start would compile all modules again, which takes longer than everything else.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    refuse_port_in_use(int(port_text))
    install(ROOT / "requirements.lock")
    install_extras()
    video_tool = VENV_PYTHON.with_name("yt-dlp")
    # yt-dlp chooses the servers that it calls. Only `make up`, on one person's development machine, may allow that.
    if environment["MODE"] == "development" and "VIDEO_TOOL" not in read_settings() and video_tool.exists():
        environment["VIDEO_TOOL"] = str(video_tool)
    manage = [str(VENV_PYTHON), str(ROOT / "manage.py")]
    run_step("Preparing the database", [*manage, "migrate", "--no-input"], rotate_log("migrate"), environment)
    if environment["MODE"] == "development":
        # The demo is prepared before the service starts, which would claim the rows that are due in its simulated past.
        run_step(
            "Preparing the demo workspace", [*manage, "demo", "--prepare"], rotate_log("prepare"), environment
        )
    run(manage, environment)


def run(manage: list[str], environment: dict[str, str]) -> None:
    """Run the service until it ends, with its output in a log. Raises `Failed` if it ends without a signal."""
    log = rotate_log("service")
    print("Starting. Ctrl-C stops everything.", flush=True)
    print(f"  its log is {log}", flush=True)
    with log.open("ab") as output:
        # The service is a separate group, so that Ctrl-C reaches this process alone, which passes it on once.
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
    stop_signals = forward_signals(service)
    demo = None
    if environment["MODE"] == "development":
        # The command waits until the service answers, fills the demo workspace and prints what to open.
        with rotate_log("demo").open("ab") as output:
            demo = subprocess.Popen(
                [*manage, "demo"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=output
            )
    watch(service, demo, log, stop_signals)
    if demo is not None:
        demo.terminate()
        demo.wait()
    if not stop_signals:
        raise Failed(f"The service ended by itself, with code {service.returncode}. {end_of(log)}")
    print("\nStopped.", flush=True)


def end_with_parent() -> None:
    """Have the kernel end this process when its parent is killed; does nothing except on Linux."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def forward_signals(service: subprocess.Popen[bytes]) -> list[int]:
    """Forward SIGINT, SIGTERM and SIGHUP to the service; each is also added to the list that is returned."""
    stop_signals: list[int] = []

    def forward(number: int, _frame: object) -> None:
        stop_signals.append(number)
        # A closed terminal (SIGHUP) ends the service too.
        service.send_signal(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, forward)
    return stop_signals


def watch(
    service: subprocess.Popen[bytes], demo: subprocess.Popen[bytes] | None, log: Path, stop_signals: list[int]
) -> None:
    """Wait until the service ends, and print a line for each new failure.

    The lines are held back while the demo prints its guide.
    """
    reported_at: dict[str, float] = {}
    pending: list[str] = []
    with log.open(errors="replace") as lines:
        has_ended = False
        while not has_ended:
            time.sleep(WATCH_SECONDS)
            # The service is polled before the log is read, so that its last lines are read too.
            has_ended = service.poll() is not None
            pending += find_new_failures(lines, log, reported_at)
            if demo is not None and demo.poll() is not None:
                if demo.returncode and not stop_signals and not has_ended:
                    demo_log = log.with_name("demo.log")
                    pending.append(
                        f"Failed: the demo workspace. {last_lines(demo_log, 1)} More in {demo_log}"
                    )
                demo = None
            if demo is None or has_ended:
                print("".join(f"{line}\n" for line in pending), end="", flush=True)
                pending.clear()


def find_new_failures(lines: Iterable[str], log: Path, reported_at: dict[str, float]) -> list[str]:
    """Return a message for each failure in the lines, unless it was reported within `REPEAT_SECONDS`."""
    messages = []
    for line in lines:
        event, details = parse_failure(line)
        if event and time.monotonic() - reported_at.get(event, -REPEAT_SECONDS) >= REPEAT_SECONDS:
            reported_at[event] = time.monotonic()
            summary = textwrap.shorten(f"{event} {details}", MAX_MESSAGE_CHARACTERS, placeholder=" …")
            messages.append(f"Failed: {summary}. More in {log}")
    return messages


def parse_failure(line: str) -> tuple[str, str]:
    """Return the event with its logger, and its details, of a record of an error; empty texts for other lines."""
    if line.startswith("{"):
        with contextlib.suppress(ValueError, KeyError):
            record = json.loads(line)
            if record["level"] in {"error", "critical"}:
                return f"{record['event']} [{record['logger']}]", str(record.get("error", ""))
        return "", ""
    match = FAILURE.match(line)
    return (" ".join(match[1].split()), match[2].strip()) if match else ("", "")


def end_of(log: Path) -> str:
    """Return the log's last lines, with a heading."""
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
