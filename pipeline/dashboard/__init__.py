"""Counts and lists how a workspace is doing, for its first page and the digest."""
