"""Provisions a new workspace: a persona, push sources, the feed, a simulated outlet, a queue, defaults."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.generate.persona_cards import persona_content
from pipeline.models import Outlet, Persona, PersonaVersion, Source, WorkspaceDefaults
from pipeline.publish.timing.queue_slots import default_queue

if TYPE_CHECKING:
    from accounts.models import Workspace


def furnish(workspace: Workspace, language: str) -> WorkspaceDefaults:
    """Create the rows that `POST /raw` and `publish` need, in the transaction that creates the workspace."""
    persona = Persona.everywhere.create(
        workspace=workspace,
        name=workspace.name,
        who_you_are="For people who follow this workspace's subjects.",
        voice="Plain and friendly. Short sentences. No superlatives. One idea in each item.",
        language=language,
    )
    PersonaVersion.everywhere.create(
        workspace=workspace, persona=persona, number=persona.version, content=persona_content(persona)
    )
    push_sources = {
        is_test: Source.everywhere.create(
            workspace=workspace, test=is_test, name="Pushed through the API", type="webhook", is_push=True
        )
        for is_test in (False, True)
    }
    feed = Outlet.everywhere.create(
        workspace=workspace, platform="feed", name="Workspace feed", is_default=True
    )
    simulated = Outlet.everywhere.create(
        workspace=workspace, platform="simulated", name="Test channel", is_simulated=True
    )
    default_queue(workspace)
    defaults: WorkspaceDefaults = WorkspaceDefaults.everywhere.create(
        workspace=workspace,
        push_source=push_sources[False],
        test_push_source=push_sources[True],
        persona=persona,
        engines=starting_engines(),
        outlets=[encode("out", feed.pk)],
        test_outlets=[encode("out", simulated.pk)],
    )
    return defaults


def starting_engines() -> list[str]:
    """Return the engine outputs that new workspaces start with, the cheapest first."""
    starting = [engine for engine in plugins.every("engines", Engine) if engine.is_starting]
    return [engine.name for engine in sorted(starting, key=attrgetter("credits"))]
