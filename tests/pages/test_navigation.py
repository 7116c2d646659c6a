"""The navigation: where each page stands, what each role is shown, and what waits."""

from __future__ import annotations

import pytest
from django.urls import reverse

from pipeline.models import GeneratedItem
from pipeline.pages import navigation
from tests.factories import UserFactory
from tests.pages.answers import at
from tests.pages.test_roles import workspace_pages
from tests.pipeline.steps import make_items

OF_NO_SECTION = {"everything", "making", "notices", "notices_test", "settings_page"}
"""The search, *Create* and what is in the account's menu."""


def test_each_page_stands_in_one_place():
    tabs = [tab for section in navigation.SECTIONS for tab in section.tabs] + list(navigation.SETTINGS)
    found = {
        name: [tab.page for tab in tabs if name.partition("_")[0] in tab.heads]
        for name, *_ in workspace_pages()
    }
    assert {name for name, places in found.items() if not places} == OF_NO_SECTION
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_a_role_is_shown_what_it_may_open(newsroom, alice, bob, vera, as_person):
    def shown(person):
        page = as_person(person).get(at(newsroom, "settings_page")).content.decode()
        return {
            name: at(newsroom, name) in page for name in ("making", "members", "defaults", "keys", "webhooks")
        }

    assert shown(alice) == dict.fromkeys(("making", "members", "defaults", "keys", "webhooks"), True)
    assert shown(bob) == {
        "making": True,
        "members": True,
        "defaults": True,
        "keys": False,
        "webhooks": False,
    }
    assert shown(vera) == {**shown(bob), "making": False, "defaults": False}


def test_the_inbox_says_how_many_wait(newsroom, owner):
    page = owner.get(at(newsroom, "home")).content.decode()
    assert page.count("data-to-review hidden>0<") == 3
    items = make_items(newsroom, title="The ferry")
    waiting = GeneratedItem.objects.of(newsroom).live().to_review().count()
    assert waiting == len(items) > 0
    page = owner.get(at(newsroom, "home")).content.decode()
    assert page.count(f"data-to-review>{waiting}<") == 3


def test_the_tabs_are_those_of_the_open_page(newsroom, owner):
    page = owner.get(at(newsroom, "queue_add")).content.decode()
    tabs = page.partition('<nav class="tabs" aria-label="Section">')[2].partition("</nav>")[0]
    assert f'<a href="{at(newsroom, "queues_page")}" aria-current="page">Posting times</a>' in tabs
    assert tabs.count("aria-current") == 1
    assert 'aria-label="Section"' not in owner.get(at(newsroom, "sources_page")).content.decode()


def test_the_short_address_of_the_settings_leads_to_their_list(newsroom, owner):
    assert owner.get("/settings", follow=True).resolver_match.view_name == "settings_page"


@pytest.mark.parametrize(
    "name", ["profile", "account_email", "account_set_password", "mfa_index", "usersessions_list"]
)
def test_a_person_s_own_pages_have_the_navigation_too(newsroom, owner, name):
    owner.get(at(newsroom, "calendar"))
    page = owner.get(reverse(name))
    assert page.status_code == 200
    text = page.content.decode()
    assert all(f'href="{at(newsroom, one)}"' in text for one in ("home", "calendar", "settings_page"))


def test_who_belongs_to_no_workspace_sees_their_pages_without_one(db, as_person):
    page = as_person(UserFactory(email="new@example.test")).get(reverse("profile"))
    assert (page.status_code, page.context["place"]) == (200, None)
