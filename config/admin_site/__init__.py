"""Serves the operators' pages beyond Django's own admin."""
