"""The entries of the credit ledger as the API and an export show them."""

from __future__ import annotations

from rest_framework import serializers

from accounts.models import LedgerEntry
from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import RowSerializer


class LedgerEntrySerializer(RowSerializer):
    id = PublicIdField("led")
    kind = serializers.ChoiceField(choices=LedgerEntry.Kind.values)
    amount = serializers.IntegerField(help_text="Change of what is available.")
    reserved_change = serializers.IntegerField()
    used_change = serializers.IntegerField()
    generation = PublicIdField("gnr", source="subject", allow_null=True, help_text="What it is about.")
    reason = serializers.CharField(allow_blank=True)
    created_at = MomentField()
