"""What `bulk_create(ignore_conflicts=True)` doesn't tell: whether a row was stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connections
from django.db.models.constants import OnConflict
from django.db.models.sql import InsertQuery

if TYPE_CHECKING:
    from django.db.models import Model


def insert_unless_there(row: Model) -> bool:
    """Store a new instance, unless a unique constraint has it already; says whether it was stored.

    Without a savepoint: nothing is refused, so nothing spoils the transaction. An insert of the same thing that isn't
    committed yet is waited for.
    """
    connection = connections["default"]
    query = InsertQuery(type(row), on_conflict=OnConflict.IGNORE)
    query.insert_values(row._meta.local_concrete_fields, [row])
    ((statement, parameters),) = query.get_compiler(connection=connection).as_sql()
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        is_stored: bool = cursor.rowcount == 1
    if is_stored:
        row._state.adding = False
        row._state.db = connection.alias
    return is_stored
