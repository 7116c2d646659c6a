"""Who may call what: tokens, log-in by token, permissions, roles, the rate limit, idempotency."""
