"""Repeats evergreen items: each is made again every given number of days, until its source is gone."""

from pipeline.schedule.recurring.crud import KEPT, Ended, begin, change, forget, why_ended
from pipeline.schedule.recurring.repeat_item import give_up, run_recurrence

__all__ = ["KEPT", "Ended", "begin", "change", "forget", "give_up", "run_recurrence", "why_ended"]
