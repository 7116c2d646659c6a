"""The floor of a benchmark: the least SQL and views that do the same."""
