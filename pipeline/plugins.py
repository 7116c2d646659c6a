"""The registry of plug-ins, and the ways in which a plug-in can fail.

A plug-in is one file in `sources`, `engines`, `writers` or `platforms`: the file's name is its kind, and being
there registers it. Plug-ins are pure Python: dataclasses in, dataclasses out; no Django, no Celery, no database.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

Plugin = TypeVar("Plugin")

FAMILIES = ("sources", "engines", "writers", "platforms")


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what a person gave: `field` is dotted (`config.url`), None for the whole."""

    field: str | None
    code: str
    message: str


class PluginError(Exception):
    """Every anticipated way in which a plug-in fails; anything else is our own bug."""

    def __init__(self, message: str, *, code: str, platform_status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.platform_status = platform_status


class TryLater(PluginError):
    """It may work later: `after` is the least time to wait, None for the caller's own schedule."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "temporary",
        after: timedelta | None = None,
        platform_status: int | None = None,
    ) -> None:
        super().__init__(message, code=code, platform_status=platform_status)
        self.after = after


class Refused(PluginError):
    """The content will never be taken; `field` names what to change where that is known."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "refused",
        field: str | None = None,
        platform_status: int | None = None,
    ) -> None:
        super().__init__(message, code=code, platform_status=platform_status)
        self.field = field


class NeedsReconnect(PluginError):
    """The credential is expired or revoked: nothing goes through this account until a person reconnects it."""

    def __init__(
        self, message: str, *, code: str = "needs_reconnect", platform_status: int | None = None
    ) -> None:
        super().__init__(message, code=code, platform_status=platform_status)


class OutcomeUnknown(PluginError):
    """From a platform's `commit` only: the platform may or may not have taken it. Never sent again blindly."""

    def __init__(
        self, message: str, *, code: str = "outcome_unknown", platform_status: int | None = None
    ) -> None:
        super().__init__(message, code=code, platform_status=platform_status)


class ConfigInvalid(Exception):
    """A source's or an outlet's settings can't be used; `problems` name each field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


class UnknownKind(LookupError):
    """No plug-in file of that name; `known` lists those that are there."""

    def __init__(self, family: str, kind: str, known: tuple[str, ...]) -> None:
        super().__init__(f"There is no {family} plug-in {kind!r}; known are {', '.join(known)}.")
        self.known = known


@cache
def _load(family: str) -> Mapping[str, Any]:
    package = importlib.import_module(f"pipeline.{family}")
    found = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.name == "base":
            continue
        module = importlib.import_module(f"pipeline.{family}.{module_info.name}")
        plugin = getattr(module, "PLUGIN", None)
        if plugin is None:
            continue
        if plugin.kind != module_info.name:
            message = f"pipeline/{family}/{module_info.name}.py names its kind {plugin.kind!r}"
            raise RuntimeError(message)
        found[module_info.name] = plugin
    return found


def kinds(family: str) -> tuple[str, ...]:
    """The kinds of one family, sorted by name."""
    return tuple(sorted(_load(family)))


def get(family: str, kind: str, of: type[Plugin]) -> Plugin:
    """The one plug-in of that kind; raises `UnknownKind`. `of` is the family's base class, for the type only."""
    del of
    found = _load(family)
    if kind not in found:
        raise UnknownKind(family, kind, tuple(sorted(found)))
    return cast("Plugin", found[kind])


def every(family: str, of: type[Plugin]) -> tuple[Plugin, ...]:
    """All plug-ins of a family in the order of their kinds."""
    return tuple(get(family, kind, of) for kind in kinds(family))
