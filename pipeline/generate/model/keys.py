"""Finds the key for a row's calls of a model, the workspace's own before the operator's."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from django.conf import settings

from pipeline.models import GenerationQueue

if TYPE_CHECKING:
    from accounts.models import Workspace
    from pipeline.models import Generation, ModelBatch, PersonaDraft, Source

Asker: TypeAlias = "Generation | PersonaDraft"
"""A claimed row whose task asks a model."""


def has_key(row: Asker | Source) -> bool:
    """Return whether a model writes for the row's workspace: it has its own key, or may use the operator's."""
    return workspace_has_key(row.workspace)


def workspace_has_key(workspace: Workspace) -> bool:
    """Return whether a model writes for this workspace."""
    return bool(_operator_key_for(workspace) or _decrypt_key(workspace))


def generation_queue_for(workspace: Workspace) -> GenerationQueue:
    """Return the queue of the writing steps: `generate` with a model, `compute` without one."""
    return GenerationQueue.GENERATE if workspace_has_key(workspace) else GenerationQueue.COMPUTE


def key_for(row: Asker | Source) -> str:
    """Return the key to ask the model with: the workspace's own, else the operator's, else ""."""
    return own_key(row) or _operator_key_for(row.workspace)


def own_key(row: Asker | ModelBatch | Source) -> str:
    """Return the own key of the row's workspace, or "" if it has none."""
    return _decrypt_key(row.workspace)


def operator_key() -> str:
    """Return the operator's key, or "" if there is none."""
    return settings.ANTHROPIC_API_KEY.strip()


def uses_own_key(row: Asker) -> bool:
    """Return whether the row's calls are made, and paid for, with its workspace's own key."""
    return bool(own_key(row))


def _operator_key_for(workspace: Workspace) -> str:
    """Return the operator's key if the workspace is approved to use it, else ""."""
    return operator_key() if workspace.is_whitelisted else ""


def _decrypt_key(workspace: Workspace) -> str:
    """Return the workspace's own key, or "" if it has none. It is decrypted nowhere else."""
    encrypted = workspace.model_key
    return encrypted.open().strip() if encrypted is not None else ""
