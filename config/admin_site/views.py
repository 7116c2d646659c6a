"""The operator's pages across apps: one workspace, and the dead rows of all with the button that requeues them."""

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

SHOWN: Final = 50
LABELS: Final[Mapping[str, Any]] = {
    "sources": gettext_lazy("Failing sources"),
    "raw_items": gettext_lazy("Failed raw items"),
    "generated_items": gettext_lazy("Failed items"),
    "persona_drafts": gettext_lazy("Failed persona drafts"),
    "publications": gettext_lazy("Failed or unknown publications"),
    "deliveries": gettext_lazy("Failed deliveries"),
}


def withhold_log_ins() -> None:
    """Allauth's own pages would show second factors' secrets and sessions' keys, and change them unaudited.

    Called once all apps have registered theirs, which they do after this module.
    """
    for model in (Authenticator, EmailAddress, UserSession):
        # The addresses are imported again where a first time failed; that failure must not be hidden by a second.
        if admin.site.is_registered(model):
            admin.site.unregister(model)


@require_http_methods(["GET", "HEAD", "POST"])
def dead_rows(request: HttpRequest) -> HttpResponse:
    """Behind `admin_view`; a person sees the kinds that their permissions show, and requeues what they may change."""
    if request.method == "POST":
        _requeue(request)
        return HttpResponseRedirect(request.get_full_path())
    workspace = overview.find_workspace(request.GET["workspace"]) if "workspace" in request.GET else None
    if workspace is None and "workspace" in request.GET:
        raise Http404
    stretch = read_period(request)[1]
    names = [name for name in rows.DEAD if _may(request, "view", name)]
    context = {
        **admin.site.each_context(request),
        "title": _("Dead letters"),
        "workspace": workspace,
        "stretch": stretch,
        "sections": [_section(request, name, workspace, stretch) for name in names],
        "shown_most": SHOWN,
    }
    return TemplateResponse(request, "admin/dead_rows.html", context)


def _may(request: HttpRequest, verb: str, name: str) -> bool:
    options = rows.DEAD[name].model._meta
    return request.user.has_perm(f"{options.app_label}.{verb}_{options.model_name}")


def _section(
    request: HttpRequest, name: str, workspace: Workspace | None, stretch: FailurePeriod | None
) -> dict[str, Any]:
    dead = rows.DEAD[name]
    found = dead.rows().filter(workspace=workspace) if workspace else dead.rows()
    if stretch is not None:
        found = stretch.narrow(name, found)
    newest = found.select_related("workspace").order_by("-pk")[:SHOWN]
    return {
        "name": name,
        "label": LABELS[name],
        "advice": dead.advice,
        "count": found.count(),
        "may_requeue": _may(request, "change", name),
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
    name = request.POST.get("kind", "")
    if name not in rows.DEAD or not _may(request, "change", name):
        messages.error(request, _("You don't have permission to requeue these."))
        return
    done = 0
    for public_id in request.POST.getlist("id")[:SHOWN]:
        try:
            failures.requeue(name, public_id, actor=request.user.get_username())
        except AppError as error:
            messages.error(request, f"{public_id}: {error}")
        else:
            done += 1
    if done:
        messages.success(request, ngettext("%d row requeued.", "%d rows requeued.", done) % done)


# --- One workspace ---------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_overview(request: HttpRequest, public_id: str) -> HttpResponse:
    """Behind `admin_view`; each part is shown, and read, only where the person may see its rows."""
    if not request.user.has_perm("accounts.view_workspace"):
        raise PermissionDenied
    workspace = overview.find_workspace(public_id)
    if workspace is None:
        raise Http404
    if request.method == "POST":
        _act(request, workspace)
        return HttpResponseRedirect(request.path)
    told = overview.WorkspaceOverview(workspace, utc_now())
    context = {
        **admin.site.each_context(request),
        "title": workspace.name,
        "subtitle": _("Overview"),
        "workspace": workspace,
        "told": told,
        # Callables: a part that isn't shown asks nothing.
        "dead": [(LABELS[name], told.reader_of(name)) for name in rows.DEAD if _may(request, "view", name)],
    }
    return TemplateResponse(request, "admin/accounts/workspace/overview.html", context)


def _act(request: HttpRequest, workspace: Workspace) -> None:
    permission, act = _ACTS.get(request.POST.get("act", ""), ("", None))
    if act is None or not request.user.has_perm(permission):
        messages.error(request, _("You don't have permission."))
        return
    messages.success(request, act(workspace, request))


def _by(request: HttpRequest) -> User:
    by: Any = request.user
    return by  # type: ignore[no-any-return]  # `admin_view` lets only people of ours pass


def _revoke_token(workspace: Workspace, request: HttpRequest) -> str:
    token = overview.token_of(workspace, decode("tok", request.POST.get("token", "")))
    if token is None:
        raise Http404
    tokens.revoke(token, _by(request))
    return _("%s no longer works.") % token


def _revoke_all(workspace: Workspace, request: HttpRequest) -> str:
    revoked = tokens.revoke_all(workspace, _by(request))
    return ngettext("%d key was revoked.", "%d keys were revoked.", revoked) % revoked


def _set(act: Callable[[Workspace, str], bool], done: Any) -> Callable[[Workspace, HttpRequest], str]:
    def acted(workspace: Workspace, request: HttpRequest) -> str:
        return str(done if act(workspace, request.user.get_username()) else _("No change."))

    return acted


_ACTS: Final[Mapping[str, tuple[str, Callable[[Workspace, HttpRequest], str]]]] = {
    "revoke_token": ("accounts.change_apitoken", _revoke_token),
    "revoke_all": ("accounts.change_apitoken", _revoke_all),
    "whitelist": (
        "accounts.change_workspace",
        _set(whitelist_requests.grant, gettext_lazy("Access approved.")),
    ),
    "delist": (
        "accounts.change_workspace",
        _set(whitelist_requests.revoke, gettext_lazy("Access revoked.")),
    ),
    "lift_limits": (
        "accounts.change_workspace",
        _set(workspaces.lift_limits, gettext_lazy("Limits lifted.")),
    ),
    "restore_limits": (
        "accounts.change_workspace",
        _set(workspaces.restore_limits, gettext_lazy("Limits restored.")),
    ),
}
