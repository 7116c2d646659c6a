"""The browser of the tests: what CHROMIUM names, else the first that is on the path."""

from __future__ import annotations

import os
import shutil

import pytest

from pipeline.sources.page_render import BROWSERS

MISSING = (
    "There is no Chromium: install Debian's package chromium-headless-shell, or name a program in CHROMIUM."
)


def find() -> str:
    """Its path. Where there is none the test is skipped, or fails with REQUIRE_SERVICES=1."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return found
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(MISSING)
    pytest.skip(MISSING)
