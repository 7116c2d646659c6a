"""What a key of each preset may do, route by route: written down here, and taken from nothing in the code."""

from __future__ import annotations

import pytest

from accounts.access import tokens
from tests.contracts.conftest import never_existed, problem
from tests.contracts.routes import DELIVERY
from tests.documents.tables import routes

# `former`: push-only as it was made before there was `raw:delete`, which it keeps.
MAY = """
GET    /v1/analytics                                  full  read-only  -          -
GET    /v1/engines                                    full  read-only  push-only  former
POST   /v1/estimate                                   full  read-only  push-only  former
GET    /v1/events                                     full  read-only  -          -
GET    /v1/generated                                  full  read-only  -          -
GET    /v1/generated/:id                              full  read-only  -          -
PATCH  /v1/generated/:id                              full  -          -          -
DELETE /v1/generated/:id                              full  -          -          -
POST   /v1/generated/:id/approve                      full  -          -          -
GET    /v1/generated/:id/explain                      full  read-only  -          -
POST   /v1/generated/:id/publish                      full  -          -          -
DELETE /v1/generated/:id/publish                      full  -          -          -
POST   /v1/generated/:id/regenerate                   full  -          -          -
POST   /v1/generated/:id/reject                       full  -          -          -
POST   /v1/generated/:id/restore                      full  -          -          -
POST   /v1/generated/:id/retry                        full  -          -          -
GET    /v1/generated/:id/storyboard                   full  read-only  -          -
PATCH  /v1/generated/:id/storyboard                   full  -          -          -
GET    /v1/hold                                       full  read-only  -          -
POST   /v1/hold                                       full  -          -          -
DELETE /v1/hold                                       full  -          -          -
GET    /v1/openapi.json                               full  read-only  push-only  former
GET    /v1/outlets                                    full  read-only  -          -
GET    /v1/outlets/:id                                full  read-only  -          -
GET    /v1/personas                                   full  read-only  -          -
POST   /v1/personas                                   full  -          -          -
GET    /v1/personas/:id                               full  read-only  -          -
PATCH  /v1/personas/:id                               full  -          -          -
DELETE /v1/personas/:id                               full  -          -          -
POST   /v1/plans                                      full  -          -          -
GET    /v1/plans/:id                                  full  read-only  -          -
POST   /v1/plans/:id/undo                             full  -          -          -
GET    /v1/publications                               full  read-only  -          -
GET    /v1/publications/:id                           full  read-only  -          -
GET    /v1/publications/:id/attempts                  full  read-only  -          -
POST   /v1/publications/:id/reconcile                 full  -          -          -
POST   /v1/publications/:id/remove                    full  -          -          -
POST   /v1/publications/:id/retry                     full  -          -          -
POST   /v1/publications/:id/settle                    full  -          -          -
GET    /v1/queues                                     full  read-only  -          -
GET    /v1/queues/:id                                 full  read-only  -          -
GET    /v1/raw                                        full  read-only  -          -
POST   /v1/raw                                        full  -          push-only  former
GET    /v1/raw/:id                                    full  read-only  -          -
DELETE /v1/raw/:id                                    full  -          -          former
POST   /v1/raw/:id/retry                              full  -          push-only  former
GET    /v1/recurrences                                full  read-only  -          -
POST   /v1/recurrences                                full  -          -          -
GET    /v1/recurrences/:id                            full  read-only  -          -
PATCH  /v1/recurrences/:id                            full  -          -          -
GET    /v1/series                                     full  read-only  -          -
POST   /v1/series                                     full  -          -          -
GET    /v1/series/:id                                 full  read-only  -          -
PATCH  /v1/series/:id                                 full  -          -          -
DELETE /v1/series/:id                                 full  -          -          -
POST   /v1/series/:id/make                            full  -          -          -
GET    /v1/source-types                               full  read-only  push-only  former
GET    /v1/sources                                    full  read-only  -          -
POST   /v1/sources                                    full  -          -          -
GET    /v1/sources/:id                                full  read-only  -          -
PATCH  /v1/sources/:id                                full  -          -          -
DELETE /v1/sources/:id                                full  -          -          -
GET    /v1/sources/:id/deliveries                     full  read-only  -          -
POST   /v1/sources/:id/deliveries/:delivery/replay    full  -          -          -
POST   /v1/sources/:id/dry-run                        full  read-only  -          -
GET    /v1/sources/:id/entries                        full  read-only  -          -
POST   /v1/sources/:id/poll                           full  -          -          -
POST   /v1/sources/:id/rotate-secret                  full  -          -          -
GET    /v1/sources/:id/slots                          full  read-only  -          -
POST   /v1/sources/preview                            full  -          -          -
GET    /v1/topics                                     full  read-only  -          -
POST   /v1/topics                                     full  -          -          -
GET    /v1/topics/:id                                 full  read-only  -          -
PATCH  /v1/topics/:id                                 full  -          -          -
DELETE /v1/topics/:id                                 full  -          -          -
POST   /v1/uploads                                    full  -          push-only  former
GET    /v1/usage                                      full  read-only  push-only  former
GET    /v1/usage/ledger                               full  read-only  -          -
GET    /v1/workspace                                  full  read-only  push-only  former
"""
PRESETS = ("full", "read-only", "push-only", "former")


def table():
    found = {}
    for line in MAY.strip().splitlines():
        method, path, *marks = line.split()
        assert (len(marks), set(marks) <= {*PRESETS, "-"}, (method, path) in found) == (4, True, False), line
        found[method, path] = set(marks) - {"-"}
    return found


@pytest.fixture
def clients(alice):
    alice.workspace.is_unlimited = True
    alice.workspace.save(update_fields=["is_unlimited"])
    made = {name: alice.client(scopes=tokens.PRESETS[name]) for name in ("full", "read-only", "push-only")}
    made["former"] = alice.client(scopes=[*tokens.PRESETS["push-only"], "raw:delete"])
    return made


def test_every_route_is_in_the_table():
    assert {(method, path) for method, path, _scope in routes()} == set(table())


def test_every_preset_is_in_the_table():
    assert set(tokens.PRESETS) == set(PRESETS) - {"former"}


def test_a_key_may_do_what_its_preset_says_and_nothing_else(clients):
    did = {}
    for method, path in table():
        address = path.removeprefix("/v1").replace(":id", never_existed("gen")).replace(":delivery", DELIVERY)
        answers = {name: client.call(method, address) for name, client in clients.items()}
        refused = {name for name, answer in answers.items() if answer.status_code == 403}
        assert all(answers[name].json()["error"] == "insufficient_scope" for name in refused), path
        did[method, path] = set(PRESETS) - refused
    assert did == table()


def test_a_push_only_key_erases_nothing(alice, clients):
    raw = alice.push()["id"]
    refused = clients["push-only"].call("DELETE", f"/raw/{raw}")
    message = "This needs the scope raw:delete, which the token lacks; use or make a token that has it."
    assert (refused.status_code, refused.json()) == (
        403,
        problem("insufficient_scope", (None, "insufficient_scope", message)),
    )
    assert alice.api.read(f"/raw/{raw}")["title"]
    assert clients["former"].call("DELETE", f"/raw/{raw}").status_code == 204
