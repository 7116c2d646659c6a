"""The people of a workspace: the list, invitations, roles, removing and leaving."""

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
from accounts.pages import form_recovery, shown_once
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


def role_choices() -> list[tuple[str, str]]:
    """Each role with what it allows."""
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


class SureForm(forms.Form):
    """That the question was read: a bare POST does nothing."""

    sure = forms.BooleanField(widget=forms.HiddenInput, initial=True)


@page("look", methods=("GET",))
def listed(request: HttpRequest, place: Place) -> HttpResponse:
    context = {
        "people": members.members_of(place.workspace),
        "is_last_owner": members.is_last_owner(place.workspace, place.user.pk),
        "invitations": list(members.pending_invitations(place.workspace)),
        "roles": {role.value: label for role, (label, _allows) in roles.DESCRIPTIONS.items()},
        "days": limits.INVITATION_KEPT.days,
        "new_link": _take_link(request, place),
    }
    return render(request, "pages/members/list.html", context)


@page("manage")
def invite(request: HttpRequest, place: Place) -> HttpResponse:
    form = form_recovery.form_for(request, InviteForm)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("members"))
        email = form.cleaned_data["email"]
        with report_errors(request, form):
            invited = members.invite(place.workspace, email, form.cleaned_data["role"], by=place.user)
            _tell(request, place, invited, _("Invitation sent to %(email)s."))
            return redirect(place.address("members"))
    return render(request, "pages/members/invite.html", {"form": form})


@page("manage", methods=("POST",))
def resend(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    found = _invitation(place, invitation)
    with report_errors(request):
        members.resend_invitation(found, by=place.user)
        _tell(request, place, found, _("New link sent to %(email)s. The old one no longer works."))
    return redirect(place.address("members"))


def _tell(request: HttpRequest, place: Place, invitation: Invitation, said: str) -> None:
    """That it was mailed or, where no mail reaches people, its link: the list shows it once."""
    if mail_sending.is_delivered():
        messages.success(request, said % {"email": invitation.email})
    else:
        shown_once.keep_secret(request, _link_name(place), f"{invitation.email} {invitation.link}")


def _take_link(request: HttpRequest, place: Place) -> dict[str, str] | None:
    """The address that was just invited, and its link; None where it was shown, or mailed."""
    kept = shown_once.take_secret(request, _link_name(place)) if place.may_manage else None
    if kept is None:
        return None
    email, _space, address = kept.rpartition(" ")
    return {"email": email, "address": address}


def _link_name(place: Place) -> str:
    return f"invitation {place.workspace.public_id}"


@page("manage", methods=("POST",))
def withdraw(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    found = _invitation(place, invitation)
    if members.withdraw_invitation(found, actor=place.user.email):
        text = _("Invitation of %(email)s withdrawn.") % {"email": found.email}
        offer_undo(request, text, place.address("member_reinstate", invitation=found.pk))
    return redirect(place.address("members"))


@page("manage", methods=("POST",))
def reinstate(request: HttpRequest, place: Place, invitation: UUID) -> HttpResponse:
    found = _invitation(place, invitation)
    if members.reinstate_invitation(found, actor=place.user.email):
        messages.success(request, _("Invitation restored.") % {"email": found.email})
    return redirect(place.address("members"))


@page("manage")
def role(request: HttpRequest, place: Place, user: UUID) -> HttpResponse:
    membership = _membership(place, user)
    form = form_recovery.form_for(request, RoleForm, initial={"role": membership.role})
    if request.method == "POST" and form.is_valid():
        chosen = form.cleaned_data["role"]
        with report_errors(request, form):
            members.change_role(place.workspace, user, chosen, actor=place.user.email)
            text = _("%(person)s is now %(role)s.")
            label = roles.DESCRIPTIONS[Membership.Role(chosen)][0]
            messages.success(request, text % {"person": membership.user.email, "role": label})
            return redirect(place.address("members"))
    return render(request, "pages/members/role.html", {"form": form, "member": membership})


@page("manage")
def remove(request: HttpRequest, place: Place, user: UUID) -> HttpResponse:
    membership = _membership(place, user)
    form = SureForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            removed = members.remove_member(place.workspace, user, actor=place.user.email)
            if removed is not None:
                text = _("%(person)s was removed.") % {"person": membership.user.email}
                offer_undo(request, text, place.address("member_restore"), {"removed": removed})
            return redirect(place.address("members"))
    return render(request, "pages/members/remove.html", {"form": form, "member": membership})


@page("manage", methods=("POST",))
def restore(request: HttpRequest, place: Place) -> HttpResponse:
    if members.restore_member(place.workspace, request.POST.get("removed", ""), actor=place.user.email):
        messages.success(request, _("Member restored."))
    else:
        messages.error(request, _("Can't be undone any more. Invite them again."))
    return redirect(place.address("members"))


@page("be_here")
def leave(request: HttpRequest, place: Place) -> HttpResponse:
    form = SureForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            members.leave_workspace(place.workspace, place.user)
            messages.success(request, _("You left %(workspace)s.") % {"workspace": place.workspace.name})
            return redirect("front")
    is_last = members.is_last_owner(place.workspace, place.user.pk) and place.may_manage
    return render(request, "pages/members/leave.html", {"form": form, "is_last_owner": is_last})


def _invitation(place: Place, invitation_id: UUID) -> Invitation:
    """Answered ones too. Raises `Http404` where the workspace has no such invitation."""
    found = get_object_or_404(Invitation.objects.of(place.workspace), pk=invitation_id)
    found.workspace = place.workspace
    return found


def _membership(place: Place, user_id: UUID) -> Membership:
    """With its person. Raises `Http404` where they aren't a member."""
    rows = Membership.objects.of(place.workspace).select_related("user")
    return get_object_or_404(rows, user_id=user_id)
