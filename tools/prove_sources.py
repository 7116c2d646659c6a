"""Makes a source of each of the six types against the real network, and records what each brought.

`make prove-live` writes docs/proofs/live.txt. A new demo starts without a key for a model; each source is
given one address or nothing beside its type, and has TIMEOUT_SECONDS to bring an item. Other addresses:
`python -m tools.prove_sources rss=https://… tiktok=name`.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import requests

from tools.screenshots import ROOT, Failed, running_demo
from tools.suite import commit_described

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.screenshots import Demo

TIMEOUT_SECONDS = 120.0
"""The longest wait for a source."""
POLL_SECONDS = 3.0
"""The time between two calls: a key has 60 calls a minute."""
PUSHED_TEXT = (
    "Python 3.14 was released on 7 October 2025. It has template strings, annotations that are evaluated when they are "
    "asked for, and a build without the global lock that is supported officially. The release took twelve months."
)
"""The content for the types without an address: a webhook gets it as its delivery, a brand as its topic's notes."""
TARGETS = {
    "rss": "https://blog.python.org/feeds/posts/default",
    "scraper": "https://www.python.org/blogs/",
    "youtube": "https://www.youtube.com/@NASA",
    "tiktok": "nasa",
}
"""The address for each of the polled types; TikTok's is an account's name."""


class SourceResult(NamedTuple):
    """The input and the yield of one source."""

    kind: str
    sent: str
    raw_items: int
    items: int
    seconds: float
    """The time until the first item, or until the wait ended."""
    message: str
    """The error messages of the source and of its items."""


def config_of(kind: str, address: str) -> dict[str, Any]:
    """Return the fewest settings with which a source can be polled."""
    if kind == "brand":
        return {"topics": [{"title": "Python 3.14", "notes": PUSHED_TEXT}]}
    if kind == "webhook":
        return {}
    return {"username": address} if kind == "tiktok" else {"url": address}


def api_call(demo: Demo, method: str, path: str, body: Any = None) -> Any:
    """Call the demo's API at a path below /v1, or at a full address, and return its answer.

    Raises `Failed` with the API's error if the status is 400 or higher.
    """
    url = path if path.startswith("http") else f"{demo.url}/v1{path}"
    with requests.Session() as session:
        # The environment's proxy would send the call away from this machine.
        session.trust_env = False
        response = session.request(
            method, url, json=body, headers={"Authorization": f"Bearer {demo.token}"}, timeout=60
        )
    if response.status_code >= 400:
        error = response.json()
        raise Failed(" ".join([error["error"], *(detail["message"] for detail in error["detail"])]))
    return response.json()


def try_source(demo: Demo, kind: str, address: str) -> SourceResult:
    """Create the source, wait for its first ready item or for the timeout, and return the result.

    A source that the API refuses is a result too.
    """
    sent = address or "nothing"
    started = time.monotonic()
    body: dict[str, Any] = {"type": kind, "config": config_of(kind, address)}
    if kind in TARGETS:
        body["first_poll"] = {"newest": 1}
    try:
        source = api_call(demo, "POST", "/sources", body)
        if kind == "webhook":
            api_call(demo, "POST", source["inbound_url"], {"title": "Python 3.14", "body": PUSHED_TEXT})
    except Failed as error:
        return SourceResult(kind, sent, 0, 0, time.monotonic() - started, f"refused: {error}")
    while True:
        raw_items = api_call(demo, "GET", f"/raw?source={source['id']}")["data"]
        items = api_call(demo, "GET", f"/generated?source={source['id']}")["data"]
        ready = [item for item in items if item["status"] not in {"queued", "generating", "failed"}]
        seconds = time.monotonic() - started
        if ready or seconds > TIMEOUT_SECONDS:
            health = api_call(demo, "GET", f"/sources/{source['id']}")["health"]
            message = " ".join(
                [
                    *([health["error"]["message"]] if health["error"] else []),
                    *(item["error"]["message"] for item in items if item["error"]),
                ]
            )
            return SourceResult(kind, sent, len(raw_items), len(ready), seconds, message)
        time.sleep(POLL_SECONDS)


def report(addresses: dict[str, str]) -> Iterator[str]:
    """Yield the lines of the proof, each as soon as it is known."""
    yield f"{datetime.now(UTC):%Y-%m-%d}, commit {commit_described()}: the real network, no key for a model"
    yield ""
    with running_demo() as demo:
        for kind in ("rss", "scraper", "youtube", "tiktok", "webhook", "brand"):
            row = try_source(demo, kind, addresses.get(kind, ""))
            yield (
                f"{row.kind:<8} {row.sent}: {row.raw_items} raw items, {row.items} items ready, "
                f"{row.seconds:.0f} s. {row.message}".rstrip()
            )


def parse_target(text: str) -> tuple[str, str]:
    """Return the type and address of an argument such as `rss=https://…`. Raises `ArgumentTypeError` for others."""
    kind, separator, address = text.partition("=")
    if not separator or kind not in TARGETS:
        message = f"{text!r} is not one of {', '.join(TARGETS)}, an equals sign and an address"
        raise argparse.ArgumentTypeError(message)
    return kind, address


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "targets", nargs="*", type=parse_target, metavar="type=address", help="other than the usual"
    )
    addresses = TARGETS | dict(parser.parse_args().targets)
    lines = []
    try:
        for line in report(addresses):
            print(line, flush=True)
            lines.append(f"{line}\n")
    except Failed as error:
        print(error, file=sys.stderr)
        return 1
    (ROOT / "docs" / "proofs" / "live.txt").write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
