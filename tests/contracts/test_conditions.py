"""If-Match and `revision`: no change, act or deletion ignores them."""

from __future__ import annotations

import pytest

from config.api_docs.document import resolve
from pipeline import publish
from pipeline.models import GeneratedItem, Publication, Source
from tests.contracts.conftest import refusal
from tests.contracts.routes import ROUTES, name_of
from tests.contracts.test_routes_tenancy import _objects, _snapshot

STALE = {"If-Match": '"v9999-1"'}
WITHOUT_VERSION = {"inbound-delivery-replay", "source-dry-run", "plan-undo"}
"""Acts on what has no version, or that change nothing."""
CHANGES = [
    route
    for route in ROUTES
    # A storyboard is of a film; `test_storyboards.py` has its conditions.
    if route.prefix and route.method != "GET" and route.name not in {*WITHOUT_VERSION, "generated-storyboard"}
]
BODIES = {"publication-settle": {"published": True}}
ACTS = ("approve", "reject", "restore", "retry", "regenerate", "publish")


def _send(api, route, key, **more):
    path = route.path.format(id=key)
    if route.method == "DELETE":
        return api.delete(path, **more)
    return api.call(route.method, path, BODIES.get(route.name, {}), **more)


def test_a_stale_version_changes_nothing(alice, no_rate):
    objects = _objects(alice)
    before = _snapshot(alice.api, objects)
    for route in CHANGES:
        answer = _send(alice.api, route, objects[route.prefix], headers=STALE)
        expected = (412, "version_conflict", [(None, "version_conflict")])
        assert refusal(answer) == expected, name_of(route)
        version = before[route.prefix]["version"]
        assert answer["ETag"] == f'"v{version}"', name_of(route)
        assert f"version {version} now" in answer.json()["detail"][0]["message"], name_of(route)
    assert _snapshot(alice.api, objects) == before


def test_every_change_says_that_it_takes_a_condition(alice):
    document = alice.api.read("/openapi.json")
    for route in CHANGES:
        operation = document["paths"][f"/v1{route.path}"][route.method.lower()]
        parameters = [resolve(document, one) for one in operation["parameters"]]
        headers = {one["name"] for one in parameters if one["in"] == "header"}
        assert "If-Match" in headers, name_of(route)
        assert "412" in operation["responses"], name_of(route)


@pytest.mark.parametrize("act", ACTS)
def test_an_act_on_another_revision_is_refused(alice, act):
    item = alice.ready()
    answer = alice.api.post(f"/generated/{item['id']}/{act}", {"revision": 2})
    assert refusal(answer) == (412, "version_conflict", [(None, "version_conflict")])
    assert "revision 1, version" in answer.json()["detail"][0]["message"]
    assert alice.api.read(f"/generated/{item['id']}")["version"] == item["version"]


@pytest.mark.parametrize("act", ["approve", "reject", "publish", "regenerate"])
def test_an_act_on_the_revision_and_version_that_were_read_is_done(alice, act):
    item = alice.ready()
    path = f"/generated/{item['id']}"
    answer = alice.api.post(
        f"{path}/{act}", {"revision": 1}, headers={"If-Match": alice.api.get(path)["ETag"]}
    )
    assert answer.status_code in {200, 202}, answer.content


def test_both_conditions_must_hold(alice):
    item = alice.ready()
    path = f"/generated/{item['id']}"
    stale = {"If-Match": alice.api.get(path)["ETag"]}
    # An outlet's choice is a new version of the same revision.
    assert alice.api.patch(path, {"outlets": [alice.simulated]}).status_code == 200
    assert alice.api.post(f"{path}/approve", {"revision": 1}, headers=stale).status_code == 412
    assert alice.api.post(f"{path}/approve", {"revision": 1}).status_code == 200


def test_a_repeated_request_is_replayed_whatever_its_condition_is_by_then(alice):
    item = alice.ready()
    path = f"/generated/{item['id']}"
    headers = {"If-Match": alice.api.get(path)["ETag"], "Idempotency-Key": "once"}
    first, second = (alice.api.post(f"{path}/approve", {}, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert second["Idempotency-Replayed"] == "true"
    assert alice.api.post(f"{path}/approve", {}, headers={"If-Match": headers["If-Match"]}).status_code == 412


def _overtaken(monkeypatch, module, name, model):
    """The row gets another version between our look and its lock."""
    act = getattr(module, name)

    def overtaken(row, *args, **kwargs):
        model.everywhere.filter(pk=row.pk).update(version=50)
        return act(row, *args, **kwargs)

    monkeypatch.setattr(module, name, overtaken)


@pytest.mark.parametrize(
    ("act", "name", "model", "path"),
    [
        ("approve", "decisions.approve", GeneratedItem, "/generated/{gen}/approve"),
        ("regenerate", "regenerate.regenerate", GeneratedItem, "/generated/{gen}/regenerate"),
        ("erase", "decisions.erase", GeneratedItem, "/generated/{gen}"),
        ("poll", "collect.poll_now", Source, "/sources/{src}/poll"),
        ("delete", "collect.delete", Source, "/sources/{src}"),
        ("retry", "retry", Publication, "/publications/{pub}/retry"),
        ("remove", "request_removal", Publication, "/publications/{pub}/remove"),
    ],
)
def test_a_change_between_our_look_and_the_lock_is_refused_too(alice, monkeypatch, act, name, model, path):
    from pipeline.ingest import collect
    from pipeline.review import decisions, regenerate

    objects = _objects(alice)
    path = path.format(**objects)
    prefix = {GeneratedItem: "gen", Source: "src", Publication: "pub"}[model]
    tag = f'"v{_snapshot(alice.api, objects)[prefix]["version"]}"'
    owner, _, name = name.rpartition(".")
    modules = {"decisions": decisions, "regenerate": regenerate, "collect": collect, "": publish}
    _overtaken(monkeypatch, modules[owner], name, model)
    method = "DELETE" if act in {"erase", "delete"} else "POST"
    answer = alice.api.call(method, path, headers={"If-Match": tag})
    assert refusal(answer) == (412, "version_conflict", [(None, "version_conflict")])
    assert answer["ETag"] == '"v50"'
    assert model.everywhere.filter(version=50).count() == 1
