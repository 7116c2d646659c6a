"""Changes of SQLite's tables that keep triggers and indexes.

Most changes of a column make the table anew under another name, copy its rows and drop the former one, with which SQLite
drops its triggers. Django knows no triggers, and only the indexes of its models: whatever else a migration made by SQL
would be gone without a word, and with the triggers the words under which new rows are found.
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
    def _remake_table(self, model: type[Model], *arguments: Any, **named: Any) -> None:
        table = strip_quotes(model._meta.db_table)
        made_by_sql = self._indexes(table, besides=self._index_names(model))
        triggers = self._triggers(table)
        # Killed halfway, a migration without a transaction of its own would leave the table without them.
        with transaction.atomic(using=self.connection.alias):
            for name in triggers:
                # SQLite refuses to rename a table while a trigger of another one names it in vain.
                self.execute(f"DROP TRIGGER {self.quote_name(name)}", params=None)
            super()._remake_table(model, *arguments, **named)  # type: ignore[misc]  # the stubs leave it out
            there = self._indexes(table, besides=set())
            for name, sql in [*made_by_sql.items(), *triggers.items()]:
                if name not in there:
                    self.execute(sql, params=None)

    def _triggers(self, table: str) -> dict[str, str]:
        """Names and statements of the triggers of a table, and of those of others that mention it."""
        mention = re.compile(rf"\b{re.escape(table)}\b", re.IGNORECASE)
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
            return {name: sql for name, sql in cursor.fetchall() if mention.search(sql)}

    def _indexes(self, table: str, besides: set[str]) -> dict[str, str]:
        """Names and statements of a table's indexes; those that belong to its columns have no statement."""
        with self.connection.cursor() as cursor:
            cursor.execute(
                "SELECT name, sql FROM sqlite_master"
                " WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = %s COLLATE NOCASE ORDER BY rowid",
                [table],
            )
            return {name: sql for name, sql in cursor.fetchall() if name not in besides}

    def _index_names(self, model: type[Model]) -> set[str]:
        """Names of the indexes that Django makes for a model."""
        deferred = self.deferred_sql
        self.deferred_sql = []
        try:
            # It puts unique constraints that are indexes among what is run later.
            self.table_sql(model)
            statements = [*self.deferred_sql, *self._model_indexes_sql(model)]  # type: ignore[attr-defined]
        finally:
            self.deferred_sql = deferred
        return {
            strip_quotes(str(one.parts["name"]))
            for one in statements
            if isinstance(one, Statement) and "name" in one.parts
        }
