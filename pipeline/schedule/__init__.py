"""When items are published: queues, week plans, series, recurring items, bulk recovery."""
