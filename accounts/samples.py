"""A workspace's sample data: filled in step by step, and removed as a whole in portions.

Samples are rows that say `is_sample`, and all that was made of them. What people made themselves stays.
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
"""Rows that one portion removes, with what hangs on them: a short lock, however much there is."""
_Samples = Workspace.Samples


class Stopped(Exception):
    """Nothing more is to be filled in: somebody removes the samples."""


@contextmanager
def fill_samples(workspace: Workspace) -> Iterator[None]:
    """A transaction that adds samples; raises `Stopped` where they are complete, or somebody removes them."""
    with transaction.atomic():
        rows = Workspace.everywhere.select_for_update(no_key=True).filter(pk=workspace.pk)
        if not rows.filter(samples=_Samples.FILLING, deleted_at=None).exists():
            raise Stopped
        yield


def mark_samples_complete(workspace: Workspace) -> None:
    """Everything is filled in; from here on nothing is added."""
    _change(workspace, _Samples.FILLED, before=(_Samples.FILLING,))


def has_samples(workspace: Workspace) -> bool:
    """Whether there are samples, or they are being filled in; False once their removal was asked for."""
    return workspace.samples in {_Samples.FILLING, _Samples.FILLED}


def is_removing(workspace: Workspace) -> bool:
    return workspace.samples == _Samples.REMOVING


def request_samples_removal(workspace: Workspace, *, actor: str) -> bool:
    """Have all samples removed, a portion at a time; False where there are none, or it was asked for already."""
    with transaction.atomic():
        if not _change(workspace, _Samples.REMOVING, before=(_Samples.FILLING, _Samples.FILLED)):
            return False
        _note("removal_asked", workspace, actor)
        dispatcher.wake()
    return True


TO_REMOVE: Final = "SELECT 1 FROM workspace WHERE samples = 'removing'"
"""Finds a row where `remove_some` has something to do."""


def remove_some() -> int:
    """One portion of one workspace's samples; 0 when there is nothing to remove.

    What is left is found by looking: a killed hand leaves nothing to mend.
    """
    waiting = Workspace.everywhere.filter(samples=_Samples.REMOVING).order_by("pk")
    workspace = waiting.defer("model_key").first()
    return 0 if workspace is None else remove_some_of(workspace)


def remove_some_of(workspace: Workspace) -> int:
    """One portion of this workspace's samples; how many rows it removed, 0 with the end of the removal."""
    for remover in settings.SAMPLE_REMOVERS:
        with transaction.atomic():
            removed: int = import_string(remover)(workspace.pk, ROWS)
        if removed:
            return removed
    with transaction.atomic():
        if _change(workspace, _Samples.REMOVED, before=(_Samples.REMOVING,)):
            _note("removed", workspace, "system")
    return 0


def remove_members(workspace_id: UUID, rows: int) -> int:
    """The part of accounts: sample members, and their accounts where nobody can log in to them; how many members."""
    members = Membership.everywhere.filter(workspace_id=workspace_id, is_sample=True)
    people = list(members.order_by("pk").values_list("user_id", flat=True)[:rows])
    NoticeChoice.everywhere.filter(workspace_id=workspace_id, user_id__in=people).delete()
    members.filter(user_id__in=people).delete()
    for user in User.objects.filter(pk__in=people, memberships=None):
        if not user.has_usable_password():
            user.delete()
    return len(people)


def _change(workspace: Workspace, after: str, *, before: tuple[str, ...]) -> bool:
    """Write how far the samples are; False where they are at none of `before`."""
    if not Workspace.everywhere.filter(pk=workspace.pk, samples__in=before).update(samples=after):
        return False
    workspace.samples = after
    return True


def _note(what: str, workspace: Workspace, actor: str) -> None:
    audit.note(f"samples.{what}", workspace=workspace, actor=actor, subject=workspace.public_id)
