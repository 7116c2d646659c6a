"""Stores plans, one of which is the default for new workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from accounts import audit
from accounts.audit import details_of, save_fields
from accounts.models import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable

_DEFAULT_PLAN_NAME: Final = "Standard"


def default_plan() -> Plan:
    """Return the plan of new workspaces; it is created if there is none."""
    plan = Plan.objects.filter(is_default=True).first()
    if plan is None:
        plan, _ = Plan.objects.get_or_create(name=_DEFAULT_PLAN_NAME, defaults={"is_default": True})
    return plan


def save_plan(plan: Plan, fields: Iterable[str], actor: str) -> None:
    """Store a new plan, or the named fields of one; changed credits apply from each workspace's next month."""
    with transaction.atomic():
        save_fields(plan, fields)
        audit.note("plan.changed", actor=actor, subject=plan.name, details=details_of(plan, fields))


def make_default(plan: Plan, actor: str) -> bool:
    """Make this the plan of new workspaces, or return `False` if it is the default already."""
    with transaction.atomic():
        # The constraint allows one default at a time, so the former is unset first.
        Plan.objects.filter(is_default=True).exclude(pk=plan.pk).update(is_default=False)
        if not Plan.objects.filter(pk=plan.pk, is_default=False).update(is_default=True):
            return False
        plan.is_default = True
        audit.note("plan.made_default", actor=actor, subject=plan.name)
    return True
