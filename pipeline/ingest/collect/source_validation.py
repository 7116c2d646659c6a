"""Validates a source's settings, its references and the plan's limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from accounts.ledger import credits as credit_account
from accounts.models import Workspace
from config.core import limits
from config.core.api.nearest import find_nearest
from config.core.errors import AppError, Detail, Invalid
from config.core.ids import decode, encode
from pipeline import personas, plugins
from pipeline.generate import generation_plan
from pipeline.models import Persona, Source, Topic
from pipeline.outlets.outlets_by_id import check_outlets
from pipeline.plugins import ConfigInvalid
from pipeline.sources.base import Source as SourceKind
from pipeline.switches import availability
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID


_MAX_SHOWN_CHARACTERS: Final = 300
"""The longest value that a message shows."""


class SourcesExceeded(AppError):
    """Raised if the plan's number of active sources is used up."""

    code = "quota_exceeded"


def kind_of(source_type: str) -> SourceKind:
    """Return the plug-in of that type. Raises `UnknownKind` if there is none."""
    return plugins.get("sources", source_type, SourceKind)


def clean_config(kind: SourceKind, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as they are stored. Raises `Invalid` with each setting that can't be used."""
    try:
        return kind.clean_config(config)
    except ConfigInvalid as error:
        details = [Detail(problem.field, problem.code, problem.message) for problem in error.problems]
        raise Invalid(*details) from error


FIELDS_OUTSIDE_CONFIG: Final = frozenset(
    [
        "name",
        "engines",
        "variants",
        "persona",
        "outlets",
        "poll_interval_minutes",
        "autopilot",
        "first_poll",
        "max_age_days",
        "max_burst",
    ]
)
"""Fields of the source itself that people put into its `config` by mistake."""


def find_misplaced_fields(kind: SourceKind, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are really fields of the source, by the names of these fields."""
    known = kind.config_schema["properties"]
    strays = {name: value for name, value in config.items() if find_nearest(name, known) is None}
    return {
        field: value for name, value in strays.items() if (field := find_nearest(name, FIELDS_OUTSIDE_CONFIG))
    }


def guess_settings(kind: SourceKind, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the known settings that these were probably meant to be, which needn't be acceptable ones."""
    known = kind.config_schema["properties"]
    return {name: value for name, value in kind.guess_settings(config).items() if name in known}


def settings_as_text(settings: Mapping[str, Any]) -> str:
    """Return settings as JSON for a sentence, with "…" for values that are long or may hold a secret."""
    short_settings = {name: value if _is_short(value) else "…" for name, value in settings.items()}
    return json.dumps(short_settings, ensure_ascii=False).replace('"…"', "…")


def _is_short(value: object) -> bool:
    """Return whether a value is short and plain enough for a message."""
    members = value if isinstance(value, list) else [value]
    is_plain = all(isinstance(member, str | int | float) for member in members) or (
        isinstance(value, dict) and set(value) == {"every_hours"}
    )
    return is_plain and len(str(value)) <= _MAX_SHOWN_CHARACTERS


def refuse_unavailable(source: Source) -> None:
    """Raise `SourceUnavailable` or `EngineUnavailable` if the source, saved or not, or an engine can't work here."""
    availability.refuse_engines(source.engines)
    reason = availability.of_source(kind_of(source.type), source.config)
    availability.refuse_source(reason or personas.why_unavailable(source))


def check_references(
    workspace: Workspace,
    engines: Sequence[str],
    persona_id: UUID | None,
    outlets: Sequence[str],
    *,
    test: bool,
) -> None:
    """Raise `Invalid` for an engine, a persona or an outlet that the workspace doesn't have."""
    for name in engines:
        generation_plan.engine_named(name)
    known = Persona.objects.of(workspace).filter(deleted_at=None)
    if persona_id is not None and not known.filter(pk=persona_id).exists():
        message = "This workspace has no such persona; GET /v1/personas."
        raise Invalid.one(field="persona", code="unknown_persona", message=message)
    check_outlets(workspace, outlets, test=test)


def check_pool(workspace: Workspace, config: Mapping[str, Any], *, test: bool) -> None:
    """Raise `Invalid` with each topic of a brand lane's `config.pool` that the workspace's pool doesn't have."""
    topic_ids = list(config.get("pool") or ())
    rows = Topic.objects.of(workspace).filter(
        pk__in=[key for name in topic_ids if (key := decode("top", name))],
        test=test,
        source=None,
        deleted_at=None,
    )
    known = {encode("top", key) for key in rows.values_list("pk", flat=True)} if topic_ids else set()
    message = "The workspace's pool has no such topic; GET /v1/topics lists them."
    faults = [
        Detail(f"config.pool[{index}]", "unknown_topic", message)
        for index, name in enumerate(topic_ids)
        if name not in known
    ]
    if faults:
        raise Invalid(*faults)


def check_interval(workspace: Workspace, minutes: int | None) -> None:
    """Raise `Invalid` for a wait between polls below the plan's; `None` stands for the source's rhythm."""
    min_minutes = credit_account.plan_limits(workspace).poll_interval_minutes_least
    if minutes is not None and minutes < min_minutes and not workspace.is_unlimited:
        message = f"The workspace's plan polls at most every {min_minutes} minutes."
        raise Invalid.one(field="poll_interval_minutes", code="below_plan", message=message)


def refuse_past_plan(workspace: Workspace, *, test: bool) -> None:
    """Raise `SourcesExceeded` if one more active source is too many.

    Call it in a transaction: it locks the workspace, so others wait.
    """
    limit = credit_account.plan_limits(workspace).active_sources_most
    if workspace.is_unlimited:
        return
    # Two sources that are registered at once must not both be the last one; the weaker lock lets rows refer to the
    # workspace.
    Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
    used = Source.objects.of(workspace).polled().filter(test=test).count()
    if used >= limit:
        message = past_plan_message(workspace)
        raise SourcesExceeded(
            Detail("type", "active_sources", message, {"limit": limit, "used": used, "resets_at": None})
        )


def past_plan_message(workspace: Workspace) -> str:
    most = credit_account.plan_limits(workspace).active_sources_most
    return f"The plan has {counted(most, 'active source')}; pause or delete one, or ask for more."


def count_sources_left(workspace: Workspace, *, test: bool) -> int | None:
    """Return the number of active sources that the plan still allows, or `None` if it has no limit."""
    if workspace.is_unlimited:
        return None
    used = Source.objects.of(workspace).polled().filter(test=test).count()
    return max(0, credit_account.plan_limits(workspace).active_sources_most - used)


def name_for(kind: SourceKind, config: Mapping[str, Any]) -> str:
    """Return a name for an unnamed source: its kind, and the first setting that is a text."""
    first_text = next((str(value) for value in config.values() if isinstance(value, str)), "")
    return f"{kind.label} {first_text}".strip()[: limits.NAME_CHARACTERS]
