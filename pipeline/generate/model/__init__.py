"""Asks a model, live or in batches, chooses the account that pays, and holds calls back by spending caps."""
