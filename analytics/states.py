"""The moves of what analytics waits for, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE: Final = "done"
"""Its last moment was measured, or there is nobody to ask any more."""

MEASURING: Final[Mapping[str, frozenset[str]]] = {
    "waiting": frozenset({DONE}),
    DONE: frozenset(),
}

states.register("analytics.Measuring", MEASURING)
