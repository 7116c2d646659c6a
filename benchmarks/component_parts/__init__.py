"""Measures parts of generation separately."""
