"""Serves the addresses to which other services POST: webhook sources, and mails returned to newsletters."""
