"""Changes SQLite's tables without losing triggers and indexes.

Most changes of a column create the table under another name, copy its rows and drop the old one, with which
SQLite drops its triggers. Django knows no triggers, and only the indexes of its models. Everything else that a
migration made by SQL would be lost without an error, and with the triggers the words by which search finds rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.backends.ddl_references import Statement
from django.db.backends.sqlite3 import schema
from django.db.backends.utils import strip_quotes

if TYPE_CHECKING:
    from django.db.models import Model


class DatabaseSchemaEditor(schema.DatabaseSchemaEditor):
    """Keeps the triggers and indexes that a migration's SQL made when a table is remade."""

    def _remake_table(self, model: type[Model], *arguments: Any, **named: Any) -> None:
        """Remake the table, then create again its triggers and those of its indexes that no model names."""
        table = strip_quotes(model._meta.db_table)
        sql_indexes = self._indexes(table, besides=self._index_names(model))
        triggers = self._triggers(table)
        # Otherwise a migration without a transaction, killed halfway, would leave the table without them.
        with transaction.atomic(using=self.connection.alias):
            for name in triggers:
                # SQLite refuses to rename a table while another table's trigger names a missing one.
                self.execute(f"DROP TRIGGER {self.quote_name(name)}", params=None)
            super()._remake_table(model, *arguments, **named)  # type: ignore[misc]  # the stubs leave it out
            existing = self._indexes(table, besides=set())
            for name, sql in [*sql_indexes.items(), *triggers.items()]:
                if name not in existing:
                    self.execute(sql, params=None)

    def _triggers(self, table: str) -> dict[str, str]:
        """Return the CREATE statements, by name, of all triggers that mention the table."""
        mention = re.compile(rf"\b{re.escape(table)}\b", re.IGNORECASE)
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
            return {name: sql for name, sql in cursor.fetchall() if mention.search(sql)}

    def _indexes(self, table: str, besides: set[str]) -> dict[str, str]:
        """Return the CREATE statements, by name, of a table's explicit indexes except `besides`."""
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, sql FROM sqlite_master"
                " WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s COLLATE NOCASE ORDER BY rowid",
                [table],
            )
            return {name: sql for name, sql in cursor.fetchall() if name not in besides}

    def _index_names(self, model: type[Model]) -> set[str]:
        """Return the names of the indexes that Django makes for a model."""
        deferred = self.deferred_sql
        self.deferred_sql = []
        try:
            # table_sql() defers unique constraints that are indexes.
            self.table_sql(model)
            statements = [*self.deferred_sql, *self._model_indexes_sql(model)]  # type: ignore[attr-defined]
        finally:
            self.deferred_sql = deferred
        return {
            strip_quotes(str(statement.parts["name"]))
            for statement in statements
            if isinstance(statement, Statement) and "name" in statement.parts
        }
