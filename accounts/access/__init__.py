"""Authenticates and limits API requests: tokens, permissions, roles, rate limits and idempotency keys."""
