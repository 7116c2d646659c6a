"""Shared parts of personas' pages: finding a persona, the head of its tabs, the message for a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy

from pipeline.models import Persona, WorkspaceDefaults

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.pages.page_access import Place

CHANGED_MEANWHILE: Final = gettext_lazy("Changed since you opened it. Reload and try again.")
"""Shown to a person whose form was based on an older version than the stored one."""


def find_persona(place: Place, per: UUID, *, deleted: bool = False) -> Persona:
    """Return the workspace's persona, or raise `Http404`.

    With `deleted=True`, a deleted persona is returned too.
    """
    rows = Persona.objects.of(place.workspace).filter(pk=per)
    return get_object_or_404(rows if deleted else rows.filter(deleted_at=None))


def persona_head(place: Place, persona: Persona, tab: str) -> dict[str, Any]:
    """Return the context of the head that all tabs of a persona share; `tab` is the open one."""
    is_default = WorkspaceDefaults.objects.of(place.workspace).filter(persona=persona).exists()
    return {"persona": persona, "tab": tab, "is_default": is_default}
