"""Every route × method: no token, another workspace's token and ids, live and test apart."""

from __future__ import annotations

import re

import pytest

from config.core import task_runner
from tests.contracts.conftest import NOT_FOUND, never_existed, normal, problem, refusal
from tests.contracts.routes import ROUTES, configured, name_of

UNAUTHENTICATED = problem(
    "unauthenticated", (None, "unauthenticated", "Send a valid token: Authorization: Bearer cpk_live_…")
)
ID = re.compile(r"\b[a-z]{2,3}_[0-7][0-9a-hjkmnp-tv-z]{25}\b")
OF_OBJECTS = [route for route in ROUTES if route.prefix]
# The document is the same for everybody, and quotes ids that nobody has.
LISTS = [route for route in ROUTES if route.method == "GET" and not route.prefix and route.name != "document"]
FORM = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nThe harbour bought cranes.\r\n--x--\r\n'
# Of the workspace itself, whichever token asks: personas, queues, and the outlet that reaches nobody.
SHARED = {"per", "out", "que"}


def _objects(newsroom, api=None):
    """One object of each kind; a failed item and a failed publication, so that every act has something to do."""
    api = api or newsroom.api
    item = newsroom.ready(api)
    published = newsroom.publish(newsroom.ready(api), newsroom.to_simulated("reject"), api=api)
    source = api.post("/sources", {"type": "rss", "config": {"url": "https://example.test/feed"}}).json()
    task_runner.work_all_due("webhooks.fan_out")
    return {
        "src": source["id"],
        "raw": item["raw_item"],
        "gen": item["id"],
        "pub": published["publications"][0]["id"],
        "out": newsroom.simulated,
        "per": newsroom.persona,
        "que": api.read("/queues")["data"][0]["id"],
        "top": api.post("/topics", {"title": "Rye"}).json()["id"],
        "pln": newsroom.planned(api)["id"],
        "ser": newsroom.series(api)["id"],
        "rec": newsroom.recurrence(api)["id"],
    }


def _snapshot(api, objects):
    paths = {
        "src": "sources",
        "raw": "raw",
        "gen": "generated",
        "pub": "publications",
        "out": "outlets",
        "per": "personas",
        "que": "queues",
        "top": "topics",
        "pln": "plans",
        "ser": "series",
        "rec": "recurrences",
    }
    return {prefix: api.read(f"/{paths[prefix]}/{key}") for prefix, key in objects.items()}


def test_every_route_is_in_the_table():
    assert {(route.name, route.method) for route in ROUTES} == configured()


def test_every_route_asks_for_a_token(stranger):
    for route in ROUTES:
        path = route.path.format(id=never_existed(route.prefix or "src"))
        answer = stranger.call(route.method, path)
        told = (answer.status_code, answer.json(), answer["WWW-Authenticate"])
        assert told == (401, UNAUTHENTICATED, "Bearer"), name_of(route)
        assert not [name for name in answer.headers if "ratelimit" in name.lower()], name_of(route)


@pytest.mark.usefixtures("no_rate")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_address_without_a_route_asks_for_a_token_too(api, stranger, method):
    for path in ("/nothing", "/", "", "/generated/x/y/z", "/raw/x%0Ay/z", "/sources//poll", "/Sources"):
        answer = stranger.call(method, path)
        assert (answer.status_code, answer.json()) == (401, UNAUTHENTICATED), path
        answer = api.call(method, path)
        assert (answer.status_code, answer.json()) == (404, NOT_FOUND), path


@pytest.mark.usefixtures("no_rate")
def test_another_workspaces_objects_are_as_if_they_never_were(alice, charlie):
    objects = _objects(alice)
    before = _snapshot(alice.api, objects)
    for route in OF_OBJECTS:
        theirs = charlie.api.call(route.method, route.path.format(id=objects[route.prefix]))
        nothing = charlie.api.call(route.method, route.path.format(id=never_existed(route.prefix)))
        assert (theirs.status_code, theirs.json()) == (404, NOT_FOUND), name_of(route)
        assert theirs.content == nothing.content, name_of(route)
        assert sorted(theirs.headers) == sorted(nothing.headers), name_of(route)
    assert _snapshot(alice.api, objects) == before


@pytest.mark.usefixtures("no_rate")
def test_live_and_test_objects_do_not_see_each_other(alice):
    tester = alice.client(is_test=True)
    live, made_by_test = _objects(alice), _objects(alice, tester)
    for api, objects, others in ((tester, made_by_test, live), (alice.api, live, made_by_test)):
        before = _snapshot(api, objects)
        for route in OF_OBJECTS:
            if route.prefix in SHARED:
                continue
            answer = api.call(route.method, route.path.format(id=others[route.prefix]))
            assert (answer.status_code, answer.json()) == (404, NOT_FOUND), name_of(route)
        assert _snapshot(api, objects) == before


@pytest.mark.usefixtures("no_rate")
def test_test_token_does_not_see_outlets_that_reach_somebody(alice):
    tester = alice.client(is_test=True)
    assert tester.get(f"/outlets/{alice.feed}").json() == NOT_FOUND
    assert alice.feed not in tester.get("/outlets").content.decode()


@pytest.mark.usefixtures("no_rate")
def test_lists_of_another_workspace_show_nothing_of_it(alice, charlie):
    _objects(alice)
    own = {found for one in LISTS for found in ID.findall(alice.api.get(one.path).content.decode())}
    assert len(own) > 12
    for route in LISTS:
        shown = set(ID.findall(charlie.api.get(route.path).content.decode()))
        assert shown & own == set(), name_of(route)


@pytest.mark.usefixtures("no_rate")
def test_lists_of_live_and_test_rows_are_apart(alice):
    tester = alice.client(is_test=True)
    live, made_by_test = _objects(alice), _objects(alice, tester)
    keys = {"sources": "src", "raw": "raw", "generated": "gen", "publications": "pub", "events": "gen"}
    for name, key in keys.items():
        of_live, of_test = (api.get(f"/{name}?limit=100").content.decode() for api in (alice.api, tester))
        assert (live[key] in of_live, live[key] in of_test) == (True, False), name
        assert (made_by_test[key] in of_live, made_by_test[key] in of_test) == (False, True), name


@pytest.mark.usefixtures("no_rate")
def test_filters_by_another_workspaces_ids_find_nothing(alice, charlie):
    objects = _objects(alice)
    objects["gen"] = alice.api.read("/publications")["data"][0]["generated_item"]
    objects["src"] = alice.push_source
    _objects(charlie)
    for path, name, prefix in (
        ("/raw", "source", "src"),
        ("/generated", "source", "src"),
        ("/generated", "raw_item", "raw"),
        ("/generated", "persona", "per"),
        ("/generated", "outlet", "out"),
        ("/publications", "generated_item", "gen"),
        ("/publications", "outlet", "out"),
        ("/analytics", "outlet", "out"),
    ):
        if path != "/analytics":
            assert alice.api.read(f"{path}?{name}={objects[prefix]}")["data"] != [], (path, name)
        answer = charlie.api.get(f"{path}?{name}={objects[prefix]}")
        nobody = charlie.api.get(f"{path}?{name}={never_existed(prefix)}")
        assert (answer.status_code, answer.json()["data"]) == (200, []), (path, name)
        assert nobody.json()["data"] == [], (path, name)


def test_filter_by_another_workspaces_group_finds_nothing(alice, charlie):
    group = alice.ready()["variant"]["group"]
    charlie.ready()
    assert charlie.api.read(f"/generated?variant_group={group}")["data"] == []


@pytest.mark.usefixtures("no_rate")
def test_bodies_that_refer_to_another_workspaces_rows_are_refused_like_unknown_ones(alice, charlie):
    theirs = {"src": alice.source()["id"], "per": alice.persona, "out": alice.feed}
    unknown = {prefix: never_existed(prefix) for prefix in theirs}
    item, source = charlie.ready(), charlie.source()

    def bodies(objects):
        override = {objects["out"]: {"title": "x"}}
        of_source = {"type": "webhook"}
        return [
            ("POST", "/raw", charlie.content(source=objects["src"]), "source"),
            ("POST", "/raw", charlie.content(persona=objects["per"]), "persona"),
            ("POST", "/estimate", {"source": objects["src"]}, "source"),
            ("POST", "/estimate", charlie.content(persona=objects["per"]), "persona"),
            ("POST", "/sources", {**of_source, "persona": objects["per"]}, "persona"),
            ("POST", "/sources", {**of_source, "outlets": [objects["out"]]}, "outlets[0]"),
            ("PATCH", f"/sources/{source['id']}", {"persona": objects["per"]}, "persona"),
            ("PATCH", f"/sources/{source['id']}", {"outlets": [objects["out"]]}, "outlets[0]"),
            ("PATCH", f"/generated/{item['id']}", {"outlets": [objects["out"]]}, "outlets[0]"),
            ("PATCH", f"/generated/{item['id']}", {"overrides": override}, None),
            ("POST", f"/generated/{item['id']}/publish", {"outlets": [objects["out"]]}, "outlets[0]"),
            ("POST", f"/generated/{item['id']}/publish", {"overrides": override}, None),
            (
                "POST",
                f"/generated/{item['id']}/publish",
                {"dry_run": True, "outlets": [objects["out"]]},
                "outlets[0]",
            ),
        ]

    for (method, path, body, field), (_, _, other, _) in zip(bodies(theirs), bodies(unknown), strict=True):
        refused, nothing = charlie.api.call(method, path, body), charlie.api.call(method, path, other)
        status, error, details = refusal(refused)
        assert (status, error, len(details)) == (400, "invalid_request", 1), path
        assert normal(refused.json()) == normal(nothing.json()), path
        assert field in (None, details[0][0]), path
    in_batch = charlie.api.post("/raw", {"items": [charlie.content(source=theirs["src"])]}).json()["data"][0]
    assert (in_batch["status"], in_batch["error"]) == (400, "invalid_request")
    assert charlie.api.read(f"/generated/{item['id']}") == item


@pytest.mark.usefixtures("no_rate")
def test_every_other_body_that_names_another_workspaces_rows_does_nothing(alice, charlie):
    """Series, topics, plans, recurrences, uploads and pictures' texts: as the test above, of what came later."""
    item = alice.ready()
    upload = alice.api.call("POST", "/uploads", data=FORM, kind="multipart/form-data; boundary=x").json()[
        "id"
    ]
    theirs = {
        "src": alice.source()["id"],
        "per": alice.persona,
        "out": alice.feed,
        "gen": item["id"],
        "upl": upload,
        "version": item["version"],
    }
    unknown = {prefix: never_existed(prefix) for prefix in theirs if prefix != "version"} | {"version": 1}
    own, series = charlie.ready(), charlie.series()
    topic = charlie.api.post("/topics", {"title": "Rye"}).json()
    before = [alice.api.read(f"/generated/{item['id']}"), charlie.api.read(f"/generated/{own['id']}")]
    slots = {"name": "Monthly", "slots": [{"weekday": 4, "time": "09:00"}]}
    at = charlie.api.read(f"/queues/{charlie.api.read('/queues')['data'][0]['id']}")["next_slots"][0]["at"]

    def bodies(objects):
        entry = {"generated_item": objects["gen"], "version": objects["version"], "at": at}
        return [
            ("POST", "/series", {**slots, "sources": [objects["src"]]}),
            ("POST", "/series", {**slots, "persona": objects["per"]}),
            ("POST", "/series", {**slots, "outlets": [objects["out"]]}),
            ("PATCH", f"/series/{series['id']}", {"sources": [objects["src"]]}),
            ("PATCH", f"/series/{series['id']}", {"persona": objects["per"]}),
            ("PATCH", f"/series/{series['id']}", {"outlets": [objects["out"]]}),
            ("POST", "/topics", {"title": "Flour", "persona": objects["per"]}),
            ("PATCH", f"/topics/{topic['id']}", {"persona": objects["per"]}),
            ("POST", "/recurrences", {"generated_item": objects["gen"], "every_days": 30}),
            ("POST", "/plans", {"outlets": [objects["out"]]}),
            ("POST", "/plans", {"entries": [{**entry, "outlet": charlie.feed}]}),
            (
                "POST",
                "/plans",
                {
                    "entries": [
                        {
                            **entry,
                            "generated_item": own["id"],
                            "version": own["version"],
                            "outlet": objects["out"],
                        }
                    ]
                },
            ),
            ("POST", "/raw", charlie.content(external_id="one", media=[{"upload": objects["upl"]}])),
            ("POST", "/estimate", charlie.content(external_id="one", media=[{"upload": objects["upl"]}])),
            (
                "PATCH",
                f"/generated/{own['id']}",
                {"assets": [{"id": objects["gen"].replace("gen_", "ast_"), "alt_text": "x"}]},
            ),
        ]

    for (method, path, body), (_, _, other) in zip(bodies(theirs), bodies(unknown), strict=True):
        refused, nothing = charlie.api.call(method, path, body), charlie.api.call(method, path, other)
        assert 400 <= refused.status_code < 500, (path, body, refused.content)
        assert (refused.status_code, normal(refused.json())) == (
            nothing.status_code,
            normal(nothing.json()),
        ), path
    assert [alice.api.read(f"/generated/{item['id']}"), charlie.api.read(f"/generated/{own['id']}")] == before
    assert charlie.api.read(f"/series/{series['id']}")["outlets"] == series["outlets"]


def test_tokens_of_a_scope_do_only_that(alice):
    """A token without any of the scopes that a route wants; with it the request gets past the scope."""
    from accounts.access.tokens import SCOPES

    alice.workspace.is_unlimited = True
    alice.workspace.save(update_fields=["is_unlimited"])
    clients = {scope: alice.client(scopes=(scope,)) for scope in SCOPES}
    lacking = {scope: alice.client(scopes=tuple(one for one in SCOPES if one != scope)) for scope in SCOPES}
    for route in ROUTES:
        path = route.path.format(id=never_existed(route.prefix or "src"))
        if route.scope is None:
            assert all(client.call(route.method, path).status_code != 403 for client in clients.values())
            continue
        refused = lacking[route.scope].call(route.method, path)
        message = (
            f"This needs the scope {route.scope}, which the token lacks; use or make a token that has it."
        )
        assert (refused.status_code, refused.json()) == (
            403,
            problem("insufficient_scope", (None, "insufficient_scope", message)),
        ), name_of(route)
        assert clients[route.scope].call(route.method, path).status_code != 403, name_of(route)
