"""A running service for the clients to meet, and a server of a later version that answers what they don't know."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from config.api_docs.views import build_openapi
from config.core.api.jsonio import dump
from tests.clients import toolbox
from tests.documents.text import EXAMPLES
from tests.faults.instance import Instance
from tests.sizes import IS_PROOF

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_httpserver import HTTPServer

_ANY = "01mtgcg400e008000000000001"
UNKNOWN_ID = "src_01mtgcg400e00800000000009z"
STORY = (
    "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before. "
    "The first boat of the day takes bicycles free of charge until the end of March."
)
MAKE_TOKENS = """
import json
from datetime import UTC, datetime
from accounts import workspaces
from accounts.access import tokens
from accounts.ledger import credits, reports

def token(name):
    workspace = workspaces.create(name)
    workspaces.whitelist(workspace, "tests")
    if name == "Poor":
        left = reports.usage(workspace, datetime.now(UTC)).available
        credits.adjust(workspace, -left, "for the test", "tests")
    return tokens.issue(workspace, name=name).secret

print(json.dumps({name: token(name) for name in NAMES}))
"""
MOST_CLIENTS = 8


@pytest.fixture(scope="session")
def tools() -> toolbox.Toolbox:
    try:
        return toolbox.install()
    except toolbox.Unusable as error:
        # CI and the proof must not pass without them.
        if IS_PROOF or os.environ.get("REQUIRE_SERVICES") == "1":
            raise
        pytest.skip(f"The code generators aren't there: {error}")


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the document, as everybody gets it."""
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(dump(build_openapi()))
    return path


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """On SQLite, whatever the suite runs on: a client meets the same API."""
    with Instance(tmp_path_factory.mktemp("service")) as instance:
        yield instance


@pytest.fixture(scope="session")
def secrets(service: Instance) -> dict[str, str]:
    """Tokens of a workspace for each client, because its round ends with no request left, and of one without credits."""
    names = ["Poor", *map(str, range(MOST_CLIENTS))]
    code = MAKE_TOKENS.replace("NAMES", repr(names))
    made: dict[str, str] = json.loads(
        service.manage("shell", "--no-imports", "-c", code).strip().splitlines()[-1]
    )
    return made


@pytest.fixture
def live(service: Instance, secrets: dict[str, str]) -> dict[str, str]:
    """The environment of a round against the service."""
    poor = secrets["Poor"]
    _, token = secrets.popitem()
    return {
        "KIND": "live",
        "URL": service.url,
        "TOKEN": token,
        "POOR": poor,
        "STORY": STORY,
        "UNKNOWN_ID": UNKNOWN_ID,
    }


def _later(name: str, **changes: Any) -> dict[str, Any]:
    """An example as a later version would answer it."""
    example: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_text())
    return {**example, **changes, "field_of_tomorrow": {"any": ["thing"]}}


@pytest.fixture
def later(httpserver: HTTPServer) -> dict[str, str]:
    """The environment of a round against a server that has grown: platforms, codes, fields, types of events."""
    outlet = _later("outlet", platform="hologram")
    event = {**_later("event-generated.ready"), "type": "item.praised", "data": {"praise": {"stars": 5}}}
    item = _later(
        "generated_item", engine_output="Hologram", held="moon_phase", content={"scenes": [{"depth": 3}]}
    )
    answers = {
        "/v1/outlets": {"data": [outlet], "has_more": False, "next_cursor": None},
        "/v1/events": {"data": [event], "has_more": False, "next_cursor": None},
        f"/v1/sources/src_{_ANY}": _later("source", type="telepathy", config={"wavelength": 7}),
        f"/v1/generated/gen_{_ANY}": item,
    }
    detail = [{"field": None, "code": "asleep", "message": "It sleeps.", "hint_of_tomorrow": "Wake it."}]
    httpserver.expect_request("/v1/workspace").respond_with_json(
        {"error": "code_of_tomorrow", "detail": detail}, status=403
    )
    for path, answer in answers.items():
        httpserver.expect_request(path).respond_with_json(answer)
    return {"KIND": "later", "URL": httpserver.url_for("").rstrip("/"), "STORY": STORY}
