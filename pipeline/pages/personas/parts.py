"""What the personas' pages share: one of the workspace's own, its name in the head, what is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import Http404
from django.utils.translation import gettext as _

from pipeline.models import Persona, WorkspaceDefaults

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from accounts.pages.workspace_view import Place
    from config.core.errors import AppError


def find_persona(place: Place, per: UUID, *, deleted: bool = False) -> Persona:
    rows = Persona.objects.of(place.workspace).filter(pk=per)
    found: Persona | None = (rows if deleted else rows.filter(deleted_at=None)).first()
    if found is None:
        raise Http404
    return found


def head(place: Place, persona: Persona, tab: str) -> dict[str, Any]:
    """What each tab of a persona shows above its own."""
    is_default = WorkspaceDefaults.objects.of(place.workspace).filter(persona=persona).exists()
    return {"place": place, "persona": persona, "tab": tab, "is_default": is_default}


def tell(request: HttpRequest, error: AppError) -> None:
    if error.code == "version_conflict":
        messages.error(request, _("Somebody else changed it meanwhile; look at it and try again."))
    else:
        messages.error(request, str(error))
