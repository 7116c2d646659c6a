"""The documents as readers meet them."""

from __future__ import annotations

import pytest

from tests.browser.people import look_over

pytestmark = pytest.mark.django_db(transaction=True)


def test_guides_read_well(page):
    for address in ("/docs", "/docs/first-call", "/docs/api", "/"):
        page.goto(address)
        look_over(page, f"open{address.replace('/', '-')}")


def test_an_example_is_copied(page):
    page.goto("/docs/signing")
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_role("button", name="Copied").wait_for()
    assert "def verify(" in page.evaluate("navigator.clipboard.readText()")


def test_the_reference_shows_its_operations(page):
    page.goto("/docs/reference")
    page.get_by_text("/v1/raw", exact=True).first.wait_for()
