"""The outlets behind the public ids that somebody names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.core.errors import Detail, Invalid
from config.core.ids import decode
from pipeline.models import Outlet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accounts.models import Workspace


def _place_in_list(index: int, _public_id: str) -> str:
    return f"outlets[{index}]"


def check_outlets(
    workspace: Workspace,
    outlets: Sequence[str],
    *,
    test: bool,
    field_of: Callable[[int, str], str] = _place_in_list,
) -> list[Outlet]:
    """The outlets behind public ids, in their order.

    Raises `Invalid` naming each that can't be used, by the field that `field_of` makes of its place and its public id.
    """
    if not outlets:
        return []
    wanted = {text: decode("out", text) for text in outlets}
    rows = {
        row.pk: row
        for row in Outlet.objects.of(workspace).filter(
            pk__in=[value for value in wanted.values() if value], deleted_at=None
        )
    }
    details = []
    found = []
    for index, text in enumerate(outlets):
        outlet_id = wanted[text]
        outlet = rows.get(outlet_id) if outlet_id else None
        if outlet is None:
            message = "This workspace has no such outlet; GET /v1/outlets lists them."
            details.append(Detail(field_of(index, text), "unknown_outlet", message))
        elif test and not outlet.is_simulated:
            message = "A test token reaches only test channels."
            details.append(Detail(field_of(index, text), "not_simulated", message))
        else:
            found.append(outlet)
    if details:
        raise Invalid(*details)
    return found
