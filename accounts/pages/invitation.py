"""Serves the page of an invitation's link, for visitors with and without an account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allauth.account.adapter import get_adapter
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts import mail_sending, members, workspaces
from accounts.access import roles
from accounts.models import Membership
from accounts.pages.act_messages import report_errors

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.models import Invitation, User

_SESSION_KEY: Final = "invitation"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show the invitation (GET, which mail programs prefetch), or accept it or lead to the sign-up (POST)."""
    pending_invitation = members.find_invitation(token)
    if pending_invitation is None:
        return _render_expired(request, token)
    user = request.user if request.user.is_authenticated else None
    if request.method == "POST":
        if user is None:
            return _sign_up(request, pending_invitation, token)
        return _accept(request, pending_invitation, user)
    context = {
        "invitation": pending_invitation,
        "role": roles.DESCRIPTIONS[Membership.Role(pending_invitation.role)],
        "is_theirs": user is not None and members.may_accept(pending_invitation, user),
        "has_account": members.has_account(pending_invitation.email),
        "here": request.path,
    }
    return render(request, "pages/invitation/page.html", context)


def _render_expired(request: HttpRequest, token: str) -> HttpResponse:
    """Render that the link no longer works, or redirect a member who accepted it to the workspace."""
    accepted = members.find_accepted_invitation(token)
    if accepted is not None and request.user.is_authenticated:
        memberships = workspaces.memberships_of(request.user)
        if any(row.workspace_id == accepted.workspace_id for row in memberships):
            return redirect("home", ws=accepted.workspace_id)
    return render(request, "pages/invitation/over.html", status=404)


def _accept(request: HttpRequest, invitation: Invitation, user: User) -> HttpResponse:
    """Accept the invitation and redirect to its workspace, or back to the page with the error."""
    with report_errors(request):
        membership = members.accept_invitation(invitation, user)
        request.session.pop(_SESSION_KEY, None)
        add_welcome_message(request, membership, invitation)
        return redirect("home", ws=membership.workspace_id)
    return redirect(request.path)


def _sign_up(request: HttpRequest, invitation: Invitation, token: str) -> HttpResponse:
    """Send the visitor to the sign-up, or to the log-in if the address has an account.

    A link that came by mail proves the address, so that the sign-up needs no code. An invited visitor may sign
    up even if sign-ups are closed.
    """
    if members.has_account(invitation.email):
        return HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': request.path})}")
    request.session[_SESSION_KEY] = token
    if mail_sending.is_delivered():
        # Otherwise the inviter was shown the link, which proves nothing about the address.
        get_adapter(request).stash_verified_email(request, invitation.email)
    return redirect("account_signup")


def find_kept_invitation(request: HttpRequest) -> Invitation | None:
    """Return the invitation with which the visitor came to sign up, if it still works."""
    token = request.session.get(_SESSION_KEY)
    return members.find_invitation(token) if token else None


def join_after_sign_up(request: HttpRequest, user: User) -> Membership | None:
    """Accept the invitation with which the user signed up; return the membership.

    Returns `None` if there was no valid invitation, or it couldn't be accepted, which a message says.
    """
    invitation = find_kept_invitation(request)
    request.session.pop(_SESSION_KEY, None)
    if invitation is None:
        return None
    with report_errors(request):
        membership = members.accept_invitation(invitation, user)
        add_welcome_message(request, membership, invitation)
        return membership
    return None


def add_welcome_message(request: HttpRequest, membership: Membership, invitation: Invitation) -> None:
    """Leave a message for the next page that names the workspace and the user's role."""
    role = roles.DESCRIPTIONS[Membership.Role(membership.role)][0]
    text = _("Welcome to %(workspace)s. Your role: %(role)s.")
    messages.success(request, text % {"workspace": invitation.workspace.name, "role": role})
