"""When things go out: queues, plans of a week, series, recurring items, bulk recovery."""
