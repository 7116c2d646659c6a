"""Serves the operators' pages across apps: one workspace, and all dead rows with a button to requeue them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods

from accounts import whitelist_requests, workspaces
from accounts.access import tokens
from config.admin_site import workspace_overview as overview
from config.admin_site.failures import read_period
from config.core.clock import utc_now
from config.core.errors import AppError
from config.core.ids import decode
from config.operations import failures
from config.operations import queue_stats as rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from django.http import HttpRequest, HttpResponse

    from accounts.models import User, Workspace
    from config.operations.failures import FailurePeriod

admin.site.site_header = gettext_lazy("Content pipeline · Operators")
admin.site.site_title = gettext_lazy("Content pipeline · Operators")
admin.site.index_title = gettext_lazy("Needs attention")

MAX_ROWS_SHOWN: Final = 50
LABELS: Final[Mapping[str, Any]] = {
    "sources": gettext_lazy("Failing sources"),
    "raw_items": gettext_lazy("Failed raw items"),
    "generated_items": gettext_lazy("Failed items"),
    "persona_drafts": gettext_lazy("Failed persona drafts"),
    "publications": gettext_lazy("Failed or unknown publications"),
    "deliveries": gettext_lazy("Failed deliveries"),
}


def unregister_log_in_models() -> None:
    """Remove allauth's admin pages, which show secrets and session keys, and change them without an audit entry.

    Call it once all apps have registered their pages, which they do after this module is imported.
    """
    for model in (Authenticator, EmailAddress, UserSession):
        # The URLs are imported again if the first import failed; a second error must not hide that failure.
        if admin.site.is_registered(model):
            admin.site.unregister(model)


@require_http_methods(["GET", "HEAD", "POST"])
def dead_rows(request: HttpRequest) -> HttpResponse:
    """Show the kinds of dead rows that the person may view, and requeue chosen rows; behind `admin_view`.

    Raises `Http404` for an unknown workspace in the query string.
    """
    if request.method == "POST":
        _requeue(request)
        return HttpResponseRedirect(request.get_full_path())
    workspace = overview.find_workspace(request.GET["workspace"]) if "workspace" in request.GET else None
    if workspace is None and "workspace" in request.GET:
        raise Http404
    period = read_period(request)[1]
    names = [name for name in rows.DEAD if _has_permission(request, "view", name)]
    context = {
        **admin.site.each_context(request),
        "title": _("Dead letters"),
        "workspace": workspace,
        "stretch": period,
        "sections": [_section(request, name, workspace, period) for name in names],
        "shown_most": MAX_ROWS_SHOWN,
    }
    return TemplateResponse(request, "admin/dead_rows.html", context)


def _has_permission(request: HttpRequest, verb: str, name: str) -> bool:
    options = rows.DEAD[name].model._meta
    return request.user.has_perm(f"{options.app_label}.{verb}_{options.model_name}")


def _section(
    request: HttpRequest, name: str, workspace: Workspace | None, period: FailurePeriod | None
) -> dict[str, Any]:
    """Return the context of one kind of dead rows: their count, and the newest `MAX_ROWS_SHOWN`."""
    dead = rows.DEAD[name]
    dead_rows_of_kind = dead.rows().filter(workspace=workspace) if workspace else dead.rows()
    if period is not None:
        dead_rows_of_kind = period.narrow(name, dead_rows_of_kind)
    newest = dead_rows_of_kind.select_related("workspace").order_by("-pk")[:MAX_ROWS_SHOWN]
    return {
        "name": name,
        "label": LABELS[name],
        "advice": dead.advice,
        "count": dead_rows_of_kind.count(),
        "may_requeue": _has_permission(request, "change", name),
        "rows": [
            {
                "id": failures.public_id(name, row),
                "row": row,
                "workspace": row.workspace,
                "status": row.status,
                "why": overview.why_of(name, row),
            }
            for row in newest
        ],
    }


def _requeue(request: HttpRequest) -> None:
    """Requeue the chosen rows if the person may change their kind, and report each refusal and the count."""
    name = request.POST.get("kind", "")
    if name not in rows.DEAD or not _has_permission(request, "change", name):
        messages.error(request, _("You don't have permission to requeue these."))
        return
    requeued = 0
    for public_id in request.POST.getlist("id")[:MAX_ROWS_SHOWN]:
        try:
            failures.requeue(name, public_id, actor=request.user.get_username())
        except AppError as error:
            messages.error(request, f"{public_id}: {error}")
        else:
            requeued += 1
    if requeued:
        messages.success(request, ngettext("%d row requeued.", "%d rows requeued.", requeued) % requeued)


# --- One workspace ---------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_overview(request: HttpRequest, public_id: str) -> HttpResponse:
    """Show a workspace, or run an action on it; behind `admin_view`, for people who may view workspaces."""
    if not request.user.has_perm("accounts.view_workspace"):
        raise PermissionDenied
    workspace = overview.find_workspace(public_id)
    if workspace is None:
        raise Http404
    if request.method == "POST":
        _run_action(request, workspace)
        return HttpResponseRedirect(request.path)
    read_overview = overview.WorkspaceOverview(workspace, utc_now())
    context = {
        **admin.site.each_context(request),
        "title": workspace.name,
        "subtitle": _("Overview"),
        "workspace": workspace,
        "told": read_overview,
        # Callables, so that a part that isn't shown runs no query.
        "dead": [
            (LABELS[name], read_overview.reader_of(name))
            for name in rows.DEAD
            if _has_permission(request, "view", name)
        ],
    }
    return TemplateResponse(request, "admin/accounts/workspace/overview.html", context)


def _run_action(request: HttpRequest, workspace: Workspace) -> None:
    permission, action = _ACTIONS.get(request.POST.get("act", ""), ("", None))
    if action is None or not request.user.has_perm(permission):
        messages.error(request, _("You don't have permission."))
        return
    messages.success(request, action(workspace, request))


def _user(request: HttpRequest) -> User:
    user: Any = request.user
    return user  # type: ignore[no-any-return]  # `admin_view` lets only users pass


def _revoke_token(workspace: Workspace, request: HttpRequest) -> str:
    token = overview.token_of(workspace, decode("tok", request.POST.get("token", "")))
    if token is None:
        raise Http404
    tokens.revoke(token, _user(request))
    return _("%s no longer works.") % token


def _revoke_all(workspace: Workspace, request: HttpRequest) -> str:
    revoked = tokens.revoke_all(workspace, _user(request))
    return ngettext("%d key was revoked.", "%d keys were revoked.", revoked) % revoked


def _action_with_messages(
    change: Callable[[Workspace, str], bool], done: Any
) -> Callable[[Workspace, HttpRequest], str]:
    """Return an action that makes the change and returns `done`, or a message that nothing changed."""

    def run(workspace: Workspace, request: HttpRequest) -> str:
        return str(done if change(workspace, request.user.get_username()) else _("No change."))

    return run


_ACTIONS: Final[Mapping[str, tuple[str, Callable[[Workspace, HttpRequest], str]]]] = {
    "revoke_token": ("accounts.change_apitoken", _revoke_token),
    "revoke_all": ("accounts.change_apitoken", _revoke_all),
    "whitelist": (
        "accounts.change_workspace",
        _action_with_messages(whitelist_requests.grant, gettext_lazy("Access approved.")),
    ),
    "delist": (
        "accounts.change_workspace",
        _action_with_messages(whitelist_requests.revoke, gettext_lazy("Access revoked.")),
    ),
    "lift_limits": (
        "accounts.change_workspace",
        _action_with_messages(workspaces.lift_limits, gettext_lazy("Limits lifted.")),
    ),
    "restore_limits": (
        "accounts.change_workspace",
        _action_with_messages(workspaces.restore_limits, gettext_lazy("Limits restored.")),
    ),
}
