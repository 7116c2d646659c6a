"""Behind the link of an invitation: for who has an account, logged in or not, and for who has none."""

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

_KEPT: Final = "invitation"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """GET asks, POST answers: a mail program that fetches links in advance accepts nothing."""
    found = members.find_invitation(token)
    if found is None:
        return _over(request, token)
    user = request.user if request.user.is_authenticated else None
    if request.method == "POST":
        return _accept(request, found, user) if user else _sign_up(request, found, token)
    context = {
        "invitation": found,
        "role": roles.DESCRIPTIONS[Membership.Role(found.role)],
        "is_theirs": user is not None and members.may_accept(found, user),
        "has_account": members.has_account(found.email),
        "here": request.path,
    }
    return render(request, "pages/invitation/page.html", context)


def _over(request: HttpRequest, token: str) -> HttpResponse:
    """Who followed it once more, and is in, goes on to the workspace."""
    accepted = members.find_accepted_invitation(token)
    if accepted is not None and request.user.is_authenticated:
        own = workspaces.memberships_of(request.user)
        if any(row.workspace_id == accepted.workspace_id for row in own):
            return redirect("home", ws=accepted.workspace_id)
    return render(request, "pages/invitation/over.html", status=404)


def _accept(request: HttpRequest, found: Invitation, user: User) -> HttpResponse:
    with report_errors(request):
        membership = members.accept_invitation(found, user)
        request.session.pop(_KEPT, None)
        add_welcome_message(request, membership, found)
        return redirect("home", ws=membership.workspace_id)
    return redirect(request.path)


def _sign_up(request: HttpRequest, found: Invitation, token: str) -> HttpResponse:
    """A link that came by mail proves the address, so the sign-up needs no code; and it is open to who was invited."""
    if members.has_account(found.email):
        return HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': request.path})}")
    request.session[_KEPT] = token
    if mail_sending.is_delivered():
        # Elsewhere the inviter was shown the link, which proves nothing of the address.
        get_adapter(request).stash_verified_email(request, found.email)
    return redirect("account_signup")


def find_kept_invitation(request: HttpRequest) -> Invitation | None:
    """The invitation with which somebody came to sign up, if it still holds."""
    token = request.session.get(_KEPT)
    return members.find_invitation(token) if token else None


def join_after_sign_up(request: HttpRequest, user: User) -> Membership | None:
    """Who signed up by an invitation has said yes to it; None where they came without one."""
    found = find_kept_invitation(request)
    request.session.pop(_KEPT, None)
    if found is None:
        return None
    with report_errors(request):
        membership = members.accept_invitation(found, user)
        add_welcome_message(request, membership, found)
        return membership
    return None


def add_welcome_message(request: HttpRequest, membership: Membership, found: Invitation) -> None:
    """Leave a message for the next page: where they are now, and in which role."""
    role = roles.DESCRIPTIONS[Membership.Role(membership.role)][0]
    text = _("Welcome to %(workspace)s. Your role: %(role)s.")
    messages.success(request, text % {"workspace": found.workspace.name, "role": role})
