"""Provides the operators' queue of access requests, each with a page to decide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import Http404
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts import whitelist_requests
from accounts.admin.base import ReadOnlyAdmin, WorkspaceSearch, actor_of
from accounts.models import WhitelistRequest
from config.core.errors import AppError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls.resolvers import URLPattern


@admin.register(WhitelistRequest)
class WhitelistRequestAdmin(ReadOnlyAdmin, WorkspaceSearch):
    """Lists the requests: pending ones first, oldest on top."""

    list_display = (
        "workspace",
        "status",
        "decision",
        "message",
        "asked_by",
        "created_at",
        "decided_by",
        "decided_at",
    )
    list_filter = ("status",)
    list_select_related = ("workspace",)
    search_fields = ("workspace__name", "asked_by")
    # "pending" sorts neither first nor last by name; an empty date of the decision does.
    ordering = (F("decided_at").desc(nulls_first=True), "created_at")
    actions = ("approve", "refuse")
    change_form_template = "admin/accounts/whitelistrequest/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        page = path(
            "<str:pk>/decide/",
            self.admin_site.admin_view(self.decide),
            name="accounts_whitelistrequest_decide",
        )
        return [page, *super().get_urls()]

    @admin.display(description=_("decision"))
    def decision(self, row: WhitelistRequest) -> str:
        if row.status != WhitelistRequest.Status.PENDING:
            return "-"
        address = reverse("admin:accounts_whitelistrequest_decide", args=[row.pk])
        return format_html('<a class="button" href="{}">{}</a>', address, _("Approve or refuse"))

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_whitelistrequest")

    def decide(self, request: HttpRequest, pk: str) -> HttpResponse:
        """Show or decide a request. Raises `PermissionDenied` if the user may not, `Http404` for an unknown id."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, pk)
        if row is None:
            raise Http404
        may_decide = self.has_decide_permission(request)
        if request.method == "POST":
            if not may_decide:
                raise PermissionDenied
            if self._decide_posted(request, row):
                return redirect(request.path)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Access request"),
            "subtitle": row.workspace.name,
            "opts": self.opts,
            "row": row,
            "is_pending": row.status == WhitelistRequest.Status.PENDING,
            "may_decide": may_decide,
            "most": whitelist_requests.MAX_REASON_CHARACTERS,
            "reason": request.POST.get("reason", ""),
        }
        return TemplateResponse(request, "admin/accounts/whitelistrequest/decide.html", context)

    def _decide_posted(self, request: HttpRequest, row: WhitelistRequest) -> bool:
        """Approve or refuse as the form says, or return `False` if that failed, to keep the typed reason."""
        name, actor = row.workspace.name, actor_of(request)
        try:
            if "approve" in request.POST:
                whitelist_requests.approve_request(row, actor)
                text = _("Access for %(workspace)s approved. Its owners get a mail.")
            else:
                whitelist_requests.refuse_request(row, request.POST.get("reason", ""), actor)
                text = _("Access for %(workspace)s refused. Its owners get your reason by mail.")
        except AppError as error:
            self.message_user(request, f"{name}: {error}", messages.ERROR)
            return False
        self.message_user(request, text % {"workspace": name}, messages.SUCCESS)
        return True

    @admin.action(description=_("Approve"), permissions=["decide"])
    def approve(self, request: HttpRequest, queryset: QuerySet[WhitelistRequest]) -> None:
        self._decide_each(request, queryset, whitelist_requests.approve_request)

    @admin.action(description=_("Refuse with a reason"), permissions=["decide"])
    def refuse(self, request: HttpRequest, queryset: QuerySet[WhitelistRequest]) -> TemplateResponse | None:
        if "reason" not in request.POST:
            context = {
                **self.admin_site.each_context(request),
                "title": _("Refuse with a reason"),
                "opts": self.opts,
                "chosen": queryset.select_related("workspace"),
                "most": whitelist_requests.MAX_REASON_CHARACTERS,
            }
            return TemplateResponse(request, "admin/accounts/whitelistrequest/refuse.html", context)
        reason = request.POST["reason"]
        self._decide_each(
            request, queryset, lambda row, actor: whitelist_requests.refuse_request(row, reason, actor)
        )
        return None

    def _decide_each(
        self,
        request: HttpRequest,
        queryset: QuerySet[WhitelistRequest],
        act: Callable[[WhitelistRequest, str], None],
    ) -> None:
        """Run `act(row, actor)` for each chosen request; report how many were decided, and every error."""
        decided = 0
        for row in queryset.select_related("workspace"):
            try:
                act(row, actor_of(request))
            except AppError as error:
                self.message_user(request, f"{row.workspace.name}: {error}", messages.ERROR)
            else:
                decided += 1
        if decided:
            text = ngettext("%d request was decided.", "%d requests were decided.", decided) % decided
            self.message_user(request, text, messages.SUCCESS)
