"""Connects, checks, renews, changes and disconnects outlets."""

from pipeline.outlets.account_check_task import give_up, maintain_outlet
from pipeline.outlets.check_account import BeingRenewed
from pipeline.outlets.connection import connect_outlet, generated_secret_of, reconnect
from pipeline.outlets.renewal import fresh_credentials
from pipeline.outlets.update import change, set_default, switch_off, switch_on

__all__ = [
    "BeingRenewed",
    "change",
    "connect_outlet",
    "fresh_credentials",
    "generated_secret_of",
    "give_up",
    "maintain_outlet",
    "reconnect",
    "set_default",
    "switch_off",
    "switch_on",
]
