"""What SQLite and PostgreSQL do differently, and statements that are compiled once."""
