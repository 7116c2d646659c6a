"""Registers the operators' pages of the pipeline's content, on which nothing can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin

from accounts.admin.base import ReadOnlyAdmin
from pipeline.models import (
    Attempt,
    BrandPick,
    Event,
    GeneratedItem,
    Generation,
    Outlet,
    Persona,
    PersonaDraft,
    Publication,
    RawItem,
    Source,
    Topic,
)

if TYPE_CHECKING:
    from django.http import HttpRequest

    TabularInline = admin.TabularInline[Any, Any]
else:
    TabularInline = admin.TabularInline


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "type", "status", "last_polled_at", "wake_at", "failures", "test")
    list_filter = ("type", "status", "test")
    search_fields = ("name", "workspace__name")
    list_select_related = ("workspace",)
    exclude = ("inbound_token",)


@admin.register(RawItem)
class RawItemAdmin(ReadOnlyAdmin):
    list_display = ("title", "workspace", "source", "status", "content_version", "created_at", "test")
    list_filter = ("status", "test")
    search_fields = ("title", "external_id", "workspace__name")
    list_select_related = ("workspace", "source")


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "workspace",
        "engine",
        "status",
        "stage",
        "attempts",
        "wake_at",
        "created_at",
        "test",
    )
    list_filter = ("status", "engine", "test")
    search_fields = ("workspace__name",)
    list_select_related = ("workspace",)


@admin.register(GeneratedItem)
class GeneratedItemAdmin(ReadOnlyAdmin):
    list_display = (
        "title",
        "workspace",
        "engine_output",
        "status",
        "held",
        "publish_at",
        "created_at",
        "test",
    )
    list_filter = ("status", "bucket", "test")
    search_fields = ("title", "workspace__name")
    list_select_related = ("workspace",)


class PublicationAttemptInline(TabularInline):
    model = Attempt
    extra = 0
    can_delete = False
    fields: ClassVar[Any] = (
        "number",
        "status",
        "revision",
        "error",
        "late_answer",
        "started_at",
        "finished_at",
    )
    readonly_fields: ClassVar[Any] = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False


@admin.register(Publication)
class PublicationAdmin(ReadOnlyAdmin):
    list_display = (
        "id",
        "workspace",
        "platform",
        "status",
        "due_at",
        "next_attempt_at",
        "attempt_count",
        "test",
    )
    list_filter = ("status", "platform", "test")
    search_fields = ("external_id", "workspace__name")
    list_select_related = ("workspace",)
    inlines = (PublicationAttemptInline,)


@admin.register(Outlet)
class OutletAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "platform", "status", "is_default")
    list_filter = ("platform", "status")
    search_fields = ("name", "workspace__name")
    list_select_related = ("workspace",)
    exclude = ("credentials", "secret")


@admin.register(Persona)
class PersonaAdmin(ReadOnlyAdmin):
    list_display = ("name", "workspace", "language", "version", "updated_at")
    search_fields = ("name", "workspace__name")
    list_select_related = ("workspace",)


@admin.register(PersonaDraft)
class PersonaDraftAdmin(ReadOnlyAdmin):
    list_display = ("workspace", "persona", "status", "url", "is_offline", "requested_by", "created_at")
    list_filter = ("status", "is_offline")
    search_fields = ("url", "workspace__name")
    list_select_related = ("workspace", "persona")


@admin.register(Topic)
class TopicAdmin(ReadOnlyAdmin):
    list_display = ("title", "workspace", "persona", "source", "weight", "is_active", "last_used_at", "test")
    list_filter = ("is_active", "test")
    search_fields = ("title", "workspace__name")
    list_select_related = ("workspace", "persona", "source")


@admin.register(BrandPick)
class BrandPickAdmin(ReadOnlyAdmin):
    list_display = ("title", "angle", "workspace", "decision", "used_on", "created_at")
    list_filter = ("decision",)
    search_fields = ("title", "workspace__name")
    list_select_related = ("workspace",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ("type", "workspace", "position", "created_at", "dispatched_at", "counted_at", "test")
    list_filter = ("type", "test")
    search_fields = ("workspace__name",)
    list_select_related = ("workspace",)
    exclude = ("body",)
