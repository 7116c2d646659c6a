"""A person's own affairs: the ways to log in, the second factor, sessions, password and address."""

from __future__ import annotations

import re
import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import hotp_value, yield_hotp_counters_from_time
from django.core import mail

from accounts.models import User
from tests.browser.people import follow, violations
from tests.browser.test_sign_up import PASSWORD, code_of_last_mail

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("newsroom")]


def log_in(page, password=PASSWORD):
    page.goto("/account/login/")
    page.get_by_label("Email").fill("alice@example.test")
    page.get_by_label("Password").fill(password)
    follow(page, page.get_by_role("button", name="Log in"))


def is_at_home(page):
    page.wait_for_url("**/w/ws_*/")
    return page.get_by_role("heading", name="Newsroom", level=1).is_visible()


def log_out(page):
    page.locator(".sidebar .account > summary").locator("visible=true").click()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("link", name="Create an account").wait_for()


def fine(page):
    assert violations(page) == []


def totp(secret):
    return f"{hotp_value(secret, next(iter(yield_hotp_counters_from_time()))):06}"


def test_log_in_by_a_code(page, alice):
    page.goto("/account/login/")
    follow(page, page.get_by_role("link", name="Send me a code instead"))
    fine(page)
    page.get_by_label("Email").fill("alice@example.test")
    follow(page, page.get_by_role("button").filter(has_text=re.compile("code", re.IGNORECASE)))
    fine(page)
    page.get_by_label("Code").fill(code_of_last_mail())
    page.get_by_role("button", name="Confirm").click()
    assert is_at_home(page)


def test_a_forgotten_password_is_replaced(page, alice):
    page.goto("/account/login/")
    page.get_by_role("link", name="Forgot your password?").click()
    page.get_by_label("Email").fill("alice@example.test")
    page.get_by_role("button", name="Reset My Password").click()
    page.get_by_label("Code").fill(code_of_last_mail())
    follow(page, page.get_by_role("button", name="Confirm"))
    fine(page)
    page.get_by_label("New Password", exact=True).fill("quite another phrase 7")
    page.get_by_label("New Password (again)").fill("quite another phrase 7")
    follow(page, page.get_by_role("button", name="Change Password"))
    assert User.objects.get().check_password("quite another phrase 7")
    log_in(page, "quite another phrase 7")
    assert is_at_home(page)


def test_a_second_factor_and_its_recovery_codes(page, alice):
    log_in(page)
    assert is_at_home(page)
    page.goto("/account/profile")
    fine(page)
    follow(page, page.get_by_role("link", name="Set up"))
    fine(page)
    follow(page, page.get_by_role("link", name="Activate"))
    fine(page)
    secret = page.get_by_label("Authenticator secret").input_value()
    page.get_by_label("Authenticator code").fill(totp(secret))
    page.get_by_role("button", name="Activate").click()
    page.get_by_role("heading", name="Recovery Codes").wait_for()
    fine(page)
    codes = page.get_by_label("Unused codes").input_value().split()
    assert len(codes) == 10
    kept = Authenticator.objects.get(type="totp").data["secret"]
    assert secret not in kept
    assert codes[0] not in str(list(Authenticator.objects.values_list("data", flat=True)))

    log_out(page)
    log_in(page)
    fine(page)
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Incorrect code").wait_for()
    # A code is good once.
    page.get_by_label("Code").fill(codes[0])
    page.get_by_role("button", name="Log in").click()
    assert is_at_home(page)
    log_out(page)
    log_in(page)
    page.get_by_label("Code").fill(codes[0])
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Incorrect code").wait_for()


def test_other_sessions_are_signed_out(open_window, alice):
    here, there = open_window(), open_window(phone=True)
    for page in (here, there):
        log_in(page)
        assert is_at_home(page)
    here.goto("/account/sessions/")
    fine(here)
    follow(here, here.get_by_role("button", name="Log out other sessions"))
    there.goto("/account/profile")
    assert there.url.endswith("/account/login/?next=/account/profile")
    here.goto("/account/profile")
    assert here.get_by_role("heading", name="Your profile").is_visible()


def test_another_address_holds_when_it_is_proven(page, alice):
    log_in(page)
    page.goto("/account/email/")
    fine(page)
    page.get_by_label("Change to").fill("new@example.test")
    page.get_by_role("button", name="Change Email").click()
    page.get_by_label("Code").wait_for()
    assert User.objects.get().email == "alice@example.test"
    page.get_by_label("Code").fill(code_of_last_mail())
    follow(page, page.get_by_role("button", name="Confirm"))
    time.sleep(0.2)
    assert User.objects.get().email == "new@example.test"
    # Whoever holds the old address is told.
    assert "alice@example.test" in [to for message in mail.outbox for to in message.to]


def test_the_theme_is_chosen_and_kept(page, alice):
    log_in(page)
    assert is_at_home(page)
    page.locator("aside .account > summary").click()
    page.locator("aside").get_by_role("button", name="Dark theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == "rgb(16, 16, 20)"
    page.goto("/account/profile")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_theme_is_chosen_without_a_script_too(open_window, alice):
    page = open_window(scripts=False)
    page.goto("/account/login/")
    follow(page, page.get_by_role("button", name="Dark theme"))
    assert page.locator("html").get_attribute("data-theme") == "dark"
    log_in(page)
    assert is_at_home(page)
