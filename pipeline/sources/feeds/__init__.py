"""Reads feeds, for every kind of source that has one."""
