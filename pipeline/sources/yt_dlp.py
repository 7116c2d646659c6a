"""yt-dlp as a child process: an option of the operator, for what YouTube and TikTok give nobody else.

It goes out by itself, past this service's guard of addresses, so it only ever gets addresses that are built here. It
breaks when a site changes, so what it fails with is told in words and never stops a source.
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

SECONDS: Final = 25
MAX_OUTPUT_BYTES: Final = 16 * 1024 * 1024
"""The description of one video is about 1 MB, most of it formats."""
MAX_WORDS_BYTES: Final = 64 * 1024

# Nothing from files of the machine, nothing kept, nothing downloaded.
_ALWAYS: Final = (
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

_UNREACHABLE: Final = r"Name or service not known|name resolution|[Nn]etwork is unreachable|No route to host|Connection refused|timed out"
# What yt-dlp prints, by what it means (github.com/yt-dlp/yt-dlp, extractor/youtube and extractor/tiktok.py, 2026.08.19).
_MEANINGS: Final = (
    ("unreachable", _UNREACHABLE),
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
    """`kind` is one of `blocked`, `gone`, `private`, `members_only`, `age_restricted`, `region`, `upcoming`,
    `outdated`, `unreachable`, `timed_out`, `too_large`, `missing`, `failed`; `words` is the tool's own last line.
    """

    def __init__(self, kind: str, words: str = "") -> None:
        super().__init__(kind, words)
        self.kind = kind
        self.words = words


def ask(tool: str, *arguments: str, address: str, seconds: float = SECONDS) -> dict[str, Any]:
    """The one JSON object that yt-dlp prints for an address; raises `ToolFailed`.

    `tool` is the path of the program. `address` is http(s), so that it can't be read as an option.
    """
    with tempfile.TemporaryDirectory(prefix="video-tool-") as folder:
        output, words, status = _run([tool, *_ALWAYS, *arguments, "--", address], tool, folder, seconds)
    if status != 0:
        raise ToolFailed(meaning_of(words), _last_line(words))
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        raise ToolFailed("failed", "It printed something else than JSON.") from None
    if not isinstance(found, dict):
        raise ToolFailed("failed", "It printed something else than an object.")
    return found


def is_installed(tool: str) -> bool:
    """Whether the program that the operator names can be started."""
    return Path(tool).is_file() and os.access(tool, os.X_OK)


def meaning_of(words: str) -> str:
    """By its errors; that the site wasn't reached stands at times only in a warning before them."""
    errors = "\n".join(line for line in words.splitlines() if not line.startswith("WARNING:"))
    kind = next((kind for kind, pattern in _MEANINGS if re.search(pattern, errors)), "failed")
    return "unreachable" if kind in {"outdated", "failed"} and re.search(_UNREACHABLE, words) else kind


def _run(command: list[str], tool: str, folder: str, seconds: float) -> tuple[bytes, str, int]:
    # Neither secrets nor proxies of ours: an environment of its own. What yt-dlp runs, a JavaScript runtime for one,
    # is looked for beside it and where the system keeps its programs.
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
            output, words = _read(child, monotonic() + seconds)
            return output, words.decode(errors="replace"), child.wait()
        finally:
            _end(child)


def _read(child: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes]:
    output, words = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((child.stdout, output), (child.stderr, words)):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, kept)
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
            del words[:-MAX_WORDS_BYTES]
    return bytes(output), bytes(words)


def _end(child: subprocess.Popen[bytes]) -> None:
    """With all that it started: a runtime that outlives it would keep the machine busy."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _last_line(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    return errors[-1][:300] if errors else ""
