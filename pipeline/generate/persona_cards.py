"""Loads a persona in the form that writers and engines get."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db.models import F

from config.core.database.prepared_queries import Prepared
from pipeline.engines.base import PersonaCard
from pipeline.models import Persona, PersonaVersion
from pipeline.models.persona import VERSIONED_FIELDS
from pipeline.text.prose.verbatim_edits import collapse

if TYPE_CHECKING:
    from uuid import UUID


_PERSONA: Final[Prepared[Any]] = Prepared(
    lambda pk: Persona.everywhere.filter(pk=pk).annotate(workspace_name=F("workspace__name"))
)
_VERSION: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda persona, number: PersonaVersion.everywhere.filter(persona_id=persona, number=number).values(
        "content"
    )
)


def persona_card(persona_id: UUID | None, version: int | None) -> PersonaCard:
    """Return the persona at that version; as it is now without one, or if the version isn't kept.

    Without a persona, or for one that doesn't exist, the card has an empty name.
    """
    personas = _PERSONA.ask(pk=persona_id) if persona_id else []
    if not personas:
        return PersonaCard(name="")
    persona = personas[0]
    versions = _VERSION.ask(persona=persona_id, number=version) if version is not None else []
    content = versions[0]["content"] if versions else persona_content(persona)
    return PersonaCard(
        name=content["name"],
        handle=content["handle"],
        language=content["language"],
        links=tuple(content["links"]),
        who_you_are=content["who_you_are"],
        voice=content["voice"],
        banned_words=tuple(content["banned_words"]),
        required_structures=tuple(content["required_structures"]),
        reference_posts=tuple(content["reference_posts"]),
        approved_lines=tuple(content["approved_lines"]),
        brand=content["brand"],
        is_brand=collapse(content["name"]) == collapse(persona.workspace_name),
    )


def persona_content(persona: Persona) -> dict[str, Any]:
    """Return the fields that a version stores, by the names of `VERSIONED_FIELDS`."""
    return {name: getattr(persona, name) for name in VERSIONED_FIELDS}
