"""Keys tell with whose key a row's model is asked: the workspace's own before the operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from django.conf import settings

from pipeline.models import GenerationQueue

if TYPE_CHECKING:
    from accounts.models import Workspace
    from pipeline.models import Generation, ModelBatch, PersonaDraft, Source

Asker: TypeAlias = "Generation | PersonaDraft"
"""The claimed row that a model is asked for."""


def has_key(row: Asker | Source) -> bool:
    """Whether a model writes for this row's workspace: it has a key of its own, or may use the operator's."""
    return workspace_has_key(row.workspace)


def workspace_has_key(workspace: Workspace) -> bool:
    """The same of a workspace."""
    return bool(_shared_key(workspace) or _open_key(workspace))


def generation_queue_for(workspace: Workspace) -> GenerationQueue:
    """Where words are written: a model is waited for; without one they are taken from the source, which computes."""
    return GenerationQueue.GENERATE if workspace_has_key(workspace) else GenerationQueue.COMPUTE


def key_for(row: Asker | Source) -> str:
    """The key that the model is asked with: the workspace's own, else the operator's; empty where there is neither."""
    return own_key(row) or _shared_key(row.workspace)


def own_key(row: Asker | ModelBatch | Source) -> str:
    """The key of the row's workspace, empty where it has none."""
    return _open_key(row.workspace)


def operator_key() -> str:
    """The key of the operator, empty where there is none."""
    return settings.ANTHROPIC_API_KEY.strip()


def uses_own_key(row: Asker) -> bool:
    """Whether the row's calls are asked, and paid for, with its workspace's own key."""
    return bool(own_key(row))


def _shared_key(workspace: Workspace) -> str:
    """The operator's key, which pays for approved workspaces alone."""
    return operator_key() if workspace.is_whitelisted else ""


def _open_key(workspace: Workspace) -> str:
    """The only place where a workspace's sealed key is opened."""
    sealed = workspace.model_key
    return sealed.open().strip() if sealed is not None else ""
