"""Keys of workspaces for the model are set and removed here."""

from __future__ import annotations

import re
from typing import Any, Final

from django.db import transaction

from accounts import audit
from accounts.models import Workspace
from config.core.errors import Invalid

_KEY_FORM: Final = re.compile(r"[\x21-\x7e]{16,400}")
"""Of a model's key: no vendor promises more than that it is one printable word, too long to be guessed."""


def set_model_key(workspace: Workspace, key: str, actor: str) -> None:
    """The next run asks the model with this key; nobody is shown it again, and the audit log doesn't hold it.

    Raises `Invalid` for what can't be a key.
    """
    key = key.strip()
    refuse_unless_model_key(key)
    _keep_model_key(workspace, "workspace.model_key_set", actor, model_key=key, model_key_last_four=key[-4:])


def refuse_unless_model_key(key: str) -> None:
    """Raises `Invalid` for what can't be a key of any vendor's."""
    if _KEY_FORM.fullmatch(key) is None:
        message = "Paste the whole key as its vendor shows it: 16 to 400 characters without spaces."
        raise Invalid.one(field="model_key", code="invalid", message=message)


def remove_model_key(workspace: Workspace, actor: str) -> bool:
    """The operator's key holds again; False where it did already."""
    return _keep_model_key(
        workspace,
        "workspace.model_key_removed",
        actor,
        was={"model_key__isnull": False},
        model_key=None,
        model_key_last_four="",
    )


def _keep_model_key(
    workspace: Workspace, action: str, actor: str, *, was: dict[str, Any] | None = None, **values: Any
) -> bool:
    """Write the values if the row still is as it was, and note it; False where it no longer is."""
    with transaction.atomic():
        if not Workspace.everywhere.filter(pk=workspace.pk, **(was or {})).update(**values):
            return False
        audit.note(action, workspace=workspace, actor=actor, subject=workspace.public_id)
    # What the instance held is not what is stored now, and it must not hold the key in the open.
    workspace.refresh_from_db(fields=list(values))
    return True
