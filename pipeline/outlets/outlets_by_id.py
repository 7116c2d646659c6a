"""Finds the outlets behind public ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.core.errors import Detail, Invalid
from config.core.ids import decode
from pipeline.models import Outlet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from accounts.models import Workspace


def _list_field(index: int, _public_id: str) -> str:
    return f"outlets[{index}]"


def check_outlets(
    workspace: Workspace,
    outlets: Sequence[str],
    *,
    test: bool,
    field_of: Callable[[int, str], str] = _list_field,
) -> list[Outlet]:
    """Return the outlets behind public ids, in their order.

    Raises `Invalid` with every id that names no outlet of the workspace or, with `test`, one that isn't
    simulated. `field_of` returns the request's field from the index and the public id.
    """
    if not outlets:
        return []
    ids_by_text = {text: decode("out", text) for text in outlets}
    rows = {
        row.pk: row
        for row in Outlet.objects.of(workspace).filter(
            pk__in=[value for value in ids_by_text.values() if value], deleted_at=None
        )
    }
    details = []
    usable = []
    for index, text in enumerate(outlets):
        outlet_id = ids_by_text[text]
        outlet = rows.get(outlet_id) if outlet_id else None
        if outlet is None:
            message = "This workspace has no such outlet; GET /v1/outlets lists them."
            details.append(Detail(field_of(index, text), "unknown_outlet", message))
        elif test and not outlet.is_simulated:
            message = "A test token reaches only test channels."
            details.append(Detail(field_of(index, text), "not_simulated", message))
        else:
            usable.append(outlet)
    if details:
        raise Invalid(*details)
    return usable
