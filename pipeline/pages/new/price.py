"""Shows the price of the choices at Create, and checks that no more is charged than was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts.ledger import reports
from config.core.clock import utc_now
from pipeline.pages import form_choices

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accounts.pages.page_access import Place
    from pipeline.pages.new.forms import ChosenForm


def known_choices(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the formats and the number of variants of a form that isn't validated yet.

    Unknown formats are left out, and an invalid number of variants counts as 1.
    """
    engine_names = {name for name, _label in form_choices.engine_choices()}
    variants = str(values.get("variants") or 1)
    return {
        "engines": [name for name in values.get("engines") or () if name in engine_names],
        "variants": int(variants) if variants in {"1", "2", "3"} else 1,
    }


def why_no_format(form: ChosenForm) -> str:
    """Return why there is no price of the formats: none is chosen, or none of the chosen ones can be made."""
    if form.waiting:
        return _("None of these formats can be made of this text.")
    return _("Choose a format to see the price.")


def price_context(place: Place, price: int, why_not: Sequence[str], *, has_plan: bool) -> dict[str, Any]:
    """Return the template's context: the price, which variants of the formats are skipped, and the remaining credits.

    `left` is `None` for a workspace whose credits aren't limited.
    """
    usage = reports.usage(place.workspace, utc_now())
    is_unlimited = place.workspace.is_unlimited
    return {
        "price": form_choices.credits_label(price),
        "price_said": price,
        "why_not": why_not,
        "has_plan": has_plan,
        "left": None if is_unlimited else max(usage.available, 0),
        "is_short": not is_unlimited and price > usage.available,
    }


def is_agreed(price: int, shown_price: int | None) -> bool:
    """Return whether the price, in credits, is at most the one that was shown."""
    return shown_price is not None and price <= shown_price
