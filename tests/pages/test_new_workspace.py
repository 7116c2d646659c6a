"""A person's first workspace: the browser's language and time zone are proposed."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from html import unescape
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from accounts import languages, timezones
from accounts.models import Workspace
from pipeline.models import Persona

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("accepted", "proposed"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("pt-BR", "pt-br"),
        ("tlh, ja;q=0.5", "ja"),
        ("", "en"),
        ("*", "en"),
        ("tlh", "en"),
        ("x" * 4000, "en"),
    ],
)
def test_the_browser_s_language_is_proposed(alice, as_person, accepted, proposed):
    answer = as_person(alice).get(reverse("workspace_create"), headers={"Accept-Language": accepted})
    assert answer.context["form"]["language"].value() == proposed
    assert "data-own-zone" in answer.content.decode()


@pytest.mark.parametrize(("chosen", "written"), [({"language": "fr"}, "fr"), ({}, "de")])
def test_the_first_persona_writes_in_the_chosen_language(alice, as_person, chosen, written):
    given = {"name": "Harbour", "timezone": "Europe/Berlin", **chosen}
    as_person(alice).post(reverse("workspace_create"), given, headers={"Accept-Language": "de"})
    made = Workspace.everywhere.get(name="Harbour")
    assert Persona.objects.of(made).get().language == written


def test_a_language_that_nobody_offered_is_refused(alice, as_person):
    given = {"name": "Harbour", "timezone": "Europe/Berlin", "language": "tlh"}
    answer = as_person(alice).post(reverse("workspace_create"), given)
    assert "language" in answer.context["form"].errors
    assert not Workspace.everywhere.filter(name="Harbour").exists()


def test_every_language_has_its_own_name():
    assert len(languages.language_choices()) > 50
    assert ("de", "Deutsch") in languages.language_choices()


def test_what_was_chosen_stays_after_a_mistake(alice, as_person):
    given = {"name": "", "timezone": "America/Lima", "language": "es"}
    page = as_person(alice).post(reverse("workspace_create"), given, headers={"Accept-Language": "de"})
    form = page.context["form"]
    assert (form["timezone"].value(), form["language"].value()) == ("America/Lima", "es")
    # The page's script leaves the zone alone.
    assert "data-own-zone" not in page.content.decode()


def test_a_german_browser_gets_the_pages_in_one_language(client, alice, as_person):
    german = {"Accept-Language": "de-DE,de;q=0.9"}
    for address in (reverse("front"), reverse("account_login"), reverse("account_signup")):
        text = client.get(address, headers=german).content.decode()
        assert '<html lang="en"' in text
    answer = client.post(reverse("account_signup"), {"email": "no", "password1": "1"}, headers=german)
    assert answer.context["form"].errors["email"] == ["Enter a valid email address."]
    page = as_person(alice).post(reverse("workspace_create"), {"timezone": "UTC"}, headers=german)
    assert page.context["form"].errors["name"] == ["This field is required."]


def test_time_zones_have_their_present_names_alone(alice, as_person):
    names = [name for name, _label in timezones.timezone_choices()]
    assert (names[0], "Asia/Kolkata" in names, "Europe/Oslo" in names) == ("UTC", True, True)
    obsolete = {"Asia/Calcutta", "US/Pacific", "Asia/Katmandu", "America/Buenos_Aires", "EST5EDT", "Etc/UTC"}
    assert obsolete & set(names) == set()
    # Browsers report obsolete names, for which the page's script takes the present ones.
    html = as_person(alice).get(reverse("workspace_create")).content.decode()
    present = json.loads(unescape(re.search(r'data-own-zone="([^"]+)"', html)[1]))
    assert (present["Asia/Calcutta"], present["Europe/Kiev"]) == ("Asia/Kolkata", "Europe/Kyiv")
    assert set(present.values()) <= set(names)
    # A merged place has the name of its own country, and the same time.
    own = ("Africa/Asmera", "Pacific/Truk", "America/Coral_Harbour", "America/Virgin")
    assert [present[name] for name in own] == [
        "Africa/Asmara",
        "Pacific/Chuuk",
        "America/Atikokan",
        "America/St_Thomas",
    ]
    moment = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert [
        (name, place)
        for name, place in present.items()
        if moment.astimezone(ZoneInfo(name)).utcoffset() != moment.astimezone(ZoneInfo(place)).utcoffset()
    ] == []


def test_an_obsolete_time_zone_that_is_stored_stays(alice, newsroom, as_person):
    Workspace.everywhere.filter(pk=newsroom.pk).update(timezone="Asia/Calcutta")
    client = as_person(alice)
    page = reverse("workspace", kwargs={"ws": newsroom.pk})
    assert '<option value="Asia/Calcutta" selected>' in client.get(page).content.decode()
    client.post(page, {"name": "Harbour", "timezone": "Asia/Calcutta"})
    row = Workspace.everywhere.get(pk=newsroom.pk)
    assert (row.name, row.timezone) == ("Harbour", "Asia/Calcutta")
    for name in ("analytics_page", "series_add", "queue_add", "lane_add"):
        address = reverse(name, kwargs={"ws": newsroom.pk})
        assert "Asia/Calcutta" in client.get(address).content.decode(), name
    tz = client.get(reverse("analytics_page", kwargs={"ws": newsroom.pk}), {"tz": "Asia/Calcutta"})
    assert tz.context["filter"].errors == {}
