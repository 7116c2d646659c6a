"""A draft of a persona killed at each of its steps: it is made all the same, and the site is read once."""

from __future__ import annotations

import pytest

from config.core.crash_points import POINTS

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

WORK = ("work", {"kinds": ["generate.draft_persona"]})
POINTS_HERE = sorted(point for point in POINTS if point.startswith("drafts."))
FEED = b"""<?xml version="1.0"?><rss version="2.0"><channel><title>Harbour posts</title>
<item><guid>1</guid><description>Who left a cello on the night boat?</description></item></channel></rss>"""


@pytest.mark.parametrize("point", POINTS_HERE)
def test_a_killed_draft_is_made_by_the_next_hand(prepared, tmp_path, httpserver, point):
    httpserver.expect_request("/robots.txt").respond_with_data("", status=404)
    httpserver.expect_request("/feed").respond_with_data(FEED, content_type="application/rss+xml")
    world = prepared.copy(tmp_path / "data")
    try:
        world.run(("ask_for_draft", {"url": httpserver.url_for("/feed")}))
        world.run(WORK, crash_at=point)
        (killed,) = world.run("draft")
        assert (killed["status"] in {"queued", "running"}, killed["is_claimed"]) == (True, True)
        assert killed["has_material"] is (point != "drafts.claimed")
        asked = len(httpserver.log)
        *_, found = world.run("finish", "draft")
    finally:
        world.drop()
    assert found["status"] == "done"
    assert found["sections"]["reference_posts"] == ["Who left a cello on the night boat?"]
    assert (found["has_material"], found["is_claimed"]) == (False, False)
    if killed["has_material"]:
        assert len(httpserver.log) == asked
