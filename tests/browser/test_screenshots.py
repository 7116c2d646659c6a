"""`make screenshots` and `make prove-live`: one filled demo for both, four pictures of one size, three sources."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from PIL import Image

from tests.documents.text import ROOT
from tests.sizes import IS_PROOF

# The pictures that are kept wait until its films are made too, which takes minutes.
AT_THE_FIRST_POST = """
import time
from tools import prove_sources, screenshots

def wait(demo):
    while not demo.get("/generated?status=ready&bucket=text&limit=1")["data"]:
        time.sleep(1)
    for kind, address in (("webhook", ""), ("brand", ""), ("rss", "ftp://example.test/feed")):
        row = prove_sources.try_source(demo, kind, address)
        print("row", kind, row.raw_items > 0, row.items > 0, row.message)

screenshots.wait_until_settled = wait
screenshots.main()
"""


@pytest.mark.skipif(not IS_PROOF, reason="It starts a demo, for minutes: make prove-pages.")
def test_demo_shows_what_the_readme_shows_and_sources_bring_items(chromium, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name not in {"MIGRATED", "PORT"}}
    done = subprocess.run(
        [sys.executable, "-c", AT_THE_FIRST_POST, str(tmp_path)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("row ")]
    assert [row.rstrip() for row in rows[:2]] == ["row webhook True True", "row brand False True"]
    assert rows[2].startswith("row rss False False refused: ")
    taken = {}
    for path in tmp_path.iterdir():
        with Image.open(path) as picture:
            # A page of one colour is none.
            taken[path.name] = (
                picture.size,
                len(picture.getcolors()) > 50,
            )
    names = ("analytics.png", "calendar.png", "item.png", "review.png")
    assert taken == dict.fromkeys(names, ((1280, 800), True))
