"""When an outlet's account is looked at next: once a day, and before its credential ends."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pipeline.models import Outlet

EVERY: Final = timedelta(hours=24)
JITTER: Final = timedelta(hours=1)
"""A check comes up to this much earlier, so that outlets that were connected together aren't asked together."""
TOLD_BEFORE: Final = timedelta(days=7)
"""How long before a credential that can't be renewed ends its people are told."""
SHORT: Final = timedelta(minutes=10)
LAST_MINUTES: Final = timedelta(minutes=2)
"""A credential that ends sooner is renewed before anything is sent with it."""
WAIT_LEAST: Final = timedelta(minutes=1)
WAIT_FIRST: Final = timedelta(minutes=15)
WAIT_MOST: Final = timedelta(hours=6)


def next_check(now: datetime, expires_at: datetime | None, renewed_at: datetime | None) -> datetime:
    """A day from now, or when the credential is to be renewed, or told of, where that comes first."""
    daily = now + EVERY - JITTER * random.random()  # noqa: S311  it spreads load and keeps no secret
    if expires_at is None:
        return daily
    moments = (renew_at(expires_at, renewed_at or now), expires_at - TOLD_BEFORE)
    return min([daily, *(moment for moment in moments if moment > now)])


def renew_at(expires_at: datetime, renewed_at: datetime) -> datetime:
    """When four fifths of its life are over, ten minutes before its end at the latest; halfway where it is shorter."""
    life = max(expires_at - renewed_at, timedelta(0))
    return expires_at - min(max(life / 5, SHORT), life / 2)


def renewed_at_of(outlet: Outlet) -> datetime | None:
    kept = outlet.profile.get("renewed_at")
    return datetime.fromisoformat(kept) if isinstance(kept, str) else outlet.connected_at


def is_to_renew(outlet: Outlet, now: datetime) -> bool:
    if outlet.expires_at is None:
        return False
    return now >= renew_at(outlet.expires_at, renewed_at_of(outlet) or now)


def wait_after(outlet: Outlet, asked: timedelta | None, now: datetime) -> timedelta:
    """As long again as it has failed for; sooner where the credential would end meanwhile; never sooner than asked."""
    failing_for = now - outlet.due_at if outlet.due_at else timedelta(0)
    wait = min(max(failing_for, WAIT_FIRST), WAIT_MOST)
    if outlet.expires_at is not None and outlet.expires_at > now:
        wait = min(wait, max((outlet.expires_at - now) / 4, WAIT_LEAST))
    return max(wait, min(asked, EVERY)) if asked else wait
