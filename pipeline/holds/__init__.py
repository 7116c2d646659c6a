"""Holds or flags items whose source changes or is withdrawn."""
