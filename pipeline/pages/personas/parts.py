"""Provides what the pages of a persona share: the look-up, the head of its tabs, and a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy

from pipeline.models import Persona, WorkspaceDefaults

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.pages.page_access import Place

CHANGED_MEANWHILE: Final = gettext_lazy("Changed since you opened it. Reload and try again.")
"""The message for a person whose form had an older version than the stored one."""


def find_persona(place: Place, per: UUID, *, deleted: bool = False) -> Persona:
    """Return the workspace's persona, also a deleted one with `deleted`; raises `Http404` if there is none."""
    rows = Persona.objects.of(place.workspace).filter(pk=per)
    return get_object_or_404(rows if deleted else rows.filter(deleted_at=None))


def persona_head(place: Place, persona: Persona, tab: str) -> dict[str, Any]:
    """Return the template's context that all tabs of a persona share; `tab` is the open one."""
    is_default = WorkspaceDefaults.objects.of(place.workspace).filter(persona=persona).exists()
    return {"persona": persona, "tab": tab, "is_default": is_default}
