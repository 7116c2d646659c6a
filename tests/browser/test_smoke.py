"""The way in: what everybody meets first."""

from __future__ import annotations


def test_the_operators_log_in_shows_without_complaints(page):
    page.goto("/admin/login/")
    assert page.get_by_role("button", name="Log in").is_visible()
