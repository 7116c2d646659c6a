"""Content in a browser: several items are selected, approved and taken back, by mouse and by keyboard."""

from __future__ import annotations

import re

import pytest

from tests.browser.people import go_to, log_in, look_over
from tests.pipeline.steps import make_items, reread

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_several_items_are_approved_at_once_and_taken_back(open_window, newsroom):
    rows = [
        make_items(
            newsroom,
            title=title,
            url=f"https://n.example/{number}",
            engines=["Short Post", "Thread"],
        )
        for number, title in enumerate(("The ferry leaves earlier", "Rye keeps for nine days"))
    ]
    page = open_window()
    log_in(page, newsroom.alice)
    go_to(page, "Content")
    bar = page.get_by_role("form", name="Bulk actions")
    assert not bar.is_visible()
    page.get_by_role("checkbox", name=re.compile(", Short Post$")).first.check()
    page.get_by_role("checkbox", name=re.compile(", Thread$")).last.check()
    bar.get_by_text("2 selected").wait_for()
    look_over(page, "items-selected")
    bar.get_by_role("button", name="Approve").click()
    page.get_by_text("2 items approved.").wait_for()
    page.get_by_role("heading", name="Content").wait_for()
    approved = {
        (row.engine_output, row.raw_item_id) for pair in rows for row in pair if reread(row).approved_at
    }
    assert len(approved) == 2
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("2 decisions undone.").wait_for()
    page.get_by_role("heading", name="Content").wait_for()
    assert not any(reread(row).approved_at for pair in rows for row in pair)
    # By keyboard: all of the page, then none.
    page.get_by_role("button", name="Select all").press("Enter")
    bar.get_by_text("4 selected").wait_for()
    page.get_by_role("button", name="Select all").press("Enter")
    bar.wait_for(state="hidden")
