"""Provides the operators' pages of endpoints, deliveries and recoveries, read-only but for actions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from django.contrib import admin, messages
from django.utils.translation import gettext_lazy as _

from accounts.admin.base import ReadOnly
from config.core.errors import AppError
from config.core.ids import encode
from webhooks import endpoints
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, Recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest

    _EndpointAdmin = admin.ModelAdmin[Endpoint]
    _DeliveryAdmin = admin.ModelAdmin[Delivery]
    _RecoveryAdmin = admin.ModelAdmin[Recovery]
    _AttemptInline = admin.TabularInline[DeliveryAttempt, Delivery]
else:
    _EndpointAdmin = _DeliveryAdmin = _RecoveryAdmin = admin.ModelAdmin
    _AttemptInline = admin.TabularInline


EndpointOrDelivery = TypeVar("EndpointOrDelivery", Endpoint, Delivery)


class ReadOnlyWithActions(ReadOnly):
    """Lets nobody add, change or delete rows; actions call the same functions as the members' pages."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may run actions, which needs the permission to change endpoints."""
        return request.user.has_perm("webhooks.change_endpoint")


def _act_on_each(
    request: HttpRequest,
    rows: QuerySet[EndpointOrDelivery],
    act: Callable[[EndpointOrDelivery, str], object],
    label: str,
) -> None:
    """Run `act(row, actor)` for each row; show how many succeeded after the label, and every error."""
    actor = request.user.get_username()
    done = 0
    for row in rows:
        try:
            act(row, actor)
        except AppError as error:
            messages.error(request, f"{row.pk}: {error}")
        else:
            done += 1
    if done:
        messages.success(request, f"{label}: {done}")


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyWithActions, _EndpointAdmin):
    list_display = ("public_id", "workspace", "url", "status", "is_on", "test", "failures", "last_success_at")
    list_filter = ("status", "is_on", "test")
    list_select_related = ("workspace",)
    search_fields = ("url", "workspace__name")
    show_full_result_count = False
    # Nobody is shown a secret again, not even the operator.
    exclude = ("secret", "previous_secret")
    actions = ("switch_on", "switch_off", "send_test")

    @admin.display(description=_("id"))
    def public_id(self, endpoint: Endpoint) -> str:
        return encode("whe", endpoint.pk)

    @admin.action(description=_("Switch on and send held events"), permissions=["act"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        _act_on_each(
            request,
            queryset,
            lambda endpoint, actor: endpoints.switch_on(endpoint, actor=actor),
            "Switched on",
        )

    @admin.action(description=_("Switch off"), permissions=["act"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        _act_on_each(
            request,
            queryset,
            lambda endpoint, actor: endpoints.switch_off(endpoint, actor=actor),
            "Switched off",
        )

    @admin.action(description=_("Send test event"), permissions=["act"])
    def send_test(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> None:
        _act_on_each(
            request, queryset, lambda endpoint, actor: endpoints.send_test(endpoint, actor=actor), "Queued"
        )


class DeliveryAttemptInline(ReadOnly, _AttemptInline):
    model = DeliveryAttempt
    fields = ("number", "started_at", "duration_ms", "status_code", "error", "next_attempt_at")
    readonly_fields = fields
    extra = 0


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyWithActions, _DeliveryAdmin):
    list_display = (
        "public_id",
        "workspace",
        "endpoint_url",
        "event_type",
        "status",
        "attempt_count",
        "last_error",
    )
    list_filter = ("status",)
    list_select_related = ("workspace", "endpoint", "event")
    search_fields = ("workspace__name", "endpoint__url", "request_id")
    show_full_result_count = False
    inlines = (DeliveryAttemptInline,)
    actions = ("resend",)

    @admin.display(description=_("id"))
    def public_id(self, delivery: Delivery) -> str:
        return encode("dlv", delivery.pk)

    @admin.display(description=_("endpoint"))
    def endpoint_url(self, delivery: Delivery) -> str:
        return delivery.endpoint.url

    @admin.display(description=_("event"))
    def event_type(self, delivery: Delivery) -> str:
        return delivery.event.type

    @admin.action(description=_("Send again"), permissions=["act"])
    def resend(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        _act_on_each(
            request, queryset, lambda delivery, actor: endpoints.resend(delivery, actor=actor), "Queued"
        )


@admin.register(Recovery)
class RecoveryAdmin(ReadOnly, _RecoveryAdmin):
    list_display = (
        "id",
        "endpoint",
        "workspace",
        "status",
        "since",
        "is_everything",
        "sent",
        "total",
        "asked_by",
    )
    list_filter = ("status",)
    list_select_related = ("workspace", "endpoint")
    show_full_result_count = False
