"""Who is in a workspace: invite, accept, change a role, remove, leave.

Every change of who is in locks the workspace first, so that two of them at once can't leave it without an owner.
"""

from __future__ import annotations

import hashlib
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
from accounts.models import AuditEntry, Invitation, Membership, NoticeChoice, User, Workspace
from config.core.clock import utc_now
from config.core.errors import Conflict, Invalid
from config.core.ids import encode

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet

Role = Membership.Role
_UNDO_SALT: Final = "accounts.members.removed"
_A_DAY: Final = timedelta(hours=24)
_MAILED: Final = ("member.invited", "member.invitation_resent")
"""What the audit log calls the acts that mail an invitation."""


# --- Who is there ----------------------------------------------------------------------------------------------------


def members_of(workspace: Workspace) -> list[Membership]:
    """The members, in the order in which they came."""
    return list(Membership.objects.of(workspace).select_related("user").order_by("id"))


def owner_addresses_of(workspace: Workspace) -> list[str]:
    """Addresses of the owners who can log in."""
    return list(_owners(workspace).order_by("id").values_list("user__email", flat=True))


def pending_invitations(workspace: Workspace) -> QuerySet[Invitation]:
    """Invitations that nobody has answered, expired ones too, newest first."""
    rows = Invitation.objects.of(workspace).filter(accepted_at=None, withdrawn_at=None)
    return rows.order_by("-id")


# --- Invitations -----------------------------------------------------------------------------------------------------


def invite(workspace: Workspace, email: str, role: str, *, by: User) -> Invitation:
    """Mail somebody a link that lets the person at this address in. Where mails reach people, nobody else is shown it;
    elsewhere the inviter is, by the `link` of the invitation.

    Raises `Invalid` for a member or an invited address, `Conflict` where too many wait or were mailed within a day.
    """
    email = email.strip().lower()
    now = utc_now()
    with transaction.atomic():
        _lock(workspace)
        if Membership.objects.of(workspace).filter(user__email__iexact=email).exists():
            raise Invalid.one(field="email", code="member", message=_("This person is a member already."))
        waiting = pending_invitations(workspace)
        if waiting.filter(email__iexact=email).exists():
            message = _("This address is invited already. Send the invitation again from the list.")
            raise Invalid.one(field="email", code="invited", message=message)
        if waiting.count() >= limits.INVITATIONS_PENDING:
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
            digest=_digest(token),
            invited_by=by,
            sent_at=now,
            created_at=now,
            expires_at=now + limits.INVITATION_KEPT,
        )
        _note("invited", workspace, by.email, subject=email, details={"role": role})
        _mail(invitation, token, by)
    return invitation


def resend_invitation(invitation: Invitation, *, by: User) -> None:
    """Mail a new link that works for `INVITATION_KEPT` from now; the one before stops working. `link` as by `invite`.

    Raises `Conflict` where it was sent within the last minute or is answered, or too many were mailed within a day.
    """
    now = utc_now()
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        _lock(invitation.workspace)
        _refuse_too_many_mails(invitation.workspace, now)
        sent = _pending(invitation).filter(sent_at__lte=now - limits.INVITATION_RESENT_AFTER)
        expires_at = now + limits.INVITATION_KEPT
        changed = sent.update(
            digest=_digest(token), sent_at=now, expires_at=expires_at, sends=invitation.sends + 1
        )
        if not changed:
            message = _("It was sent a moment ago, or it is no longer pending. Wait a minute and look again.")
            raise Conflict.because(code="just_sent", message=message)
        invitation.expires_at = expires_at
        _note("invitation_resent", invitation.workspace, by.email, subject=invitation.email)
        _mail(invitation, token, by)


def withdraw_invitation(invitation: Invitation, *, actor: str) -> bool:
    """Its link stops working; False where somebody has answered or withdrawn it meanwhile."""
    with transaction.atomic():
        if not _pending(invitation).update(withdrawn_at=utc_now()):
            return False
        _note("invitation_withdrawn", invitation.workspace, actor, subject=invitation.email)
    return True


def reinstate_invitation(invitation: Invitation, *, actor: str) -> bool:
    """Undo a withdrawal: the link that was mailed works again. False where there is nothing to undo."""
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
        _note("invitation_reinstated", workspace, actor, subject=invitation.email)
    return True


def find_invitation(token: str) -> Invitation | None:
    """The invitation behind a link that still works; None for every other text."""
    rows = Invitation.everywhere.select_related("workspace", "invited_by").defer("workspace__model_key")
    found: Invitation | None = rows.filter(
        digest=_digest(token),
        accepted_at=None,
        withdrawn_at=None,
        expires_at__gt=utc_now(),
        workspace__deleted_at=None,
    ).first()
    return found


def find_accepted_invitation(token: str) -> Invitation | None:
    """The invitation that was accepted through this link; to tell who follows it again that they are in.

    None for every other text.
    """
    found: Invitation | None = Invitation.everywhere.filter(
        digest=_digest(token), accepted_at__isnull=False
    ).first()
    return found


def has_account(email: str) -> bool:
    return User.objects.filter(email__iexact=email).exists()


def may_accept(invitation: Invitation, user: User) -> bool:
    """Only who has proven to read mails at the invited address: a link that was passed on opens nothing."""
    proven = EmailAddress.objects.filter(user=user, verified=True, email__iexact=invitation.email)
    return bool(proven.exists())


def accept_invitation(invitation: Invitation, user: User) -> Membership:
    """Let them in with the role that was offered; who is in already keeps theirs, and then nothing is noted.

    Raises `Conflict` for another address, and where the invitation is expired, answered or withdrawn.
    """
    workspace = invitation.workspace
    if not may_accept(invitation, user):
        message = _("This invitation was sent to another address.")
        raise Conflict.because(code="other_address", message=message)
    now = utc_now()
    with transaction.atomic():
        _lock(workspace)
        if not _pending(invitation).filter(expires_at__gt=now).update(accepted_at=now):
            message = _("This invitation no longer works. Ask for another one.")
            raise Conflict.because(code="not_pending", message=message)
        membership: Membership
        membership, is_new = Membership.everywhere.get_or_create(
            workspace=workspace, user=user, defaults={"role": invitation.role}
        )
        if is_new:
            _note("joined", workspace, user.email, subject=_id(user.pk), details={"role": membership.role})
    return membership


# --- Members ---------------------------------------------------------------------------------------------------------


def change_role(workspace: Workspace, user_id: UUID, role: str, *, actor: str) -> bool:
    """False where they have this role already, or are no longer in. Raises `Conflict` for the last owner."""
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user_id=user_id).first()
        if membership is None or membership.role == Role(role):
            return False
        _give_up_ownership(membership, actor)
        Membership.objects.of(workspace).filter(pk=membership.pk).update(role=role)
        details = {"role": [membership.role, role]}
        _note("role_changed", workspace, actor, subject=_id(user_id), details=details)
    return True


def remove_member(workspace: Workspace, user_id: UUID, *, actor: str) -> str | None:
    """Put them out at once; what they made stays. Gives what `restore_member` takes, None where they weren't in.

    Raises `Conflict` for the last owner.
    """
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user_id=user_id).first()
        if membership is None:
            return None
        _give_up_ownership(membership, actor)
        _put_out(membership)
        details = {"role": membership.role}
        _note("removed", workspace, actor, subject=_id(user_id), details=details)
    kept = {"workspace": str(workspace.pk), "user": str(user_id), "role": str(membership.role)}
    return signing.dumps(kept, salt=_UNDO_SALT)


def restore_member(workspace: Workspace, removed: str, *, actor: str) -> bool:
    """Undo a removal; False where they are in again, the time for it is over, or it was of another workspace."""
    try:
        kept = signing.loads(removed, salt=_UNDO_SALT, max_age=limits.MEMBER_RESTORED_WITHIN)
    except signing.BadSignature:
        return False
    if kept["workspace"] != str(workspace.pk):
        return False
    with transaction.atomic():
        _lock(workspace)
        user = User.objects.filter(pk=kept["user"]).first()
        if user is None:
            return False
        is_new: bool = Membership.everywhere.get_or_create(
            workspace=workspace, user=user, defaults={"role": kept["role"]}
        )[1]
        if is_new:
            _note("restored", workspace, actor, subject=_id(user.pk), details={"role": kept["role"]})
    return is_new


def leave_workspace(workspace: Workspace, user: User) -> bool:
    """Out by one's own wish; the last owner stays, or nobody could ever manage it again.

    False where they weren't in. Raises `Conflict` for the last owner.
    """
    with transaction.atomic():
        _lock(workspace)
        membership = Membership.objects.of(workspace).filter(user=user).first()
        if membership is None:
            return False
        _give_up_ownership(membership, user.email)
        _put_out(membership)
        _note("left", workspace, user.email, subject=_id(user.pk), details={"role": membership.role})
    return True


def is_last_owner(workspace: Workspace, user_id: UUID) -> bool:
    """Whether nobody but them could manage it; who can't log in doesn't count."""
    return not _owners(workspace).exclude(user_id=user_id).exists()


# --- Within ----------------------------------------------------------------------------------------------------------


def _owners(workspace: Workspace) -> QuerySet[Membership]:
    """Those who can log in."""
    return Membership.objects.of(workspace).filter(role=Role.OWNER, user__is_active=True)


def _put_out(membership: Membership) -> None:
    """With what they chose to be told and the addresses for it, which are their own."""
    NoticeChoice.objects.of(membership.workspace_id).filter(user_id=membership.user_id).delete()
    Membership.objects.of(membership.workspace_id).filter(pk=membership.pk).delete()


def _give_up_ownership(membership: Membership, actor: str) -> None:
    """What comes before an owner is none any more; nothing for others. Raises `Conflict` for the last owner."""
    if membership.role == Role.OWNER:
        _refuse_last_owner(membership.workspace, membership.user_id)
        _withdraw_those_of(membership, actor)


def _withdraw_those_of(owner: Membership, actor: str) -> None:
    """Who is no owner any more lets nobody in: not themselves either, by an invitation to another address of theirs."""
    waiting = pending_invitations(owner.workspace).filter(invited_by_id=owner.user_id)
    for invitation in list(waiting):
        withdraw_invitation(invitation, actor=actor)


def _lock(workspace: Workspace) -> None:
    """Until the transaction ends, nobody else changes who is in. The weaker lock lets rows refer to it meanwhile."""
    rows = Workspace.everywhere.select_for_update(of=("self",), no_key=True).only("pk")
    if not rows.filter(pk=workspace.pk, deleted_at=None).exists():
        raise Conflict.because(code="deleted", message=_("This workspace is deleted."))


def _refuse_last_owner(workspace: Workspace, user_id: UUID) -> None:
    if is_last_owner(workspace, user_id):
        message = _(
            "A workspace needs an owner, and this is its last one. Make somebody else an owner first."
        )
        raise Conflict.because(code="last_owner", message=message)


def _refuse_too_many_mails(workspace: Workspace, now: datetime) -> None:
    # An invitation knows how often it was mailed, and only the last time when. The audit log has an entry for each mail.
    mails = AuditEntry.objects.of(workspace).filter(action__in=_MAILED, created_at__gt=now - _A_DAY)
    if mails.count() >= limits.INVITATION_MAILS_PER_DAY:
        message = _("This workspace has sent %(most)d invitations in a day. Go on tomorrow.") % {
            "most": limits.INVITATION_MAILS_PER_DAY
        }
        raise Conflict.because(code="too_many_mails", message=message)


def _pending(invitation: Invitation) -> QuerySet[Invitation]:
    return pending_invitations(invitation.workspace).filter(pk=invitation.pk)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _mail(invitation: Invitation, token: str, by: User) -> None:
    invitation.link = f"{settings.PUBLIC_URL}{reverse('invitation', kwargs={'token': token})}"
    context = {
        "workspace": _unlinked(invitation.workspace.name),
        "by": _unlinked(f"{by.name} ({by.email})" if by.name else by.email),
        "role": invitation.role,
        "email": invitation.email,
        "days": limits.INVITATION_KEPT.days,
        "address": invitation.link,
    }
    mail_sending.send("invitation", [invitation.email], context)


def _unlinked(text: str) -> str:
    """The same to the eye, but no mail program makes a link of it: strangers get this mail, and others chose the name."""
    joiner = "\u2060"
    for mark in (".", ":", "@"):
        text = text.replace(mark, f"{joiner}{mark}{joiner}")
    return text


def _id(user_id: UUID) -> str:
    return encode("usr", user_id)


def _note(
    what: str, workspace: Workspace, actor: str, *, subject: str, details: dict[str, Any] | None = None
) -> None:
    audit.note(f"member.{what}", workspace=workspace, actor=actor, subject=subject, details=details)
