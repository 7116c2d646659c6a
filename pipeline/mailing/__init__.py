"""Mails newsletters: an outlet's subscribers, its mailings, and each mail at most once."""

from pipeline.mailing.lifecycle import count_deliveries, doubt_restored, erase_words, issue, resume, stop
from pipeline.mailing.queue import get_or_create_queue
from pipeline.mailing.send_mailings import LEASE, give_up, send_mails
from pipeline.mailing.subscribers import forget_deliveries, forget_unconfirmed

__all__ = [
    "LEASE",
    "count_deliveries",
    "doubt_restored",
    "erase_words",
    "forget_deliveries",
    "forget_unconfirmed",
    "get_or_create_queue",
    "give_up",
    "issue",
    "resume",
    "send_mails",
    "stop",
]
