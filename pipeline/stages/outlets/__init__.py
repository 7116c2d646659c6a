"""Outlets: connected, checked, renewed, changed, disconnected."""

from pipeline.stages.outlets.asking import BeingRenewed
from pipeline.stages.outlets.changing import change, set_default, switch_off, switch_on
from pipeline.stages.outlets.checking import give_up, work
from pipeline.stages.outlets.connecting import connect_outlet, reconnect, secret_made
from pipeline.stages.outlets.renewing import fresh_credentials

__all__ = [
    "BeingRenewed",
    "change",
    "connect_outlet",
    "fresh_credentials",
    "give_up",
    "reconnect",
    "secret_made",
    "set_default",
    "switch_off",
    "switch_on",
    "work",
]
