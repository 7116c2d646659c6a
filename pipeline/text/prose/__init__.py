"""Sentences: where they end, what they speak of, and which of them say nothing."""
