"""People in a browser: how they come in, and what every page of theirs must be: whole, readable, without a violation."""

from __future__ import annotations

import os
import re
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from django.core import mail

from tests.factories import UserFactory

PASSWORD = "a long enough phrase 9"
SHOTS = os.environ.get("SHOTS", "")


def person(email, name=""):
    user = UserFactory(email=email, name=name, password=PASSWORD)
    user.vouch_for_email()
    return user


def log_in(page, user, to="/"):
    page.goto(f"/account/login/?next={to}")
    page.get_by_label("Email").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(lambda url: "/account/login" not in url)


def follow(page, link):
    """Click on what leads to another page, and be there: a click alone returns while the old one is still shown."""
    with page.expect_navigation():
        link.click()


def look_over(page, name):
    """No violation that axe knows, light and dark, wide and narrow; nothing wider than the window."""
    wide = page.viewport_size
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900 if width > 1000 else 844})
            found = Axe().run(page).response["violations"]
            wrong = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
            assert wrong == [], f"{name}, {width} px, {scheme}: {wrong}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} at {width}"
            if SHOTS:
                path = Path(SHOTS) / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(wide)


def link_of_last_mail():
    found = re.search(r"(/invitations/[A-Za-z0-9_-]{43})", mail.outbox[-1].body)
    assert found, mail.outbox[-1].body
    return found[1]
