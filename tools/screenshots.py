"""Takes the README's pictures of a new demo workspace: `python tools/screenshots.py [folder]`.

The service starts as `make up` starts it, on a free port and in a temporary folder, and ends with the tool. The browser is
Chromium, named by CHROMIUM or found on PATH.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import requests
from PIL import Image
from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
PAGES = ("Review", "Calendar", "Analytics")
"""The pages' names in the menu."""
WINDOW_SIZE = {"width": 1280, "height": 800}
MAX_PICTURE_BYTES = 200_000
START_SECONDS = 600.0
"""The longest wait for the demo, whose history may take minutes on a small machine."""
SETTLED_SECONDS = 5.0
"""The time without new or unfinished items after which the demo counts as filled."""
CLEARED_SETTINGS = ("DATABASE_URL", "REDIS_URL", "PUBLIC_URL", "ANTHROPIC_API_KEY")
"""Settings that would show other data, or cost money."""
END_OF_GUIDE = "Ctrl-C stops everything"


class Failed(Exception):
    """Raised if the tool can't go on; the message is for the person at the terminal."""


class Demo(NamedTuple):
    """A running demo, with its address, its log-in and an API key."""

    url: str
    email: str
    password: str
    token: str

    def get(self, path: str) -> Any:
        """Return the API's answer at a path below /v1."""
        with requests.Session() as session:
            # The environment's proxy would send the call away from this machine.
            session.trust_env = False
            answer = session.get(
                f"{self.url}/v1{path}", headers={"Authorization": f"Bearer {self.token}"}, timeout=30
            )
        answer.raise_for_status()
        return answer.json()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_demo() -> Iterator[Demo]:
    """Run a filled demo workspace in a temporary folder; it is stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        port = os.environ.get("PORT") or str(free_port())
        log = Path(folder) / "up.log"
        environment = {
            **os.environ,
            **dict.fromkeys(CLEARED_SETTINGS, ""),
            "MODE": "development",
            "DATA_DIR": f"{folder}/data",
            "PORT": port,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(ROOT / "tools" / "up.py")],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # The service and the program that fills it are one group, which is ended together.
                start_new_session=True,
            )
        try:
            demo = wait_for_guide(process, log, f"http://127.0.0.1:{port}")
            wait_until_settled(demo)
            yield demo
        finally:
            stop(process)


def wait_for_guide(process: subprocess.Popen[bytes], log: Path, url: str) -> Demo:
    """Wait for the guide that the demo prints once it is filled, and return its log-in and API key.

    Raises `Failed` if the demo ends, takes longer than `START_SECONDS`, or doesn't print one of them.
    """
    deadline = time.monotonic() + START_SECONDS
    while END_OF_GUIDE not in (text := log.read_text(errors="replace")).partition("Log in as")[2]:
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(text.splitlines()[-12:])
            raise Failed(f"The demo did not start. The end of what it said:\n\n{tail}")
        time.sleep(0.5)
    values = {}
    for label in ("Log in as", "Password", "API key"):
        match = re.search(rf"^ *{label} +(\S+)", text, re.MULTILINE)
        if match is None:
            raise Failed(f"The demo did not say its {label!r}:\n\n{text}")
        values[label] = match[1]
    return Demo(url, values["Log in as"], values["Password"], values["API key"])


def wait_until_settled(demo: Demo) -> None:
    """Wait until no more items are made. Raises `Failed` if that takes longer than `START_SECONDS`."""
    deadline = time.monotonic() + START_SECONDS
    previous, unchanged_since = None, time.monotonic()
    while time.monotonic() - unchanged_since < SETTLED_SECONDS:
        if time.monotonic() > deadline:
            raise Failed("The demo goes on making items.")
        # The interval is slow, because films take minutes and a key's calls a minute are limited.
        time.sleep(2.0)
        newest = [item["id"] for item in demo.get("/generated?limit=1")["data"]]
        under_way = demo.get("/generated?status=queued&status=generating&limit=1")["data"]
        if under_way or newest != previous:
            previous, unchanged_since = newest, time.monotonic()


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the demo as Ctrl-C does, and kill it if it doesn't end within 30 seconds."""
    for signal_number, seconds in ((signal.SIGINT, 30), (signal.SIGKILL, 10)):
        if process.poll() is None:
            os.killpg(process.pid, signal_number)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue


def take_screenshots(browser: Browser, demo: Demo, folder: Path) -> None:
    """Log in, and write a picture of each page and of one item."""
    context = browser.new_context(
        base_url=demo.url, viewport=WINDOW_SIZE, color_scheme="light", reduced_motion="reduce", locale="en-GB"
    )
    page = context.new_page()
    page.goto("/account/login/?next=/")
    page.get_by_label("Email").fill(demo.email)
    page.get_by_label("Password").fill(demo.password)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(lambda url: "/account/login" not in url)
    workspace = page.url.partition("?")[0].rstrip("/")
    addresses = {
        name: page.get_by_role("link", name=name, exact=True).first.get_attribute("href") or ""
        for name in PAGES
    }
    for name, address in addresses.items():
        open_page(page, address)
        write_picture(page.screenshot(), folder / f"{name.lower()}.png")
    open_item(page, demo, workspace)
    write_picture(page.screenshot(), folder / "item.png")


def open_page(page: Page, address: str) -> None:
    """Open a page and wait until it has loaded. Raises `Failed` if it isn't answered with success."""
    response = page.goto(address, wait_until="networkidle")
    if response is None or not response.ok:
        raise Failed(f"{address} could not be shown.")


def open_item(page: Page, demo: Demo, workspace: str) -> None:
    """Open the post to review with the most claims, of those whose claims are visible without scrolling.

    Raises `Failed` if there is none.
    """
    items = demo.get("/generated?status=ready&bucket=text&include=claims&limit=100")["data"]
    for item in sorted(items, key=lambda item: len(item["claims"]), reverse=True):
        open_page(page, f"{workspace}/items/{item['id']}")
        claims = page.locator("#claims").bounding_box() if page.locator("#claims").count() else None
        if claims and claims["y"] < WINDOW_SIZE["height"] * 0.6:
            return
    raise Failed("The demo has no post to review whose claims are seen at once.")


def write_picture(png: bytes, path: Path) -> None:
    """Write the picture as a PNG of 256 colours, which are enough for pages and take a third of the bytes.

    Raises `Failed` if it has more than `MAX_PICTURE_BYTES`.
    """
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size / 1000:.0f} kB", flush=True)
    if size > MAX_PICTURE_BYTES:
        raise Failed(f"{path} has {size} bytes; a README's picture has {MAX_PICTURE_BYTES} at most.")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    program = (
        os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    )
    try:
        if program is None:
            raise Failed(
                "There is no Chromium: install Debian's package chromium-headless-shell, or name a program in CHROMIUM."
            )
        folder.mkdir(parents=True, exist_ok=True)
        with running_demo() as demo, sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            take_screenshots(browser, demo, folder)
            browser.close()
    except Failed as failure:
        sys.exit(str(failure))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")


if __name__ == "__main__":
    main()
