"""Reads web pages, for every kind of source that visits some."""
