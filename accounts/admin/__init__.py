"""Registers the operators' pages for users, plans, workspaces, access requests, keys, the ledger and the
audit log.
"""

from accounts.admin import users, whitelist_requests, workspaces

__all__ = ["users", "whitelist_requests", "workspaces"]
