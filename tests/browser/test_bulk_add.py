"""Many sources at once in a browser: lines and a file are looked at, corrected, added and taken back."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts import workspaces
from pipeline.models import Source
from tests.browser.people import go_to, log_in, look_over
from tests.pages.test_bulk_add import OPML, outline

pytestmark = [pytest.mark.django_db(transaction=True)]


def names(workspace):
    return sorted(
        Source.objects.of(workspace).filter(is_push=False, deleted_at=None).values_list("name", flat=True)
    )


@pytest.mark.parametrize("scripts", [True, False])
def test_lines_and_a_file_are_looked_at_and_corrected(open_window, newsroom, scripts, tmp_path):
    workspaces.lift_limits(newsroom, "operator@example.test")
    file = tmp_path / "feeds.opml"
    file.write_text(OPML)
    page = open_window(scripts=scripts)
    log_in(page, newsroom.alice)
    go_to(page, "Sources")
    page.get_by_role("main").get_by_role("link", name="Add several").click()
    if scripts:
        look_over(page, "sources-several")
    page.get_by_label("Addresses").fill(
        "https://quay.example Quay board\nnot an address\nhttps://quay.example"
    )
    page.get_by_label("Or an OPML file").set_input_files(file)
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("3 will be added").wait_for()
    page.get_by_text("2 are there already").wait_for()
    page.get_by_text("No address. Enter one such as").wait_for()
    assert names(newsroom) == []
    if scripts:
        look_over(page, "sources-several-preview")
    lines = page.get_by_label("Addresses").last.input_value().splitlines()
    page.get_by_label("Addresses").last.fill("\n".join(line for line in lines if line != "not an address"))
    page.get_by_role("button", name="Check again").click()
    page.get_by_text("3 will be added").wait_for()
    page.get_by_role("button", name="Add 3 sources").click()
    page.get_by_text("3 sources added.").wait_for()
    assert names(newsroom) == ["Harbour news", "Quay board", "Trams"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("3 sources removed.").wait_for()
    assert names(newsroom) == []


def test_a_long_list_scrolls_within_its_card_on_a_phone(open_window, newsroom, tmp_path):
    workspaces.lift_limits(newsroom, "operator@example.test")
    file = tmp_path / "feeds.opml"
    file.write_text(outline(300))
    page = open_window(phone=True)
    log_in(page, newsroom.alice)
    page.goto(reverse("sources_several", kwargs={"ws": newsroom.pk}))
    page.get_by_label("Or an OPML file").set_input_files(file)
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_text("300 will be added").wait_for()
    assert page.evaluate("document.documentElement.scrollHeight") < 3000
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
