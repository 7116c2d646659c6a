"""Django's backend for SQLite, with a fair queue for writers."""
