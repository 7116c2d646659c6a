"""What the personas' pages share: one of the workspace's own, its name in the head, and what is said to whoever was overtaken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext_lazy

from pipeline.models import Persona, WorkspaceDefaults

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.pages.page_access import Place

CHANGED_MEANWHILE: Final = gettext_lazy("Changed since you opened it. Reload and try again.")


def find_persona(place: Place, per: UUID, *, deleted: bool = False) -> Persona:
    rows = Persona.objects.of(place.workspace).filter(pk=per)
    return get_object_or_404(rows if deleted else rows.filter(deleted_at=None))


def persona_head(place: Place, persona: Persona, tab: str) -> dict[str, Any]:
    """What each tab of a persona shows above its own."""
    is_default = WorkspaceDefaults.objects.of(place.workspace).filter(persona=persona).exists()
    return {"persona": persona, "tab": tab, "is_default": is_default}
