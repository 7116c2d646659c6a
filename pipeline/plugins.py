"""Registers all plug-ins, and defines the errors that they raise and what they declare about themselves.

A plug-in is a folder in `sources`, `engines`, `writers`, `platforms` or `voices`: the folder's name is its
kind, and its presence registers it. Only its `__init__.py` is imported for that.
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
    """A fault of a person's input; `field` is a dotted path (`config.url`), or `None` for the whole input."""

    field: str | None
    code: str
    message: str


@dataclass(frozen=True)
class Evidence:
    """The evidence that a source or a platform works.

    The levels are `server` for the real software, running; `software` for a stand-in, or a document of ours,
    that third-party software works with; `documents` for a stand-in written from the vendor's documents alone;
    and `none` for a plug-in that calls nothing outside of this service.
    """

    level: Literal["server", "software", "documents", "none"]
    against: str = ""
    """The name and version of the software, or the month in which the documents were read."""
    test: str = ""
    """The path of the test."""
    gap: str = ""
    """The part that is tested against a stand-in only, as a plural noun ("counts"); empty if there is none."""

    @property
    def sentence(self) -> str:
        """The sentence for people who choose a platform; empty if there is nothing to test."""
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
    """The reason why a plug-in, or one of its settings, can't be used on this instance, and a remedy.

    `field` is the setting (`config.username`), or `None` for the whole plug-in; `code` is for programs.
    """

    reason: str
    remedy: str
    code: str = "unavailable"
    field: str | None = None

    @property
    def sentence(self) -> str:
        return f"{self.reason} {self.remedy}"


class _ErrorDetails(TypedDict, total=False):
    """The arguments that every `PluginError` takes in addition to its message."""

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
    """The class by which a program decides what to do: `retry`, `account`, `content` or `unknown`."""
    default_code: ClassVar[str]
    default_action: ClassVar[str]

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
        self.action = action or self.default_action
        self.platform_status = platform_status
        self.platform_message = platform_message


class TryLater(PluginError):
    """Raised if the call may work later.

    `after` is the least time to wait, or `None` for the caller's schedule. With `is_of_account` nothing else is
    sent by the account before that time either.
    """

    error_class = "retry"
    default_code = "temporary"
    default_action = "Nothing. It is retried automatically."

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
    """Raised if the content will never be accepted; `field` names what to change, if that is known."""

    error_class = "content"
    default_code = "refused"
    default_action = "Change the item so that the platform takes it, then retry."

    def __init__(self, message: str, *, field: str | None = None, **details: Unpack[_ErrorDetails]) -> None:
        super().__init__(message, **details)
        self.field = field


class NeedsReconnect(PluginError):
    """Raised if the credential is expired, revoked or lacks a permission: nothing is sent until a person acts."""

    error_class = "account"
    default_code = "needs_reconnect"
    default_action = "Reconnect the outlet, then retry."


class OutcomeUnknown(PluginError):
    """Raised by a platform's `commit` only, if the platform may or may not have accepted the post.

    The post is never sent again blindly.
    """

    error_class = "unknown"
    default_code = "outcome_unknown"
    default_action = (
        "Check the platform, or wait: the outcome is looked up automatically before anything is sent again."
    )


class ConfigInvalid(Exception):
    """Raised if the settings of a source or outlet can't be used; `problems` name each field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


class UnknownKind(LookupError):
    """Raised if there is no plug-in of that kind; `known` lists the existing kinds."""

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
    """Return the plug-in of that kind. Raises `UnknownKind` if there is none.

    `of` is the family's base class, for the type only.
    """
    del of
    plugins_by_kind = _load(family)
    if kind not in plugins_by_kind:
        raise UnknownKind(family, kind, tuple(sorted(plugins_by_kind)))
    return cast("Plugin", plugins_by_kind[kind])


def every(family: str, of: type[Plugin]) -> tuple[Plugin, ...]:
    """Return all plug-ins of a family in the order of their kinds."""
    return tuple(get(family, kind, of) for kind in kinds(family))
