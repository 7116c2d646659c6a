"""move(): the compare-and-set that every table of moves goes through.

Each app's `states.py` registers its tables as data. Nothing else writes a status.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Model

from config.core import counters
from config.core.clock import utc_now
from config.core.database.bulk_update import update_each
from config.core.errors import Conflict, Detail

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_tables: Final[dict[str, Mapping[str, frozenset[str]]]] = {}


class MoveRefused(Conflict):
    """The table has no such move; names the state and the moves that there are."""


class Overtaken(Conflict):
    """Somebody was there first: the row is no longer in the state, or under the lease, that was read.

    Its code is `conflict` (409), and `version_conflict` (412) where a version was named: by `refuse_other_version`, or by
    `If-Match` (`config/core/api/etags.py`).
    """


def refuse_other_version(version: int, expected: int | None) -> None:
    """Raises `Overtaken` as a `version_conflict` where a row has moved on since `expected` was read; None: any."""
    if expected is not None and version != expected:
        changed = Detail("version", "changed_meanwhile", "It has changed since it was read.")
        raise Overtaken(changed, code="version_conflict")


def register(model: str, table: Mapping[str, Iterable[str]]) -> None:
    """`model` as Django labels it (`pipeline.Source`); `table` maps each status to those it may move to."""
    _tables[model] = {status: frozenset(targets) for status, targets in table.items()}


def table_of(thing: Model | type[Model]) -> Mapping[str, frozenset[str]]:
    return _tables[thing._meta.label]


def tables() -> Mapping[str, Mapping[str, frozenset[str]]]:
    return _tables


def begin(thing: Model, status: str) -> None:
    """Give a row that isn't stored yet a first status other than its model's default."""
    if not thing._state.adding or status not in table_of(thing):
        message = f"{thing._meta.label} can't begin as {status}."
        raise RuntimeError(message)
    thing.status = status  # type: ignore[attr-defined]


def refuse_unless_allowed(thing: Model, to: str) -> None:
    status: str = thing.status  # type: ignore[attr-defined]
    allowed = table_of(thing)[status]
    if to not in allowed:
        moves = ", ".join(sorted(allowed)) or "none"
        detail = Detail(
            "status",
            "move_not_allowed",
            f"It is {status} and can't become {to}; from here it can become: {moves}.",
            {"status": status, "allowed": sorted(allowed)},
        )
        raise MoveRefused(detail)


def move(thing: Model, to: str, *, under_lease: bool = False, **changes: Any) -> None:
    """Write `to` and `changes` in one statement, if the row still has the status that `thing` was read with.

    With `under_lease` the row must also still carry the lease token that `thing` was claimed with. Raises
    `MoveRefused` for a move that the table doesn't have, `Overtaken` where the row has changed since. On success the
    instance in memory is as the row is. A model with a `version` gets the next one.
    """
    refuse_unless_allowed(thing, to)
    write_as(thing, to, under_lease=under_lease, **changes)


@cache
def _names(model: type[Model]) -> frozenset[str]:
    return frozenset(field.name for field in model._meta.get_fields())


def write_as(thing: Model, to: str, *, under_lease: bool = False, **changes: Any) -> None:
    """The compare-and-set itself, for a status that is derived rather than moved."""
    expected, values = _change(thing, to, changes, under_lease=under_lease)
    raised = _raised(type(thing), values)
    if not _update(type(thing), expected, values, raised):
        if under_lease:
            counters.note_lost_lease()
        was = expected["status"]
        detail = Detail(
            "status", "changed_meanwhile", f"It is no longer {was}; read it again.", {"status": was}
        )
        raise Overtaken(detail)
    _take_over(thing, values, raised)


def move_each(changes: Sequence[tuple[Model, Mapping[str, Any]]], to: str) -> bool:
    """`move(…, under_lease=True)` of several rows of one model, each with plain values under the same names.

    False where one of them was overtaken: which one isn't known, and the caller must roll back. The instances in memory
    stay as they were.
    """
    for thing, _ in changes:
        refuse_unless_allowed(thing, to)
    model = type(changes[0][0])
    written = [_change(thing, to, values, under_lease=True) for thing, values in changes]
    return update_each(model, written, raised=_raised(model, written[0][1])) == len(written)


def _change(
    thing: Model, to: str, changes: Mapping[str, Any], *, under_lease: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the row must still be, and what is written."""
    expected: dict[str, Any] = {"pk": thing.pk, "status": thing.status}  # type: ignore[attr-defined]
    if under_lease:
        expected["lease_token"] = thing.lease_token  # type: ignore[attr-defined]
    values: dict[str, Any] = {"status": to, **changes}
    if "updated_at" in _names(type(thing)):
        values.setdefault("updated_at", utc_now())
    return expected, values


def _update(
    model: type[Model], expected: Mapping[str, Any], values: Mapping[str, Any], raised: Sequence[str]
) -> bool:
    if not any(isinstance(value, Model) or hasattr(value, "resolve_expression") for value in values.values()):
        # Django builds such an update for longer than it takes to run: `benchmarks/generation.py`.
        return bool(update_each(model, [(expected, values)], raised=raised))
    rows = model._base_manager.filter(**expected)  # noqa: SLF001  Django documents it
    return bool(rows.update(**values, **{name: F(name) + 1 for name in raised}))


def _raised(model: type[Model], values: Mapping[str, Any]) -> tuple[str, ...]:
    return ("version",) if "version" in _names(model) and "version" not in values else ()


def _take_over(thing: Model, values: Mapping[str, Any], raised: Sequence[str]) -> None:
    """Into the instance in memory, what was written."""
    for name in raised:
        setattr(thing, name, getattr(thing, name) + 1)
    for name, value in values.items():
        if not hasattr(value, "resolve_expression"):
            setattr(thing, name, value)
