"""People in a browser: how they come in, and what every page of theirs must be: whole, readable, without a
violation."""

from __future__ import annotations

import os
import re
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from django.core import mail

from tests.factories import UserFactory

PASSWORD = "a long enough phrase 9"
SHOTS = os.environ.get("SHOTS", "")
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# Colours that are still on their way from one scheme to the other aren't those that people read. One that
# ends can set off another, of what inherits it.
SETTLE = """() => {
    for (let round = 0; round < 100; round++) {
        const moving = document.getAnimations().filter(one => one instanceof CSSTransition && one.playState !== "finished");
        if (!moving.length) return true;
        moving.forEach(one => one.finish());
    }
    return false;
}"""
_LOOKED_OVER = set()


def person(email, name=""):
    user = UserFactory(email=email, name=name, password=PASSWORD)
    user.mark_email_verified()
    return user


def log_in(page, user, to="/"):
    page.goto(f"/account/login/?next={to}")
    page.get_by_label("Email").fill(user.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_url(lambda url: "/account/login" not in url)


def follow(page, link):
    """Click on what leads to another page, and be there: a click alone returns while the old one is still
    shown."""
    with page.expect_navigation():
        link.click()


def go_to(page, *labels):
    """By the navigation: a section, then one of its tabs."""
    for label in labels:
        page.locator("main").wait_for()
        links = page.locator(".sidebar, .tabs, .tab-menu, .settings-list").get_by_role("link", name=label)
        # The name of the service beside its mark is a link too.
        link = links.filter(has_not=page.locator("img")).locator("visible=true")
        tabs = page.locator(".tab-menu > summary")
        if not link.count() and tabs.is_visible():
            tabs.click()
        menu = page.locator(".drawer > summary")
        if not link.count() and menu.is_visible():
            menu.click()
        follow(page, link.first)


def look_over(page, name):
    """No violation that axe knows, light and dark, wide and narrow; nothing wider than the window.

    A page that several tests come to, or one test wide and narrow, is looked over the first time.
    """
    if name in _LOOKED_OVER:
        return
    _LOOKED_OVER.add(name)
    wide = page.viewport_size
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1440, 390):
            page.set_viewport_size({"width": width, "height": 900 if width > 1000 else 844})
            wrong = violations(page, of_colours_only=scheme == "dark")
            assert wrong == [], f"{name}, {width} px, {scheme}: {wrong}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} at {width}"
            if SHOTS:
                path = Path(SHOTS) / f"{name}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(wide)


def violations(page, *, of_colours_only=False):
    """What axe finds on a page: rules with the elements that break them. Colours are all that a scheme
    changes."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    assert page.evaluate(SETTLE), "colours that never stand still"
    options = {"resultTypes": ["violations"], **({"runOnly": OF_COLOURS} if of_colours_only else {})}
    found = page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]


def link_of_last_mail():
    found = re.search(r"(/invitations/[A-Za-z0-9_-]{43})", mail.outbox[-1].body)
    assert found, mail.outbox[-1].body
    return found[1]
