"""The books of model calls in the admin: what is listed, filtered and added up."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import workspaces
from pipeline.models import Generation
from tests.operations.test_overview import call
from tests.pipeline.steps import push_raw

pytestmark = pytest.mark.django_db

LIST = "admin:pipeline_modelcall_changelist"


def test_totals_are_of_the_rows_that_match(browser, workspace):
    charlies = workspaces.create("Charlie's newsroom")
    call(workspace, 1_000_000, input_tokens=10, cache_read_tokens=4, output_tokens=3)
    call(workspace, 500_000, input_tokens=5, stage="brief", outcome="refused")
    call(charlies, 9_000_000, input_tokens=900)

    def totals(**given):
        found = browser.get(reverse(LIST), given).context["totals"]
        return tuple(found[name] for name in ("calls", "input", "cached", "output", "cost"))

    assert totals() == (3, 915, 4, 3, "$10.50")
    assert totals(workspace__id__exact=str(workspace.pk)) == (2, 15, 4, 3, "$1.50")
    assert totals(q=workspace.public_id) == (2, 15, 4, 3, "$1.50")
    assert totals(stage="brief") == (1, 5, 0, 0, "$0.50")
    assert totals(outcome="timed_out") == (0, 0, 0, 0, "$0.00")
    assert "$1.00" in browser.get(reverse(LIST), {"q": workspace.public_id}).content.decode()


def test_no_query_for_each_row(browser, workspace):
    push_raw(workspace)
    run = Generation.everywhere.filter(workspace=workspace).first()
    call(workspace, 1, generation=run)
    browser.get(reverse(LIST))

    def asked():
        with CaptureQueriesContext(connection) as queries:
            assert run.engine in browser.get(reverse(LIST)).content.decode()
        return len(queries)

    once = asked()
    for _ in range(4):
        call(workspace, 1, generation=run)
    assert asked() == once


def test_the_books_are_read_only(browser, workspace):
    row = call(workspace, 250)
    page = reverse("admin:pipeline_modelcall_change", args=[row.pk])
    assert browser.get(page).status_code == 200
    assert browser.post(page, {"cost_micro_usd": 0}).status_code == 403
    assert (
        browser.post(reverse("admin:pipeline_modelcall_delete", args=[row.pk]), {"post": "yes"}).status_code
        == 403
    )
    assert browser.get(reverse("admin:pipeline_modelcall_add")).status_code == 403
