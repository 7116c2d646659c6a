"""What a workspace's people are told: happenings are written beside the change, messages go out as due rows."""

from accounts.notices.digest import DigestLine, next_morning, open_digest, put_together
from accounts.notices.digest import give_up as give_up_digest
from accounts.notices.kinds import KINDS
from accounts.notices.preferences import NoticePreferences, preferences_of, save_preferences
from accounts.notices.record import (
    forget,
    forget_about,
    give_up_spreading,
    recent_messages,
    record,
    send_test,
    spread,
)
from accounts.notices.send import deliver_message, give_up, resolve_token, switch, unsubscribe_url

__all__ = [
    "KINDS",
    "DigestLine",
    "NoticePreferences",
    "deliver_message",
    "forget",
    "forget_about",
    "give_up",
    "give_up_digest",
    "give_up_spreading",
    "next_morning",
    "open_digest",
    "preferences_of",
    "put_together",
    "recent_messages",
    "record",
    "resolve_token",
    "save_preferences",
    "send_test",
    "spread",
    "switch",
    "unsubscribe_url",
]
