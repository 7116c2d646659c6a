"""Serves the pages of a workspace's members: list, invite, change role, remove, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import limits, mail_sending, members
from accounts.access import roles
from accounts.models import Invitation, Membership
from accounts.pages import kept_forms, shown_once
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


def role_choices() -> list[tuple[str, str]]:
    """Return the form choices of roles, each labelled with its name and description in HTML."""
    return [
        (role.value, format_html("<span><strong>{}</strong><br>{}</span>", *roles.DESCRIPTIONS[role]))
        for role in Membership.Role
    ]


class RoleForm(forms.Form):
    role = forms.ChoiceField(
        label=gettext_lazy("Role"), choices=role_choices, widget=forms.RadioSelect, initial="editor"
    )


class InviteForm(RoleForm):
    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        help_text=gettext_lazy("The invitation works only for this address."),
        widget=forms.EmailInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    field_order = ("email", "role")


class ConfirmForm(forms.Form):
    """Confirms a destructive action; a POST without the hidden field is invalid."""

    sure = forms.BooleanField(widget=forms.HiddenInput, initial=True)


@workspace_page("look", methods=("GET",))
def member_list(request: HttpRequest, place: Place) -> HttpResponse:
    context = {
        "people": members.list_members(place.workspace),
        "is_last_owner": members.is_last_owner(place.workspace, place.user.pk),
        "invitations": list(members.pending_invitations(place.workspace)),
        "roles": {role.value: label for role, (label, _allows) in roles.DESCRIPTIONS.items()},
        "days": limits.INVITATION_KEPT.days,
        "new_link": _pop_new_link(request, place),
    }
    return render(request, "pages/members/list.html", context)


@workspace_page("manage")
def invite(request: HttpRequest, place: Place) -> HttpResponse:
    form = kept_forms.form_for(request, InviteForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("members"))
        email = form.cleaned_data["email"]
        with report_errors(request, form):
            invitation = members.invite(place.workspace, email, form.cleaned_data["role"], by=place.user)
            _report_sent(request, place, invitation, _("Invitation sent to %(email)s."))
            return redirect(place.url_of("members"))
    return render(request, "pages/members/invite.html", {"form": form})


@workspace_page("manage", methods=("POST",))
def resend_invitation(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    pending_invitation = _invitation(place, invitation)
    with report_errors(request):
        members.resend_invitation(pending_invitation, by=place.user)
        _report_sent(
            request, place, pending_invitation, _("New link sent to %(email)s. The old one no longer works.")
        )
    return redirect(place.url_of("members"))


def _report_sent(request: HttpRequest, place: Place, invitation: Invitation, text: str) -> None:
    """Report that the mail was sent; if mails reach nobody, keep the link for the list to show once."""
    if mail_sending.is_delivered():
        messages.success(request, text % {"email": invitation.email})
    else:
        shown_once.keep_secret(request, _link_key(place), f"{invitation.email} {invitation.link}")


def _pop_new_link(request: HttpRequest, place: Place) -> dict[str, str] | None:
    """Return the address that was just invited and its link, and forget them.

    Returns `None` if there is none, it was shown before, or the member may not manage members.
    """
    stored = shown_once.take_secret(request, _link_key(place)) if place.may_manage else None
    if stored is None:
        return None
    email, _space, address = stored.rpartition(" ")
    return {"email": email, "address": address}


def _link_key(place: Place) -> str:
    return f"invitation {place.workspace.public_id}"


@workspace_page("manage", methods=("POST",))
def withdraw_invitation(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    pending_invitation = _invitation(place, invitation)
    if members.withdraw_invitation(pending_invitation, actor=place.user.email):
        text = _("Invitation of %(email)s withdrawn.") % {"email": pending_invitation.email}
        offer_undo(request, text, place.url_of("member_reinstate", invitation=pending_invitation.pk))
    return redirect(place.url_of("members"))


@workspace_page("manage", methods=("POST",))
def restore_invitation(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    withdrawn_invitation = _invitation(place, invitation)
    if members.reinstate_invitation(withdrawn_invitation, actor=place.user.email):
        messages.success(request, _("Invitation restored.") % {"email": withdrawn_invitation.email})
    return redirect(place.url_of("members"))


@workspace_page("manage")
def change_role(request: HttpRequest, place: Place, user: UUID) -> HttpResponse:
    """Show and change a member's role."""
    membership = _membership(place, user)
    form = kept_forms.form_for(request, RoleForm, initial={"role": membership.role})
    if request.method == "POST" and form.is_valid():
        new_role = form.cleaned_data["role"]
        with report_errors(request, form):
            members.change_role(place.workspace, user, new_role, actor=place.user.email)
            text = _("%(person)s is now %(role)s.")
            label = roles.DESCRIPTIONS[Membership.Role(new_role)][0]
            messages.success(request, text % {"person": membership.user.email, "role": label})
            return redirect(place.url_of("members"))
    return render(request, "pages/members/role.html", {"form": form, "member": membership})


@workspace_page("manage")
def remove(request: HttpRequest, place: Place, user: UUID) -> HttpResponse:
    """Remove a member after a confirmation, with an undo."""
    membership = _membership(place, user)
    form = ConfirmForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            removed = members.remove_member(place.workspace, user, actor=place.user.email)
            if removed is not None:
                text = _("%(person)s was removed.") % {"person": membership.user.email}
                offer_undo(request, text, place.url_of("member_restore"), {"removed": removed})
            return redirect(place.url_of("members"))
    return render(request, "pages/members/remove.html", {"form": form, "member": membership})


@workspace_page("manage", methods=("POST",))
def restore_member(request: HttpRequest, place: Place) -> HttpResponse:
    if members.restore_member(place.workspace, request.POST.get("removed", ""), actor=place.user.email):
        messages.success(request, _("Member restored."))
    else:
        messages.error(request, _("Can't be undone any more. Invite them again."))
    return redirect(place.url_of("members"))


@workspace_page("be_here")
def leave(request: HttpRequest, place: Place) -> HttpResponse:
    """Leave the workspace after a confirmation."""
    form = ConfirmForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            members.leave_workspace(place.workspace, place.user)
            messages.success(request, _("You left %(workspace)s.") % {"workspace": place.workspace.name})
            return redirect("front")
    is_last = members.is_last_owner(place.workspace, place.user.pk) and place.may_manage
    return render(request, "pages/members/leave.html", {"form": form, "is_last_owner": is_last})


def _invitation(place: Place, invitation_id: UUID) -> Invitation:
    """Return the invitation, answered or not. Raises `Http404` if the workspace has none with that id."""
    row = get_object_or_404(Invitation.objects.of(place.workspace), pk=invitation_id)
    # Saves the query that `row.workspace` would make.
    row.workspace = place.workspace
    return row


def _membership(place: Place, user_id: UUID) -> Membership:
    """Return the membership with its user. Raises `Http404` if the user isn't a member."""
    rows = Membership.objects.of(place.workspace).select_related("user")
    return get_object_or_404(rows, user_id=user_id)
