"""People are stored, vouched for and forgotten here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts import audit, limits
from accounts.audited_save import details_of, save_fields
from accounts.models import User

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_FORGOTTEN_AT_ONCE: Final = 500


def keep_user(user: User, fields: Iterable[str], actor: str) -> None:
    """Store a new person, or the named fields of one."""
    with transaction.atomic():
        save_fields(user, fields)
        audit.note("user.changed", actor=actor, subject=user.email, details=details_of(user, fields))


def mark_address_proven(user: User, actor: str) -> None:
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


def forget_unverified(now: datetime) -> int:
    """Delete some accounts that were signed up for and never proven; how many. Anybody can give anybody's address.

    Those that an operator made have no row of allauth's for their address before it is proven, and stay.
    """
    unused = User.objects.filter(
        date_joined__lte=now - limits.UNVERIFIED_KEPT, last_login=None, is_staff=False, memberships=None
    )
    proven = EmailAddress.objects.filter(verified=True).values("user_id")
    unproven = EmailAddress.objects.filter(verified=False).values("user_id")
    some = list(
        unused.filter(pk__in=unproven)
        .exclude(pk__in=proven)
        .values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE]
    )
    if some:
        unused.filter(pk__in=some).exclude(pk__in=proven).delete()
    return len(some)
