"""Usage and content defaults in a browser."""

from __future__ import annotations

import pytest
from django.db import transaction

from accounts import model_keys
from accounts.ledger import credits
from pipeline.models import Generation, ModelCall, WorkspaceDefaults
from tests.browser.people import log_in, look_over
from tests.factories import PlanFactory
from tests.pages.answers import at

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-ant-api03-A1b2C3d4E5f6G7h8-wxyz"


@pytest.fixture
def newsroom_plan(db):
    return PlanFactory(credits_per_month=1000)


def use(workspace, engine, amount):
    run = Generation.everywhere.create(workspace=workspace, engine=engine)
    now = workspace.created_at
    with transaction.atomic():
        credits.reserve(workspace, {run.pk: amount}, now=now)
    credits.settle(workspace.pk, run.pk, used=amount, now=now)


def test_usage_from_empty_to_used_up(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom, "usage"))
    page.get_by_text("No items this month").wait_for()
    look_over(page, "usage-empty")
    use(newsroom, "short_post", 620)
    use(newsroom, "persona_tweet", 230)
    for _ in range(14):
        use(newsroom, "short_post", 1)
    model_keys.set_model_key(newsroom, KEY, "test")
    ModelCall.everywhere.create(
        workspace=newsroom,
        stage="draft",
        is_own_key=True,
        asked_model="m",
        prompt_version="1",
        mode="x",
        outcome="ok",
        cost_micro_usd=4_210_000,
    )
    page.goto(at(newsroom, "usage"))
    page.get_by_text("86 % used or reserved").wait_for()
    look_over(page, "usage-warned")
    page.get_by_role("link", name="Older").click()
    page.get_by_role("link", name="Newest").wait_for()
    page.get_by_role("link", name="Used", exact=True).click()
    page.locator("#ledger a[aria-current=page]", has_text="Used").wait_for()
    use(newsroom, "short_post", 136)
    page.goto(at(newsroom, "usage"))
    page.get_by_text("This month's credits are used up.").wait_for()
    look_over(page, "usage-used-up")


def test_content_defaults(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom, "defaults"))
    page.get_by_role("heading", name="Defaults").wait_for()
    look_over(page, "defaults")
    page.get_by_label("Persona Tweet").uncheck()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved. Applies to new content.").wait_for()
    row = WorkspaceDefaults.objects.of(newsroom).get()
    assert "Persona Tweet" not in row.engines
    assert "Short Post" in row.engines
