"""Registers the operators' pages for users, plans, workspaces, access requests, keys, ledger and audit log."""

from accounts.admin import users, whitelist_requests, workspaces

__all__ = ["users", "whitelist_requests", "workspaces"]
