"""A platform's API that ends, or that nobody has looked at: told by the check, the doctor and the first page."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from django.urls import reverse

from config.operations import doctor, needs_attention, plugin_checks
from pipeline import plugins
from pipeline.platforms.base import Api
from tests.factories import UserFactory
from tests.platforms import letterbox

TODAY = date(2026, 12, 1)


@pytest.fixture
def aged(monkeypatch, settings):
    """Only the letterbox, with an API of these dates, on that day."""

    def age(*, expires_on=None, reviewed_on=TODAY):
        api = Api("", "2", reviewed_on=reviewed_on, expires_on=expires_on)
        monkeypatch.setattr(letterbox.Letterbox, "api", api)
        return [(one.code, one.message, one.advice) for one in plugin_checks.aging_apis(TODAY)]

    settings.PLATFORM_VERSIONS = {}
    with letterbox.registered() as platform:
        monkeypatch.setattr(plugin_checks.plugins, "every", lambda _family, _of: (platform,))
        yield age


def test_a_version_is_told_of_sixty_days_before_its_end(aged):
    assert aged(expires_on=TODAY + timedelta(days=61)) == []
    (told,) = aged(expires_on=TODAY + timedelta(days=60))
    assert told == (
        "expires",
        "Letterbox ends version 2 of its API on 2027-01-30.",
        "Upgrade, or set PLATFORM_VERSIONS=letterbox=<a newer version> and try it.",
    )
    (told,) = aged(expires_on=TODAY)
    assert told[1] == "Letterbox ended version 2 of its API on 2026-12-01."


def test_an_operator_who_set_another_version_has_dealt_with_it(aged, settings):
    settings.PLATFORM_VERSIONS = {"letterbox": "3"}
    assert aged(expires_on=TODAY) == []
    settings.PLATFORM_VERSIONS = {"letterbox": "2"}
    assert [code for code, *_ in aged(expires_on=TODAY)] == ["expires"]


def test_documents_are_read_again_within_three_hundred_days(aged):
    assert aged(reviewed_on=TODAY - timedelta(days=300)) == []
    (told,) = aged(reviewed_on=TODAY - timedelta(days=301))
    assert told[:2] == ("unreviewed", "The documents of Letterbox were last read on 2026-02-03.")
    assert "PLATFORM_VERSIONS=letterbox=" in told[2]


def test_every_platform_of_this_version_names_when_it_was_read():
    every = [one.api for one in plugins.every("platforms", plugin_checks.Platform) if one.api]
    assert all(api.reviewed_on >= date(2026, 11, 1) for api in every)


@pytest.fixture
def ends(monkeypatch):
    one = plugin_checks.AgingApi("letterbox", "expires", "It ends.", "Set PLATFORM_VERSIONS=letterbox=3.")
    monkeypatch.setattr(plugin_checks, "aging_apis", lambda: [one])


def test_the_check_says_so(ends):
    (message,) = plugin_checks.check_api_expiry(None)
    assert (message.id, message.msg, message.hint) == (
        "platforms.W001",
        "It ends.",
        "Set PLATFORM_VERSIONS=letterbox=3.",
    )


def test_the_doctor_says_so(ends, monkeypatch):
    found = doctor.platforms()
    assert (found.verdict, found.said) == ("warn", "It ends.")
    assert found.advice == "Set PLATFORM_VERSIONS=letterbox=3."
    monkeypatch.setattr(plugin_checks, "aging_apis", list)
    assert doctor.platforms().verdict == "ok"


@pytest.mark.django_db
def test_the_operator_s_first_page_says_so(ends, client):
    operator = UserFactory(email="op@example.test", is_staff=True, is_superuser=True)
    need = needs_attention.Need(
        "It ends. Set PLATFORM_VERSIONS=letterbox=3.",
        f"{reverse('admin:pipeline_outlet_changelist')}?platform__exact=letterbox",
    )
    assert need in needs_attention.visible_needs(operator)
    client.force_login(operator)
    assert "Set PLATFORM_VERSIONS=letterbox=3." in client.get("/admin/").content.decode()
