"""The operators' pages beyond Django's own admin."""
