"""The operator reads what was counted, and changes nothing of it."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from analytics.models import Measurement, Measuring, Outcome
from tests.analytics.factories import after, make_measurement, make_published


@pytest.mark.parametrize("model", [Outcome, Measuring, Measurement])
def test_numbers_are_listed_and_read_only(alice, client, model):
    make_measurement(make_published(alice), after(hours=1), views=1)
    client.force_login(
        get_user_model().objects.create_superuser(email="operator@example.org", password="x" * 12)
    )
    address = f"/admin/analytics/{model._meta.model_name}/"
    row = model.everywhere.get()
    assert client.get(address).status_code == 200
    assert client.get(address, {"q": "newsroom"}).status_code == 200
    assert client.get(f"{address}{row.pk}/change/").status_code == 200
    assert client.get(f"{address}add/").status_code == 403
    assert client.post(f"{address}{row.pk}/change/", {"test": "on"}).status_code == 403
    assert client.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert model.everywhere.get().pk == row.pk
