"""Hides the differences between SQLite and PostgreSQL, and runs statements that Django doesn't offer."""
