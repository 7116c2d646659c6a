"""How many statements a request costs; transaction control and the limiter are apart."""

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import workspaces
from accounts.access import tokens
from pipeline.models import Asset, Outlet, WorkspaceDefaults
from tests.factories import GeneratedItemFactory, PublicationFactory

pytestmark = pytest.mark.django_db

LIST_MOST = 4
PUSH_MOST = 12
APART = re.compile(
    r"(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b|.*\brate_bucket\b", re.DOTALL | re.IGNORECASE
)


@pytest.fixture
def workspace(settings):
    settings.REDIS_URL = ""
    workspace = workspaces.create("Alice's newsroom", actor="test")
    workspaces.whitelist(workspace, "test")
    return workspace


@pytest.fixture
def api(workspace):
    return Client(headers={"Authorization": f"Bearer {tokens.issue(workspace, name='Integration').secret}"})


def statements_of(call, *, status):
    """What the third call sends: the first notes the token's use, which happens once a minute."""
    assert [call(0).status_code, call(1).status_code] == [status, status]
    with CaptureQueriesContext(connection) as captured:
        assert call(2).status_code == status
    return [query["sql"] for query in captured if not APART.match(query["sql"])]


def make_items(workspace, count):
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    outlet = Outlet.everywhere.get(workspace=workspace, platform="feed")
    for number in range(count):
        item = GeneratedItemFactory(
            workspace=workspace,
            source=defaults.push_source,
            status="published",
            revision=1,
            title=f"Number {number}",
        )
        PublicationFactory(item=item, outlet=outlet, status="published")
        Asset.everywhere.create(
            workspace=workspace,
            item=item,
            role="slide",
            kind="image",
            name="quote.png",
            path=f"{number}.png",
            mime_type="image/png",
            bytes=1,
            sha256="0" * 64,
        )


@pytest.mark.parametrize("count", [1, 3, 30])
def test_list_of_generated_items_takes_four_statements_however_many_there_are(api, workspace, count):
    make_items(workspace, count)
    sent = statements_of(lambda _: api.get("/v1/generated"), status=200)
    assert [re.search(r'FROM "(\w+)"', sql)[1] for sql in sent] == [
        "api_token",
        "generated_item",
        "publication",
        "asset",
    ]
    assert len(sent) <= LIST_MOST


def test_one_item_takes_four_statements_too(api, workspace):
    make_items(workspace, 1)
    (item,) = api.get("/v1/generated").json()["data"]
    sent = statements_of(lambda _: api.get(f"/v1/generated/{item['id']}"), status=200)
    assert [re.search(r'FROM "(\w+)"', sql)[1] for sql in sent] == [
        "api_token",
        "generated_item",
        "publication",
        "asset",
    ]


def test_filters_and_further_pages_take_no_more(api, workspace):
    make_items(workspace, 3)
    cursor = api.get("/v1/generated?status=published&limit=1").json()["next_cursor"]
    address = f"/v1/generated?status=published&limit=1&cursor={cursor}"
    assert len(statements_of(lambda _: api.get(address), status=200)) == LIST_MOST


def test_push_takes_twelve_statements(api):
    def push(number):
        body = {
            "external_id": f"story-{number}",
            "title": "Ferries",
            "body": f"Ferry {number} runs at ten. " * 9,
        }
        return api.post("/v1/raw", body, content_type="application/json")

    sent = statements_of(push, status=202)
    assert [re.search(r'(?:FROM|INTO|UPDATE) "?(\w+)', sql)[1] for sql in sent] == [
        "api_token",
        "workspace_defaults",
        # By whose rules is it written?
        "persona",
        # Is it near to anything of the last 90 days?
        "raw_print",
        "raw_item",
        "raw_print",
        "raw_body",
        "generation",
        "generated_item",
        "event",
        "credit_balance",
        "ledger_entry",
    ]
    assert len(sent) <= PUSH_MOST
