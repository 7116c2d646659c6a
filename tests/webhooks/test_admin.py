"""The operator's view: nothing can be changed but by the acts, and no secret is shown."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from accounts.models import AuditEntry
from tests.webhooks.factories import make_delivery, make_endpoint
from webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db


def log_in(**flags) -> Client:
    user = get_user_model().objects.create(email=f"op{len(flags)}@example.com", is_staff=True, **flags)
    if not flags.get("is_superuser"):
        # Sees both lists, as a person in support does, and may change nothing.
        wanted = ["view_endpoint", "view_delivery"]
        user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    client = Client()
    client.force_login(user)
    return client


def act(client: Client, kind: str, name: str, row) -> list[str]:
    answer = client.post(
        f"/admin/webhooks/{kind}/", {"action": name, "_selected_action": [str(row.pk)]}, follow=True
    )
    assert answer.status_code == 200
    return [str(message) for message in answer.context["messages"]]


def test_endpoint_is_shown_without_its_secrets():
    client = log_in(is_superuser=True)
    endpoint = make_endpoint(url="https://example.com/hook", previous_secret="whsec_b2xk")
    shown = client.get(f"/admin/webhooks/endpoint/{endpoint.pk}/change/")
    assert (shown.status_code, b"https://example.com/hook" in shown.content) == (200, True)
    assert b"whsec_" not in shown.content
    assert endpoint.secret.encode() not in shown.content
    listed = client.get("/admin/webhooks/endpoint/")
    assert (listed.status_code, b"whe_" in listed.content, b"whsec_" in listed.content) == (200, True, False)


@pytest.mark.parametrize("kind", ["endpoint", "delivery"])
def test_nothing_is_added_changed_or_deleted(kind):
    client = log_in(is_superuser=True)
    endpoint = make_endpoint()
    row = endpoint if kind == "endpoint" else make_delivery(endpoint)
    statuses = [
        client.post(f"/admin/webhooks/{kind}/add/", {}).status_code,
        client.post(f"/admin/webhooks/{kind}/{row.pk}/change/", {"status": "failed"}).status_code,
        client.post(f"/admin/webhooks/{kind}/{row.pk}/delete/", {"post": "yes"}).status_code,
    ]
    assert statuses == [403, 403, 403]
    assert type(row).everywhere.get(pk=row.pk).status == row.status


def test_acts_go_through_the_functions_and_are_audited():
    client = log_in(is_superuser=True)
    endpoint = make_endpoint()
    delivery = make_delivery(endpoint, status="failed", wake_at=None)
    assert act(client, "delivery", "resend", delivery) == ["Queued: 1"]
    assert Delivery.everywhere.get().status == "pending"
    assert act(client, "endpoint", "switch_off", endpoint) == ["Switched off: 1"]
    assert Endpoint.everywhere.get().is_on is False
    refused = act(client, "endpoint", "send_test", endpoint)
    assert refused == [f"{endpoint.pk}: Switch the endpoint on first."]
    assert act(client, "endpoint", "switch_on", endpoint) == ["Switched on: 1"]
    assert Endpoint.everywhere.get().is_on is True
    assert act(client, "endpoint", "send_test", endpoint) == ["Queued: 1"]
    noted = AuditEntry.everywhere.order_by("created_at").values_list("action", "actor")
    assert list(noted) == [
        (action, "op1@example.com")
        for action in ("delivery.resent", "endpoint.switched_off", "endpoint.switched_on", "endpoint.tested")
    ]


def test_who_may_only_see_may_not_act():
    client = log_in()
    endpoint = make_endpoint()
    answer = client.get("/admin/webhooks/endpoint/")
    assert (answer.status_code, b"switch_off" in answer.content) == (200, False)
    act(client, "endpoint", "switch_off", endpoint)
    assert Endpoint.everywhere.get().is_on is True


def test_delivery_shows_its_attempts():
    client = log_in(is_superuser=True)
    delivery = make_delivery(make_endpoint(url="https://example.com/hook"))
    shown = client.get(f"/admin/webhooks/delivery/{delivery.pk}/change/")
    assert shown.status_code == 200
    listed = client.get("/admin/webhooks/delivery/")
    assert (listed.status_code, b"https://example.com/hook" in listed.content) == (200, True)
