"""Warnings that somebody lets pass, as the audit log has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from accounts import audit
from config.core.ids import encode

if TYPE_CHECKING:
    from pipeline.models import GeneratedItem

ACTION: Final = "checks.overruled"


def note_overruled(item: GeneratedItem, *, by: str) -> None:
    """Note the warnings of the revision that is approved, in the transaction of the approval; nothing without any.

    The entry names the checks and not what they say: it stays when the item's words are erased.
    """
    warned = [one["code"] for one in item.present_checks if one["outcome"] != "passed"]
    if warned:
        details = {"revision": item.revision, "checks": warned}
        audit.note(
            ACTION, workspace=item.workspace, actor=by, subject=encode("gen", item.pk), details=details
        )
