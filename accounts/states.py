"""Declares the status changes that this app's models allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import states

if TYPE_CHECKING:
    from collections.abc import Mapping

WHITELIST_REQUEST: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"approved", "refused"}),
    "approved": frozenset(),
    "refused": frozenset(),
}

NOTICE_MESSAGE: Final[Mapping[str, frozenset[str]]] = {
    "pending": frozenset({"sent", "failed", "dropped"}),
    # The message waits for the daily digest, which includes it.
    "gathered": frozenset({"told", "dropped"}),
    "told": frozenset(),
    "sent": frozenset(),
    "failed": frozenset(),
    # The recipient has left, or has turned the channel off.
    "dropped": frozenset(),
}

states.register("accounts.WhitelistRequest", WHITELIST_REQUEST)
states.register("accounts.NoticeMessage", NOTICE_MESSAGE)
