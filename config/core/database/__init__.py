"""What SQLite and PostgreSQL do differently, and what Django has no statement for."""
