"""Runs yt-dlp as a child process, an operator's option for data that YouTube and TikTok give no other caller.

It makes calls past this service's guard of addresses, so it only gets addresses that are built here. It breaks
when a site changes, so its failures are reported in words and never stop a source.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import tempfile
from pathlib import Path
from time import monotonic
from typing import Any, Final

TIMEOUT_SECONDS: Final = 25
MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""The limit of the output; the description of one video is about 1 MB, most of it formats."""
MAX_ERROR_BYTES: Final = 64 * 1024
"""The last bytes of the error output that are kept."""

# No configuration files, no cache, no downloads.
_OPTIONS: Final = (
    "--ignore-config",
    "--no-cache-dir",
    "--no-progress",
    "--skip-download",
    "--socket-timeout",
    "10",
    "--retries",
    "1",
    "--extractor-retries",
    "1",
)

_UNREACHABLE_PATTERN: Final = r"Name or service not known|name resolution|[Nn]etwork is unreachable|No route to host|Connection refused|timed out"
# yt-dlp's messages by their meaning (github.com/yt-dlp/yt-dlp, extractor/youtube and tiktok.py, 2026.08.19).
_MEANINGS: Final = (
    ("unreachable", _UNREACHABLE_PATTERN),
    (
        "blocked",
        r"not a bot|HTTP Error 429|HTTP Error 403|IP address is blocked|Too Many Requests|captcha|PO Token",
    ),
    ("upcoming", r"live event will begin|Premieres in|will begin in"),
    ("members_only", r"members-only|available to this channel's members|Join this channel"),
    (
        "private",
        r"[Pp]rivate (?:video|account)|is private|account is private|log into an account that has access",
    ),
    ("age_restricted", r"confirm your age|age-restricted|inappropriate for some users"),
    (
        "region",
        r"not (?:made this video )?available in your country|blocked it in your country|geo.?restrict",
    ),
    (
        "gone",
        r"Video unavailable|has been removed|no longer available|10204|does not exist|HTTP Error 404|account .* terminated",
    ),
    (
        "outdated",
        r"Unable to extract|Unsupported URL|marked as broken|Unexpected response|No supported JavaScript runtime",
    ),
)


class ToolFailed(Exception):
    """Raised if the tool gave no result. `last_line` is the tool's last error line, or our own message.

    `kind` is one of `blocked`, `gone`, `private`, `members_only`, `age_restricted`, `region`, `upcoming`,
    `outdated`, `unreachable`, `timed_out`, `too_large`, `missing`, `failed`.
    """

    def __init__(self, kind: str, last_line: str = "") -> None:
        super().__init__(kind, last_line)
        self.kind = kind
        self.last_line = last_line


def ask(tool: str, *arguments: str, address: str, seconds: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Return the one JSON object that yt-dlp prints for an address.

    `tool` is the path of the program. `address` is http(s), so that it can't be read as an option. Raises
    `ToolFailed` if the program is missing, fails, takes longer than `seconds` or prints something else.
    """
    with tempfile.TemporaryDirectory(prefix="video-tool-") as folder:
        output, error_output, status = _run(
            [tool, *_OPTIONS, *arguments, "--", address], tool, folder, seconds
        )
    if status != 0:
        raise ToolFailed(classify_failure(error_output), _last_line(error_output))
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError):
        raise ToolFailed("failed", "It printed something else than JSON.") from None
    if not isinstance(answer, dict):
        raise ToolFailed("failed", "It printed something else than an object.")
    return answer


def is_installed(tool: str) -> bool:
    """Return whether the program that the operator names is an executable file."""
    return Path(tool).is_file() and os.access(tool, os.X_OK)


def classify_failure(error_output: str) -> str:
    """Return the kind of failure by the tool's errors, or `failed` if they are unknown."""
    errors = "\n".join(line for line in error_output.splitlines() if not line.startswith("WARNING:"))
    kind = next((kind for kind, pattern in _MEANINGS if re.search(pattern, errors)), "failed")
    # At times only a warning before the errors says that the site wasn't reached.
    if kind in {"outdated", "failed"} and re.search(_UNREACHABLE_PATTERN, error_output):
        return "unreachable"
    return kind


def _run(command: list[str], tool: str, folder: str, seconds: float) -> tuple[bytes, str, int]:
    """Return output, errors and exit status. Raises `ToolFailed` if it can't start, is slow or prints too much."""
    # A separate environment, without our secrets and proxies. Programs that yt-dlp runs, such as a JavaScript runtime,
    # are looked for next to it and in the system's folders.
    environment = {
        "PATH": f"{Path(tool).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
    }
    try:
        child = subprocess.Popen(  # noqa: S603  the operator's program, arguments of ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    except OSError:
        raise ToolFailed("missing", "It could not be started.") from None
    with child:
        try:
            output, error_output = _read(child, monotonic() + seconds)
            return output, error_output.decode(errors="replace"), child.wait()
        finally:
            _kill_group(child)


def _read(child: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    """Return output and end of the errors. Raises `ToolFailed` at the deadline or for too much output."""
    output, error_output = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, output), (child.stderr, error_output)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, buffer)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - monotonic()))
            if not ready:
                raise ToolFailed("timed_out", "It took too long.")
            for key, _events in ready:
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                key.data.extend(chunk)
            if len(output) > MAX_OUTPUT_BYTES:
                raise ToolFailed("too_large", "It printed too much.")
            del error_output[:-MAX_ERROR_BYTES]
    return bytes(output), bytes(error_output)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill the program and all that it started, because a runtime that outlives it keeps the machine busy."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _last_line(error_output: str) -> str:
    """Return the last error line of the tool, else its last line, cut to 300 characters."""
    lines = [line.strip() for line in error_output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1][:300] if errors else ""
