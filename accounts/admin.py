"""The operator's pages for people, plans, workspaces, keys, the ledger and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.db.models import F
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import audit, workspaces
from accounts import whitelist as whitelisting
from accounts.access import tokens
from accounts.models import (
    ApiToken,
    AuditEntry,
    LedgerEntry,
    Plan,
    User,
    WhitelistRequest,
    Workspace,
)
from accounts.workspace_form import PlanForm, WorkspaceForm, table_of_limits
from config.core.errors import AppError
from config.core.ids import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    ModelAdmin = admin.ModelAdmin[Any]
    CreationForm = AdminUserCreationForm[User]
    ChangeForm = UserChangeForm[User]
    UserAdminBase = StockUserAdmin[User]
else:
    ModelAdmin = admin.ModelAdmin
    CreationForm = AdminUserCreationForm
    ChangeForm = UserChangeForm
    UserAdminBase = StockUserAdmin


def _actor(request: HttpRequest) -> str:
    return request.user.get_username()


def _written(form: ModelForm[Any]) -> list[str]:
    """Changed columns; relations to many are stored by the form afterwards."""
    many = {field.name for field in form.instance._meta.many_to_many}
    return [name for name in form.changed_data if name not in many]


class ReadOnlyAdmin(ModelAdmin):
    """A history: nobody adds, changes or deletes an entry here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        del request
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        del request, obj
        return False

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        # An address such as `?secret__startswith=a` tells a column letter by letter that no page shows.
        if lookup.partition("__")[0] in (self.exclude or ()):
            return False
        return super().lookup_allowed(lookup, value, request)


class WorkspaceSearch(ModelAdmin):
    """Searches by the workspace's public id too, which is what people quote."""

    workspace_lookup: ClassVar[str] = "workspace_id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        workspace_id = decode("ws", search_term.strip())
        if workspace_id is not None:
            return queryset.filter(**{self.workspace_lookup: workspace_id}), False
        return super().get_search_results(request, queryset, search_term)


@admin.register(Workspace)
class WorkspaceAdmin(WorkspaceSearch):
    form = WorkspaceForm
    workspace_lookup = "pk"
    list_display = ("name", "overview", "public_id", "plan", "is_in", "is_unlimited", "created_at")
    list_filter = ("plan", "is_unlimited", ("whitelisted_at", admin.EmptyFieldListFilter))
    list_select_related = ("plan",)
    search_fields = ("name",)
    search_help_text = _("Name, or the id that starts with ws_")
    ordering = ("-created_at",)
    actions = ("whitelist", "delist", "lift_limits", "restore_limits", "revoke_tokens")
    readonly_fields = (
        "public_id",
        "what_holds",
        "key_in_use",
        "whitelisted_at",
        "is_unlimited",
        "created_at",
        "deleted_at",
    )
    fieldsets = (
        (None, {"fields": ("name", "timezone", "plan", "requires_approval")}),
        (
            _("Instead of the plan's numbers"),
            {
                "fields": (
                    "what_holds",
                    "credits_per_month",
                    "active_sources_most",
                    "poll_interval_minutes_least",
                ),
                "description": _("Empty: the plan holds. Other credits hold for the current month already."),
            },
        ),
        (
            _("Model"),
            {
                "fields": ("key_in_use", "new_model_key", "is_key_removed", "model_cap_usd"),
                "description": _(
                    "Without a key of its own the workspace's runs ask with the operator's, if there is one."
                ),
            },
        ),
        (
            _("State"),
            {
                "fields": ("public_id", "whitelisted_at", "is_unlimited", "created_at", "deleted_at"),
                "description": _("Whitelist, delist, lift and restore limits with the actions of the list."),
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

    @admin.display(description=_("what holds"))
    def what_holds(self, workspace: Workspace) -> str:
        # A workspace that is being added has no plan yet.
        return table_of_limits(workspace) if workspace.plan_id else "-"

    @admin.display(description=_("key"))
    def key_in_use(self, workspace: Workspace) -> str:
        return workspace.model_key_told

    @admin.display(description=_("whitelisted"), boolean=True, ordering="whitelisted_at")
    def is_in(self, workspace: Workspace) -> bool:
        return workspace.is_whitelisted

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Erasing a workspace takes every app's part with it; the list's delete would not.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: Workspace, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        form.take_over(obj)  # type: ignore[attr-defined]  # it is a WorkspaceForm
        if change:
            workspaces.change(obj, form.columns(), _actor(request))  # type: ignore[attr-defined]
        else:
            workspaces.establish(obj, actor=_actor(request))
        if form.cleaned_data["new_model_key"]:
            workspaces.set_model_key(obj, form.cleaned_data["new_model_key"], _actor(request))
        elif form.cleaned_data["is_key_removed"]:
            workspaces.remove_model_key(obj, _actor(request))

    @admin.action(description=_("Whitelist for the API"), permissions=["change"])
    def whitelist(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._each(request, queryset, workspaces.whitelist)

    @admin.action(description=_("Delist from the API"), permissions=["change"])
    def delist(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._each(request, queryset, workspaces.delist)

    @admin.action(description=_("Lift rate limit and quota"), permissions=["change"])
    def lift_limits(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._each(request, queryset, workspaces.lift_limits)

    @admin.action(description=_("Restore rate limit and quota"), permissions=["change"])
    def restore_limits(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        self._each(request, queryset, workspaces.restore_limits)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_apitoken")

    @admin.action(description=_("Revoke all API tokens"), permissions=["revoke"])
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[Workspace]) -> None:
        by: Any = request.user
        revoked = sum(tokens.revoke_all(workspace, by) for workspace in queryset)
        text = ngettext("%d key was revoked.", "%d keys were revoked.", revoked) % revoked
        self.message_user(request, text, messages.SUCCESS)

    def _each(
        self,
        request: HttpRequest,
        queryset: QuerySet[Workspace],
        act: Callable[[Workspace, str], bool],
    ) -> None:
        changed = sum(act(workspace, _actor(request)) for workspace in queryset)
        text = ngettext("%d workspace was changed.", "%d workspaces were changed.", changed) % changed
        self.message_user(request, text, messages.SUCCESS)


@admin.register(WhitelistRequest)
class WhitelistRequestAdmin(ReadOnlyAdmin, WorkspaceSearch):
    """The queue: what waits comes first, the oldest on top."""

    list_display = ("workspace", "status", "message", "asked_by", "created_at", "decided_by", "decided_at")
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("workspace__name", "asked_by")
    # "pending" is neither first nor last by name; what has no decision is.
    ordering = (F("decided_at").desc(nulls_first=True), "created_at")
    actions = ("approve", "refuse")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_whitelistrequest")

    @admin.action(description=_("Approve"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[WhitelistRequest]) -> None:
        self._decide(request, queryset, whitelisting.approve)

    @admin.action(description=_("Refuse with a reason"), permissions=["decide"])
    def refuse(self, request: HttpRequest, queryset: QuerySet[WhitelistRequest]) -> TemplateResponse | None:
        if "reason" not in request.POST:
            context = {
                **self.admin_site.each_context(request),
                "title": _("Refuse with a reason"),
                "opts": self.opts,
                "chosen": queryset.select_related("workspace"),
                "most": whitelisting.REASON_CHARACTERS,
            }
            return TemplateResponse(request, "admin/accounts/whitelistrequest/refuse.html", context)
        reason = request.POST["reason"]
        self._decide(request, queryset, lambda one, actor: whitelisting.refuse(one, reason, actor))
        return None

    def _decide(
        self,
        request: HttpRequest,
        queryset: QuerySet[WhitelistRequest],
        act: Callable[[WhitelistRequest, str], None],
    ) -> None:
        decided = 0
        for one in queryset.select_related("workspace"):
            try:
                act(one, _actor(request))
            except AppError as error:
                self.message_user(request, f"{one.workspace.name}: {error}", messages.ERROR)
            else:
                decided += 1
        if decided:
            text = ngettext("%d request was decided.", "%d requests were decided.", decided) % decided
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
                "description": _(
                    "Other credits hold with the next month, other limits at once; a workspace whose page names "
                    "numbers of its own keeps those. New workspaces get the plan that the list's action chose."
                ),
            },
        ),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A plan may be somebody's; one that is not wanted any more is simply not chosen.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: Plan, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del change
        workspaces.keep_plan(obj, _written(form), _actor(request))

    @admin.action(description=_("Give to new workspaces"), permissions=["change"])
    def make_default(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        chosen = list(queryset[:2])
        if len(chosen) != 1:
            self.message_user(request, _("Choose one plan: new workspaces get one."), messages.ERROR)
            return
        workspaces.make_default(chosen[0], _actor(request))
        self.message_user(request, _("New workspaces get this plan now."), messages.SUCCESS)


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
    # See the ledger's.
    show_full_result_count = False


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(StockGroupAdmin):
    """What a group may is given by who may everything: others could give it to a group of their own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser) and super().has_delete_permission(request, obj)


RIGHTS: Final = ("is_staff", "is_superuser", "groups", "user_permissions")


class EmailCreationForm(CreationForm):
    class Meta:
        model = User
        fields = ("email", "name")


class EmailChangeForm(ChangeForm):
    class Meta:
        model = User
        fields = "__all__"


@admin.register(User)
class UserAdmin(UserAdminBase):
    form = EmailChangeForm
    add_form = EmailCreationForm
    list_display = ("email", "name", "is_active", "is_staff", "is_superuser", "last_login")
    list_filter = ("is_active", "is_staff", "is_superuser")
    search_fields = ("email", "name")
    ordering = ("email",)
    readonly_fields = ("last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("email", "name", "password")}),
        (
            _("Permissions"),
            {"fields": ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")},
        ),
        (_("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (
            None,
            {
                "classes": ("wide",),
                "fields": ("email", "name", "usable_password", "password1", "password2"),
            },
        ),
    )

    actions = ("vouch_for", "remove_second_factor")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Who may change people could otherwise log in as an operator, or be made one by themselves.
        is_theirs = obj is None or request.user.is_superuser or not (obj.is_staff or obj.is_superuser)
        return is_theirs and super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, *RIGHTS)

    @admin.action(description=_("Take the address as proven"), permissions=["change"])
    def vouch_for(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        chosen = [user for user in queryset if self.has_change_permission(request, user)]
        for user in chosen:
            workspaces.vouch_for(user, _actor(request))
        said = ngettext("%d address is taken as proven.", "%d addresses are taken as proven.", len(chosen))
        self.message_user(request, said % len(chosen), messages.SUCCESS)

    @admin.action(description=_("Remove the second factor"), permissions=["change"])
    def remove_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        chosen = [user for user in queryset if self.has_change_permission(request, user)]
        removed = sum(workspaces.remove_second_factor(user, _actor(request)) for user in chosen)
        said = ngettext("%d second factor removed.", "%d second factors removed.", removed)
        self.message_user(request, said % removed, messages.SUCCESS if removed else messages.WARNING)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The audit log names people by their address; one who has left is made inactive.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del change
        workspaces.keep_user(obj, _written(form), _actor(request))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        # The stock page for passwords stores them by itself, so only its log line tells us.
        match = request.resolver_match
        if match is not None and match.url_name == "auth_user_password_change":
            audit.note("user.password_changed", actor=_actor(request), subject=obj.email)
        return super().log_change(request, obj, message)
