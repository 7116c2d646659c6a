"""Fills in a workspace's sample data step by step, and removes it in portions.

Samples are rows with `is_sample`, and all that was made of them. What users made themselves stays.
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
"""Rows that one portion removes, besides those that depend on them: a short lock, however much there is."""
_Samples = Workspace.Samples


class Stopped(Exception):
    """Raised when nothing more is to be filled in, because somebody removes the samples."""


@contextmanager
def fill_samples(workspace: Workspace) -> Iterator[None]:
    """Open a transaction that adds samples. Raises `Stopped` if they are complete or being removed."""
    with transaction.atomic():
        rows = Workspace.everywhere.select_for_update(no_key=True).filter(pk=workspace.pk)
        if not rows.filter(samples=_Samples.FILLING, deleted_at=None).exists():
            raise Stopped
        yield


def mark_samples_complete(workspace: Workspace) -> None:
    """Note that all samples are filled in; nothing is added from here on."""
    _change_status(workspace, _Samples.FILLED, before=(_Samples.FILLING,))


def has_samples(workspace: Workspace) -> bool:
    """Return whether there are samples, also unfinished ones; False once removal was requested."""
    return workspace.samples in {_Samples.FILLING, _Samples.FILLED}


def is_removing(workspace: Workspace) -> bool:
    return workspace.samples == _Samples.REMOVING


def request_samples_removal(workspace: Workspace, *, actor: str) -> bool:
    """Have all samples removed, a portion at a time; False if there are none or they are being removed."""
    with transaction.atomic():
        if not _change_status(workspace, _Samples.REMOVING, before=(_Samples.FILLING, _Samples.FILLED)):
            return False
        _audit("removal_asked", workspace, actor)
        dispatcher.wake()
    return True


TO_REMOVE: Final = "SELECT 1 FROM workspace WHERE samples = 'removing'"
"""SQL that finds a row if `remove_some` has something to do."""


def remove_some() -> int:
    """Remove one portion of one workspace's samples; 0 if there is nothing to remove.

    Each call looks for what is left, so a killed worker leaves nothing to mend.
    """
    removing = Workspace.everywhere.filter(samples=_Samples.REMOVING).order_by("pk")
    workspace = removing.defer("model_key").first()
    return 0 if workspace is None else remove_some_of(workspace)


def remove_some_of(workspace: Workspace) -> int:
    """Remove one portion of this workspace's samples; return how many rows, 0 when the removal has ended."""
    for remover in settings.SAMPLE_REMOVERS:
        with transaction.atomic():
            removed: int = import_string(remover)(workspace.pk, ROWS)
        if removed:
            return removed
    with transaction.atomic():
        if _change_status(workspace, _Samples.REMOVED, before=(_Samples.REMOVING,)):
            _audit("removed", workspace, "system")
    return 0


def remove_members(workspace_id: UUID, rows: int) -> int:
    """Remove sample members, and their users if nobody can log in as them; return how many."""
    members = Membership.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    user_ids = list(members.order_by("pk").values_list("user_id", flat=True)[:rows])
    NoticeChoice.everywhere.filter(workspace_id=workspace_id, user_id__in=user_ids).delete()
    members.filter(user_id__in=user_ids).delete()
    for user in User.objects.filter(pk__in=user_ids, memberships=None):
        if not user.has_usable_password():
            user.delete()
    return len(user_ids)


def _change_status(workspace: Workspace, after: str, *, before: tuple[str, ...]) -> bool:
    """Set the status of the samples; False if it is none of `before`."""
    if not Workspace.everywhere.filter(pk=workspace.pk, samples__in=before).update(samples=after):
        return False
    workspace.samples = after
    return True


def _audit(action: str, workspace: Workspace, actor: str) -> None:
    audit.note(f"samples.{action}", workspace=workspace, actor=actor, subject=workspace.public_id)
