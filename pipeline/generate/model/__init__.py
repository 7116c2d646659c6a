"""Asking a model: the client, whose account pays, batches, costs."""
