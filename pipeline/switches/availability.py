"""Finds which kinds of sources, engines, voices and platforms work on this instance.

A plug-in says what it lacks here, and the operator may disable one (`DISABLED_KINDS`). A kind that can't work
is refused before anything is stored, with the sentence that lists and previews show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from django.conf import settings
from django.utils.translation import gettext as _

from config.core.errors import AppError, Detail
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.plugins import Unavailability
from pipeline.render.typography.supported_scripts import unshown_scripts
from pipeline.text.bucket_traits import TRAITS
from pipeline.voices.base import Voice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.platforms.base import Platform
    from pipeline.sources.base import Source as SourceKind

Family = Literal["sources", "engines", "voices", "platforms"]
CAN_BE_DISABLED: Final[tuple[Family, ...]] = ("sources", "engines", "voices", "platforms")


class SourceUnavailable(AppError):
    """Raised if a source of this kind can't work here now; `detail` says why and what to do."""

    code = "source_unavailable"


class EngineUnavailable(AppError):
    """Raised if an engine can't be run here; `detail` says why and what to do."""

    code = "engine_unavailable"


def environment_of_source(kind: SourceKind) -> dict[str, str]:
    """Return the operator's settings that the kind names, with its defaults."""
    environment = settings.SOURCE_ENVIRONMENT
    return {name: environment.get(name, default) for name, default in kind.environment.items()}


def environment_of_voice(voice: Voice) -> dict[str, str]:
    """Return the operator's settings that the voice names, with its defaults."""
    environment = settings.VOICE_ENVIRONMENT
    return {name: environment.get(name, default) for name, default in voice.environment.items()}


def of_source(kind: SourceKind, config: Mapping[str, Any] | None = None) -> Unavailability | None:
    """Return why no source of the kind, or none with this clean `config`, works here, or `None` if one can.

    `generate.topics.lane_eligibility.why_unavailable` checks what a brand lane needs of its workspace.
    """
    disabled = _disabled_by_operator("sources", kind.kind, kind.label)
    return disabled or kind.unavailable(config, environment_of_source(kind))


def settings_of_source(kind: SourceKind) -> Mapping[str, Unavailability]:
    """Return the settings that can't be used here, with reasons, or none if the kind can't work at all."""
    return {} if of_source(kind) else kind.unavailable_settings(environment_of_source(kind))


def of_engine(engine: Engine) -> Unavailability | None:
    """Return why this engine can't be run here, whatever its input, or `None` if it can."""
    return _disabled_by_operator("engines", engine.kind, engine.name)


def of_voice(voice: Voice) -> Unavailability | None:
    """Return why this voice doesn't work here, or `None` if it does."""
    return _disabled_by_operator("voices", voice.kind, voice.label) or voice.unavailable(
        environment_of_voice(voice)
    )


def of_platform(platform: Platform) -> Unavailability | None:
    """Return why nothing can be connected to or published on this platform here, or `None` if it can."""
    return _disabled_by_operator("platforms", platform.kind, platform.label)


def _of_voices() -> Unavailability | None:
    """Return why films are silent here, by the system's voice, or `None` if any voice works."""
    reasons = [of_voice(voice) for voice in plugins.every("voices", Voice)]
    return None if None in reasons else of_voice(plugins.get("voices", "system", Voice))


def restrictions_of(engine: Engine) -> list[Unavailability]:
    """Return what the engine can't do here although it can be run."""
    restrictions: list[Unavailability] = []
    if type(engine).script is not Engine.script and (why := _of_voices()) is not None:
        reason = _("Films are silent, with captions: %(why)s") % {"why": why.reason}
        restrictions.append(Unavailability(reason, why.remedy, code=why.code))
    if TRAITS[engine.bucket].is_drawn and (unshown := unshown_scripts()) is not None:
        restrictions.append(unshown)
    return restrictions


def engines() -> list[Engine]:
    """Return the engines that can be run here."""
    return [engine for engine in plugins.every("engines", Engine) if of_engine(engine) is None]


def refuse_source(why: Unavailability | None) -> None:
    """Raise `SourceUnavailable` with the reason, if there is one."""
    if why is not None:
        raise SourceUnavailable(Detail(why.field, SourceUnavailable.code, why.sentence))


def refuse_engines(names: Sequence[str], *, field: str = "engines") -> None:
    """Raise `EngineUnavailable` with a reason for each named engine that can't be run here; unknown names pass."""
    engines_by_name = {engine.name: engine for engine in plugins.every("engines", Engine)}
    reasons = [
        (index, of_engine(engines_by_name[name]))
        for index, name in enumerate(names)
        if name in engines_by_name
    ]
    details = [
        Detail(f"{field}[{index}]", EngineUnavailable.code, why.sentence)
        for index, why in reasons
        if why is not None
    ]
    if details:
        raise EngineUnavailable(*details)


def _disabled_by_operator(family: Family, kind: str, label: str) -> Unavailability | None:
    """Return the reason if the operator has disabled the kind, or `None`."""
    if f"{family}/{kind}" not in settings.DISABLED_KINDS:
        return None
    reason = _("The operator has taken %(name)s out of this service.") % {"name": label}
    return Unavailability(reason, _("Choose another one, or ask the operator for it."), code="taken_out")
