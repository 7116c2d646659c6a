"""Holds the plug-ins that speak a text and report the time of each word in it."""
