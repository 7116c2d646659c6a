"""Regular expressions that are compiled at their first use."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast


class _LatePattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, self._flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def late_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what `re.compile` does, but compile it when it is first used.

    The expressions about prose in many languages take a quarter of a second to compile, and most processes, such as
    those of commands, never use them.
    """
    return cast("re.Pattern[str]", _LatePattern(text, flags))
