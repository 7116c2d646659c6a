"""Provisions, exports and purges workspaces, and stores their defaults and saved views."""
