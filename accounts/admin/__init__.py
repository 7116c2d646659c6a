"""The operators' pages for people, plans, workspaces, keys, the ledger and the audit log."""

from accounts.admin import users, workspaces

__all__ = ["users", "workspaces"]
