"""What can work on this instance: kinds of sources, engines, voices and platforms, asked by every door.

A plug-in says what it lacks here; the operator may take one out (`DISABLED_KINDS`). Whatever can't work is refused
before anything is stored, with the sentence that lists and previews show.
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
from pipeline.text.content_buckets import TRAITS
from pipeline.voices.base import Voice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.platforms.base import Platform
    from pipeline.sources.base import Source as SourceKind

Family = Literal["sources", "engines", "voices", "platforms"]
CAN_BE_DISABLED: Final[tuple[Family, ...]] = ("sources", "engines", "voices", "platforms")


class SourceUnavailable(AppError):
    """Such a source can't work here now; `detail` says why and what to do."""

    code = "source_unavailable"


class EngineUnavailable(AppError):
    """Such an engine can't be run here; `detail` says why and what to do."""

    code = "engine_unavailable"


def environment_of_source(kind: SourceKind) -> dict[str, str]:
    """The operator's settings that the kind names, with its defaults."""
    given = settings.SOURCE_ENVIRONMENT
    return {name: given.get(name, default) for name, default in kind.environment.items()}


def environment_of_voice(voice: Voice) -> dict[str, str]:
    """The operator's settings that the voice names, with its defaults."""
    given = settings.VOICE_ENVIRONMENT
    return {name: given.get(name, default) for name, default in voice.environment.items()}


def of_source(kind: SourceKind, config: Mapping[str, Any] | None = None) -> Unavailability | None:
    """Why no source of the kind works here or, with a clean `config`, none with these settings; None where one can.

    What a brand lane needs of its workspace is asked by `generate.topics.lane_eligibility.why_unavailable`.
    """
    taken_out = _taken_out("sources", kind.kind, kind.label)
    return taken_out or kind.unavailable(config, environment_of_source(kind))


def settings_of_source(kind: SourceKind) -> Mapping[str, Unavailability]:
    """The settings of `config` that can't be used here, each with why; none of a kind that can't work at all."""
    return {} if of_source(kind) else kind.unavailable_settings(environment_of_source(kind))


def of_engine(engine: Engine) -> Unavailability | None:
    """Why nothing is made by this engine here, whatever it is made from; None where it can be."""
    return _taken_out("engines", engine.kind, engine.name)


def of_voice(voice: Voice) -> Unavailability | None:
    """Why this voice doesn't speak here; None where it does."""
    return _taken_out("voices", voice.kind, voice.label) or voice.unavailable(environment_of_voice(voice))


def of_platform(platform: Platform) -> Unavailability | None:
    """Why nothing is connected to or published on this platform here; None where it can be."""
    return _taken_out("platforms", platform.kind, platform.label)


def _of_voices() -> Unavailability | None:
    """Why films are silent here; None where some voice speaks."""
    reasons = [of_voice(voice) for voice in plugins.every("voices", Voice)]
    return None if None in reasons else of_voice(plugins.get("voices", "system", Voice))


def restrictions_of(engine: Engine) -> list[Unavailability]:
    """What the engine can't do here though it can be run."""
    found: list[Unavailability] = []
    if type(engine).script is not Engine.script and (why := _of_voices()) is not None:
        reason = _("Films are silent, with captions: %(why)s") % {"why": why.reason}
        found.append(Unavailability(reason, why.remedy, code=why.code))
    if TRAITS[engine.bucket].is_drawn and (unshown := unshown_scripts()) is not None:
        found.append(unshown)
    return found


def engines() -> list[Engine]:
    """The engines that can be run here."""
    return [engine for engine in plugins.every("engines", Engine) if of_engine(engine) is None]


def refuse_source(why: Unavailability | None) -> None:
    """Raises `SourceUnavailable` with the sentence, unless there is nothing against it."""
    if why is not None:
        raise SourceUnavailable(Detail(why.field, SourceUnavailable.code, why.sentence))


def refuse_engines(names: Sequence[str], *, field: str = "engines") -> None:
    """Raises `EngineUnavailable` with a sentence for each named engine output that can't be run here."""
    known = {engine.name: engine for engine in plugins.every("engines", Engine)}
    found = [(place, of_engine(known[name])) for place, name in enumerate(names) if name in known]
    details = [
        Detail(f"{field}[{place}]", EngineUnavailable.code, why.sentence)
        for place, why in found
        if why is not None
    ]
    if details:
        raise EngineUnavailable(*details)


def _taken_out(family: Family, kind: str, label: str) -> Unavailability | None:
    if f"{family}/{kind}" not in settings.DISABLED_KINDS:
        return None
    reason = _("The operator has taken %(name)s out of this service.") % {"name": label}
    return Unavailability(reason, _("Choose another one, or ask the operator for it."), code="taken_out")
