"""The end of a workspace: asked for, undone within a week, or carried out in small batches.

From the asking on it rests: its tokens are refused, its sources and its publishing wait. When the time is over it is gone
for everybody, and each app erases its part. What stays is a row without a name, the ledger, what the models cost, and
the audit log.
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

ROWS: Final = 200
"""Rows that one batch deletes, with what hangs on them: a short lock, however much there is."""
WAITS_SECONDS: Final = 600.0
"""After a part that can't be erased yet, nothing is tried again this long."""
_waits_until: Final = {"at": 0.0}
_PARTS: Final[tuple[type[Any], ...]] = (
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


class Waits(Exception):
    """A part can't be erased now: says why, and what the operator does about it."""


def request_deletion(workspace: Workspace, typed_name: str, *, by: User) -> bool:
    """Set the moment of its deletion, and mail its owners; False where it is set already.

    Raises `Invalid` where the name wasn't typed as it is.
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
        _note("deletion_asked", workspace, by.email)
        mail_sending.send(
            "workspace_deletion", members.owner_addresses_of(workspace), _mail_context(workspace, by.email)
        )
    return True


def undo_deletion(workspace: Workspace, *, actor: str) -> bool:
    """It works again from the next request on; False where nothing was asked for, or it is too late."""
    with transaction.atomic():
        rows = Workspace.everywhere.filter(pk=workspace.pk, deletes_at__isnull=False, deleted_at=None)
        if not rows.update(deletes_at=None):
            return False
        workspace.deletes_at = None
        _note("deletion_undone", workspace, actor)
        mail_sending.send(
            "workspace_kept", members.owner_addresses_of(workspace), _mail_context(workspace, actor)
        )
    return True


def erase_some(*, now: datetime | None = None) -> int:
    """One batch of one workspace whose time is over; 0 when there is nothing to erase.

    Each batch is a transaction of its own, and what is left is found by looking: a killed hand leaves nothing to mend.
    """
    if time.monotonic() < _waits_until["at"]:
        return 0
    try:
        erased = _erase_some(now or utc_now())
    except Waits as waits:
        # The batch is taken back. The doctor says it too.
        _waits_until["at"] = time.monotonic() + WAITS_SECONDS
        log.warning("erasure_waits", why=str(waits))
        return 0
    crash_point("erase.batch")
    return erased


def _erase_some(now: datetime) -> int:
    with transaction.atomic():
        # One hand at a time, and the others don't wait for it: two would meet in each other's locks.
        over = Workspace.everywhere.select_for_update(of=("self",), no_key=True, skip_locked=True)
        waiting = over.filter(deletes_at__lte=now, erased_at=None).defer("model_key")
        workspace = waiting.order_by("deletes_at").first()
        return 0 if workspace is None else _step(workspace, now)


def _step(workspace: Workspace, now: datetime) -> int:
    """One batch of this workspace; how many rows it erased, 1 for the first step and the last, which erase none."""
    if workspace.deleted_at is None:
        # First it is gone for everybody, so that nobody adds to what is being erased.
        Workspace.everywhere.filter(pk=workspace.pk).update(deleted_at=now)
        _note("deleted", workspace, "system")
        crash_point("erase.begun")
        return 1
    for eraser in settings.WORKSPACE_ERASERS:
        erased: int = import_string(eraser)(workspace.pk, ROWS)
        if erased:
            crash_point("erase.erased")
            return erased
    Workspace.everywhere.filter(pk=workspace.pk).update(
        erased_at=now, name=_("(deleted)"), model_key=None, model_key_last_four="", whitelisted_at=None
    )
    _note("erased", workspace, "system")
    crash_point("erase.ended")
    return 1


def erase(workspace_id: UUID, rows: int) -> int:
    """The part of accounts: whatever lets somebody in; how many rows, 0 when none are left. Balance and ledger stay."""
    for model in _PARTS:
        some = list(model.everywhere.filter(workspace_id=workspace_id).values_list("pk", flat=True)[:rows])
        if some:
            model.everywhere.filter(pk__in=some).delete()
            return len(some)
    return 0


def _mail_context(workspace: Workspace, by: str) -> dict[str, Any]:
    return {
        "workspace": workspace.name,
        "by": by,
        "deletes_at": workspace.deletes_at,
        "address": f"{settings.PUBLIC_URL}/w/{workspace.public_id}/settings/workspace",
    }


def _note(what: str, workspace: Workspace, actor: str) -> None:
    audit.note(f"workspace.{what}", workspace=workspace, actor=actor, subject=workspace.public_id)
