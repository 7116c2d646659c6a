"""What the choices at Create cost, and whether no more is charged than was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.ledger import reports
from config.core.clock import utc_now
from pipeline.pages import choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accounts.pages.page_access import Place


def known_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    """Formats and variants of a form that wasn't checked yet: what there isn't is left out."""
    known = {name for name, _label in choices.engines()}
    variants = str(values.get("variants") or 1)
    return {
        "engines": [name for name in values.get("engines") or () if name in known],
        "variants": int(variants) if variants in {"1", "2", "3"} else 1,
    }


def price_context(place: Place, price: int, why_not: Sequence[str], *, has_plan: bool) -> dict[str, Any]:
    """The price, what is skipped and why, and the credits that are left."""
    usage = reports.usage(place.workspace, utc_now())
    is_free = place.workspace.is_unlimited
    return {
        "price": choices.credits_label(price),
        "price_said": price,
        "why_not": why_not,
        "has_plan": has_plan,
        "left": None if is_free else max(usage.available, 0),
        "is_short": not is_free and price > usage.available,
    }


def is_agreed(price: int, shown: int | None) -> bool:
    """Whether no more is charged than was shown."""
    return shown is not None and price <= shown
