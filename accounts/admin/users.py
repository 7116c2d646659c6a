"""Provides the operators' pages for users and their permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as StockGroupAdmin
from django.contrib.auth.admin import UserAdmin as StockUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import audit, users
from accounts.admin.base import actor_of, written_fields
from accounts.models import User

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest

    CreationForm = AdminUserCreationForm[User]
    ChangeForm = UserChangeForm[User]
    UserAdminBase = StockUserAdmin[User]
else:
    CreationForm = AdminUserCreationForm
    ChangeForm = UserChangeForm
    UserAdminBase = StockUserAdmin


admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(StockGroupAdmin):
    """Lets only superusers edit groups: others could give permissions to a group of their own."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser) and super().has_delete_permission(request, obj)


RIGHTS: Final = ("is_staff", "is_superuser", "groups", "user_permissions")
"""The fields that only superusers may change."""


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
        # Otherwise staff who may change users could log in as an operator, or make themselves one.
        is_permitted = obj is None or request.user.is_superuser or not (obj.is_staff or obj.is_superuser)
        return is_permitted and super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if request.user.is_superuser else (*fields, *RIGHTS)

    @admin.action(description=_("Confirm address"), permissions=["change"])
    def vouch_for(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        """Confirm the addresses of the chosen users, as far as the operator may change them."""
        users_to_confirm = [user for user in queryset if self.has_change_permission(request, user)]
        for user in users_to_confirm:
            users.confirm_address(user, actor_of(request))
        text = ngettext("%d address confirmed.", "%d addresses confirmed.", len(users_to_confirm))
        self.message_user(request, text % len(users_to_confirm), messages.SUCCESS)

    @admin.action(description=_("Remove two-factor authentication"), permissions=["change"])
    def remove_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        permitted_users = [user for user in queryset if self.has_change_permission(request, user)]
        removed = sum(users.remove_second_factor(user, actor_of(request)) for user in permitted_users)
        text = ngettext(
            "Two-factor authentication removed for %d user.",
            "Two-factor authentication removed for %d users.",
            removed,
        )
        self.message_user(request, text % removed, messages.SUCCESS if removed else messages.WARNING)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # The audit log names users by their address; somebody who has left is made inactive instead.
        del request, obj
        return False

    def save_model(self, request: HttpRequest, obj: User, form: ModelForm[Any], change: bool) -> None:  # noqa: FBT001  Django's signature
        del change
        users.save_user(obj, written_fields(form), actor_of(request))

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        # Django's password page stores the password itself, so its log line is our only notice of the change.
        match = request.resolver_match
        if match is not None and match.url_name == "auth_user_password_change":
            audit.note("user.password_changed", actor=actor_of(request), subject=obj.email)
        return super().log_change(request, obj, message)
