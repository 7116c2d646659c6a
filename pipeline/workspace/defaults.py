"""Reads and changes a workspace's defaults, which apply if a request or a source names nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import audit
from config.core.errors import Invalid
from config.core.ids import decode, encode
from pipeline import limits, plugins
from pipeline.engines.base import Engine
from pipeline.models import LatePolicy, Outlet, Persona, WorkspaceDefaults
from pipeline.models.publication import DEFAULT_LATENESS_MINUTES, MAX_LATENESS_MINUTES
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.models import Workspace


@dataclass(frozen=True)
class Defaults:
    """Public ids of the persona and of outlets in order, and names of engine outputs."""

    persona: str
    engines: tuple[str, ...]
    outlets: tuple[str, ...]
    late_policy: str = "publish"
    max_lateness_minutes: int | None = None
    """`None` if `late_policy` is `publish`, for which nothing is too late."""


def read(workspace: Workspace) -> Defaults:
    """Return the workspace's defaults."""
    return _to_defaults(WorkspaceDefaults.objects.of(workspace).get())


def change(workspace: Workspace, defaults: Defaults, *, actor: str) -> bool:
    """Change the defaults, and return whether they changed. Existing runs and publications keep theirs.

    Raises `Invalid` if the persona, an engine or an outlet doesn't exist, there are no engines or too many
    outlets, or the lateness isn't allowed, and `EngineUnavailable` if an engine can't run here.
    """
    persona = _find_persona(workspace, defaults.persona)
    _refuse_unknown_engines(defaults.engines)
    availability.refuse_engines(defaults.engines)
    _refuse_unknown_outlets(workspace, defaults.outlets)
    defaults = _clean_lateness(defaults)
    with transaction.atomic():
        row: WorkspaceDefaults = WorkspaceDefaults.objects.of(workspace).select_for_update().get()
        old_defaults = _to_defaults(row)
        if old_defaults == defaults:
            return False
        WorkspaceDefaults.objects.of(workspace).filter(pk=row.pk).update(
            persona=persona,
            engines=list(defaults.engines),
            outlets=list(defaults.outlets),
            late_policy=defaults.late_policy,
            max_lateness_minutes=defaults.max_lateness_minutes,
        )
        audit.note(
            "defaults.changed",
            workspace=workspace,
            actor=actor,
            subject=workspace.public_id,
            details={
                "persona": [old_defaults.persona, defaults.persona],
                "engines": [list(old_defaults.engines), list(defaults.engines)],
                "outlets": [list(old_defaults.outlets), list(defaults.outlets)],
                "late_policy": [old_defaults.late_policy, defaults.late_policy],
                "max_lateness_minutes": [old_defaults.max_lateness_minutes, defaults.max_lateness_minutes],
            },
        )
    return True


def _to_defaults(row: WorkspaceDefaults) -> Defaults:
    return Defaults(
        encode("per", row.persona_id),
        tuple(row.engines),
        tuple(row.outlets),
        row.late_policy,
        row.max_lateness_minutes,
    )


def _clean_lateness(defaults: Defaults) -> Defaults:
    """Return the defaults with the minutes that their policy needs.

    Raises `Invalid` if the policy is unknown or the minutes are out of range.
    """
    if defaults.late_policy not in LatePolicy.values:
        raise Invalid.one("late_policy", "unknown", _("Choose what becomes of what is late."))
    if defaults.late_policy == "publish":
        return replace(defaults, max_lateness_minutes=None)
    minutes = defaults.max_lateness_minutes
    if minutes is None:
        minutes = DEFAULT_LATENESS_MINUTES
    if not 1 <= minutes <= MAX_LATENESS_MINUTES:
        message = _("Give a number from 1 to %(most)d.") % {"most": MAX_LATENESS_MINUTES}
        raise Invalid.one("max_lateness_minutes", "out_of_range", message)
    return replace(defaults, max_lateness_minutes=minutes)


def _find_persona(workspace: Workspace, public_id: str) -> Persona:
    """Return the workspace's persona with this id. Raises `Invalid` if there is none."""
    persona_id = decode("per", public_id)
    persona: Persona | None = (
        Persona.objects.of(workspace).filter(pk=persona_id, deleted_at=None).first() if persona_id else None
    )
    if persona is None:
        raise Invalid.one("persona", "unknown", _("This persona isn't there any more. Choose another one."))
    return persona


def _refuse_unknown_engines(names: Sequence[str]) -> None:
    known = {engine.name for engine in plugins.every("engines", Engine)}
    if not names:
        raise Invalid.one("engines", "required", _("Choose at least one; a push without any makes nothing."))
    if not set(names) <= known or len(set(names)) != len(names):
        raise Invalid.one("engines", "unknown", _("One of these formats isn't there any more."))


def _refuse_unknown_outlets(workspace: Workspace, public_ids: Sequence[str]) -> None:
    if len(public_ids) > limits.OUTLETS_PER_ITEM:
        message = _("Choose at most %(most)d.") % {"most": limits.OUTLETS_PER_ITEM}
        raise Invalid.one("outlets", "too_many", message)
    outlet_ids = {outlet_id for public_id in public_ids if (outlet_id := decode("out", public_id))}
    count = Outlet.objects.of(workspace).filter(pk__in=outlet_ids, deleted_at=None).count()
    if count != len(public_ids):
        raise Invalid.one("outlets", "unknown", _("One of these outlets isn't there any more."))
