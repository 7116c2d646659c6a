"""Deletes a workspace: on request, after a week in which it can be undone, and in small batches.

From the request on the workspace is paused: its tokens are refused, its sources and its publishing wait. When
the week is over nobody can open it, and each app erases its part. A row without a name, the ledger, the model
costs and the audit log stay.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from accounts import audit, limits, mail_sending, members
from accounts.models import (
    ApiToken,
    IdempotencyKey,
    Invitation,
    Membership,
    Notice,
    NoticeChoice,
    NoticeDigest,
    NoticeMessage,
    RateBucket,
    WhitelistRequest,
    Workspace,
)
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from accounts.models import User

log = structlog.get_logger(__name__)

ROWS_PER_BATCH: Final = 200
"""Rows that one batch deletes, without those that depend on them: few, so that locks are short."""
BLOCKED_WAIT_SECONDS: Final = 600.0
"""Seconds without another try after a part couldn't be erased yet."""
_blocked_until: Final = {"at": 0.0}
_ERASED_MODELS: Final[tuple[type[Any], ...]] = (
    NoticeMessage,
    Notice,
    NoticeDigest,
    NoticeChoice,
    IdempotencyKey,
    RateBucket,
    ApiToken,
    Invitation,
    WhitelistRequest,
    Membership,
)


class ErasureBlocked(Exception):
    """Raised if a part can't be erased now; its text says why, and what the operator can do about it."""


def request_deletion(workspace: Workspace, typed_name: str, *, by: User) -> bool:
    """Schedule the deletion and mail the owners, or return `False` if it is scheduled or done already.

    Raises `Invalid` if `typed_name` isn't the workspace's name.
    """
    if " ".join(typed_name.split()) != " ".join(workspace.name.split()):
        message = _("Type the name exactly as it is: %(name)s") % {"name": workspace.name}
        raise Invalid.one(field="name", code="other_name", message=message)
    now = utc_now()
    deletes_at = now + limits.WORKSPACE_DELETED_AFTER
    with transaction.atomic():
        rows = Workspace.everywhere.filter(pk=workspace.pk, deletes_at=None, deleted_at=None)
        if not rows.update(deletes_at=deletes_at):
            return False
        workspace.deletes_at = deletes_at
        _audit("deletion_asked", workspace, by.email)
        mail_sending.send(
            "workspace_deletion", members.read_owner_addresses(workspace), _mail_context(workspace, by.email)
        )
    return True


def undo_deletion(workspace: Workspace, *, actor: str) -> bool:
    """Cancel the deletion, so that the workspace works from the next request on.

    Returns `False` if no deletion was requested, or the workspace is deleted already.
    """
    with transaction.atomic():
        rows = Workspace.everywhere.filter(pk=workspace.pk, deletes_at__isnull=False, deleted_at=None)
        if not rows.update(deletes_at=None):
            return False
        workspace.deletes_at = None
        _audit("deletion_undone", workspace, actor)
        mail_sending.send(
            "workspace_kept", members.read_owner_addresses(workspace), _mail_context(workspace, actor)
        )
    return True


def erase_some(*, now: datetime | None = None) -> int:
    """Erase one batch of one workspace whose week is over, and return how many rows, 1 for other steps.

    Returns 0 if there is nothing to erase, another worker erases, or a part was blocked in the last
    `BLOCKED_WAIT_SECONDS`. Each batch is a separate transaction that looks for what is left, so a killed worker
    leaves nothing to repair.
    """
    if time.monotonic() < _blocked_until["at"]:
        return 0
    try:
        erased = _erase_some(now or utc_now())
    except ErasureBlocked as blocked:
        # The batch was rolled back. `manage.py doctor` reports the blockage too.
        _blocked_until["at"] = time.monotonic() + BLOCKED_WAIT_SECONDS
        log.warning("erasure_waits", why=str(blocked))
        return 0
    crash_point("erase.batch")
    return erased


def _erase_some(now: datetime) -> int:
    with transaction.atomic():
        # One worker at a time, and the others don't wait for it: two would deadlock or wait for each other's
        # locks.
        unlocked = Workspace.everywhere.select_for_update(of=("self",), no_key=True, skip_locked=True)
        expired = unlocked.filter(deletes_at__lte=now, erased_at=None).defer("model_key")
        workspace = expired.order_by("deletes_at").first()
        return 0 if workspace is None else _erase_batch(workspace, now)


def _erase_batch(workspace: Workspace, now: datetime) -> int:
    """Erase one batch of this workspace; return how many rows, or 1 for a step that erases none."""
    if workspace.deleted_at is None:
        # First nobody can open it any more, so that nobody adds to what is being erased.
        Workspace.everywhere.filter(pk=workspace.pk).update(deleted_at=now)
        _audit("deleted", workspace, "system")
        crash_point("erase.begun")
        return 1
    for eraser in settings.WORKSPACE_ERASERS:
        erased: int = import_string(eraser)(workspace.pk, ROWS_PER_BATCH)
        if erased:
            crash_point("erase.erased")
            return erased
    Workspace.everywhere.filter(pk=workspace.pk).update(
        erased_at=now, name=_("(deleted)"), model_key=None, model_key_last_four="", whitelisted_at=None
    )
    _audit("erased", workspace, "system")
    crash_point("erase.ended")
    return 1


def erase(workspace_id: UUID, max_rows: int) -> int:
    """Erase up to `max_rows` of one model of the accounts' part; return how many, or 0 if none are left.

    These are notices, guards of requests, and whatever lets somebody in. Balance and ledger stay.
    """
    for model in _ERASED_MODELS:
        ids = list(model.everywhere.filter(workspace_id=workspace_id).values_list("pk", flat=True)[:max_rows])
        if ids:
            model.everywhere.filter(pk__in=ids).delete()
            return len(ids)
    return 0


def _mail_context(workspace: Workspace, actor: str) -> dict[str, Any]:
    return {
        "workspace": workspace.name,
        "by": actor,
        "deletes_at": workspace.deletes_at,
        "address": f"{settings.PUBLIC_URL}/w/{workspace.public_id}/settings/workspace",
    }


def _audit(action: str, workspace: Workspace, actor: str) -> None:
    audit.note(f"workspace.{action}", workspace=workspace, actor=actor, subject=workspace.public_id)
