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
    """Raised for a move that the table doesn't have; its message names the status and the allowed moves."""


class Overtaken(Conflict):
    """Raised when the row no longer has the status, or the lease, that it was read with.

    Its code is `conflict` (409), or `version_conflict` (412) if a version was named: by
    `refuse_other_version`, or by `If-Match` (`config/core/api/etags.py`).
    """


def refuse_other_version(version: int, expected: int | None) -> None:
    """Raise `Overtaken` as a `version_conflict` if `version` isn't the `expected` one; `None` accepts any."""
    if expected is not None and version != expected:
        changed = Detail("version", "changed_meanwhile", "It has changed since it was read.")
        raise Overtaken(changed, code="version_conflict")


def lock_expected_version(instance: Model, expected: int | None) -> None:
    """Lock the row, and raise `Overtaken` unless it has the expected version; `None` locks nothing."""
    if expected is not None:
        rows = type(instance)._base_manager.select_for_update(of=("self",))  # noqa: SLF001  as below
        refuse_other_version(rows.values_list("version", flat=True).get(pk=instance.pk), expected)


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
    """Give a row that isn't stored yet another first status than its model's default.

    Raises `RuntimeError` if the row is stored, or the table doesn't have the status.
    """
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

    With `under_lease` the row must also still have the lease token of `instance`. The `version` of a model that
    has one is incremented, and `updated_at` set, unless `changes` has them. The instance in memory gets the new
    values too, except those that are expressions. Raises `MoveRefused` for a move that the table doesn't have,
    and `Overtaken` if the row has another status or token by now.
    """
    refuse_unless_allowed(instance, to)
    write_as(instance, to, under_lease=under_lease, **changes)


@cache
def _field_names(model: type[Model]) -> frozenset[str]:
    return frozenset(field.name for field in model._meta.get_fields())


def write_as(instance: Model, to: str, *, under_lease: bool = False, **changes: Any) -> None:
    """Do what `move` does without asking the table, for a status that is derived rather than moved.

    Raises `Overtaken` if the row has another status, or with `under_lease` another token, by now.
    """
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
    """Do `move` under the lease for several rows of one model, with plain values under the same names.

    Returns False if any row was overtaken. Then the caller must roll back, because others may be written. The
    instances in memory stay as they were. Raises `MoveRefused` if the table lacks one of the moves, `IndexError`
    if `changes` is empty.
    """
    for instance, _ in changes:
        refuse_unless_allowed(instance, to)
    model = type(changes[0][0])
    updates = [_expected_and_new(instance, to, values, under_lease=True) for instance, values in changes]
    return update_each(model, updates, incremented=_incremented_columns(model, updates[0][1])) == len(updates)


def _expected_and_new(
    instance: Model, to: str, changes: Mapping[str, Any], *, under_lease: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values that the row must still have, and the values to write."""
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
    """Write the values if the row has the expected ones, and return whether it had."""
    if not any(isinstance(value, Model) or hasattr(value, "resolve_expression") for value in values.values()):
        # Django builds such an update for longer than it takes to run: `benchmarks/generation.py`.
        return bool(update_each(model, [(expected, values)], incremented=incremented))
    rows = model._base_manager.filter(**expected)  # noqa: SLF001  Django documents it
    return bool(rows.update(**values, **{name: F(name) + 1 for name in incremented}))


def _incremented_columns(model: type[Model], values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the columns that a write of `values` increments: `version`, or none."""
    return ("version",) if "version" in _field_names(model) and "version" not in values else ()


def _update_instance(instance: Model, values: Mapping[str, Any], incremented: Sequence[str]) -> None:
    """Set the written values on the instance in memory; those that are expressions aren't known."""
    for name in incremented:
        setattr(instance, name, getattr(instance, name) + 1)
    for name, value in values.items():
        if not hasattr(value, "resolve_expression"):
            setattr(instance, name, value)
