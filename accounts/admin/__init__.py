"""The operators' pages for people, plans, workspaces, keys, the ledger and the audit log."""

from accounts.admin import people, workspaces

__all__ = ["people", "workspaces"]
