"""A person's first workspace: the browser's language and time zone are proposed."""

from __future__ import annotations

import pytest
from django.urls import reverse

from accounts import languages
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
