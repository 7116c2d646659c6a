"""Mails newsletters: an outlet's subscribers, its mailings, and each mail at most once."""

from pipeline.mailing.lifecycle import counts_of, doubt_restored, erase_words, issue, resume, stop
from pipeline.mailing.queue import mail_queue_of
from pipeline.mailing.send_mailings import LEASE, give_up, send_mails
from pipeline.mailing.subscribers import forget_deliveries, forget_unconfirmed

__all__ = [
    "LEASE",
    "counts_of",
    "doubt_restored",
    "erase_words",
    "forget_deliveries",
    "forget_unconfirmed",
    "give_up",
    "issue",
    "mail_queue_of",
    "resume",
    "send_mails",
    "stop",
]
