"""A copied database has nothing of the one that had its name before."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests import migrated


def test_the_journal_of_an_earlier_database_is_not_played_into_the_copy(tmp_path, monkeypatch):
    original = tmp_path / "original.sqlite3"
    with closing(sqlite3.connect(original)) as connection:
        connection.execute("CREATE TABLE ours (number)")
        connection.execute("INSERT INTO ours VALUES (1)")
        connection.commit()
    path = tmp_path / "db.sqlite3"
    earlier = sqlite3.connect(path)
    earlier.execute("PRAGMA journal_mode = WAL")
    earlier.execute("CREATE TABLE theirs (number)")
    earlier.commit()
    # Removed while it is open, as a test's database is that a thread still holds: its journal stays.
    path.unlink()
    assert path.with_name("db.sqlite3-wal").stat().st_size
    monkeypatch.setattr(migrated, "NAME", str(original))
    assert migrated.make_file(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM ours").fetchall() == [(1,)]
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("ours",)]
    earlier.close()
