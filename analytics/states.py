"""Declares the status changes that measuring allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping

DONE: Final = "done"
"""The status after the last measurement, or once there is nothing to read any more."""

MEASURING: Final[Mapping[str, frozenset[str]]] = {
    "waiting": frozenset({DONE}),
    DONE: frozenset(),
}

states.register("analytics.Measuring", MEASURING)
