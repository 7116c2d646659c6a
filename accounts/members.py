"""Invites, adds, changes and removes the members of a workspace.

Each change of the members locks the workspace first, so that two at once can't leave it without an owner. It
raises `Conflict` if the workspace is deleted.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from allauth.account.models import EmailAddress
from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import audit, limits, mail_sending
from accounts.access import tokens
from accounts.models import AuditEntry, Invitation, Membership, NoticeChoice, User, Workspace
from config.core.clock import utc_now
from config.core.errors import Conflict, Invalid
from config.core.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

Role = Membership.Role
_UNDO_SALT: Final = "accounts.members.removed"
_DAY: Final = timedelta(hours=24)
_MAILING_ACTIONS: Final = ("member.invited", "member.invitation_resent")
"""The audit log's actions that mail an invitation."""


# --- Queries ---------------------------------------------------------------------------------------------------------


def list_members(workspace: Workspace) -> list[Membership]:
    """Return the members, in the order in which they joined."""
    return list(Membership.objects.of(workspace).select_related("user").order_by("id"))


def read_owner_addresses(workspace: Workspace) -> list[str]:
    """Return the email addresses of the owners who can log in, in the order in which they joined."""
    return list(_owners(workspace).order_by("id").values_list("user__email", flat=True))


def pending_invitations(workspace: Workspace) -> QuerySet[Invitation]:
    """Return the invitations that are neither accepted nor withdrawn, expired ones too, newest first."""
    rows = Invitation.objects.of(workspace).filter(accepted_at=None, withdrawn_at=None)
    return rows.order_by("-id")


# --- Invitations -----------------------------------------------------------------------------------------------------


def invite(workspace: Workspace, email: str, role: str, *, by: User) -> Invitation:
    """Create an invitation and mail its link to the address.

    Its `link` is set for the inviter, who is shown it only if mails don't reach people. Raises `Invalid` for a
    member or an invited address, `Conflict` if too many invitations are pending or were mailed within a day.
    """
    email = email.strip().lower()
    now = utc_now()
    with transaction.atomic():
        _lock(workspace)
        if Membership.objects.of(workspace).filter(user__email__iexact=email).exists():
            raise Invalid.one(field="email", code="member", message=_("This person is a member already."))
        pending = pending_invitations(workspace)
        if pending.filter(email__iexact=email).exists():
            message = _("This address is invited already. Send the invitation again from the list.")
            raise Invalid.one(field="email", code="invited", message=message)
        if pending.count() >= limits.INVITATIONS_PENDING:
            message = _("%(most)d invitations wait for an answer. Withdraw some first.") % {
                "most": limits.INVITATIONS_PENDING
            }
            raise Conflict.because(code="too_many", message=message)
        _refuse_too_many_mails(workspace, now)
        token = secrets.token_urlsafe(32)
        invitation: Invitation = Invitation.everywhere.create(
            workspace=workspace,
            email=email,
            role=Role(role),
            digest=tokens.digest(token),
            invited_by=by,
            sent_at=now,
            created_at=now,
            expires_at=now + limits.INVITATION_KEPT,
        )
        _audit("invited", workspace, by.email, subject=email, details={"role": role})
        _mail_link(invitation, token, by)
    return invitation


def resend_invitation(invitation: Invitation, *, by: User) -> None:
    """Mail a new link that works for `INVITATION_KEPT` from now; the old link stops working.

    Its `link` is set as by `invite`. Raises `Conflict` if the invitation was sent within
    `INVITATION_RESENT_AFTER`, accepted or withdrawn, or if too many were mailed within a day.
    """
    now = utc_now()
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        _lock(invitation.workspace)
        _refuse_too_many_mails(invitation.workspace, now)
        resendable = _if_pending(invitation).filter(sent_at__lte=now - limits.INVITATION_RESENT_AFTER)
        expires_at = now + limits.INVITATION_KEPT
        is_updated = resendable.update(
            digest=tokens.digest(token), sent_at=now, expires_at=expires_at, sends=invitation.sends + 1
        )
        if not is_updated:
            message = _("It was sent a moment ago, or it is no longer pending. Wait a minute and look again.")
            raise Conflict.because(code="just_sent", message=message)
        invitation.expires_at = expires_at
        _audit("invitation_resent", invitation.workspace, by.email, subject=invitation.email)
        _mail_link(invitation, token, by)


def withdraw_invitation(invitation: Invitation, *, actor: str) -> bool:
    """Make the invitation's link stop working, or return `False` if it was accepted or withdrawn meanwhile."""
    with transaction.atomic():
        if not _if_pending(invitation).update(withdrawn_at=utc_now()):
            return False
        _audit("invitation_withdrawn", invitation.workspace, actor, subject=invitation.email)
    return True


def reinstate_invitation(invitation: Invitation, *, actor: str) -> bool:
    """Undo a withdrawal, or return `False` if there is none or the address has another pending invitation."""
    workspace = invitation.workspace
    with transaction.atomic():
        _lock(workspace)
        if pending_invitations(workspace).filter(email__iexact=invitation.email).exists():
            return False
        rows = Invitation.objects.of(workspace).filter(
            pk=invitation.pk, accepted_at=None, withdrawn_at__isnull=False
        )
        if not rows.update(withdrawn_at=None):
            return False
        _audit("invitation_reinstated", workspace, actor, subject=invitation.email)
    return True


def find_invitation(token: str) -> Invitation | None:
    """Return the invitation of a link that still works, or `None` for every other token."""
    rows = Invitation.everywhere.select_related("workspace", "invited_by").defer("workspace__model_key")
    invitation: Invitation | None = rows.filter(
        digest=tokens.digest(token),
        accepted_at=None,
        withdrawn_at=None,
        expires_at__gt=utc_now(),
        workspace__deleted_at=None,
    ).first()
    return invitation


def find_accepted_invitation(token: str) -> Invitation | None:
    """Return the invitation that was accepted through this link, or `None` if there is none."""
    invitation: Invitation | None = Invitation.everywhere.filter(
        digest=tokens.digest(token), accepted_at__isnull=False
    ).first()
    return invitation


def has_account(email: str) -> bool:
    return User.objects.filter(email__iexact=email).exists()


def may_accept(invitation: Invitation, user: User) -> bool:
    """Return whether the user has verified the invited address; a link that was passed on opens nothing."""
    verified_addresses = EmailAddress.objects.filter(user=user, verified=True, email__iexact=invitation.email)
    return bool(verified_addresses.exists())


def accept_invitation(invitation: Invitation, user: User) -> Membership:
    """Add the user with the offered role; a member keeps their role, and nothing is written to the audit log.

    Raises `Conflict` if the user hasn't verified the invited address, or if the invitation is expired, accepted or
    withdrawn.
    """
    workspace = invitation.workspace
    if not may_accept(invitation, user):
        message = _("This invitation was sent to another address.")
        raise Conflict.because(code="other_address", message=message)
    now = utc_now()
    with transaction.atomic():
        _lock(workspace)
        if not _if_pending(invitation).filter(expires_at__gt=now).update(accepted_at=now):
            message = _("This invitation no longer works. Ask for another one.")
            raise Conflict.because(code="not_pending", message=message)
        membership: Membership
        membership, is_new = Membership.everywhere.get_or_create(
            workspace=workspace, user=user, defaults={"role": invitation.role}
        )
        if is_new:
            _audit(
                "joined", workspace, user.email, subject=_user_id(user.pk), details={"role": membership.role}
            )
    return membership


# --- Members ---------------------------------------------------------------------------------------------------------


def change_role(workspace: Workspace, user_id: UUID, role: str, *, actor: str) -> bool:
    """Give a member another role, or return `False` if they have it already or are no longer a member.

    An owner's pending invitations are withdrawn with the role. Raises `Conflict` for the last owner.
    """
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user_id=user_id).first()
        if membership is None or membership.role == Role(role):
            return False
        _end_ownership(membership, actor)
        Membership.objects.of(workspace).filter(pk=membership.pk).update(role=role)
        details = {"role": [membership.role, role]}
        _audit("role_changed", workspace, actor, subject=_user_id(user_id), details=details)
    return True


def remove_member(workspace: Workspace, user_id: UUID, *, actor: str) -> str | None:
    """Remove a member at once; their content stays, an owner's pending invitations are withdrawn.

    Returns the token that `restore_member` takes, or `None` if they weren't a member. Raises `Conflict` for the
    last owner.
    """
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user_id=user_id).first()
        if membership is None:
            return None
        _end_ownership(membership, actor)
        _delete_membership(membership)
        details = {"role": membership.role}
        _audit("removed", workspace, actor, subject=_user_id(user_id), details=details)
    removed = {"workspace": str(workspace.pk), "user": str(user_id), "role": str(membership.role)}
    return signing.dumps(removed, salt=_UNDO_SALT)


def restore_member(workspace: Workspace, removed: str, *, actor: str) -> bool:
    """Undo a removal; `removed` is the token that `remove_member` returned.

    Returns `False` if the token is invalid, too old or of another workspace, or if the user is a member again
    or no longer exists.
    """
    try:
        former = signing.loads(removed, salt=_UNDO_SALT, max_age=limits.MEMBER_RESTORED_WITHIN)
    except signing.BadSignature:
        return False
    if former["workspace"] != str(workspace.pk):
        return False
    with transaction.atomic():
        _lock(workspace)
        user = User.objects.filter(pk=former["user"]).first()
        if user is None:
            return False
        is_new: bool = Membership.everywhere.get_or_create(
            workspace=workspace, user=user, defaults={"role": former["role"]}
        )[1]
        if is_new:
            _audit("restored", workspace, actor, subject=_user_id(user.pk), details={"role": former["role"]})
    return is_new


def leave_workspace(workspace: Workspace, user: User) -> bool:
    """Remove the user at their own wish, or return `False` if they weren't a member.

    Raises `Conflict` for the last owner, without whom nobody could ever manage the workspace again.
    """
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user=user).first()
        if membership is None:
            return False
        _end_ownership(membership, user.email)
        _delete_membership(membership)
        _audit("left", workspace, user.email, subject=_user_id(user.pk), details={"role": membership.role})
    return True


def is_last_owner(workspace: Workspace, user_id: UUID) -> bool:
    """Return whether no other owner could manage the workspace; owners who can't log in don't count."""
    return not _owners(workspace).exclude(user_id=user_id).exists()


# --- Helpers ---------------------------------------------------------------------------------------------------------


def _owners(workspace: Workspace) -> QuerySet[Membership]:
    """Return the memberships of owners who can log in."""
    return Membership.objects.of(workspace).filter(role=Role.OWNER, user__is_active=True)


def _delete_membership(membership: Membership) -> None:
    """Delete the membership, with the member's notification choices and the addresses in them."""
    NoticeChoice.objects.of(membership.workspace_id).filter(user_id=membership.user_id).delete()
    Membership.objects.of(membership.workspace_id).filter(pk=membership.pk).delete()


def _end_ownership(membership: Membership, actor: str) -> None:
    """Withdraw the invitations of an owner who loses the role. Raises `Conflict` for the last owner."""
    if membership.role == Role.OWNER:
        _refuse_last_owner(membership.workspace, membership.user_id)
        _withdraw_invitations_by(membership, actor)


def _withdraw_invitations_by(owner: Membership, actor: str) -> None:
    """Withdraw an owner's invitations, by which a former owner could let others, or themselves, back in."""
    pending = pending_invitations(owner.workspace).filter(invited_by_id=owner.user_id)
    for invitation in list(pending):
        withdraw_invitation(invitation, actor=actor)


def _lock(workspace: Workspace) -> None:
    """Lock the workspace, so that nobody else changes its members until the transaction ends.

    The weaker lock lets other rows refer to the workspace meanwhile. Raises `Conflict` for a deleted
    workspace.
    """
    rows = Workspace.everywhere.select_for_update(of=("self",), no_key=True).only("pk")
    if not rows.filter(pk=workspace.pk, deleted_at=None).exists():
        raise Conflict.because(code="deleted", message=_("This workspace is deleted."))


def _refuse_last_owner(workspace: Workspace, user_id: UUID) -> None:
    if is_last_owner(workspace, user_id):
        message = _(
            "A workspace needs an owner, and this is its last one. Make another member an owner first."
        )
        raise Conflict.because(code="last_owner", message=message)


def _refuse_too_many_mails(workspace: Workspace, now: datetime) -> None:
    # An invitation stores how often it was mailed, but only the last time. The audit log has an entry for
    # each mail.
    mails = AuditEntry.objects.of(workspace).filter(action__in=_MAILING_ACTIONS, created_at__gt=now - _DAY)
    if mails.count() >= limits.INVITATION_MAILS_PER_DAY:
        message = _("This workspace has sent %(most)d invitations in a day. Try again tomorrow.") % {
            "most": limits.INVITATION_MAILS_PER_DAY
        }
        raise Conflict.because(code="too_many_mails", message=message)


def _if_pending(invitation: Invitation) -> QuerySet[Invitation]:
    """Return a query for the invitation's row that finds nothing once it was accepted or withdrawn."""
    return pending_invitations(invitation.workspace).filter(pk=invitation.pk)


def _mail_link(invitation: Invitation, token: str, by: User) -> None:
    """Set the invitation's `link` and mail it to the invited address."""
    invitation.link = f"{settings.PUBLIC_URL}{reverse('invitation', kwargs={'token': token})}"
    context = {
        "workspace": _without_links(invitation.workspace.name),
        "by": _without_links(f"{by.name} ({by.email})" if by.name else by.email),
        "role": invitation.role,
        "email": invitation.email,
        "days": limits.INVITATION_KEPT.days,
        "address": invitation.link,
    }
    mail_sending.send("invitation", [invitation.email], context)


def _without_links(text: str) -> str:
    """Return the text with invisible joiners, so that no mail program makes a link of it.

    Strangers get this mail, and others chose the names in it.
    """
    joiner = "\u2060"
    for character in (".", ":", "@"):
        text = text.replace(character, f"{joiner}{character}{joiner}")
    return text


def _user_id(user_id: UUID) -> str:
    return encode("usr", user_id)


def _audit(
    action: str, workspace: Workspace, actor: str, *, subject: str, details: dict[str, Any] | None = None
) -> None:
    """Write an entry `member.…` of the audit log."""
    audit.note(f"member.{action}", workspace=workspace, actor=actor, subject=subject, details=details)
