"""The floor answers what the project answers: a field that one of them lacks would stop the benchmark, hours later."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO

import pytest
from django.conf import settings
from django.db import connection

from accounts import workspaces
from accounts.models import Workspace
from benchmarks.floor import SqliteFloor
from benchmarks.floors.views import PAGE_SIZE
from pipeline.models import Asset
from tests.contracts.conftest import Api
from tests.factories import GeneratedItemFactory, OutletFactory, PublicationFactory, TokenFactory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

# The floor opens a connection of its own.
pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def token():
    workspace = workspaces.create("Alice's newsroom")
    Workspace.everywhere.filter(pk=workspace.pk).update(whitelisted_at=NOON)
    made = TokenFactory(workspace=workspace)
    # The floor asks for a whole page at once.
    *_, item = GeneratedItemFactory.create_batch(
        PAGE_SIZE, workspace=workspace, title="Tram approved", body="Soon."
    )
    PublicationFactory(outlet=OutletFactory(workspace=workspace), item=item)
    Asset.everywhere.create(
        workspace=workspace, item=item, name="a.png", path="a.png", role="picture", kind="image",
        mime_type="image/png", bytes=4, sha256="0" * 64,
    )  # fmt: skip
    return made


@pytest.fixture
def ask_floor(token):
    floor = SqliteFloor(
        connection.settings_dict["NAME"],
        pragmas="PRAGMA synchronous=NORMAL;",
        public_url=settings.PUBLIC_URL,
        key=settings.SECRET_KEY,
    )

    def ask(method, body=b""):
        environ = {
            "HTTP_AUTHORIZATION": f"Bearer {token.secret}",
            "REQUEST_METHOD": method,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        return json.loads(b"".join(floor(environ, lambda *_: None)))

    yield ask
    floor.connection().close()


def test_the_list_is_the_projects(token, ask_floor):
    ours, floors = Api(token.secret).read("/generated")["data"], ask_floor("GET")["data"]

    advice = "Add the field to benchmarks/floors/views.py, and its column to ListedItem in sql.py"
    assert set(floors[0]) == set(ours[0]), advice
    for part in ("publications", "assets"):
        assert [set(one) for one in floors[0][part]] == [set(one) for one in ours[0][part]], advice
        assert len(ours[0][part]) == 1
    assert floors == ours


def test_the_answer_to_a_push_has_the_projects_fields(token, ask_floor):
    pushed = {
        "external_id": "1",
        "url": "https://news.example/1",
        "title": "Tram approved",
        "body": "Soon. " * 40,
    }
    ours = Api(token.secret).post("/raw", pushed).json()
    floors = ask_floor("POST", json.dumps(pushed | {"external_id": "2"}).encode())

    assert set(floors) == set(ours), "Add the field to `_push` of benchmarks/floors/views.py"
