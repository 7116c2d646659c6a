"""Sets and removes workspaces' own API keys for the language model."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import transaction

from accounts import audit
from accounts.models import Workspace
from config.core.errors import Invalid

_KEY_PATTERN: Final = re.compile(r"[\x21-\x7e]{16,400}")
"""Matches a printable word; vendors promise no more of a key than that it is one, too long to be guessed."""


def set_model_key(workspace: Workspace, key: str, actor: str) -> None:
    """Store the key encrypted; nobody is shown it again, and the audit log doesn't hold it.

    Raises `Invalid` if the text can't be a key.
    """
    key = key.strip()
    validate_model_key(key)
    _update_model_key(
        workspace, "workspace.model_key_set", actor, model_key=key, model_key_last_four=key[-4:]
    )


def validate_model_key(key: str) -> None:
    """Raise `Invalid` if the text can't be a key of any vendor."""
    if _KEY_PATTERN.fullmatch(key) is None:
        message = "Paste the whole key as its vendor shows it: 16 to 400 characters without spaces."
        raise Invalid.one(field="model_key", code="invalid", message=message)


def remove_model_key(workspace: Workspace, actor: str) -> bool:
    """Remove the key, so that the operator's is used, or return `False` if there was none."""
    return _update_model_key(
        workspace,
        "workspace.model_key_removed",
        actor,
        expected={"model_key__isnull": False},
        model_key=None,
        model_key_last_four="",
    )


def _update_model_key(
    workspace: Workspace, action: str, actor: str, *, expected: dict[str, Any] | None = None, **values: Any
) -> bool:
    """Write and audit the values if the row still is as in `expected`, or else return `False`."""
    with transaction.atomic():
        if not Workspace.everywhere.filter(pk=workspace.pk, **(expected or {})).update(**values):
            return False
        audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id)
    # The instance's values are outdated, and it must not hold the key in plain text.
    workspace.refresh_from_db(fields=list(values))
    return True
