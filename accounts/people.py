"""What an operator does for a person who can't help themselves: prove their address, take a lost second factor away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts import audit

if TYPE_CHECKING:
    from accounts.models import User


def vouch_for(user: User, actor: str) -> None:
    """Take the person's address as proven: their first log-in asks for no code by mail."""
    with transaction.atomic():
        user.vouch_for_email()
        audit.note("user.address_vouched_for", actor=actor, subject=user.email)


def remove_second_factor(user: User, actor: str) -> bool:
    """Authenticator app and recovery codes are gone; False where there were none."""
    with transaction.atomic():
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            audit.note("user.second_factor_removed", actor=actor, subject=user.email)
    return bool(removed)
