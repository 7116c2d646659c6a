"""Saves users, confirms their addresses, and deletes accounts that were never confirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts import audit, limits
from accounts.audit import details_of, save_fields
from accounts.models import User

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_DELETED_AT_ONCE: Final = 500
"""Accounts of one deletion."""


def save_user(user: User, fields: Iterable[str], actor: str) -> None:
    """Store a new user, or the named fields of an existing one, and write it to the audit log."""
    with transaction.atomic():
        save_fields(user, fields)
        audit.note("user.changed", actor=actor, subject=user.email, details=details_of(user, fields))


def confirm_address(user: User, actor: str) -> None:
    """Mark the user's address as verified, so that their first log-in asks for no code by mail."""
    with transaction.atomic():
        user.mark_email_verified()
        audit.note("user.address_vouched_for", actor=actor, subject=user.email)


def remove_second_factor(user: User, actor: str) -> bool:
    """Delete the authenticator app and the recovery codes, or return `False` if there were none."""
    with transaction.atomic():
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            audit.note("user.second_factor_removed", actor=actor, subject=user.email)
    return bool(removed)


def delete_unverified(now: datetime) -> int:
    """Delete up to `_DELETED_AT_ONCE` accounts that were never confirmed nor used; return how many.

    Anybody can sign up with anybody's address. Accounts that an operator made have no `EmailAddress` row
    before their address is verified, and stay.
    """
    unused = User.objects.filter(
        date_joined__lte=now - limits.UNVERIFIED_KEPT, last_login=None, is_staff=False, memberships=None
    )
    verified = EmailAddress.objects.filter(verified=True).values("user_id")
    unverified = EmailAddress.objects.filter(verified=False).values("user_id")
    ids = list(
        unused.filter(pk__in=unverified)
        .exclude(pk__in=verified)
        .values_list("pk", flat=True)[:_DELETED_AT_ONCE]
    )
    if ids:
        unused.filter(pk__in=ids).exclude(pk__in=verified).delete()
    return len(ids)
