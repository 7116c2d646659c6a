"""record(): a happening, written in the transaction of the change that it tells of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.utils.translation import gettext as _

from accounts.models import Notice, NoticeKind
from config.core import dispatch
from config.core.clock import utc_now
from config.core.database.insert import insert_unless_there
from config.core.ids import uuid7

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from accounts.models import User, Workspace

TITLE_CHARACTERS = 200
TEXT_CHARACTERS = 2000


def record(
    kind: str,
    *,
    workspace_id: UUID,
    key: str,
    title: str,
    text: str,
    path: str = "",
    user_id: UUID | None = None,
    now: datetime | None = None,
) -> bool:
    """One statement, and no other for whoever reads it; refuses outside a transaction.

    `key` names the happening within its kind: told again, nothing is written and the answer is False. `path` leads to
    the thing below the workspace's address.
    """
    if not connection.in_atomic_block:
        message = f"A notice ({kind}) must be recorded in the transaction of its change."
        raise TransactionManagementError(message)
    if kind not in NoticeKind.values:
        raise LookupError(kind)
    now = now or utc_now()
    is_new = insert_unless_there(
        Notice(
            id=uuid7(),
            workspace_id=workspace_id,
            kind=kind,
            key=key,
            user_id=user_id,
            # A platform's own words may hold what no line of a mail must.
            title=" ".join(title.split())[:TITLE_CHARACTERS],
            text=text if kind in {NoticeKind.DIGEST, NoticeKind.MONTHLY} else text[:TEXT_CHARACTERS],
            path=path,
            due_at=now,
            wake_at=now,
            created_at=now,
        )
    )
    if is_new:
        dispatch.wake()
    return is_new


def send_test(workspace: Workspace, user: User, once: str) -> None:
    """A message by every channel that is open; the same `once` sends it once."""
    with transaction.atomic():
        record(
            NoticeKind.TEST,
            workspace_id=workspace.pk,
            key=f"{user.pk.hex}:{once or uuid7().hex}"[:120],
            title=_("This is how a notice from %(workspace)s looks") % {"workspace": workspace.name},
            text=_("You asked for this test. Nothing has happened, and nothing is to be done."),
            path="settings/notices",
            user_id=user.pk,
        )
