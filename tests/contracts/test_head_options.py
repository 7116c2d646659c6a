"""HEAD answers as GET without the body; methods that an address doesn't take are 405 with Allow."""

from __future__ import annotations

from itertools import product

import pytest

from tests.contracts.conftest import problem
from tests.contracts.routes import ROUTES, name_of
from tests.contracts.test_series import GIVEN as SERIES

NOT_ALLOWED = problem(
    "method_not_allowed",
    (None, "method_not_allowed", "This address does not take this method; see the Allow header."),
)
VARYING = {"X-Request-Id", "RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}


def _ids(alice):
    item = alice.published()
    return {
        "src": alice.push_source,
        "raw": item["raw_item"],
        "gen": item["id"],
        "pub": item["publications"][0]["id"],
        "out": alice.feed,
        "per": alice.persona,
        "que": alice.api.read("/queues")["data"][0]["id"],
        "top": alice.api.post("/topics", {"title": "Rye"}).json()["id"],
        "pln": alice.planned()["id"],
        "ser": alice.api.post("/series", SERIES).json()["id"],
        "rec": alice.recurrence()["id"],
    }


@pytest.mark.usefixtures("no_rate")
def test_head_is_get_without_its_body(alice):
    keys = _ids(alice)
    for route in ROUTES:
        if route.method != "GET":
            continue
        path = route.path.format(id=keys.get(route.prefix))
        get, head = alice.api.get(path), alice.api.call("HEAD", path)
        # The item is no film: test_storyboards.py reads one.
        status = 404 if route.name == "generated-storyboard" else 200
        assert (get.status_code, head.status_code, head.content) == (status, status, b""), name_of(route)
        if route.name == "analytics":
            continue
        expected = {name: value for name, value in get.headers.items() if name not in VARYING}
        assert {name: value for name, value in head.headers.items() if name not in VARYING} == expected, (
            name_of(route)
        )


@pytest.mark.usefixtures("no_rate")
def test_methods_that_are_not_taken(alice):
    keys = _ids(alice)
    methods = ("GET", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "BREW")
    for path, method in product(sorted({route.path for route in ROUTES}), methods):
        taken = {route.method for route in ROUTES if route.path == path}
        if method in taken:
            continue
        if "GET" in taken:
            taken.add("HEAD")
        prefix = next(route.prefix for route in ROUTES if route.path == path)
        answer = alice.api.call(method, path.format(id=keys.get(prefix)))
        assert (answer.status_code, answer.json()) == (405, NOT_ALLOWED), (method, path)
        assert set(answer["Allow"].split(", ")) == taken, (method, path)
        assert answer["X-RateLimit-Limit"], (method, path)
