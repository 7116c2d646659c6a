"""Writes every status by compare-and-set, along tables of allowed moves.

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
    """Raised for a move that the table doesn't have; names the status and the allowed moves."""


class Overtaken(Conflict):
    """Raised when the row no longer has the status, or the lease, that it was read with.

    Its code is `conflict` (409), or `version_conflict` (412) if a version was named: by
    `refuse_other_version`, or by `If-Match` (`config/core/api/etags.py`).
    """


def refuse_other_version(version: int, expected: int | None) -> None:
    """Raise `Overtaken` as a `version_conflict` if a row has changed since `expected` (None: any) was read."""
    if expected is not None and version != expected:
        changed = Detail("version", "changed_meanwhile", "It has changed since it was read.")
        raise Overtaken(changed, code="version_conflict")


def register(model: str, table: Mapping[str, Iterable[str]]) -> None:
    """Register a table of moves from each status to its next ones; `model` is a label (`pipeline.Source`)."""
    _tables[model] = {status: frozenset(targets) for status, targets in table.items()}


def table_of(instance: Model | type[Model]) -> Mapping[str, frozenset[str]]:
    """Return the allowed moves of a model."""
    return _tables[instance._meta.label]


def tables() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """Return the allowed moves of every model, by label."""
    return _tables


def begin(instance: Model, status: str) -> None:
    """Give a row that isn't stored yet another first status than its model's default."""
    if not instance._state.adding or status not in table_of(instance):
        message = f"{instance._meta.label} can't begin as {status}."
        raise RuntimeError(message)
    instance.status = status  # type: ignore[attr-defined]


def refuse_unless_allowed(instance: Model, to: str) -> None:
    """Raise `MoveRefused` unless the table allows the move."""
    status: str = instance.status  # type: ignore[attr-defined]
    allowed = table_of(instance)[status]
    if to not in allowed:
        moves = ", ".join(sorted(allowed)) or "none"
        detail = Detail(
            "status",
            "move_not_allowed",
            f"It is {status} and can't become {to}; from here it can become: {moves}.",
            {"status": status, "allowed": sorted(allowed)},
        )
        raise MoveRefused(detail)


def move(instance: Model, to: str, *, under_lease: bool = False, **changes: Any) -> None:
    """Write a status and `changes` in one statement, if the row still has the instance's status.

    With `under_lease` the row must also still have the lease token that `instance` was claimed with. Raises
    `MoveRefused` for a move that the table doesn't have, and `Overtaken` if the row has changed since. On
    success the instance in memory is updated too. The `version` of a model that has one is incremented.
    """
    refuse_unless_allowed(instance, to)
    write_as(instance, to, under_lease=under_lease, **changes)


@cache
def _field_names(model: type[Model]) -> frozenset[str]:
    return frozenset(field.name for field in model._meta.get_fields())


def write_as(instance: Model, to: str, *, under_lease: bool = False, **changes: Any) -> None:
    """Write a status by compare-and-set without asking the table, for one that is derived rather than moved."""
    expected, values = _expected_and_new(instance, to, changes, under_lease=under_lease)
    incremented = _incremented_columns(type(instance), values)
    if not _update(type(instance), expected, values, incremented):
        if under_lease:
            counters.note_lost_lease()
        expected_status = expected["status"]
        detail = Detail(
            "status",
            "changed_meanwhile",
            f"It is no longer {expected_status}; read it again.",
            {"status": expected_status},
        )
        raise Overtaken(detail)
    _update_instance(instance, values, incremented)


def move_each(changes: Sequence[tuple[Model, Mapping[str, Any]]], to: str) -> bool:
    """Do `move(…, under_lease=True)` for several rows of one model, with plain values under the same names.

    Returns False if one of them was overtaken: which one isn't known, and the caller must roll back. The
    instances in memory stay as they were.
    """
    for instance, _ in changes:
        refuse_unless_allowed(instance, to)
    model = type(changes[0][0])
    updates = [_expected_and_new(instance, to, values, under_lease=True) for instance, values in changes]
    return update_each(model, updates, raised=_incremented_columns(model, updates[0][1])) == len(updates)


def _expected_and_new(
    instance: Model, to: str, changes: Mapping[str, Any], *, under_lease: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the row must still be, and what is written."""
    expected: dict[str, Any] = {"pk": instance.pk, "status": instance.status}  # type: ignore[attr-defined]
    if under_lease:
        expected["lease_token"] = instance.lease_token  # type: ignore[attr-defined]
    values: dict[str, Any] = {"status": to, **changes}
    if "updated_at" in _field_names(type(instance)):
        values.setdefault("updated_at", utc_now())
    return expected, values


def _update(
    model: type[Model], expected: Mapping[str, Any], values: Mapping[str, Any], incremented: Sequence[str]
) -> bool:
    """Write the values if the row is as expected; return whether it was."""
    if not any(isinstance(value, Model) or hasattr(value, "resolve_expression") for value in values.values()):
        # Django builds such an update for longer than it takes to run: `benchmarks/generation.py`.
        return bool(update_each(model, [(expected, values)], raised=incremented))
    rows = model._base_manager.filter(**expected)  # noqa: SLF001  Django documents it
    return bool(rows.update(**values, **{name: F(name) + 1 for name in incremented}))


def _incremented_columns(model: type[Model], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that the write increments."""
    return ("version",) if "version" in _field_names(model) and "version" not in values else ()


def _update_instance(instance: Model, values: Mapping[str, Any], incremented: Sequence[str]) -> None:
    """Set what was written on the instance in memory."""
    for name in incremented:
        setattr(instance, name, getattr(instance, name) + 1)
    for name, value in values.items():
        if not hasattr(value, "resolve_expression"):
            setattr(instance, name, value)
