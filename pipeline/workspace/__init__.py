"""Provisions, exports, purges and counts workspaces, and stores their defaults."""
