"""Differences between SQLite and PostgreSQL, and statements that Django doesn't offer."""
