"""Analyses sentences: where they end, what they refer to, and which of them say nothing by themselves."""
