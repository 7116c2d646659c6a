"""Plug-ins that speak a text and say when each word of it sounds."""
