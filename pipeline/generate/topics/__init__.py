"""Runs without a source document: which topic is taken, and what is said of it."""
