"""Notifies members: a notice is recorded with the change, and its messages are sent as due rows."""

from accounts.notices.digest import DigestLine, next_morning, open_digest, send_digest
from accounts.notices.digest import give_up as give_up_digest
from accounts.notices.kinds import KINDS
from accounts.notices.preferences import NoticePreferences, find_preferences, save_preferences
from accounts.notices.record import (
    delete_about,
    delete_old,
    give_up_notice,
    recent_messages,
    record,
    send_test,
    write_messages,
)
from accounts.notices.send import deliver_message, give_up, resolve_token, switch, unsubscribe_url

__all__ = [
    "KINDS",
    "DigestLine",
    "NoticePreferences",
    "delete_about",
    "delete_old",
    "deliver_message",
    "find_preferences",
    "give_up",
    "give_up_digest",
    "give_up_notice",
    "next_morning",
    "open_digest",
    "recent_messages",
    "record",
    "resolve_token",
    "save_preferences",
    "send_digest",
    "send_test",
    "switch",
    "unsubscribe_url",
    "write_messages",
]
