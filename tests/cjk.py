"""The letters of Chinese, Japanese and Korean, where a test asks for them: others draw with the bundled fonts alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipeline.render.typography import clusters, fonts, supported_scripts

SYSTEM = Path("/usr/share/fonts/opentype/noto")


def forget():
    for one in (fonts.search_order, fonts.coverage, clusters.font_of, supported_scripts.unshown_text):
        one.cache_clear()


@pytest.fixture(scope="module")
def cjk():
    """Noto Sans CJK of this machine."""
    if not (SYSTEM / "NotoSansCJK-Bold.ttc").is_file():
        message = "There is no Noto Sans CJK: install Debian's package fonts-noto-cjk."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fonts, "SYSTEM_FOLDER", SYSTEM)
        forget()
        yield
    forget()
