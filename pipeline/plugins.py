"""The registry of all plug-ins, the errors that they raise, and what they declare about themselves.

A plug-in is a folder in `sources`, `engines`, `writers`, `platforms` or `voices`: the folder's name is its
kind, and being there registers it. Its entry, `__init__.py`, is the only module that is imported for that.
Plug-ins are pure Python: dataclasses in, dataclasses out; no Django, no Celery, no database.

`kinds`, `get` and `every` are the registry. `Evidence` says what a plug-in was tested against,
`Unavailability` why it can't work here, `Problem` what is wrong with a person's input.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, TypeVar, Unpack, cast

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

Plugin = TypeVar("Plugin")

FAMILIES = ("sources", "engines", "writers", "platforms", "voices")


@dataclass(frozen=True)
class Problem:
    """One fault of a person's input: `field` is a dotted path (`config.url`), None for the whole."""

    field: str | None
    code: str
    message: str


@dataclass(frozen=True)
class Evidence:
    """What a source or a platform was tested against, and the test that shows it.

    `level` says how much that proves: `server` is the real software, running; `software` is a stand-in, or a
    document of ours, that third-party software works with; `documents` is a stand-in written from the
    vendor's documents alone; `none` is for a plug-in that calls nothing outside of this service. `against` is
    a name and a version, or the month in which the documents were read.
    """

    level: Literal["server", "software", "documents", "none"]
    against: str = ""
    test: str = ""
    gap: str = ""
    """What is tested against a stand-in only, as a plural noun ("counts"); empty if nothing is."""

    @property
    def sentence(self) -> str:
        """Return what a person who chooses a platform is told; empty if there is nothing to test."""
        gap = f" Its {self.gap}: only against a stand-in." if self.gap else ""
        return {
            "server": f"Tested against a real server, {self.against}.{gap}",
            "software": f"Tested with a stand-in and {self.against}, which others wrote. Not tested on a live account.",
            "documents": f"Tested against a stand-in written from its documents of {self.against}."
            " Not tested on a live account.",
            "none": "",
        }[self.level]


@dataclass(frozen=True)
class Unavailability:
    """Something that can't work on this instance: why, and what to do about it. It isn't raised.

    `field` is the setting that needs it (`config.username`), None for the whole kind. `code` is for programs.
    """

    reason: str
    remedy: str
    code: str = "unavailable"
    field: str | None = None

    @property
    def sentence(self) -> str:
        return f"{self.reason} {self.remedy}"


class _ErrorDetails(TypedDict, total=False):
    """The arguments that every `PluginError` takes besides its message."""

    code: str
    action: str
    platform_status: int | None
    platform_message: str


class PluginError(Exception):
    """The base of every anticipated failure of a plug-in; any other exception is a bug.

    `message` says what happened, `action` what to do about it; `platform_status` and `platform_message` are
    the platform's own status and text, if it answered. `code` and `action` have a default for each subclass.
    """

    error_class: ClassVar[str]
    """What a program does about it: `retry`, `account`, `content` or `unknown`."""
    default_code: ClassVar[str]
    usual_action: ClassVar[str]

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        action: str = "",
        platform_status: int | None = None,
        platform_message: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.action = action or self.usual_action
        self.platform_status = platform_status
        self.platform_message = platform_message


class TryLater(PluginError):
    """It may work later: `after` is the least time to wait, None for the caller's own schedule.

    With `is_of_account` nothing else goes through the account before that time either.
    """

    error_class = "retry"
    default_code = "temporary"
    usual_action = "Nothing. It is retried automatically."

    def __init__(
        self,
        message: str,
        *,
        after: timedelta | None = None,
        is_of_account: bool = False,
        **details: Unpack[_ErrorDetails],
    ) -> None:
        super().__init__(message, **details)
        self.after = after
        self.is_of_account = is_of_account


class Refused(PluginError):
    """The content will never be accepted; `field` names what to change, if that is known."""

    error_class = "content"
    default_code = "refused"
    usual_action = "Change the item so that the platform takes it, then retry."

    def __init__(self, message: str, *, field: str | None = None, **details: Unpack[_ErrorDetails]) -> None:
        super().__init__(message, **details)
        self.field = field


class NeedsReconnect(PluginError):
    """The credential is expired, revoked or lacks a permission; nothing is sent until a person acts."""

    error_class = "account"
    default_code = "needs_reconnect"
    usual_action = "Reconnect the outlet, then retry."


class OutcomeUnknown(PluginError):
    """Raised by a platform's `commit` only: the platform may or may not have accepted it.

    Never sent again blindly.
    """

    error_class = "unknown"
    default_code = "outcome_unknown"
    usual_action = (
        "Check the platform, or wait: the outcome is looked up automatically before anything is sent again."
    )


class ConfigInvalid(Exception):
    """The settings of a source or outlet can't be used; `problems` name each field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


class UnknownKind(LookupError):
    """There is no plug-in of that name; `known` lists the existing ones."""

    def __init__(self, family: str, kind: str, known: tuple[str, ...]) -> None:
        super().__init__(f"There is no {family} plug-in {kind!r}; known are {', '.join(known)}.")
        self.known = known


@cache
def _load(family: str) -> Mapping[str, Any]:
    """Return every plug-in of a family by its kind. Raises `RuntimeError` if a kind isn't its folder's name."""
    package = importlib.import_module(f"pipeline.{family}")
    plugins_by_kind = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if not module_info.ispkg:
            continue
        module = importlib.import_module(f"pipeline.{family}.{module_info.name}")
        plugin = getattr(module, "PLUGIN", None)
        # Helper packages such as `engines/shared` and `sources/feeds` have none.
        if plugin is None:
            continue
        if plugin.kind != module_info.name:
            message = f"pipeline/{family}/{module_info.name} names its kind {plugin.kind!r}"
            raise RuntimeError(message)
        plugins_by_kind[module_info.name] = plugin
    return plugins_by_kind


def kinds(family: str) -> tuple[str, ...]:
    """Return the kinds of one family, sorted by name."""
    return tuple(sorted(_load(family)))


def get(family: str, kind: str, of: type[Plugin]) -> Plugin:
    """Return the plug-in of that kind.

    Raises `UnknownKind`. `of` is the family's base class, for the type only.
    """
    del of
    plugins_by_kind = _load(family)
    if kind not in plugins_by_kind:
        raise UnknownKind(family, kind, tuple(sorted(plugins_by_kind)))
    return cast("Plugin", plugins_by_kind[kind])


def every(family: str, of: type[Plugin]) -> tuple[Plugin, ...]:
    """Return all plug-ins of a family in the order of their kinds."""
    return tuple(get(family, kind, of) for kind in kinds(family))
