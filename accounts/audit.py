"""Writes the audit log: who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.models import AuditEntry
from config.core.middleware import request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.models import Workspace

_MAX_CHARACTERS = 200


def note(
    action: str,
    *,
    workspace: Workspace | None = None,
    actor: str,
    subject: str = "",
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Store an entry of the audit log; call it in the change's transaction, so that neither is there alone."""
    entry: AuditEntry = AuditEntry.everywhere.create(
        workspace=workspace,
        action=action,
        # A long address or name must not make the change itself fail.
        actor=actor[:_MAX_CHARACTERS],
        subject=subject[:_MAX_CHARACTERS],
        details=dict(details or {}),
        request_id=request_id(),
    )
    return entry
