"""What a workspace's people are told: happenings are written beside the change, messages go out as due rows."""

from accounts.notices.digest import DigestLine, next_morning, open_digest, put_together
from accounts.notices.digest import give_up as give_up_digest
from accounts.notices.kinds import KINDS
from accounts.notices.preferences import NoticePreferences, choice_of, lately_told, save_choices
from accounts.notices.record import forget, forget_about, give_up_spreading, record, send_test, spread
from accounts.notices.send import deliver_message, give_up, resolve_token, switch, unsubscribe_url

__all__ = [
    "KINDS",
    "DigestLine",
    "NoticePreferences",
    "choice_of",
    "deliver_message",
    "forget",
    "forget_about",
    "give_up",
    "give_up_digest",
    "give_up_spreading",
    "lately_told",
    "next_morning",
    "open_digest",
    "put_together",
    "record",
    "resolve_token",
    "save_choices",
    "send_test",
    "spread",
    "switch",
    "unsubscribe_url",
]
