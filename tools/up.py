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

import hashlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
PROGRESS_SECONDS = 5.0


class Failed(Exception):
    """The sentence that the person at the terminal reads."""


def data_dir() -> Path:
    return Path(os.environ.get("DATA_DIR") or ROOT / "var").resolve()


def step(text: str, command: list[str], log: Path, environment: dict[str, str] | None = None) -> None:
    """Run one command with its output in the log, and say every few seconds that it still runs."""
    print(f"{text} …", flush=True)
    started = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
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
                print(f"  still at it, {time.monotonic() - started:.0f} s", flush=True)
    if code:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-12:])
        raise Failed(f"{text} failed. The end of {log}:\n\n{tail}")
    print(f"  done in {time.monotonic() - started:.1f} s", flush=True)


def install(lock: Path) -> None:
    """Bring `.venv` to what the lock file says; nothing where it is there already."""
    marker = VENV / "installed-lock"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if VENV_PYTHON.exists() and marker.exists():
        installed = marker.read_text().split()
        if wanted in installed:
            return
    log = data_dir() / "install.log"
    uv = shutil.which("uv")
    if uv:
        if not VENV_PYTHON.exists():
            step("Making .venv", [uv, "venv", "--python", sys.executable, str(VENV)], log)
        command = [uv, "pip", "install", "--python", str(VENV_PYTHON)]
    else:
        if not VENV_PYTHON.exists():
            step("Making .venv", [sys.executable, "-m", "venv", str(VENV)], log)
        # Compiling every module at once takes longer than to compile at the first start those that it needs.
        command = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--no-compile"]
    count = lock.read_text().count("==")
    step(f"Installing {count} packages of {lock.name}", [*command, "--require-hashes", "-r", str(lock)], log)
    # The development lock holds all of the other one, at the same versions.
    held = [hashlib.sha256(other.read_bytes()).hexdigest() for other in covered_by(lock)]
    marker.write_text("\n".join(held) + "\n")


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
    port_text = os.environ.get("PORT") or "8000"
    if not port_text.isdigit() or not 1 <= int(port_text) <= 65535:
        raise Failed(f"PORT must be a number from 1 to 65535, not {port_text!r}.")
    environment = {**os.environ, "PORT": port_text, "DATA_DIR": str(data_dir())}
    environment["MODE"] = os.environ.get("MODE") or "development"
    # Every start would compile all modules anew, which takes longer than everything else that it does.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    refuse_port_in_use(int(port_text))
    install(ROOT / "requirements.lock")
    manage = [str(VENV_PYTHON), str(ROOT / "manage.py")]
    step(
        "Preparing the database", [*manage, "migrate", "--no-input"], data_dir() / "migrate.log", environment
    )
    print("Starting; the first start makes the demo workspace. Ctrl-C stops everything.", flush=True)
    if environment["MODE"] == "development":
        # It waits until the service answers, fills the demo workspace through it and prints what to open.
        subprocess.Popen([*manage, "demo"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL)
    # This process becomes the service, so that nothing stands between it and Ctrl-C.
    os.chdir(ROOT)
    os.execve(manage[0], [*manage, "serve"], environment)


def main() -> None:
    try:
        if sys.argv[1:2] == ["install"]:
            install(ROOT / (sys.argv[2] if len(sys.argv) > 2 else "requirements.lock"))
        else:
            up()
    except Failed as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


if __name__ == "__main__":
    main()
