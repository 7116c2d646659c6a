"""Stores a workspace's balance of credits, and every entry of the ledger behind it."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models.workspace import Workspace
from accounts.tenancy import WorkspaceQuerySet
from config.core.clock import utc_now
from config.core.ids import uuid7


class CreditBalance(models.Model):
    """The sums of the ledger, stored so that a reservation is one conditional statement."""

    workspace = models.OneToOneField(
        Workspace, primary_key=True, on_delete=models.CASCADE, related_name="credits"
    )
    period_start = models.DateField()
    """First day (UTC) of the month that `granted` and `used` count."""
    granted = models.BigIntegerField(default=0)
    available = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)
    used = models.BigIntegerField(default=0)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()

    class Meta:
        db_table = "credit_balance"
        constraints: ClassVar = [
            # A second line of defence: no path may hand out the same credit twice.
            models.CheckConstraint(
                condition=models.Q(reserved__gte=0), name="credit_balance_reserved_not_negative"
            ),
        ]


class LedgerEntry(models.Model):
    """A change of a workspace's credits; the sums of its three amounts over all entries are the balance."""

    class Kind(models.TextChoices):
        GRANT = "grant"
        RESERVE = "reserve"
        SETTLE = "settle"
        RELEASE = "release"
        EXPIRE = "expire"
        ADJUST = "adjust"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="ledger")
    kind = models.CharField(max_length=8, choices=Kind)
    amount = models.BigIntegerField()
    """Change of the available credits."""
    reserved_change = models.BigIntegerField(default=0)
    used_change = models.BigIntegerField(default=0)
    subject = models.UUIDField(null=True)
    """The id of the generation that the entry is about."""
    reason = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=utc_now)

    everywhere: ClassVar[models.Manager[Any]] = models.Manager()
    objects = WorkspaceQuerySet["LedgerEntry"].as_manager()

    class Meta:
        db_table = "ledger_entry"
        verbose_name = _("ledger entry")
        verbose_name_plural = _("ledger entries")
        base_manager_name = "everywhere"
        constraints: ClassVar = [
            # A generation reserves once, and settles or releases once: a repeated step can't move credits
            # again.
            models.UniqueConstraint(
                fields=["subject"], condition=models.Q(kind="reserve"), name="ledger_entry_reserved_once"
            ),
            models.UniqueConstraint(
                fields=["subject"],
                condition=models.Q(kind__in=["settle", "release"]),
                name="ledger_entry_settled_once",
            ),
        ]
        indexes: ClassVar = [
            # GET /usage/ledger, newest first; ids rise with time.
            models.Index(fields=["workspace", "-id"], name="ledger_entry_list"),
            # The end of each run reads what it reserved. The constraints' indexes are of a part of the kinds each.
            models.Index(
                fields=["subject"], condition=models.Q(subject__isnull=False), name="ledger_entry_subject"
            ),
        ]
