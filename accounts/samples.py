"""Tracks how far a workspace's sample data is filled in, and removes it in portions.

Samples are rows with `is_sample`, and everything that was generated from them. What users made stays.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction
from django.utils.module_loading import import_string

from accounts import audit
from accounts.models import Membership, NoticeChoice, User, Workspace
from config.core import dispatcher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

ROWS: Final = 200
"""Rows that one portion removes, without those that depend on them: few, so that locks are short."""
_Samples = Workspace.Samples


class Stopped(Exception):
    """Raised if nothing more may be filled in."""


@contextmanager
def fill_samples(workspace: Workspace) -> Iterator[None]:
    """Open a transaction that adds samples, with the workspace locked.

    Raises `Stopped` if the samples aren't being filled in, or the workspace is deleted.
    """
    with transaction.atomic():
        rows = Workspace.everywhere.select_for_update(no_key=True).filter(pk=workspace.pk)
        if not rows.filter(samples=_Samples.FILLING, deleted_at=None).exists():
            raise Stopped
        yield


def mark_samples_complete(workspace: Workspace) -> None:
    """Mark the samples as complete, unless their removal was requested; nothing is added from here on."""
    _change_status(workspace, _Samples.FILLED, before=(_Samples.FILLING,))


def has_samples(workspace: Workspace) -> bool:
    """Return whether there are samples, complete or not, whose removal wasn't requested."""
    return workspace.samples in {_Samples.FILLING, _Samples.FILLED}


def is_removing(workspace: Workspace) -> bool:
    return workspace.samples == _Samples.REMOVING


def request_samples_removal(workspace: Workspace, *, actor: str) -> bool:
    """Request the samples' removal, or return `False` if there are none or it was requested before."""
    with transaction.atomic():
        if not _change_status(workspace, _Samples.REMOVING, before=(_Samples.FILLING, _Samples.FILLED)):
            return False
        _audit("removal_asked", workspace, actor)
        dispatcher.wake()
    return True


TO_REMOVE: Final = "SELECT 1 FROM workspace WHERE samples = 'removing'"
"""SQL that finds a row if `remove_some` has something to do."""


def remove_some() -> int:
    """Remove one portion of one workspace's samples; return how many rows.

    Returns 0 if no workspace is left, or the removal in this one has ended. Each call looks for what is left, so
    a killed worker leaves nothing to repair.
    """
    removing = Workspace.everywhere.filter(samples=_Samples.REMOVING).order_by("pk")
    workspace = removing.defer("model_key").first()
    return 0 if workspace is None else remove_some_of(workspace)


def remove_some_of(workspace: Workspace) -> int:
    """Remove one portion of this workspace's samples; return how many rows, or 0 once the removal has ended."""
    for remover in settings.SAMPLE_REMOVERS:
        with transaction.atomic():
            removed: int = import_string(remover)(workspace.pk, ROWS)
        if removed:
            return removed
    with transaction.atomic():
        if _change_status(workspace, _Samples.REMOVED, before=(_Samples.REMOVING,)):
            _audit("removed", workspace, "system")
    return 0


def remove_members(workspace_id: UUID, max_rows: int) -> int:
    """Remove sample members, and their users if in no other workspace and without password; return how many."""
    members = Membership.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    user_ids = list(members.order_by("pk").values_list("user_id", flat=True)[:max_rows])
    NoticeChoice.everywhere.filter(workspace_id=workspace_id, user_id__in=user_ids).delete()
    members.filter(user_id__in=user_ids).delete()
    for user in User.objects.filter(pk__in=user_ids, memberships=None):
        if not user.has_usable_password():
            user.delete()
    return len(user_ids)


def _change_status(workspace: Workspace, after: str, *, before: tuple[str, ...]) -> bool:
    """Set the status of the samples, or return `False` if it is none of `before`."""
    if not Workspace.everywhere.filter(pk=workspace.pk, samples__in=before).update(samples=after):
        return False
    workspace.samples = after
    return True


def _audit(action: str, workspace: Workspace, actor: str) -> None:
    audit.note(f"samples.{action}", workspace=workspace, actor=actor, subject=workspace.public_id)
