"""Mail newsletters: the list of an outlet, its mailings, and each mail at most once."""

from pipeline.stages.mailing.forgetting import forget_deliveries, forget_unconfirmed
from pipeline.stages.mailing.issuing import counts_of, doubt_restored, issue, resume, stop
from pipeline.stages.mailing.queueing import queue_of
from pipeline.stages.mailing.working import LEASE, give_up, work

__all__ = [
    "LEASE",
    "counts_of",
    "doubt_restored",
    "forget_deliveries",
    "forget_unconfirmed",
    "give_up",
    "issue",
    "queue_of",
    "resume",
    "stop",
    "work",
]
