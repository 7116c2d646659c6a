"""Computes reports about a period, for pages and mails."""
