"""The input of a secret keeps it over an error for the person who typed it, encrypted and for an hour."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.pages import secret_input
from accounts.pages.secret_input import KEPT_SECONDS, SecretInput

SECRET = "canary-token-4711"


def make_input(owner="usr_1"):
    widget = SecretInput()
    widget.owner = owner
    return widget


def kept_in(html):
    return dict(re.findall(r'type="hidden" name="(token_kept)" value="([^"]+)"', html))


def read(widget, data):
    return widget.value_from_datadict(data, {}, "token")


@pytest.fixture
def kept():
    html = make_input().render("token", SECRET, {"required": True})
    assert (SECRET in html, " required" in html) == (False, False)
    return kept_in(html)


def test_what_was_kept_is_read_unless_another_was_typed(kept):
    assert read(make_input(), {"token": "", **kept}) == SECRET
    assert read(make_input(), {"token": "another", **kept}) == "another"


def test_it_is_kept_for_the_person_who_typed_it_alone(kept):
    assert read(make_input("usr_2"), {"token": "", **kept}) == ""
    assert read(make_input(""), {"token": "", **kept}) == ""


def test_it_is_kept_for_an_hour(kept, monkeypatch):
    later = timezone.now() + timedelta(seconds=KEPT_SECONDS + 1)
    monkeypatch.setattr(secret_input, "utc_now", lambda: later)
    assert read(make_input(), {"token": "", **kept}) == ""


@pytest.mark.parametrize("damaged", ["", "k", "test:x", "\x00"])
def test_a_damaged_one_is_left_out(damaged):
    assert read(make_input(), {"token": "", "token_kept": damaged}) == ""


def test_nothing_is_kept_without_an_owner_or_a_secret():
    assert kept_in(make_input("").render("token", SECRET, {})) == {}
    assert kept_in(make_input().render("token", "", {})) == {}


def test_an_address_is_shown_as_it_was_typed():
    html = make_input().render("token", "https://hooks.example/T1?a=1&b=2", {})
    assert 'type="text" name="token" value="https://hooks.example/T1?a=1&amp;b=2"' in html
    assert kept_in(html) == {}
