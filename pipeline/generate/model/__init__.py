"""The client that asks a model, whose account pays for it, batches of calls, and spending caps."""
