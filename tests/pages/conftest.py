"""People before the pages: Alice owns, Bob edits, Vera looks on, Charlie is of another workspace."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from tests import caches
from tests.pipeline.steps import make_items, make_stage
from tests.webhooks.factories import make_endpoint


@pytest.fixture(autouse=True)
def forgotten_guesses():
    caches.clear()


@pytest.fixture(autouse=True)
def with_quick_workspaces(quick_workspaces):
    """What a new workspace makes is looked at in tests/pipeline/workspace/test_provision.py."""


@pytest.fixture
def left_alone():
    """A browser in which this person was logged in, a moment after their session has ended."""

    def leave(user):
        client = Client()
        client.force_login(user)
        client.get("/account/profile")
        Session.objects.all().delete()
        return client

    return leave


@pytest.fixture
def as_person():
    """A browser in which this person has logged in; None for one in which nobody has."""

    def log_in(user):
        client = Client()
        if user is not None:
            client.force_login(user)
        return client

    return log_in


@pytest.fixture
def owner(as_person, alice, newsroom):
    """Alice's browser."""
    return as_person(alice)


@pytest.fixture
def editor(as_person, bob):
    """Bob's browser."""
    return as_person(bob)


@pytest.fixture
def item(newsroom, posts):
    return make_items(newsroom)[0]


@pytest.fixture
def stage(newsroom, posts):
    return make_stage(newsroom)


@pytest.fixture
def endpoint(newsroom):
    return make_endpoint(newsroom, url="https://crm.example.com/in", description="CRM")
