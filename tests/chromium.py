"""The browser of the tests: what CHROMIUM names, else the first that is on the path."""

from __future__ import annotations

import os

import pytest

from pipeline.plugins import Refused
from pipeline.sources.web_pages.render import find_browser

MISSING = (
    "There is no Chromium: install Debian's package chromium-headless-shell, or name a program in CHROMIUM."
)


def find() -> str:
    """Its path. Where there is none the test is skipped, or fails with REQUIRE_SERVICES=1."""
    try:
        return find_browser({"CHROMIUM_PATH": os.environ.get("CHROMIUM", "")})
    except Refused:
        pass
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(MISSING)
    pytest.skip(MISSING)
