"""Provides the operators' pages for workspaces, plans, keys, the ledger and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import model_keys, plans, whitelist_requests, workspaces
from accounts.access import tokens
from accounts.admin.base import ReadOnlyAdmin, WorkspaceSearch, actor_of, written_fields
from accounts.admin.forms import PlanForm, WorkspaceAdminForm, table_of_limits
from accounts.models import ApiToken, AuditEntry, LedgerEntry, Plan, Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


@admin.register(Workspace)
class WorkspaceAdmin(WorkspaceSearch):
    form = WorkspaceAdminForm
    workspace_lookup = "pk"
    list_display = ("name", "overview", "public_id", "plan", "is_in", "is_unlimited", "created_at")
    list_filter = ("plan", "is_unlimited", ("whitelisted_at", admin.EmptyFieldListFilter))
    list_select_related = ("plan",)
    search_fields = ("name",)
    search_help_text = _("Name or ws_… id")
    ordering = ("-created_at",)
    actions = ("whitelist", "delist", "lift_limits", "restore_limits", "revoke_tokens")
    readonly_fields = (
        "public_id",
        "what_holds",
        "key_in_use",
        "whitelisted_at",
        "delisted_at",
        "is_unlimited",
        "created_at",
        "deleted_at",
    )
    fieldsets = (
        (None, {"fields": ("name", "timezone", "plan", "requires_approval")}),
        (
            _("Overrides"),
            {
                "fields": (
                    "what_holds",
                    "credits_per_month",
                    "active_sources_most",
                    "poll_interval_minutes_least",
                ),
                "description": _("Leave empty for the plan's value. New credits apply to the current month."),
            },
        ),
        (
            _("Model"),
            {
                "fields": ("key_in_use", "new_model_key", "is_key_removed", "model_cap_usd"),
                "description": _("Without its own key, the operator's key is used."),
            },
        ),
        (
            _("State"),
            {
                "fields": (
                    "public_id",
                    "whitelisted_at",
                    "delisted_at",
                    "is_unlimited",
                    "created_at",
                    "deleted_at",
                ),
                "description": _("Use the list's actions to change access and limits."),
            },
        ),
    )

    @admin.display(description=_("id"))
    def public_id(self, workspace: Workspace) -> str:
        return workspace.public_id

    @admin.display(description=_("overview"))
    def overview(self, workspace: Workspace) -> str:
        page = reverse("workspace_overview", args=[workspace.public_id])
        return format_html('<a href="{}">{}</a>', page, _("Open"))

    @admin.display(description=_("limits"))
    def what_holds(self, workspace: Workspace) -> str:
        # A workspace that is being added has no plan yet.
        return table_of_limits(workspace) if workspace.plan_id else "-"

    @admin.display(description=_("key"))
    def key_in_use(self, workspace: Workspace) -> str:
        return workspace.model_key_label

    @admin.display(description=_("approved"), boolean=True, ordering="whitelisted_at")
    def is_in(self, workspace: Workspace) -> bool:
        return workspace.is_whitelisted

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Deleting a workspace must erase every app's part of it; the admin's delete would not.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: Workspace, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        form.take_over(obj)  # type: ignore[attr-defined]  # it is a WorkspaceAdminForm
        if change:
            workspaces.change(obj, form.columns(), actor_of(request))  # type: ignore[attr-defined]
        else:
            workspaces.establish(obj, actor=actor_of(request))
        if form.cleaned_data["new_model_key"]:
            model_keys.set_model_key(obj, form.cleaned_data["new_model_key"], actor_of(request))
        elif form.cleaned_data["is_key_removed"]:
            model_keys.remove_model_key(obj, actor_of(request))

    @admin.action(description=_("Approve access"), permissions=["change"])
    def whitelist(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._change_each(request, queryset, whitelist_requests.grant)

    @admin.action(description=_("Revoke access"), permissions=["change"])
    def delist(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._change_each(request, queryset, whitelist_requests.revoke)

    @admin.action(description=_("Lift rate limit and quota"), permissions=["change"])
    def lift_limits(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._change_each(request, queryset, workspaces.lift_limits)

    @admin.action(description=_("Restore rate limit and quota"), permissions=["change"])
    def restore_limits(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._change_each(request, queryset, workspaces.restore_limits)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apitoken")

    @admin.action(description=_("Revoke all API tokens"), permissions=["revoke"])
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        by: Any = request.user
        revoked = sum(tokens.revoke_all(workspace, by) for workspace in queryset)
        text = ngettext("%d key was revoked.", "%d keys were revoked.", revoked) % revoked
        self.message_user(request, text, messages.SUCCESS)

    def _change_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Workspace],
        act: Callable[[Workspace, str], bool],
    ) -> None:
        """Run `act(workspace, actor)` for each chosen workspace, and report how many it changed."""
        changed = sum(act(workspace, actor_of(request)) for workspace in queryset)
        text = ngettext("%d workspace was changed.", "%d workspaces were changed.", changed) % changed
        self.message_user(request, text, messages.SUCCESS)


@admin.register(Plan)
class PlanAdmin(ModelAdmin):
    form = PlanForm
    list_display = (
        "name",
        "credits_per_month",
        "active_sources_most",
        "poll_interval_minutes_least",
        "is_default",
    )
    search_fields = ("name",)
    ordering = ("name",)
    actions = ("make_default",)
    readonly_fields = ("is_default",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "name",
                    "credits_per_month",
                    "active_sources_most",
                    "poll_interval_minutes_least",
                    "is_default",
                ),
                "description": _("Credits change next month, limits at once. Overrides of a workspace stay."),
            },
        ),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Workspaces may still use the plan; one that isn't wanted any more is simply no longer chosen.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: Plan, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del change
        plans.save_plan(obj, written_fields(form), actor_of(request))

    @admin.action(description=_("Use for new workspaces"), permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        chosen = list(queryset[:2])
        if len(chosen) != 1:
            self.message_user(request, _("Choose one plan: new workspaces get one."), messages.ERROR)
            return
        plans.make_default(chosen[0], actor_of(request))
        self.message_user(request, _("New workspaces now get this plan."), messages.SUCCESS)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin, WorkspaceSearch):
    list_display = (
        "__str__",
        "name",
        "workspace",
        "is_test",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = ("is_test", ("revoked_at", admin.EmptyFieldListFilter))
    list_select_related = ("workspace",)
    search_fields = ("name", "last_four", "workspace__name")
    ordering = ("-created_at",)
    actions = ("revoke",)
    exclude = ("digest",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apitoken")

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        revoked = 0
        for token in queryset.filter(revoked_at=None).select_related("workspace"):
            tokens.revoke(token, request.user)  # type: ignore[arg-type]
            revoked += 1
        text = ngettext("%d key was revoked.", "%d keys were revoked.", revoked) % revoked
        self.message_user(request, text, messages.SUCCESS)


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin, WorkspaceSearch):
    list_display = (
        "created_at",
        "workspace",
        "kind",
        "amount",
        "reserved_change",
        "used_change",
        "subject",
        "reason",
    )
    list_filter = ("kind",)
    list_select_related = ("workspace",)
    search_fields = ("workspace__name", "reason")
    ordering = ("-id",)
    # Counting the whole ledger for "n of m" costs more than the page.
    show_full_result_count = False


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin, WorkspaceSearch):
    list_display = ("created_at", "action", "actor", "workspace", "subject", "request_id")
    list_filter = ("action",)
    list_select_related = ("workspace",)
    search_fields = ("workspace__name", "actor", "action", "subject", "request_id")
    ordering = ("-id",)
    # Counting the whole log for "n of m" costs more than the page.
    show_full_result_count = False
