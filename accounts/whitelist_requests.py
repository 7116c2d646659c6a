"""Handles a workspace's access: owners request it, operators grant, refuse or revoke it.

The owners get a mail of each decision; operators may grant and revoke it without a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts import audit, mail_sending, members, workspaces
from accounts.models import WhitelistRequest
from config.core.clock import utc_now
from config.core.errors import Conflict, Invalid
from config.core.states import move

if TYPE_CHECKING:
    from accounts.models import Workspace

# The most characters of an owner's message and of an operator's reason.
MAX_MESSAGE_CHARACTERS: Final = 2000
MAX_REASON_CHARACTERS: Final = 1000
PENDING: Final = WhitelistRequest.Status.PENDING


def last_request(workspace: Workspace) -> WhitelistRequest | None:
    """Return the newest request, decided or not, or `None` if the workspace never sent one."""
    request: WhitelistRequest | None = WhitelistRequest.objects.of(workspace).order_by("-id").first()
    return request


def request_whitelisting(workspace: Workspace, message: str, actor: str) -> WhitelistRequest:
    """Add a request to the operators' queue and mail the operator; a workspace has one pending at a time.

    Raises `Invalid` for a message that is too long, `Conflict` for a workspace that is whitelisted or has a
    pending request.
    """
    message = _validated_message(message)
    if workspace.is_whitelisted:
        raise Conflict.because(code="whitelisted", message="This workspace is already approved.")
    try:
        with transaction.atomic():
            request: WhitelistRequest = WhitelistRequest.everywhere.create(
                workspace=workspace, message=message, asked_by=actor[:200]
            )
            audit.note("whitelisting.asked", workspace=workspace, actor=actor, subject=workspace.public_id)
    except IntegrityError as error:
        refusal = "This workspace already has a request, which an operator decides on."
        raise Conflict.because(code="already_asked", message=refusal) from error
    mail_sending.send(
        "asked",
        [settings.OPERATOR_CONTACT],
        {
            "workspace": workspace.name,
            "id": workspace.public_id,
            "by": actor,
            "message": message,
            "is_in_sandbox": workspace.is_in_sandbox,
            "address": f"{settings.PUBLIC_URL}/admin/accounts/whitelistrequest/{request.pk}/decide/",
        },
    )
    return request


def revise_request(workspace: Workspace, message: str, actor: str) -> None:
    """Replace the message of the pending request; the operator's page shows the new one.

    Raises `Invalid` for a message that is too long, `Conflict` if no request is pending any more.
    """
    message = _validated_message(message)
    with transaction.atomic():
        if not WhitelistRequest.objects.of(workspace).filter(status=PENDING).update(message=message):
            refusal = "The request has already been decided."
            raise Conflict.because(code="not_pending", message=refusal)
        audit.note("whitelisting.revised", workspace=workspace, actor=actor, subject=workspace.public_id)


def _validated_message(message: str) -> str:
    """Return the message stripped. Raises `Invalid` if it is too long."""
    message = message.strip()
    if len(message) > MAX_MESSAGE_CHARACTERS:
        refusal = f"Give at most {MAX_MESSAGE_CHARACTERS} characters."
        raise Invalid.one(field="message", code="length", message=refusal)
    return message


def grant(workspace: Workspace, actor: str) -> bool:
    """Approve the pending request, or whitelist without one, and mail the owners.

    Returns `False` if there is no request and the workspace has access. Raises `Conflict` if another operator
    decided the request meanwhile.
    """
    pending = WhitelistRequest.objects.of(workspace).filter(status=PENDING).first()
    if pending is not None:
        pending.workspace = workspace
        approve_request(pending, actor)
        return True
    with transaction.atomic():
        is_changed = workspaces.whitelist(workspace, actor)
        if is_changed:
            _mail_owners("whitelisted", workspace)
    return is_changed


def revoke(workspace: Workspace, actor: str) -> bool:
    """Revoke the workspace's access and mail the owners, or return `False` if it has none."""
    with transaction.atomic():
        is_changed = workspaces.delist(workspace, actor)
        if is_changed:
            _mail_owners("delisted", workspace, page="settings/access")
    return is_changed


def approve_request(request: WhitelistRequest, actor: str) -> None:
    """Whitelist the workspace and mail its owners. Raises `Conflict` if the request was decided already."""
    with transaction.atomic():
        move(request, "approved", decided_by=actor, decided_at=utc_now())
        workspaces.whitelist(request.workspace, actor)
        _audit_decision("whitelisting.approved", request, actor)
    _mail_owners("whitelisted", request.workspace)


def refuse_request(request: WhitelistRequest, reason: str, actor: str) -> None:
    """Refuse the request and mail the owners the reason; they may ask again.

    Raises `Invalid` for a reason that is missing or too long, `Conflict` if the request was
    decided already.
    """
    reason = reason.strip()
    if not 1 <= len(reason) <= MAX_REASON_CHARACTERS:
        refusal = f"Give a reason of 1 to {MAX_REASON_CHARACTERS} characters; the owners see it."
        raise Invalid.one(field="reason", code="length", message=refusal)
    with transaction.atomic():
        move(request, "refused", reason=reason, decided_by=actor, decided_at=utc_now())
        _audit_decision("whitelisting.refused", request, actor)
    _mail_owners("refused", request.workspace, page="settings/access", reason=reason)


def _audit_decision(action: str, request: WhitelistRequest, actor: str) -> None:
    workspace = request.workspace
    details = {"reason": request.reason} if request.reason else {}
    audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id, details=details)


def _mail_owners(name: str, workspace: Workspace, page: str = "", reason: str = "") -> None:
    """Send the named mail, with a link to `page` below the workspace's own address."""
    context = {
        "workspace": workspace.name,
        "reason": reason,
        "is_in_sandbox": workspace.is_in_sandbox,
        "address": f"{settings.PUBLIC_URL}/w/{workspace.public_id}/{page}",
    }
    mail_sending.send(name, members.read_owner_addresses(workspace), context)
