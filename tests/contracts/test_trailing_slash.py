"""The form with a trailing slash answers the same; a POST's body is never dropped by a redirect."""

from __future__ import annotations

from tests.contracts.conftest import never_existed, normal
from tests.contracts.routes import ROUTES, name_of
from tests.contracts.test_series import GIVEN as SERIES

BODIES = {
    "topics": {"title": "Rye"},
    "sources": {"type": "webhook", "name": "Bridge"},
    "estimate": {"title": "A title of several words"},
}


def test_both_forms_answer_the_same(alice, charlie, each_case):
    del charlie
    make = {
        "src": lambda: alice.source(type="rss", config={"url": "https://example.test/feed"})["id"],
        "raw": lambda: alice.push()["id"],
        "gen": lambda: alice.ready()["id"],
        "pub": lambda: alice.publication("reject")["id"],
        "out": lambda: alice.simulated,
        "per": lambda: alice.persona,
        "que": lambda: alice.api.read("/queues")["data"][0]["id"],
        "top": lambda: alice.api.post("/topics", {"title": "Rye"}).json()["id"],
        "pln": lambda: alice.planned()["id"],
        "ser": lambda: alice.api.post("/series", SERIES).json()["id"],
        "rec": lambda: alice.recurrence()["id"],
        None: lambda: "",
    }

    def check(route):
        plain, slashed = (route.path.format(id=make[route.prefix]()) for _ in range(2))
        if route.method == "GET":
            slashed = plain
        given = BODIES.get(route.name, {})
        bodies = [alice.content(), alice.content()] if route.name == "raw" else [given] * 2
        first, second = (
            alice.api.call(route.method, path, *([body] if route.method in {"POST", "PATCH"} else []))
            for path, body in zip((plain, f"{slashed}/"), bodies, strict=True)
        )
        assert first.status_code == second.status_code
        assert first.status_code < 500
        assert first.status_code not in {301, 302, 307, 308}
        if not first.content:
            assert second.content == b""
            return
        if route.method == "GET" and route.path != "/usage/ledger":
            assert first.json() == {
                **second.json(),
                **{name: first.json()[name] for name in ("fresh_at",) if name in first.json()},
            }
        assert set(normal(first.json())) == set(normal(second.json()))
        assert sorted(first.headers) == sorted(second.headers)

    each_case([(name_of(route), route) for route in ROUTES], check)


def test_body_of_a_slashed_push_arrives(alice):
    content = alice.content()
    answer = alice.api.post("/raw/", content)
    assert (answer.status_code, answer.json()["title"]) == (202, content["title"])


def test_next_page_of_a_slashed_list(alice):
    for _ in range(2):
        alice.push()
    page = alice.api.read("/raw/?limit=1")
    # A cursor serves both forms.
    assert len(alice.api.read(f"/raw?limit=1&cursor={page['next_cursor']}")["data"]) == 1


def test_never_existing_object_with_a_slash(api):
    path = f"/raw/{never_existed('raw')}"
    assert api.get(path).content == api.get(f"{path}/").content
