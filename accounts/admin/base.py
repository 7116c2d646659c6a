"""Provides parts of the operators' pages: the actor, read-only histories, and the search for a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin

from config.core.ids import decode

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


def actor_of(request: HttpRequest) -> str:
    return request.user.get_username()


def written_fields(form: ModelForm[Any]) -> list[str]:
    """Return the changed fields without many-to-many relations, which the form stores afterwards."""
    many_to_many = {field.name for field in form.instance._meta.many_to_many}
    return [name for name in form.changed_data if name not in many_to_many]


class ReadOnly:
    """Lets nobody add, change or delete rows, in an admin page or in an inline of one."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        del request, obj
        return False


class ReadOnlyAdmin(ReadOnly, ModelAdmin):
    """Shows a history, without look-ups by columns that it hides."""

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # A query such as `?secret__startswith=a` would reveal a hidden column letter by letter.
        if lookup.partition("__")[0] in (self.exclude or ()):
            return False
        return super().lookup_allowed(lookup, value, request)


class WorkspaceSearch(ModelAdmin):
    """Finds rows by the workspace's public id too, which is what people quote."""

    workspace_lookup: ClassVar[str] = "workspace_id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        workspace_id = decode("ws", search_term.strip())
        if workspace_id is not None:
            return queryset.filter(**{self.workspace_lookup: workspace_id}), False
        return super().get_search_results(request, queryset, search_term)
