"""Lists the meanings of Discord's error answers.

The codes are those of discord-api-docs, topics/opcodes-and-status-codes, read on 2026-11-20.
"""

from __future__ import annotations

from typing import Final

from pipeline.platforms.failures import Failure
from pipeline.plugins import NeedsReconnect, Refused, TryLater

_NEW_WEBHOOK: Final = "Make a new webhook in the channel's settings and reconnect the outlet."

# The first row that matches counts, so a row for a code stands before the one for its status.
ERRORS: Final = (
    Failure(TryLater, "rate_limited", "Discord asks to wait.", status=429),
    Failure(TryLater, "firewall", "Discord's firewall refused the call.", codes=("40333",)),
    Failure(
        NeedsReconnect,
        "thread_not_found",
        "The thread no longer exists.",
        "Correct the thread in the outlet's settings.",
        codes=("10003",),
    ),
    Failure(
        NeedsReconnect,
        "thread_closed",
        "The thread is archived or locked.",
        "Open the thread, or choose another one in the outlet's settings.",
        codes=("50083", "160005"),
    ),
    Failure(
        NeedsReconnect,
        "thread_needed",
        "This channel is a forum, which takes posts only in a thread.",
        "Set a thread in the outlet's settings.",
        codes=("220001", "220003"),
    ),
    Failure(
        NeedsReconnect,
        "webhook_refused",
        "Discord doesn't accept the webhook's address.",
        _NEW_WEBHOOK,
        codes=("50027",),
    ),
    Failure(
        NeedsReconnect,
        "webhook_refused",
        "Discord doesn't accept the webhook's address.",
        _NEW_WEBHOOK,
        status=401,
    ),
    Failure(
        NeedsReconnect,
        "no_right_to_post",
        "The webhook may not do this.",
        _NEW_WEBHOOK,
        status=403,
        codes=("50001", "50013"),
    ),
    # Discord bans an IP address that keeps calling dead webhooks, so this needs a reconnect.
    Failure(NeedsReconnect, "webhook_gone", "The webhook no longer exists.", _NEW_WEBHOOK, codes=("10015",)),
    Failure(
        Refused,
        "blocked_words",
        "The server's rules (AutoMod) keep these words out.",
        codes=("200000", "200001"),
        field="body",
    ),
    Failure(Refused, "harmful_link", "Discord considers a link harmful.", codes=("240000",), field="body"),
    Failure(Refused, "empty", "Discord considers the message empty.", codes=("50006",), field="body"),
    Failure(
        Refused, "file_too_large", "The files are too large for Discord.", codes=("40005",), field="assets"
    ),
    Failure(Refused, "file_too_large", "The files are too large for Discord.", status=413, field="assets"),
    Failure(Refused, "invalid", "Discord can't use the message.", codes=("50035",)),
    Failure(NeedsReconnect, "webhook_gone", "The webhook no longer exists.", _NEW_WEBHOOK, status=404),
)
