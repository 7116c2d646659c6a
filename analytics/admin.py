"""Provides the operators' read-only pages of outcomes and measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin

from accounts.admin.base import ReadOnly
from analytics.models import Measurement, Measuring, Outcome

if TYPE_CHECKING:
    from django.db.models import Model

    Admin = admin.ModelAdmin[Model]
else:
    Admin = admin.ModelAdmin


class FactAdmin(ReadOnly, Admin):
    """Lets nobody add, change or delete rows, because they are facts."""

    # Counting every row of a long table takes longer than showing one page of it.
    show_full_result_count = False
    list_per_page = 50


@admin.register(Outcome)
class OutcomeAdmin(FactAdmin):
    list_display = ("publication_id", "workspace", "outlet_id", "is_published", "at", "test")
    list_select_related = ("workspace",)
    list_filter = ("is_published", "test", "content_type")
    search_fields = ("workspace__name", "publication_id")
    ordering = ("-id",)


@admin.register(Measuring)
class MeasuringAdmin(FactAdmin):
    list_display = (
        "publication_id",
        "workspace",
        "status",
        "measured",
        "wake_at",
        "attempts",
        "last_error",
    )
    list_select_related = ("workspace",)
    list_filter = ("status", "test")
    search_fields = ("workspace__name", "publication__id")
    ordering = ("-id",)


@admin.register(Measurement)
class MeasurementAdmin(FactAdmin):
    list_display = (
        "publication_id",
        "number",
        "workspace",
        "at",
        "impressions",
        "views",
        "availability",
    )
    list_select_related = ("workspace",)
    list_filter = ("test", "content_type")
    search_fields = ("workspace__name", "publication__id")
    ordering = ("-id",)
