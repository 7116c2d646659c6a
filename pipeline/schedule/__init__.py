"""Decides when items are published: queues, week plans, series, recurring items, bulk recovery."""
