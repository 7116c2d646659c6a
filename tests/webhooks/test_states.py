"""Every move of an endpoint and of a delivery, allowed or not."""

from __future__ import annotations

import itertools

import pytest

from config.core import states
from tests.webhooks.factories import make_delivery, make_endpoint
from webhooks.states import DELIVERY, ENDPOINT, OPEN_DELIVERIES, RECOVERY

ENDPOINT_MOVES = {
    ("active", "degraded"),
    ("active", "disabled"),
    ("degraded", "active"),
    ("degraded", "disabled"),
    ("disabled", "active"),
}
DELIVERY_MOVES = {
    ("pending", "delivered"),
    ("pending", "failed"),
    ("pending", "held"),
    ("held", "pending"),
    ("held", "failed"),
    ("failed", "pending"),
    ("delivered", "pending"),
}


def moves_of(table) -> set[tuple[str, str]]:
    return {(status, to) for status, targets in table.items() for to in targets}


def test_tables():
    assert moves_of(ENDPOINT) == ENDPOINT_MOVES
    assert moves_of(DELIVERY) == DELIVERY_MOVES
    assert moves_of(RECOVERY) == {("running", "done"), ("running", "stopped")}
    assert states.tables()["webhooks.Recovery"] == RECOVERY
    assert states.tables()["webhooks.Endpoint"] == ENDPOINT
    assert states.tables()["webhooks.Delivery"] == DELIVERY
    assert sorted(OPEN_DELIVERIES) == ["held", "pending"]


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "to"), list(itertools.permutations(DELIVERY, 2)))
def test_delivery_moves_as_the_table_says(status, to):
    delivery = make_delivery(make_endpoint(), status=status)
    if (status, to) in DELIVERY_MOVES:
        states.move(delivery, to)
        expected = to
    else:
        with pytest.raises(states.MoveRefused):
            states.move(delivery, to)
        expected = status
    delivery.refresh_from_db()
    assert delivery.status == expected


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "to"), list(itertools.permutations(ENDPOINT, 2)))
def test_endpoint_moves_as_the_table_says(status, to):
    endpoint = make_endpoint(status=status)
    if (status, to) in ENDPOINT_MOVES:
        states.move(endpoint, to)
        expected = to
    else:
        with pytest.raises(states.MoveRefused):
            states.move(endpoint, to)
        expected = status
    endpoint.refresh_from_db()
    assert endpoint.status == expected
