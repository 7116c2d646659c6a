"""Checks that drafts of several engines must pass."""
