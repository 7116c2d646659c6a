"""note(): who changed what, written beside the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.models import AuditEntry
from config.core.middleware import request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.models import Workspace

_TEXT_MOST = 200


def note(
    action: str,
    *,
    workspace: Workspace | None = None,
    actor: str,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """One entry of the audit log; call it in the transaction of the change, so that both are there or neither."""
    entry: AuditEntry = AuditEntry.everywhere.create(
        workspace=workspace,
        action=action,
        # A long address or name must not make the change itself fail.
        actor=actor[:_TEXT_MOST],
        subject=subject[:_TEXT_MOST],
        details=dict(details or {}),
        request_id=request_id(),
    )
    return entry
